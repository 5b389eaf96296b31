"""What differs from what was deployed: resources of AWS that somebody changed, and objects at the vendors that are gone."""

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
from lakeferry.plan.resources import of_template
from lambdas import contract
from lambdas.confluent.client import objects, path, text
from lambdas.custom_resources import request
from lambdas.custom_resources.request import Identity
from lambdas.shared.errors import LakeferryError

_POLL: Final = 3.0
_PATIENCE: Final = 600.0
_ANEW: Final = "`lakeferry deploy --repair` creates it again"
_GOING: Final = "DETECTION_IN_PROGRESS"
_DRIFTED: Final = ("MODIFIED", "DELETED")
#: Kinds that an inventory lists by the name that their object has at the vendor.
_LISTED: Final = (
    "environment", "kafka_cluster", "service_account", "provider_integration", "flink_compute_pool", "connector",
    "snowflake_warehouse", "snowflake_database", "snowflake_schema", "snowflake_iceberg_table", "snowflake_user",
    "snowflake_role", "snowflake_external_volume", "snowflake_catalog_integration",
)  # fmt: skip


@attrs.frozen
class Drift:
    """`how` is MODIFIED, DELETED, or `not asked`. `stack` is "" where it is not about one resource."""

    world: str
    what: str
    name: str
    how: str
    told: str = ""
    stack: str = ""


def missing(ctx: DeploymentContext) -> list[Drift]:
    """Objects at the vendors that a stack has and that are gone, and what could not be asked. Raises CommandFailed."""
    with translate_aws_errors("asking for the stacks"):
        return list(_gone(ctx, _active(ctx)))


def look_at(ctx: DeploymentContext) -> list[Drift]:
    """Of all stacks that stand. Raises CommandFailed."""
    with translate_aws_errors("asking for the stacks"):
        standing = _active(ctx)
    found = [drift for stack in standing for drift in _of_stack(ctx, stack)]
    return [*found, *_gone(ctx, standing)]


def _active(ctx: DeploymentContext) -> list[Stack]:
    """Return the active stacks with their resources. Raises ClientError, BotoCoreError."""
    found = (stacks.describe(ctx, name, with_resources=True) for name in stacks.names(ctx))
    return [stack for stack in found if stack and stack.is_active]


def _of_stack(ctx: DeploymentContext, stack: Stack) -> Iterator[Drift]:
    """As CloudFormation sees it: only properties that the template names, and only of types that it can look at."""
    try:
        _detect(ctx, stack)
        yield from map(_of_resource, _drifted(ctx, stack))
    except (ClientError, BotoCoreError, TimeoutError) as error:
        yield Drift(AWS, "stack", stack.name, Verdict.NOT_ASKED, f"CloudFormation can't look for drift: {_short(error)}")


def _detect(ctx: DeploymentContext, stack: Stack) -> None:
    """Raises TimeoutError where it takes longer than we wait."""
    client, until = ctx.client("cloudformation"), ctx.clock.time() + _PATIENCE
    started = client.detect_stack_drift(StackName=stack.name)["StackDriftDetectionId"]
    while client.describe_stack_drift_detection_status(StackDriftDetectionId=started)["DetectionStatus"] == _GOING:
        if ctx.clock.time() > until:
            raise TimeoutError(f"it has not ended in {_PATIENCE:.0f} s")
        ctx.clock.sleep(_POLL)


def _drifted(ctx: DeploymentContext, stack: Stack) -> Iterator[dict[str, Any]]:
    """All pages, which boto3 doesn't turn by itself here. What was seen before a detection failed counts."""
    asked: dict[str, Any] = {"StackName": stack.name, "StackResourceDriftStatusFilters": list(_DRIFTED)}
    while True:
        page = ctx.client("cloudformation").describe_stack_resource_drifts(**asked)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        asked["NextToken"] = page["NextToken"]


