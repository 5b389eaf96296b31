"""Deletes a deployment's stacks, and tells how far CloudFormation is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.inventory import stacks
from lakeferry.inventory.stacks import Stack
from lakeferry.output import Reporter

_POLL: Final = 5.0
#: A stack's custom resources may take an hour each, some of them one after another.
_PATIENCE: Final = 4 * 3600.0
_FAILED: Final = ("DELETE_FAILED", "ROLLBACK_FAILED")
_REASONS: Final = 5


@attrs.define
class Watch:
    """`ids` are those of the stacks that go, in this order: a stack that takes the name of one meanwhile isn't touched.

    `say` tells what has happened, `tell` what is happening. `gone` is how many seconds each took.
    """

    ctx: DeploymentContext
    ids: list[str]
    say: Reporter
    report: Reporter
    gone: dict[str, float] = attrs.field(factory=dict)
    _since: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._since = self.ctx.clock.time()

    def ended(self, stack: Stack) -> None:
        now = self.ctx.clock.time()
        self.gone[stack.name], self._since = now - self._since, now
        self.say(f"  {stack.name} is gone ({self.gone[stack.name]:.0f} s)")

    def look(self, stack: Stack) -> None:
        page = self.ctx.client("cloudformation").describe_stack_events(StackName=stack.id)
        for event in page["StackEvents"][:1]:
            self.report(f"{stack.name}: {event['LogicalResourceId']} {event.get('ResourceStatus', '')}")


def delete(watch: Watch, *, force: bool = False) -> list[str]:
    """Those that are still there, one after the other: the reasons why a stack would not go.

    With `force`, what a stack can't remove is given up by it, and has to be removed by itself.
    """
    reasons: list[str] = []
    for id in watch.ids:
        stack = stacks.one(watch.ctx, id)
        if stack is not None:
            reasons += list(_delete(watch, stack, force=force and stack.status == "DELETE_FAILED"))
    return reasons


def _delete(watch: Watch, stack: Stack, *, force: bool) -> Iterator[str]:
    client = watch.ctx.client("cloudformation")
    mode = {"DeletionMode": "FORCE_DELETE_STACK"} if force else {}
    with translate_aws_errors(f"deleting stack {stack.name}"):
        if stack.status != "DELETE_IN_PROGRESS":
            client.delete_stack(StackName=stack.id, **mode)
        ended = _await_end(watch, stack)
    if ended is None:
        watch.ended(stack)
    else:
        yield from _reasons(client, ended)


def _await_end(watch: Watch, stack: Stack) -> Stack | None:
    """None once it is gone."""
    until = watch.ctx.clock.time() + _PATIENCE
    while True:
        watch.look(stack)
        found = stacks.one(watch.ctx, stack.id, resources=False)
        if found is None or found.status in _FAILED or watch.ctx.clock.time() > until:
            return found
        watch.ctx.clock.sleep(_POLL)


def _reasons(client: Any, stack: Stack) -> Iterator[str]:
    page = client.describe_stack_events(StackName=stack.id)
    failed = [event for event in page["StackEvents"] if event.get("ResourceStatus") == "DELETE_FAILED"]
    for event in failed[:_REASONS]:
        yield f"{stack.name}: {event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason given')}"
