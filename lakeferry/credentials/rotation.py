"""`lakeferry rotate`: show the ages of keys, replace a key now, revoke keys that have leaked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from config.deployments.model import Deployment
from lakeferry.credentials import rotating_secrets
from lakeferry.credentials.rotating_secrets import Age, RotatingSecret
from lakeferry.deployment import logs
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, Reporter, find_program_name, format_duration
from lambdas.rotation.versions import PENDING, Described, SecretVersions
from lambdas.shared.aws import read_error_code
from lambdas.shared.secrets import CURRENT

_COLUMNS: Final = ["secret", "age", "next rotation", "live key", "where", "other keys", ""]
_YES: Final = ("y", "yes")
#: A rotation is reported as late after this many days: Secrets Manager starts it within a window of hours,
#: and retries failures.
_LATE: Final = 1.0
#: Seconds. Confluent needs some minutes for a new Kafka key, and Secrets Manager retries failed rotations.
_ROTATION_TIMEOUT: Final = 1800.0
_POLL_SECONDS: Final = 1.0
#: Seconds by which the clocks of AWS and of this machine may differ.
_CLOCK_SKEW: Final = 30.0


@attrs.frozen
class RotationResult:
    secret: str
    version: str
    seconds: float


@attrs.frozen
class Revoked:
    """Ids of keys: `revoked`, `unmanaged` (not created by Lakeferry, so not revoked), and `kept`, the one
    that remains.
    """

    secret: str
    revoked: tuple[str, ...]
    unmanaged: tuple[str, ...]
    kept: str


def check(output: Output, stage: str, selector: str | None) -> dict[str, Any]:
    """Show the ages of keys.

    Raises CommandFailed if a key is too old, or a rotation is late or doesn't end.
    """
    with open_context(stage) as ctx:
        with output.step("Reading the ages of keys"):
            ages = rotating_secrets.read_ages(ctx, rotating_secrets.load(ctx, selector))
            if not selector:
                ages += rotating_secrets.read_manual_ages(ctx)
        show(output, ctx.deployment, ages)
        document = {"stage": stage, "secrets": build_documents(ages), "rotated": [], "revoked": []}
        problems = [
            f"{age.secret}: {trouble}" for age in ages for trouble in list_troubles(ctx.deployment, age)
        ]
        if problems:
            raise CommandFailed("KEY-OVERDUE", "; ".join(problems), details=document)
        return document


def now(output: Output, stage: str, selector: str | None, *, yes: bool) -> dict[str, Any]:
    """Rotate secrets one after the other.

    Raises CommandFailed for the first one that fails; its previous key stays current.
    """
    with open_context(stage) as ctx:
        secrets = rotating_secrets.load(ctx, selector)
        names = ", ".join(secret.name for secret in secrets)
        _require_confirmation(
            output, f"Replace the keys in {names}? The previous keys stay valid. Type yes", yes=yes
        )
        results: list[RotationResult] = []
        try:
            for secret in secrets:
                results.append(_rotate(output, ctx, secret))
        except KeyboardInterrupt:
            raise _explain_interrupted(
                ctx,
                secrets[len(results)],
                "its previous key stays valid",
                f"rotate {secrets[len(results)].name}",
            ) from None
        return {
            "stage": stage,
            "secrets": [],
            "rotated": [attrs.asdict(rotation) for rotation in results],
            "revoked": [],
        }


def revoke(output: Output, stage: str, selector: str | None, *, yes: bool) -> dict[str, Any]:
    """Revoke older keys, rotate, and revoke older keys again, so that only the new key is valid.

    Raises CommandFailed.
    """
    with open_context(stage) as ctx:
        secrets = rotating_secrets.load(ctx, selector) if selector else []
        if len(secrets) != 1:
            hint = "Name one secret; `lakeferry rotate` lists them"
            raise CommandFailed("ROTATE-UNKNOWN", "--revoke revokes the keys of a single secret", hint)
        (secret,) = secrets
        question = (
            f"Clients that use an older key of {secret.name} fail once and read the secret again. Type yes "
            "to continue"
        )
        _require_confirmation(output, question, yes=yes)
        try:
            first = _revoke(output, ctx, secret)
            rotated = _rotate(output, ctx, secret, then="it is revoked next")
            second = _revoke(output, ctx, secret)
        except KeyboardInterrupt:
            remaining = "an older key may still be valid, also one that has leaked"
            raise _explain_interrupted(ctx, secret, remaining, f"rotate {secret.name} --revoke") from None
        output.print(f"Now exactly one key is valid: {second.kept}")
        both = [attrs.asdict(age) for age in (first, second)]
        return {"stage": stage, "secrets": [], "rotated": [attrs.asdict(rotated)], "revoked": both}


def show(output: Output, deployment: Deployment, ages: list[Age]) -> None:
    if not ages:
        output.print("The deployment has no keys")
        return
    rows = [_build_row(deployment, age) for age in ages]
    output.table(_COLUMNS, rows)
    for age in ages:
        if age.trouble:
            output.print(f"  ? {age.secret}: not asked: {age.trouble}")


def list_troubles(deployment: Deployment, age: Age) -> Iterator[str]:
    """Yield what is wrong with a key's age or its rotation, one message for each problem."""
    alerts = deployment.alerts
    limit = (
        alerts.deployer_key_age_days
        if age.by_hand
        else alerts.key_age_days or deployment.rotation.every_days * 3 // 2
    )
    if age.age_days is None and not age.by_hand:
        yield f"its age could not be read: {age.trouble}"
    if age.age_days is not None and age.age_days > limit:
        yield f"its key is {age.age_days:.0f} days old; the limit is {limit}"
    if age.overdue_days > _LATE:
        yield f"a rotation is {age.overdue_days:.0f} days overdue"
    if age.pending_days > _LATE:
        yield f"a rotation has been under way for {age.pending_days:.0f} days"


