"""A deployment's rotating secrets, and what the function that rotates them says of each."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from lakeferry import errors
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Function, Stack, functions, physical_ids
from lakeferry.deployment.stacks import read as read_stacks
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas import contract
from lambdas.monitoring.measurements import SecretKeys, name_of
from lambdas.rotation.versions import DAY, SecretVersions
from lambdas.shared.errors import LakeferryError

PARTS: Final = ("confluent", "snowflake")
_SCHEDULE: Final = "AWS::SecretsManager::RotationSchedule"
_AT_ONCE: Final = 4


@attrs.frozen
class RotatingSecret:
    """`function` rotates it."""

    arn: str
    vendor: str
    function: Function

    @property
    def name(self) -> str:
        return name_of(self.arn)


@attrs.frozen
class Age:
    """`label` is the live key's slot, or its version's label. `trouble` says why the vendor wasn't asked.

    A key that people made has no rotation, and its vendor isn't asked.
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


def of(ctx: DeploymentContext, chosen: str | None = None) -> list[RotatingSecret]:
    """All that stand, or those that `chosen` means: a vendor, a secret's name, or its end. Raises CommandFailed."""
    standing = read_stacks(ctx)
    stacks = {name: standing.get(f"{ctx.deployment.prefix}-{name}") for name in PARTS}
    found = [each for name, stack in stacks.items() if stack and stack.is_active for each in _of_stack(ctx, name, stack)]
    if chosen is None:
        return found
    mine = [each for each in found if chosen in (each.vendor, each.name, each.arn) or each.name.endswith(f"/{chosen}")]
    if not mine:
        names = ", ".join(each.name for each in found) or f"none; `lakeferry deploy --stage {ctx.stage}` makes them"
        raise CommandFailed("ROTATE-UNKNOWN", f"no secret that rotates is called {chosen!r}", f"There are: {names}")
    return mine


def ages(ctx: DeploymentContext, secrets: list[RotatingSecret]) -> list[Age]:
    """Return the ages in the order of `secrets`, with the reason where one can't be read."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(functools.partial(age, ctx), secrets))


def by_hand(ctx: DeploymentContext) -> list[Age]:
    """Of the keys that people make and store."""
    deployment = ctx.deployment
    names = {"confluent": deployment.confluent.cloud_key_secret}
    if deployment.snowflake and deployment.uses_snowflake:
        names["snowflake"] = deployment.snowflake.key_secret
    return [_made_by_hand(ctx, vendor, name) for vendor, name in names.items()]


def _made_by_hand(ctx: DeploymentContext, vendor: str, name: str) -> Age:
    days, trouble = None, ""
    try:
        with translate_aws_errors(f"looking at secret {name}"):
            days = round(SecretKeys(ctx.client("secretsmanager"), ctx.clock.time).age_days(name), 3)
    except CommandFailed as failure:
        trouble = f"{failure.code}  {failure.message}"
    except LakeferryError as error:
        trouble = f"{error.row.code}  {error.what}"
    return Age(name, vendor, days, None, 0.0, 0.0, "", (), trouble, by_hand=True)


def age(ctx: DeploymentContext, secret: RotatingSecret) -> Age:
    try:
        answer = ask(ctx, secret, "status")
    except CommandFailed as failure:
        answer = failure.details or {}
        return _dates(ctx, secret, f"{answer['code']}  {answer['what']}" if answer else f"{failure.code}  {failure.message}")
    keys = tuple(answer["keys"])
    numbers = (answer["age_days"], answer["next_rotation"], answer["overdue_days"], answer["pending_days"])
    return Age(secret.name, secret.vendor, *numbers, answer["current_label"], keys)


def ask(ctx: DeploymentContext, secret: RotatingSecret, operation: str) -> dict[str, Any]:
    """The answer of the rotation's function to an operator. Raises CommandFailed with its reason."""
    payload = json.dumps({"operation": operation, "secret": secret.arn}).encode()
    with translate_aws_errors(f"asking function {secret.function.name}"):
        answer = ctx.client("lambda").invoke(FunctionName=secret.function.name, Payload=payload)
        said: dict[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise refused(secret, str(said.get("errorMessage", "")))
    return said


def refused(secret: RotatingSecret, message: str) -> CommandFailed:
    """What the function said when it failed. The key that is current stays so."""
    reported = errors.read(message)
    if reported is None:
        hint = "Look at `lakeferry logs rotation`, then run the command again"
        return CommandFailed("ROTATE-FAILED", f"{secret.name}: the function failed", hint)
    entry = reported.entry
    hint = f"{entry.remedy} More: `lakeferry explain {entry.code}`"
    details = {"code": entry.code, "what": reported.what, "cause": entry.cause, "remedy": entry.remedy}
    return CommandFailed("ROTATE-FAILED", f"{secret.name}: {reported}", hint, details, why=entry.cause)


def _of_stack(ctx: DeploymentContext, vendor: str, stack: Stack) -> Iterator[RotatingSecret]:
    ids = physical_ids(ctx, stack)
    for function in functions(ctx, stack, contract.ROTATE):
        for logical_id in stack.logical_ids(_SCHEDULE):
            secret = stack.template["Resources"][logical_id]["Properties"]["SecretId"]["Ref"]
            yield RotatingSecret(ids[secret], vendor, function)


def _dates(ctx: DeploymentContext, secret: RotatingSecret, trouble: str) -> Age:
    """What Secrets Manager alone says."""
    client = ctx.client("secretsmanager")
    with translate_aws_errors(f"looking at secret {secret.name}"):
        described = SecretVersions(client, secret.arn).describe()
        days = SecretKeys(client, ctx.clock.time).age_days(secret.arn)
    due = described.next_rotation
    overdue = max(0.0, ctx.clock.time() - due) / DAY if due else 0.0
    return Age(secret.name, secret.vendor, round(days, 3), due, round(overdue, 3), 0.0, "", (), trouble)
