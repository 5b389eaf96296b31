"""What is deployed: each stack's template, outputs and status, and the functions in it by what they are for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory import stacks

_FUNCTION: Final = "AWS::Lambda::Function"


@attrs.frozen
class Deployed:
    """One stack as it stands. `template` is empty where nothing of it does."""

    name: str
    id: str
    status: str
    is_protected: bool = False
    template: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    outputs: Mapping[str, str] = attrs.field(factory=dict)
    tags: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def is_busy(self) -> bool:
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def stands(self) -> bool:
        """Whether an update can begin from it. One whose first deployment failed is begun anew."""
        return stacks.Stack(self.name, self.id, self.status).stands

    def logical_ids(self, type: str, **properties: str) -> Iterator[str]:
        """Of the resources with these properties."""
        for logical_id, body in self.template.get("Resources", {}).items():
            own = body.get("Properties", {})
            if body.get("Type") == type and all(own.get(name) == value for name, value in properties.items()):
                yield logical_id


@attrs.frozen
class Function:
    """By the names that AWS knows it and its log by."""

    name: str
    log_group: str


def read(ctx: DeploymentContext) -> dict[str, Deployed]:
    """By name, those of the deployment that are there, in the order of deploying. Raises CommandFailed."""
    with translate_aws_errors("asking for the stacks"):
        found = [one(ctx, name) for name in stacks.names(ctx)]
    return {stack.name: stack for stack in found if stack}


def one(ctx: DeploymentContext, name: str) -> Deployed | None:
    """Raises ClientError, BotoCoreError."""
    standing = stacks.one(ctx, name, resources=False)
    if standing is None:
        return None
    client = ctx.client("cloudformation")
    told = client.describe_stacks(StackName=standing.id)["Stacks"][0]
    return Deployed(
        name=name,
        id=standing.id,
        status=standing.status,
        is_protected=standing.is_protected,
        template=template(ctx, standing.id) if standing.stands else {},
        outputs={each["OutputKey"]: each["OutputValue"] for each in told.get("Outputs") or []},
        tags={each["Key"]: each["Value"] for each in told.get("Tags") or []},
    )


def template(ctx: DeploymentContext, stack_id: str) -> dict[str, Any]:
    """As it was deployed last. Raises ClientError, BotoCoreError."""
    body = ctx.client("cloudformation").get_template(StackName=stack_id, TemplateStage="Original")["TemplateBody"]
    found: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return found


def part(ctx: DeploymentContext, name: str) -> Deployed:
    """The stack of a part: data, confluent, … Raises CommandFailed where it isn't deployed."""
    with translate_aws_errors("asking for the stacks"):
        found = one(ctx, f"{ctx.deployment.prefix}-{name}")
    if found is None or not found.stands:
        raise _absent(ctx, name)
    return found


def physical(ctx: DeploymentContext, stack: Deployed) -> dict[str, str]:
    """Physical ids by logical id. Raises CommandFailed."""
    with translate_aws_errors(f"asking what is in stack {stack.name}"):
        pages = ctx.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack.id)
        listed = [each for page in pages for each in page["StackResourceSummaries"]]
    return {each["LogicalResourceId"]: each.get("PhysicalResourceId") or "" for each in listed}


def functions(ctx: DeploymentContext, stack: Deployed, handler: str) -> list[Function]:
    """Those of the stack that run this handler of lambdas. Raises CommandFailed."""
    wanted = list(stack.logical_ids(_FUNCTION, Handler=handler))
    ids = physical(ctx, stack) if wanted else {}
    return [_function(stack, ids, logical_id) for logical_id in wanted if ids.get(logical_id)]


def _function(stack: Deployed, ids: Mapping[str, str], logical_id: str) -> Function:
    group = stack.template["Resources"][logical_id]["Properties"].get("LoggingConfig", {}).get("LogGroup")
    named = ids.get(group.get("Ref", ""), "") if isinstance(group, Mapping) else str(group or "")
    return Function(ids[logical_id], named or f"/aws/lambda/{ids[logical_id]}")


def _absent(ctx: DeploymentContext, name: str) -> CommandFailed:
    told = f"stack {ctx.deployment.prefix}-{name} is not deployed in account {ctx.account}, {ctx.region}"
    return CommandFailed("NOT-DEPLOYED", told, f"`lakeferry deploy --stage {ctx.stage}` deploys it")
