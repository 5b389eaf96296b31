"""List a deployment's rotating secrets and the age of their keys, and call the function that rotates them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs
from botocore.config import Config

from lakeferry import errors
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Function, Stack, list_functions, read_physical_ids
from lakeferry.deployment.stacks import read as read_stacks
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas import contract
from lambdas.monitoring.measurements import SecretKeys, read_name
from lambdas.rotation.versions import DAY, SecretVersions
from lambdas.shared.errors import LakeferryError

PARTS: Final = ("confluent", "snowflake", "exports")
_SCHEDULE: Final = "AWS::SecretsManager::RotationSchedule"
_AT_ONCE: Final = 4
#: The client waits until the rotation function ends, and doesn't retry: a second invocation would run beside
#: the first.
UNTIL_ITS_END: Final = Config(
    connect_timeout=5,
    read_timeout=contract.ROTATION_TIMEOUT_SECONDS + 10,
    tcp_keepalive=True,
    retries={"total_max_attempts": 1},
)


@attrs.frozen
class RotatingSecret:
    """A secret and the function that rotates it."""

    arn: str
    vendor: str
    function: Function

    @property
    def name(self) -> str:
        return read_name(self.arn)


@attrs.frozen
class Age:
    """The age of a key. `label` is the slot or version label of the live key; `trouble` says why the vendor
    wasn't asked.

    `by_hand` is true for a key that people create. Such a key doesn't rotate, and the vendor isn't asked
    about it. `next_rotation` is in seconds since 1970.
    """

    secret: str
    vendor: str
    age_days: float | None
    next_rotation: float | None
    overdue_days: float
    pending_days: float
    label: str
    keys: tuple[Mapping[str, str], ...]
    trouble: str = ""
    by_hand: bool = False


def load(ctx: DeploymentContext, selector: str | None = None) -> list[RotatingSecret]:
    """Return the rotating secrets. Raises CommandFailed if none matches.

    `selector` is a vendor, an ARN, a name, or the part of a name after a slash; None selects all secrets.
    """
    deployed = read_stacks(ctx)
    stacks = {name: deployed.get(f"{ctx.deployment.prefix}-{name}") for name in PARTS}
    secrets: list[RotatingSecret] = []
    for name, stack in stacks.items():
        if stack and stack.is_active:
            secrets += _list_in_stack(ctx, name, stack)
    if selector is None:
        return secrets
    selected = [
        secret
        for secret in secrets
        if selector in (secret.vendor, secret.name, secret.arn) or secret.name.endswith(f"/{selector}")
    ]
    if not selected:
        names = ", ".join(secret.name for secret in secrets)
        if not names:
            names = f"none; `lakeferry deploy --stage {ctx.stage}` creates them"
        raise CommandFailed(
            "ROTATE-UNKNOWN", f"no rotating secret matches {selector!r}", f"Rotating secrets: {names}"
        )
    return selected


def read_ages(ctx: DeploymentContext, secrets: list[RotatingSecret]) -> list[Age]:
    """Return the ages in the order of `secrets`. `trouble` says why a vendor could not be asked."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(functools.partial(read_age, ctx), secrets))


def read_manual_ages(ctx: DeploymentContext) -> list[Age]:
    """Return the ages of the keys that people create and store."""
    deployment = ctx.deployment
    names = [("confluent", name) for name in deployment.manual_secrets]
    if deployment.snowflake and deployment.uses_snowflake:
        names.append(("snowflake", deployment.snowflake.key_secret))
    return [_read_manual_age(ctx, vendor, name) for vendor, name in names]


def _read_manual_age(ctx: DeploymentContext, vendor: str, name: str) -> Age:
    days = None
    trouble = ""
    try:
        with translate_aws_errors(f"describing secret {name}"):
            days = round(SecretKeys(ctx.client("secretsmanager"), ctx.clock.time).age_days(name), 3)
    except CommandFailed as failure:
        trouble = f"{failure.code}  {failure.message}"
    except LakeferryError as error:
        trouble = f"{error.kind.code}  {error.what}"
    return Age(name, vendor, days, None, 0.0, 0.0, "", (), trouble, by_hand=True)


