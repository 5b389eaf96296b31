"""The rotation of keys on request: how old they are, a new key now, and revoking keys that have leaked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from deployments.model import Deployment
from lakeferry.credentials import rotating_secrets
from lakeferry.credentials.rotating_secrets import Age, RotatingSecret
from lakeferry.deployment import logs
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, Reporter, format_duration, program_name
from lambdas.rotation.versions import CURRENT, PENDING, Described, SecretVersions
from lambdas.shared.aws import error_code

_COLUMNS: Final = ["secret", "age", "next rotation", "live key", "where", "other keys", ""]
_YES: Final = ("y", "yes")
#: Days by which a rotation may be late: Secrets Manager has a window of hours, and tries again what failed.
_LATE: Final = 1.0

#: A new Kafka key takes Confluent some minutes, and Secrets Manager tries again what failed.
_PATIENCE: Final = 1800.0
_POLL: Final = 3.0
#: Clocks of AWS and of this machine.
_SKEW: Final = 30.0


@attrs.frozen
class RotationResult:
    secret: str
    version: str
    seconds: float


@attrs.frozen
class Revoked:
    """Ids of keys: those that are gone, those that the secret knows nothing of, and the one that is left."""

    secret: str
    revoked: tuple[str, ...]
    unmanaged: tuple[str, ...]
    kept: str


def check(output: Output, stage: str, chosen: str | None) -> dict[str, Any]:
    """Raises CommandFailed where a key is too old, or a rotation late or stuck."""
    with open_context(stage) as ctx:
        with output.step("Asking for the ages of keys"):
            found = [
                *rotating_secrets.ages(ctx, rotating_secrets.of(ctx, chosen)),
                *([] if chosen else rotating_secrets.by_hand(ctx)),
            ]
        show(output, ctx.deployment, found)
        document = {"stage": stage, "secrets": documents(found), "rotated": [], "revoked": []}
        if wrong := [f"{one.secret}: {trouble}" for one in found for trouble in troubles(ctx.deployment, one)]:
            raise CommandFailed("KEY-OVERDUE", "; ".join(wrong), details=document)
        return document


def now(output: Output, stage: str, chosen: str | None, *, yes: bool) -> dict[str, Any]:
    """One after the other. Raises CommandFailed with the first that fails; then its key of before stays."""
    with open_context(stage) as ctx:
        wanted = rotating_secrets.of(ctx, chosen)
        names = ", ".join(one.name for one in wanted)
        _require_agreed(output, f"Replace the keys in {names}? The previous keys stay valid. Type yes", yes=yes)
        done: list[RotationResult] = []
        try:
            for one in wanted:
                done.append(_turned(output, ctx, one))
        except KeyboardInterrupt:
            raise _stopped(ctx, wanted[len(done)], "its previous key stays valid", f"rotate {wanted[len(done)].name}") from None
        return {"stage": stage, "secrets": [], "rotated": [attrs.asdict(one) for one in done], "revoked": []}


def revoke(output: Output, stage: str, chosen: str | None, *, yes: bool) -> dict[str, Any]:
    """A key has leaked: what was replaced last goes, the current one is replaced, and goes too. Raises CommandFailed."""
    with open_context(stage) as ctx:
        wanted = rotating_secrets.of(ctx, chosen) if chosen else []
        if len(wanted) != 1:
            hint = "Name one secret: `lakeferry rotate` lists them"
            raise CommandFailed("ROTATE-UNKNOWN", "--revoke takes the keys of one secret away", hint)
        (secret,) = wanted
        question = f"Readers of {secret.name} that hold an older key fail once, and read the secret again. Type yes to go on"
        _require_agreed(output, question, yes=yes)
        try:
            first = _revoked(output, ctx, secret)
            turned = _turned(output, ctx, secret)
            second = _revoked(output, ctx, secret)
        except KeyboardInterrupt:
            still = "an older key may still be valid, also one that has leaked"
            raise _stopped(ctx, secret, still, f"rotate {secret.name} --revoke") from None
        output.print(f"Now exactly one key is valid: {second.kept}")
        both = [attrs.asdict(one) for one in (first, second)]
        return {"stage": stage, "secrets": [], "rotated": [attrs.asdict(turned)], "revoked": both}


def show(output: Output, deployment: Deployment, found: list[Age]) -> None:
    rows = [_row(deployment, one) for one in found]
    output.table(_COLUMNS, rows)
    for one in found:
        if one.trouble:
            output.print(f"  ? {one.secret}: not asked: {one.trouble}")


def troubles(deployment: Deployment, age: Age) -> Iterator[str]:
    """What is wrong with a key's age or its rotation."""
    alerts = deployment.alerts
    limit = alerts.deployer_key_age_days if age.by_hand else alerts.key_age_days or deployment.rotation.every_days * 3 // 2
    if age.age_days is not None and age.age_days > limit:
        yield f"its key is {age.age_days:.0f} days old, and {limit} are the limit"
    if age.overdue_days > _LATE:
        yield f"a rotation is {age.overdue_days:.0f} days overdue"
    if age.pending_days > _LATE:
        yield f"a rotation has been under way for {age.pending_days:.0f} days"


