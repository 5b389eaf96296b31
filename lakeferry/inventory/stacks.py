"""Which stack of a deployment has a resource, and what that says of it: managed, retained or left over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import DELETED, TOOLKIT, Stack, StackResource, describe, describe_deleted, names
from lakeferry.inventory.model import AWS, Claim, Item, Verdict, left_over

#: A resource in one of these may still be there, or may have been there before, made by somebody else.
GIVEN_UP: Final = (DELETED, "DELETE_SKIPPED", "CREATE_FAILED")
KIND: Final = "stack"


@attrs.frozen
class Stacks:
    """`former` are deleted ones."""

    now: tuple[Stack, ...]
    former: tuple[Stack, ...] = ()

    def claim(self, resource_type: str, physical_id: str) -> Claim | None:
        """Return None for what no stack has or had."""
        for stack in self.now:
            if _has(stack, resource_type, physical_id, GIVEN_UP):
                return claim_of(stack)
        if any(_has(stack, resource_type, physical_id) for stack in (*self.now, *self.former)):
            return left_over("its stack has given it up")
        return None

    def physical_ids(self, prefix: str) -> Iterator[tuple[Stack, StackResource]]:
        """Return resources of all stacks, of existing ones first."""
        for stack in (*self.now, *self.former):
            for resource in stack.resources:
                if resource.physical_id.startswith(prefix):
                    yield stack, resource


def claim_of(stack: Stack) -> Claim:
    if stack.is_active:
        return Claim(stack.name, Verdict.BELONGS, stack.status if stack.is_in_progress else "")
    return left_over(f"its stack is {stack.status}", stack.name)


def read(ctx: DeploymentContext) -> Stacks:
    """Raises ClientError, BotoCoreError."""
    wanted = names(ctx)
    now = [stack for name in wanted if (stack := describe(ctx, name, with_resources=True))]
    return Stacks(tuple(now), tuple(describe_deleted(ctx, wanted)))


def items(ctx: DeploymentContext, stacks: Stacks) -> Iterator[Item]:
    for stack in stacks.now:
        claim = claim_of(stack) if stack.is_active else left_over(f"it is {stack.status}", stack.name)
        yield claim.item(AWS, KIND, stack.name, stack.id)
    if toolkit := describe(ctx, TOOLKIT):
        why = "the account's: CDK's bootstrap, with the code of all its apps"
        yield Item(AWS, KIND, toolkit.name, toolkit.id, toolkit.name, Verdict.KEPT, why)


def _has(stack: Stack, resource_type: str, physical_id: str, but: tuple[str, ...] = ()) -> bool:
    return any(
        (each.type, each.physical_id) == (resource_type, physical_id) and each.status not in but for each in stack.resources
    )
