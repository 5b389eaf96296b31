"""What CloudFormation knows of a deployment: its stacks, what is in them, and what was in those that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import PARTS, DeploymentContext
from lakeferry.inventory.model import AWS, Claim, Item, Verdict, left_over

#: A stack in one of these is a husk: what is still in it is wanted by nobody.
_FALLEN: Final = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED", "REVIEW_IN_PROGRESS")
_GONE: Final = "DELETE_COMPLETE"
#: A resource in one of these may still be there, or may have been there before, made by somebody else.
GIVEN_UP: Final = (_GONE, "DELETE_SKIPPED", "CREATE_FAILED")
#: How many stacks of a name that are gone are looked into. CloudFormation remembers them for 90 days.
_FORMER: Final = 3
KIND: Final = "stack"
#: CDK's own stack in each account and region.
TOOLKIT: Final = "CDKToolkit"


@attrs.frozen
class Resource:
    logical_id: str
    physical_id: str
    type: str
    status: str


@attrs.frozen
class Stack:
    name: str
    id: str
    status: str
    is_protected: bool = False
    resources: tuple[Resource, ...] = ()

    @property
    def stands(self) -> bool:
        return self.status not in _FALLEN

    @property
    def is_under_way(self) -> bool:
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def claim(self) -> Claim:
        if self.stands:
            return Claim(self.name, Verdict.BELONGS, self.status if self.is_under_way else "")
        return left_over(f"its stack is {self.status}", self.name)


@attrs.frozen
class Stacks:
    """`former` are those that are gone."""

    now: tuple[Stack, ...]
    former: tuple[Stack, ...] = ()

    def claim(self, resource_type: str, physical_id: str) -> Claim | None:
        """None for what no stack has or had."""
        for stack in self.now:
            if _has(stack, resource_type, physical_id, GIVEN_UP):
                return stack.claim()
        if any(_has(stack, resource_type, physical_id) for stack in (*self.now, *self.former)):
            return left_over("its stack has given it up")
        return None

    def physical_ids(self, beginning: str) -> Iterator[tuple[Stack, Resource]]:
        """Of all stacks, those that are there first."""
        for stack in (*self.now, *self.former):
            for resource in stack.resources:
                if resource.physical_id.startswith(beginning):
                    yield stack, resource


def names(ctx: DeploymentContext) -> list[str]:
    """Of all parts that a deployment can have, in the order of deploying, whether or not its file wants them now."""
    return [f"{ctx.deployment.prefix}-{part}" for part in PARTS]


def read(ctx: DeploymentContext) -> Stacks:
    """Raises ClientError, BotoCoreError."""
    wanted = names(ctx)
    now = [found for name in wanted if (found := one(ctx, name))]
    return Stacks(tuple(now), tuple(_former(ctx, wanted)))


def one(ctx: DeploymentContext, name_or_id: str, *, resources: bool = True) -> Stack | None:
    """None where there is none of that name, or it is gone."""
    client = ctx.client("cloudformation")
    try:
        found = client.describe_stacks(StackName=name_or_id)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError" and "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    if found["StackStatus"] == _GONE:
        return None
    within = tuple(_resources(client, found["StackId"])) if resources else ()
    is_protected = bool(found.get("EnableTerminationProtection"))
    return Stack(found["StackName"], found["StackId"], found["StackStatus"], is_protected, within)


def items(ctx: DeploymentContext, stacks: Stacks) -> Iterator[Item]:
    for stack in stacks.now:
        claim = stack.claim() if stack.stands else left_over(f"it is {stack.status}", stack.name)
        yield claim.item(AWS, KIND, stack.name, stack.id)
    if toolkit := one(ctx, TOOLKIT, resources=False):
        why = "the account's: CDK's bootstrap, with the code of all its apps"
        yield Item(AWS, KIND, toolkit.name, toolkit.id, toolkit.name, Verdict.KEPT, why)


def _former(ctx: DeploymentContext, names: list[str]) -> Iterator[Stack]:
    """The latest of each name. They can be asked for by their ids only."""
    client = ctx.client("cloudformation")
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=[_GONE])
    gone = [each for page in pages for each in page["StackSummaries"] if each["StackName"] in names]
    for name in names:
        latest = sorted((each for each in gone if each["StackName"] == name), key=lambda each: str(each.get("DeletionTime", "")))
        for each in latest[-_FORMER:]:
            yield Stack(name, each["StackId"], _GONE, resources=tuple(_resources(client, each["StackId"])))


def _resources(client: Any, stack_id: str) -> Iterator[Resource]:
    for page in client.get_paginator("list_stack_resources").paginate(StackName=stack_id):
        for each in page["StackResourceSummaries"]:
            physical = each.get("PhysicalResourceId") or ""
            yield Resource(each["LogicalResourceId"], physical, each["ResourceType"], each["ResourceStatus"])


def _has(stack: Stack, resource_type: str, physical_id: str, but: tuple[str, ...] = ()) -> bool:
    return any(
        (each.type, each.physical_id) == (resource_type, physical_id) and each.status not in but for each in stack.resources
    )