def documents(found: Iterable[Age]) -> list[dict[str, Any]]:
    return [attrs.asdict(one) | {"keys": [dict(key) for key in one.keys]} for one in found]


def _row(deployment: Deployment, age: Age) -> list[str]:
    live = next((key["id"] for key in age.keys if key["label"] == age.label), "")
    others = ", ".join(f"{key['id']} ({key['label'] or 'no label'})" for key in age.keys if key["id"] != live)
    days = "" if age.age_days is None else f"{age.age_days:.1f} days"
    hints = ["not asked ?"] if age.trouble else ["made by hand"] if age.by_hand else []
    remarks = "; ".join([*troubles(deployment, age), *hints])
    due = datetime.fromtimestamp(age.next_rotation, UTC).strftime("%Y-%m-%d") if age.next_rotation else ""
    return [age.secret, days, due, live, age.label, others, remarks]


def _turned(output: Output, ctx: DeploymentContext, secret: RotatingSecret) -> RotationResult:
    with output.step(f"Rotating {secret.name}") as report:
        done = rotate_now(ctx, secret, report)
    output.print(f"{secret.name}: new key active after {format_duration(done.seconds)}; the previous key stays valid")
    return done


def _revoked(output: Output, ctx: DeploymentContext, secret: RotatingSecret) -> Revoked:
    with output.step(f"Revoking older keys of {secret.name}"):
        done = revoke_now(ctx, secret)
    output.print(f"{secret.name}: {', '.join(done.revoked) or 'no key'} revoked; {done.kept} stays")
    if done.unmanaged:
        output.warn(f"  not ours, and still valid: {', '.join(done.unmanaged)}. Look whose they are, and UNSET them in Snowflake")
    return done


def _stopped(ctx: DeploymentContext, secret: RotatingSecret, still: str, words: str) -> CommandFailed:
    """What Secrets Manager and its function have begun goes on, and we don't see how it ends."""
    message = f"stopped watching {secret.name}; a rotation that has begun goes on in AWS, and {still}"
    call, stage = program_name(), ctx.stage
    hint = f"`{call} rotate --stage {stage}` shows its keys; `{call} {words} --stage {stage}` finishes it"
    return CommandFailed("ROTATE-STOPPED", message, hint, {"secret": secret.name})


def _require_agreed(output: Output, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not output.can_prompt:
        raise CommandFailed(
            "ROTATE-NOT-CONFIRMED", "confirmation is required, and the session is not interactive; nothing was changed"
        )
    if output.ask(question).lower() not in _YES:
        raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")


def rotate_now(ctx: DeploymentContext, secret: RotatingSecret, report: Reporter) -> RotationResult:
    """Returns once the new key is current. Raises CommandFailed where it fails, or takes longer than we wait."""
    began = ctx.clock.time()
    before = len(_lines(ctx, secret, began))
    version = _begun(ctx, secret)
    while not _is_current(ctx, secret, version):
        waited = ctx.clock.time() - began
        for line in _lines(ctx, secret, began)[before:]:
            report(f"{secret.name}: {line.get('step', '')} {line['message']}, {format_duration(waited)}")
            if line["message"] == "failed":
                raise rotating_secrets.refused(secret, str(line.get("reason", "")))
        if waited > _PATIENCE:
            message = f"{secret.name}: no new key after {format_duration(waited)}; Secrets Manager goes on"
            raise CommandFailed("ROTATE-LATER", message)
        ctx.clock.sleep(_POLL)
    return RotationResult(secret.name, version, ctx.clock.time() - began)


def revoke_now(ctx: DeploymentContext, secret: RotatingSecret) -> Revoked:
    """Every key but the current one is gone at once. Raises CommandFailed."""
    answer = rotating_secrets.ask(ctx, secret, "revoke")
    return Revoked(answer["secret"], tuple(answer["revoked"]), tuple(answer["unmanaged"]), answer["kept"])


def _begun(ctx: DeploymentContext, secret: RotatingSecret) -> str:
    """The version that shall become current. A rotation that failed is tried again instead of a new one beginning."""
    with translate_aws_errors(f"rotating {secret.name}"):
        try:
            return str(ctx.client("secretsmanager").rotate_secret(SecretId=secret.arn)["VersionId"])
        except ClientError as error:
            if error_code(error) != "InvalidRequestException" or not (pending := _described(ctx, secret).labelled(PENDING)):
                raise
            return pending


def _is_current(ctx: DeploymentContext, secret: RotatingSecret, version: str) -> bool:
    with translate_aws_errors(f"looking at secret {secret.name}"):
        return _described(ctx, secret).labelled(CURRENT) == version


def _described(ctx: DeploymentContext, secret: RotatingSecret) -> Described:
    return SecretVersions(ctx.client("secretsmanager"), secret.arn).describe()


def _lines(ctx: DeploymentContext, secret: RotatingSecret, began: float) -> list[dict[str, Any]]:
    """What the function has said of the secret since, as far as its log can be read."""
    try:
        lines = [_json(line.text) for line in logs.of_function(ctx, secret.function.log_group, began - _SKEW)]
    except (ClientError, BotoCoreError):
        return []
    return [line for line in lines if line.get("message") and line.get("secret") in (secret.name, secret.arn)]


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