def build_documents(ages: Iterable[Age]) -> list[dict[str, Any]]:
    return [attrs.asdict(age) | {"keys": [dict(key) for key in age.keys]} for age in ages]


def _build_row(deployment: Deployment, age: Age) -> list[str]:
    live = next((key["id"] for key in age.keys if key["label"] == age.label), "")
    others = ", ".join(f"{key['id']} ({key['label'] or 'no label'})" for key in age.keys if key["id"] != live)
    days = "" if age.age_days is None else f"{age.age_days:.1f} days"
    remarks = list(list_troubles(deployment, age))
    if age.trouble:
        remarks.append("not checked")
    elif age.by_hand:
        remarks.append("created manually")
    due = datetime.fromtimestamp(age.next_rotation, UTC).strftime("%Y-%m-%d") if age.next_rotation else ""
    return [age.secret, days, due, live, age.label, others, "; ".join(remarks)]


def _rotate(
    output: Output, ctx: DeploymentContext, secret: RotatingSecret, *, then: str = "it stays valid"
) -> RotationResult:
    """`then` says what becomes of the previous key."""
    with output.step(f"Rotating {secret.name}") as report:
        result = rotate_now(ctx, secret, report)
    output.print(
        f"{secret.name}: new key active after {format_duration(result.seconds)}. The previous key: {then}"
    )
    return result


def _revoke(output: Output, ctx: DeploymentContext, secret: RotatingSecret) -> Revoked:
    with output.step(f"Revoking older keys of {secret.name}"):
        result = revoke_now(ctx, secret)
    output.print(f"{secret.name}: {', '.join(result.revoked) or 'no key'} revoked; {result.kept} stays")
    if result.unmanaged:
        others = ", ".join(result.unmanaged)
        output.warn(
            f"  not created by Lakeferry, and still valid: {others}. Find out who owns them, and UNSET "
            "them in Snowflake"
        )
    return result


