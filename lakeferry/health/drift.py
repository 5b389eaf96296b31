"""Drift from what was deployed: AWS resources that were changed manually, and vendors' objects that are
missing or stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE, Verdict
from lakeferry.inventory.known import Answer, Existence, ExistenceChecker, KnownResource, read_known
from lakeferry.inventory.ownership import GIVEN_UP
from lambdas.custom_resources import registry
from lambdas.shared.aws import answer_to
from lambdas.shared.errors import LakeferryError
from lambdas.shared.redaction import redact
from lambdas.snowflake import sql

_POLL: Final = 3.0
_PATIENCE: Final = 600.0
_REPAIR: Final = "`lakeferry deploy --repair` creates it again"
_SYSTEMS: Final = {registry.CONFLUENT: CONFLUENT, registry.SNOWFLAKE: SNOWFLAKE}
#: What a new object doesn't bring back, by resource type.
_LOST: Final = {
    "topic": "empty: its records and the offsets of its consumers are lost",
    "schema": (
        "there with its latest version only: records that were written with an earlier one may not be "
        "readable"
    ),
    "tableflow_topic": "new with its table, which begins with the oldest record that the topic still has",
    "connector": "at its beginning again",
    "flink_statement": "there without its state: it reads its inputs from the beginning",
    "service_account": "known by another id: its keys and roles are replaced too, and grants of your own to "
    "it are lost",
    "snowflake_database": "empty. `UNDROP DATABASE` in Snowflake, before a repair, brings it back with "
    "everything in it",
    "snowflake_schema": "empty. `UNDROP SCHEMA` in Snowflake, before a repair, brings it back with "
    "everything in it",
    "snowflake_iceberg_table": "without streams on it and grants of your own",
    "snowflake_view": "without grants of your own on it",
    "snowflake_linked_database": "without streams on its tables and grants of your own",
    "snowflake_user": "with a new key pair, which its secret then has; grants of your own to it are lost",
    "snowflake_role": "without grants of your own to it",
    "snowflake_warehouse": "without grants of your own on it",
}
#: Objects that other stacks need by the id that Confluent gave them. A new one has another id.
_NEEDED_BY_ID: Final = ("environment", "kafka_cluster")
NOT_REPAIRABLE: Final = (
    "a new one has another id, which other stacks need: it can't be repaired. `lakeferry destroy`, then "
    "`lakeferry deploy` creates everything again; its records are lost"
)
DELETED: Final = "DELETED"
_STATUSES: Final = {
    Answer.ABSENT: DELETED,
    Answer.STOPPED: "STOPPED",
    Answer.RENAMED: "RENAMED",
    Answer.FOREIGN: "FOREIGN",
}


@attrs.frozen
class Drift:
    """`status` is MODIFIED, DELETED, STOPPED, RENAMED, FOREIGN or `unknown`.

    `stack` is set only for an object of a vendor that `deploy --repair` can bring back, or can check.
    """

    system: str
    type: str
    name: str
    status: str
    details: str = ""
    stack: str = ""


def find_missing(ctx: DeploymentContext) -> list[Drift]:
    """Return the vendors' objects of stacks that don't exist, don't work or are renamed, and those that can't
    be seen.

    Raises CommandFailed.
    """
    return list(_find_missing(ctx, _list_active_stacks(ctx)))


def detect(ctx: DeploymentContext) -> list[Drift]:
    """Return the drift of all active stacks. Raises CommandFailed."""
    active = _list_active_stacks(ctx)
    drifts: list[Drift] = []
    for stack in active:
        drifts += _detect_aws_drift(ctx, stack)
    drifts += _find_missing(ctx, active)
    return drifts


def _list_active_stacks(ctx: DeploymentContext) -> list[Stack]:
    with translate_aws_errors("reading the stacks"):
        described = (stacks.describe(ctx, name, with_resources=True) for name in stacks.list_names(ctx))
        return [stack for stack in described if stack and stack.is_active]


def _detect_aws_drift(ctx: DeploymentContext, stack: Stack) -> Iterator[Drift]:
    """Yield the drift that CloudFormation detects: in properties that the template sets, of types that
    support detection.
    """
    try:
        _run_detection(ctx, stack)
        for drift in _list_drifted_resources(ctx, stack):
            changed = [difference["PropertyPath"] for difference in drift.get("PropertyDifferences") or []]
            status = str(drift["StackResourceDriftStatus"])
            yield Drift(AWS, drift["ResourceType"], drift["LogicalResourceId"], status, ", ".join(changed))
    except (ClientError, BotoCoreError, TimeoutError) as error:
        why = f"CloudFormation can't detect drift: {_shorten_error(error)}"
        yield Drift(AWS, "stack", stack.name, Verdict.UNKNOWN, why)


def _run_detection(ctx: DeploymentContext, stack: Stack) -> None:
    """Raises TimeoutError if it takes longer than _PATIENCE seconds."""
    client = ctx.client("cloudformation")
    until = ctx.clock.time() + _PATIENCE
    id = client.detect_stack_drift(StackName=stack.name)["StackDriftDetectionId"]
    while (
        client.describe_stack_drift_detection_status(StackDriftDetectionId=id)["DetectionStatus"]
        == "DETECTION_IN_PROGRESS"
    ):
        if ctx.clock.time() > until:
            raise TimeoutError(f"it has not ended in {_PATIENCE:.0f} s")
        ctx.clock.sleep(_POLL)


def _list_drifted_resources(ctx: DeploymentContext, stack: Stack) -> Iterator[dict[str, Any]]:
    """Yield from all pages; boto3 has no paginator for this call.

    If the detection failed, yield what it found before.
    """
    query: dict[str, Any] = {
        "StackName": stack.name,
        "StackResourceDriftStatusFilters": ["MODIFIED", "DELETED"],
    }
    while True:
        page = ctx.client("cloudformation").describe_stack_resource_drifts(**query)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        query["NextToken"] = page["NextToken"]


def _find_missing(ctx: DeploymentContext, active: list[Stack]) -> Iterator[Drift]:
    checker = ExistenceChecker(ctx)
    for stack in active:
        try:
            known_resources = read_known(ctx, stack)
        except LakeferryError as error:
            yield Drift(
                AWS,
                "stack",
                stack.name,
                Verdict.UNKNOWN,
                f"the states of its objects can't be read: {error.what}",
            )
            continue
        standing = [resource for resource in known_resources if resource.status not in GIVEN_UP]
        existences = [(resource, checker.look(resource)) for resource in standing]
        # A deleted key is the reason why other objects can't be read.
        deleted = [
            _find_secret_name(resource)
            for resource, existence in existences
            if resource.identity.kind == "api_key" and existence.answer is Answer.ABSENT
        ]
        for resource, existence in existences:
            if drift := _describe(resource, existence, deleted):
                yield drift


def _describe(known: KnownResource, existence: Existence, deleted_keys: list[str]) -> Drift | None:
    """Return None for an object that is as it should be."""
    if existence.answer is Answer.THERE:
        return None
    about = Drift(_SYSTEMS[known.vendor], known.identity.kind, known.identity.logical_id, "", existence.why)
    if existence.answer is Answer.UNKNOWN:
        return _describe_unknown(known, existence, about, deleted_keys)
    if existence.answer is Answer.ABSENT and known.identity.kind in _NEEDED_BY_ID:
        return attrs.evolve(about, status=DELETED, details=NOT_REPAIRABLE)
    details = {
        Answer.ABSENT: _describe_repair(known),
        Answer.STOPPED: f"it is {existence.why}; `lakeferry deploy --repair` starts it again",
        Answer.RENAMED: (
            f"its name is {existence.why} now, and it is found by name only: rename it back to "
            f"{_find_name(known)}"
        ),
        Answer.FOREIGN: (
            f"{existence.why}. Remove or rename that one; then `lakeferry deploy --repair` creates this "
            "one again"
        ),
    }
    can_repair = existence.answer in (Answer.ABSENT, Answer.STOPPED)
    stack = known.stack.name if can_repair else ""
    return attrs.evolve(
        about, status=_STATUSES[existence.answer], details=details[existence.answer], stack=stack
    )


def _describe_unknown(
    known: KnownResource, existence: Existence, about: Drift, deleted_keys: list[str]
) -> Drift:
    unknown = attrs.evolve(about, status=Verdict.UNKNOWN)
    if existence.can_repair:
        lost = _LOST.get(known.identity.kind)
        details = f"{existence.why}; a new one is {lost}" if lost else existence.why
        return attrs.evolve(unknown, details=details, stack=known.stack.name)
    if existence.refused and deleted_keys:
        commands = ", ".join(f"`lakeferry rotate {name} --now`" for name in deleted_keys)
        why = f"{existence.why}. A key was deleted at the vendor; replace it first: {commands}"
        return attrs.evolve(unknown, details=why)
    return attrs.evolve(unknown, details=f"it can't be seen: {existence.why}")


def _describe_repair(known: KnownResource) -> str:
    if known.identity.kind == "api_key":
        return f"`lakeferry rotate {_find_secret_name(known)} --now` puts a new one into its secret"
    lost = _LOST.get(known.identity.kind)
    return f"{_REPAIR}: a new one is {lost}" if lost else _REPAIR


def _find_name(known: KnownResource) -> str:
    chosen = str(known.properties.get("name") or "")
    generated = known.state.name if known.state else ""
    return chosen.upper() or sql.to_plain_name(generated)


def _find_secret_name(known: KnownResource) -> str:
    """Return the name of the key's secret.

    Its ARN ends in a hyphen and six characters of Secrets Manager's own.
    """
    secret = str(known.properties.get("secret", ""))
    return secret.rpartition(":secret:")[2][:-7] if ":secret:" in secret else secret


def _shorten_error(error: Exception) -> str:
    if isinstance(error, ClientError):
        return redact(answer_to(error))
    return str(error) if isinstance(error, TimeoutError) else type(error).__name__