def read_age(ctx: DeploymentContext, secret: RotatingSecret) -> Age:
    """Return the age that the rotation function reports, or the age from Secrets Manager if the function
    fails.
    """
    try:
        answer = ask(ctx, secret, "status")
    except CommandFailed as failure:
        details = failure.details or {}
        code = details.get("code", failure.code)
        message = details.get("what", failure.message)
        return _read_age_without_vendor(ctx, secret, f"{code}  {message}")
    keys = tuple(answer["keys"])
    numbers = (answer["age_days"], answer["next_rotation"], answer["overdue_days"], answer["pending_days"])
    return Age(secret.name, secret.vendor, *numbers, answer["current_label"], keys)


def ask(ctx: DeploymentContext, secret: RotatingSecret, operation: str) -> dict[str, Any]:
    """Invoke the rotation function and return its response.

    Raises CommandFailed with the function's error.
    """
    payload = json.dumps({"operation": operation, "secret": secret.arn}).encode()
    with translate_aws_errors(f"calling function {secret.function.name}"):
        client = ctx.client("lambda", UNTIL_ITS_END)
        answer = client.invoke(FunctionName=secret.function.name, Payload=payload)
        document: dict[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise read_refusal(secret, str(document.get("errorMessage", "")))
    return document


def read_refusal(secret: RotatingSecret, message: str) -> CommandFailed:
    """Return the error that the function reported in `message`. The current key stays current."""
    reported = errors.read(message)
    if reported is None:
        hint = "Read `lakeferry logs rotation`, then run the command again"
        return CommandFailed("ROTATE-FAILED", f"{secret.name}: the function failed", hint)
    entry = reported.entry
    hint = f"{reported.remedy} More: `lakeferry explain {entry.code}`"
    details = {"code": entry.code, "what": reported.what, "cause": entry.cause, "remedy": reported.remedy}
    return CommandFailed("ROTATE-FAILED", f"{secret.name}: {reported}", hint, details, why=entry.cause)


def _list_in_stack(ctx: DeploymentContext, vendor: str, stack: Stack) -> Iterator[RotatingSecret]:
    ids = read_physical_ids(ctx, stack)
    for function in list_functions(ctx, stack, contract.ROTATE):
        for logical_id in stack.logical_ids(_SCHEDULE):
            secret = stack.template["Resources"][logical_id]["Properties"]["SecretId"]["Ref"]
            yield RotatingSecret(ids[secret], vendor, function)


def read_age_in_aws(ctx: DeploymentContext, secret: RotatingSecret, trouble: str = "") -> Age:
    """Return what Secrets Manager knows without the vendor: the age of the current version, and when the next
    rotation is due.

    Raises CommandFailed, LakeferryError.
    """
    client = ctx.client("secretsmanager")
    with translate_aws_errors(f"describing secret {secret.name}"):
        described = SecretVersions(client, secret.arn).describe()
        days = SecretKeys(client, ctx.clock.time).age_days(secret.arn)
    due = described.next_rotation
    overdue = max(0.0, ctx.clock.time() - due) / DAY if due else 0.0
    return Age(secret.name, secret.vendor, round(days, 3), due, round(overdue, 3), 0.0, "", (), trouble)


def _read_age_without_vendor(ctx: DeploymentContext, secret: RotatingSecret, trouble: str) -> Age:
    """Return an age without days if Secrets Manager refuses to tell."""
    try:
        return read_age_in_aws(ctx, secret, trouble)
    except (CommandFailed, LakeferryError):  # the first trouble explains more
        return Age(secret.name, secret.vendor, None, None, 0.0, 0.0, "", (), trouble)