def _explain_interrupted(
    ctx: DeploymentContext, secret: RotatingSecret, remaining: str, command: str
) -> CommandFailed:
    """Return the error for Ctrl-C.

    A rotation that Secrets Manager has started continues without this command.
    """
    message = (
        f"interrupted while watching {secret.name}; a rotation that has started continues in AWS, and "
        f"{remaining}"
    )
    call = find_program_name()
    stage = ctx.stage
    hint = f"`{call} rotate --stage {stage}` shows its keys; `{call} {command} --stage {stage}` finishes it"
    return CommandFailed("ROTATE-STOPPED", message, hint, {"secret": secret.name})


def _require_confirmation(output: Output, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not output.can_prompt:
        raise CommandFailed(
            "ROTATE-NOT-CONFIRMED",
            "confirmation is required, and the session is not interactive; nothing was changed",
        )
    if output.ask(question).lower() not in _YES:
        raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")


def rotate_now(ctx: DeploymentContext, secret: RotatingSecret, report: Reporter) -> RotationResult:
    """Rotate a secret and wait until the new key is current.

    Raises CommandFailed if it fails or takes longer than 30 minutes.
    """
    started = ctx.clock.time()
    before = len(_read_log_lines(ctx, secret, started))
    version = _start_rotation(ctx, secret)
    while not _is_current(ctx, secret, version):
        waited = ctx.clock.time() - started
        for line in _read_log_lines(ctx, secret, started)[before:]:
            report(f"{secret.name}: {line.get('step', '')} {line['message']}, {format_duration(waited)}")
            if line["message"] == "failed":
                raise rotating_secrets.read_refusal(secret, str(line.get("reason", "")))
        if waited > _ROTATION_TIMEOUT:
            message = f"{secret.name}: no new key after {format_duration(waited)}; Secrets Manager continues"
            raise CommandFailed("ROTATE-LATER", message)
        ctx.clock.sleep(_POLL_SECONDS)
    return RotationResult(secret.name, version, ctx.clock.time() - started)


def revoke_now(ctx: DeploymentContext, secret: RotatingSecret) -> Revoked:
    """Revoke every key but the current one. Raises CommandFailed."""
    answer = rotating_secrets.ask(ctx, secret, "revoke")
    return Revoked(answer["secret"], tuple(answer["revoked"]), tuple(answer["unmanaged"]), answer["kept"])


def _start_rotation(ctx: DeploymentContext, secret: RotatingSecret) -> str:
    """Start a rotation and return the version that will become current.

    If an earlier rotation has not ended, return its version: Secrets Manager retries it.
    """
    with translate_aws_errors(f"rotating {secret.name}"):
        try:
            return str(ctx.client("secretsmanager").rotate_secret(SecretId=secret.arn)["VersionId"])
        except ClientError as error:
            if read_error_code(error) != "InvalidRequestException":
                raise
            described = _describe(ctx, secret)
            pending = described.labelled(PENDING)
            if pending in ("", described.labelled(CURRENT)):  # no rotation is in progress
                raise
            return pending


def _is_current(ctx: DeploymentContext, secret: RotatingSecret, version: str) -> bool:
    with translate_aws_errors(f"describing secret {secret.name}"):
        return _describe(ctx, secret).labelled(CURRENT) == version


def _describe(ctx: DeploymentContext, secret: RotatingSecret) -> Described:
    return SecretVersions(ctx.client("secretsmanager"), secret.arn).describe()


def _read_log_lines(ctx: DeploymentContext, secret: RotatingSecret, since: float) -> list[dict[str, Any]]:
    """Return the function's log lines about the secret, none if the log can't be read.

    `since` is in seconds since 1970.
    """
    try:
        lines = logs.read_function_lines(ctx, secret.function.log_group, since - _CLOCK_SKEW)
        entries = [line.fields for line in lines]
    except (ClientError, BotoCoreError):
        return []
    names = (secret.name, secret.arn)
    return [entry for entry in entries if entry.get("message") and entry.get("secret") in names]