def _of_resource(found: dict[str, Any]) -> Drift:
    changed = [one["PropertyPath"] for one in found.get("PropertyDifferences") or []]
    how = str(found["StackResourceDriftStatus"])
    return Drift(AWS, found["ResourceType"], found["LogicalResourceId"], how, ", ".join(changed))


def _gone(ctx: DeploymentContext, standing: list[Stack]) -> Iterator[Drift]:
    items = inventory.take(ctx)
    unasked = [item for item in items if item.verdict is Verdict.NOT_ASKED]
    for item in unasked:
        yield Drift(item.world, item.kind, "", Verdict.NOT_ASKED, item.why)
    silent = {item.world for item in unasked if not item.kind}
    for stack in standing:
        for known in filter(None, (request.parse_physical_id(resource.physical_id) for resource in stack.resources)):
            world = SNOWFLAKE if known.kind.startswith("snowflake_") else CONFLUENT
            if known.kind in _LISTED and world not in silent and not _is_there(ctx, stack, known, items):
                yield Drift(world, known.kind, known.logical_id, "DELETED", _ANEW, stack.name)
    for stack in standing:
        if stack.name == f"{ctx.deployment.prefix}-confluent" and CONFLUENT not in silent:
            yield from _gone_of_topics(ctx, stack, items)


def _gone_of_topics(ctx: DeploymentContext, stack: Stack, items: list[Item]) -> Iterator[Drift]:
    """Topics, their tables in Tableflow and its catalog: their names aren't ours, so what is wanted is read from the template."""
    unasked = {item.kind for item in items if item.verdict is Verdict.NOT_ASKED}
    with translate_aws_errors(f"reading the template of {stack.name}"):
        found = stacks.describe(ctx, stack.name, with_template=True)
    resources = list(of_template(stack.name, found.template)) if found else []
    tables = {item.name for item in items if item.kind == "tableflow_topic"}
    has_catalog = any(item.kind == "catalog_integration" for item in items)
    if "tableflow_topic" in unasked:  # both are asked for with one key
        unasked.add("catalog_integration")
    if any(one.kind == "topic" for one in resources) and found:
        try:
            topics = _topics(ctx, found.outputs.get("EnvironmentId", ""), found.outputs.get("KafkaClusterId", ""))
        except LakeferryError as error:
            yield Drift(CONFLUENT, "topic", "", Verdict.NOT_ASKED, f"can't be asked: {error.what}")
            unasked.add("topic")
            topics = set()
        for one in resources:
            name = str(one.properties.get("topic", ""))
            there = {"topic": name in topics, "tableflow_topic": name in tables, "catalog_integration": has_catalog}
            if one.kind not in unasked and not there.get(one.kind, True):
                yield Drift(CONFLUENT, one.kind, one.logical_id, "DELETED", _ANEW, stack.name)


def _topics(ctx: DeploymentContext, environment_id: str, cluster_id: str) -> set[str]:
    """Raises LakeferryError."""
    key = ctx.secrets.read_key(f"{ctx.deployment.prefix}/confluent/kafka/app_manager")
    plane = ctx.confluent().kafka(environment_id, cluster_id, key)
    listed = plane.get(path("kafka", "v3", "clusters", cluster_id, "topics"))
    return {text(one, "topic_name") for one in objects(listed, "data")}


def _is_there(ctx: DeploymentContext, stack: Stack, known: Identity, items: list[Item]) -> bool:
    told = ctx.deployment.deployment
    name = contract.object_name(
        project=told.name, stage=told.stage, region=ctx.region, account=ctx.account, stack=stack.name,
        logical_id=known.logical_id, generation=known.generation,
    )  # fmt: skip
    return any(
        item.kind == known.kind and name in (item.name, item.id.partition("lakeferry ")[2].split(" ")[0]) for item in items
    )


def _short(error: Exception) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return str(error) if isinstance(error, TimeoutError) else type(error).__name__
