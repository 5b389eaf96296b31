"""Drift from what was deployed: AWS resources that were changed manually, and vendors' objects that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry import inventory
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE, Item, Verdict
from lakeferry.plan.templates import resources_of
from lambdas.confluent.client import objects, path, text
from lambdas.custom_resources import request
from lambdas.custom_resources.request import Identity
from lambdas.shared.aws import error_code
from lambdas.shared.errors import LakeferryError

_POLL: Final = 3.0
_PATIENCE: Final = 600.0
_REPAIR: Final = "`lakeferry deploy --repair` creates it again"
#: Resource types whose objects the inventory lists with their names at the vendor.
_LISTED: Final = (
    "environment", "kafka_cluster", "service_account", "provider_integration", "flink_compute_pool", "connector",
    "snowflake_warehouse", "snowflake_database", "snowflake_schema", "snowflake_iceberg_table", "snowflake_user",
    "snowflake_role", "snowflake_external_volume", "snowflake_catalog_integration",
)  # fmt: skip


@attrs.frozen
class Drift:
    """`status` is MODIFIED, DELETED or `unknown`. `stack` is set only for the missing object of a vendor."""

    system: str
    type: str
    name: str
    status: str
    details: str = ""
    stack: str = ""


def missing(ctx: DeploymentContext) -> list[Drift]:
    """Return the objects of stacks that no longer exist at their vendor, and what could not be listed.

    Raises CommandFailed.
    """
    return list(_missing(ctx, _active_stacks(ctx)))


def detect(ctx: DeploymentContext) -> list[Drift]:
    """Return the drift of all active stacks. Raises CommandFailed."""
    active = _active_stacks(ctx)
    return [*(drift for stack in active for drift in _of_aws(ctx, stack)), *_missing(ctx, active)]


def _active_stacks(ctx: DeploymentContext) -> list[Stack]:
    with translate_aws_errors("reading the stacks"):
        described = (stacks.describe(ctx, name, with_resources=True) for name in stacks.names(ctx))
        return [stack for stack in described if stack and stack.is_active]


def _of_aws(ctx: DeploymentContext, stack: Stack) -> Iterator[Drift]:
    """Yield the drift that CloudFormation detects: in properties that the template sets, of types that support detection."""
    try:
        _run_detection(ctx, stack)
        for drift in _drifted(ctx, stack):
            changed = [one["PropertyPath"] for one in drift.get("PropertyDifferences") or []]
            status = str(drift["StackResourceDriftStatus"])
            yield Drift(AWS, drift["ResourceType"], drift["LogicalResourceId"], status, ", ".join(changed))
    except (ClientError, BotoCoreError, TimeoutError) as error:
        yield Drift(AWS, "stack", stack.name, Verdict.UNKNOWN, f"CloudFormation can't detect drift: {_short(error)}")


def _run_detection(ctx: DeploymentContext, stack: Stack) -> None:
    """Raises TimeoutError if it takes longer than _PATIENCE seconds."""
    client, until = ctx.client("cloudformation"), ctx.clock.time() + _PATIENCE
    id = client.detect_stack_drift(StackName=stack.name)["StackDriftDetectionId"]
    while client.describe_stack_drift_detection_status(StackDriftDetectionId=id)["DetectionStatus"] == "DETECTION_IN_PROGRESS":
        if ctx.clock.time() > until:
            raise TimeoutError(f"it has not ended in {_PATIENCE:.0f} s")
        ctx.clock.sleep(_POLL)


def _drifted(ctx: DeploymentContext, stack: Stack) -> Iterator[dict[str, Any]]:
    """Yield from all pages; boto3 has no paginator for this call. If the detection failed, yield what it found before."""
    query: dict[str, Any] = {"StackName": stack.name, "StackResourceDriftStatusFilters": ["MODIFIED", "DELETED"]}
    while True:
        page = ctx.client("cloudformation").describe_stack_resource_drifts(**query)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        query["NextToken"] = page["NextToken"]


def _missing(ctx: DeploymentContext, active: list[Stack]) -> Iterator[Drift]:
    items = inventory.collect(ctx)
    has_snowflake = any(stack.name == f"{ctx.deployment.prefix}-snowflake" for stack in active)
    unknown = [item for item in items if item.verdict is Verdict.UNKNOWN and (item.system != SNOWFLAKE or has_snowflake)]
    for item in unknown:
        yield Drift(item.system, item.kind, "", Verdict.UNKNOWN, item.why)
    unreachable = {item.system for item in unknown if not item.kind}
    for stack in active:
        for identity in filter(None, (request.parse_physical_id(resource.physical_id) for resource in stack.resources)):
            vendor = SNOWFLAKE if identity.kind.startswith("snowflake_") else CONFLUENT
            if identity.kind in _LISTED and vendor not in unreachable and not _exists(ctx, stack, identity, items):
                yield Drift(vendor, identity.kind, identity.logical_id, "DELETED", _REPAIR, stack.name)
    for stack in active:
        if stack.name == f"{ctx.deployment.prefix}-confluent" and CONFLUENT not in unreachable:
            yield from _missing_topics(ctx, stack, items, {item.kind for item in unknown})


def _missing_topics(ctx: DeploymentContext, stack: Stack, items: list[Item], unknown: set[str]) -> Iterator[Drift]:
    """Yield missing topics, Tableflow topics and catalog integrations.

    Their names contain no hash, so the stack's template says which should exist.
    """
    with translate_aws_errors(f"reading the template of {stack.name}"):
        active = stacks.describe(ctx, stack.name, with_template=True)
    resources = list(resources_of(stack.name, active.template)) if active else []
    if active is None or not any(one.kind == "topic" for one in resources):
        return
    if "tableflow_topic" in unknown:  # both are read with the same key
        unknown = {*unknown, "catalog_integration"}
    topics: set[str] = set()
    try:
        topics = _topics(ctx, active.outputs.get("EnvironmentId", ""), active.outputs.get("KafkaClusterId", ""))
    except LakeferryError as error:
        yield Drift(CONFLUENT, "topic", "", Verdict.UNKNOWN, f"can't be listed: {error.what}")
        unknown = {*unknown, "topic"}
    tables = {item.name for item in items if item.kind == "tableflow_topic"}
    has_catalog = any(item.kind == "catalog_integration" for item in items)
    for one in resources:
        name = str(one.properties.get("topic", ""))
        exists = {"topic": name in topics, "tableflow_topic": name in tables, "catalog_integration": has_catalog}
        if one.kind not in unknown and not exists.get(one.kind, True):
            yield Drift(CONFLUENT, one.kind, one.logical_id, "DELETED", _REPAIR, stack.name)


def _topics(ctx: DeploymentContext, environment_id: str, cluster_id: str) -> set[str]:
    """Raises LakeferryError."""
    key = ctx.secrets.read_key(ctx.confluent_secret("kafka/app_manager"))
    plane = ctx.confluent().kafka(environment_id, cluster_id, key)
    listed = plane.get(path("kafka", "v3", "clusters", cluster_id, "topics"))
    return {text(one, "topic_name") for one in objects(listed, "data")}


def _exists(ctx: DeploymentContext, stack: Stack, identity: Identity, items: list[Item]) -> bool:
    name = ctx.object_name(stack.name, identity.logical_id, identity.generation)
    return any(item.kind == identity.kind and name in (item.name, item.name_in_comment) for item in items)


def _short(error: Exception) -> str:
    if isinstance(error, ClientError):
        return error_code(error)
    return str(error) if isinstance(error, TimeoutError) else type(error).__name__
