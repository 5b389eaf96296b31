"""Takes a deployment's stacks down: the pinned CDK command line first, then CloudFormation itself for what still stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from lakeferry.cdk_runs import CliFailed, templates_of
from lakeferry.console import NOT_SET_UP, CommandFailed
from lakeferry.ground import Ground, aws_told
from lakeferry.inventory import stacks
from lakeferry.inventory.stacks import Stack

Tell = Callable[[str], object]
#: Runs while `cdk destroy` does; what it returns is what was wrong with that, "" for nothing.
Cdk = Callable[["Watch"], str]
_POLL: Final = 5.0
#: A stack's custom resources may take an hour each, some of them one after another.
_PATIENCE: Final = 4 * 3600.0
_FAILED: Final = ("DELETE_FAILED", "ROLLBACK_FAILED")
_REASONS: Final = 5
_LAST_LINES: Final = 3


@attrs.define
class Watch:
    """Tells how far each stack is: `say` what has happened, `tell` what is happening. `gone` is how many seconds each took."""

    here: Ground
    say: Tell
    tell: Tell
    gone: dict[str, float] = attrs.field(factory=dict)
    _since: float = attrs.field(init=False)
    _standing: dict[str, str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        found = (stacks.one(self.here, name, resources=False) for name in reversed(stacks.names(self.here)))
        self._standing = {stack.name: stack.id for stack in found if stack}
        self._since = self.here.clock.time()

    @property
    def is_needed(self) -> bool:
        """Whether any stack was there at the beginning."""
        return bool(self._standing)

    def look(self) -> None:
        """Asks CloudFormation about each stack that was there at the beginning. One goes after the other."""
        for name, id in list(self._standing.items()):
            found = stacks.one(self.here, id, resources=False)
            if found is None:
                now = self.here.clock.time()
                del self._standing[name]
                self.gone[name], self._since = now - self._since, now
                self.say(f"  {name} is gone ({self.gone[name]:.0f} s)")
            elif found.status == "DELETE_IN_PROGRESS":
                self._tell_event(found)

    def _tell_event(self, stack: Stack) -> None:
        page = self.here.client("cloudformation").describe_stack_events(StackName=stack.id)
        for event in page["StackEvents"][:1]:
            self.tell(f"{stack.name}: {event['LogicalResourceId']} {event.get('ResourceStatus', '')}")


def by_cdk(watch: Watch) -> str:
    """`cdk destroy --all` over a fresh synthesis with the same context."""
    try:
        with templates_of(watch.here) as cdk:
            cdk.synth(watch.tell)
            cdk.destroy(watch.tell, meanwhile=watch.look)
    except CliFailed as failed:
        return f"cdk ended with an error: {' / '.join(line.strip() for line in failed.lines[-_LAST_LINES:])}"
    except CommandFailed as failed:
        if failed.exit_code != NOT_SET_UP:
            raise
        return failed.message
    return ""


def by_cloudformation(watch: Watch, *, force: bool = False) -> list[str]:
    """What still stands, the last deployed first: the reasons why a stack would not go.

    With `force`, what a stack can't remove is given up by it, and has to be removed by itself.
    """
    reasons: list[str] = []
    for name in reversed(stacks.names(watch.here)):
        stack = stacks.one(watch.here, name)
        if stack is not None:
            reasons += list(_delete(watch, stack, force=force and stack.status == "DELETE_FAILED"))
    return reasons


def _delete(watch: Watch, stack: Stack, *, force: bool) -> Iterator[str]:
    client = watch.here.client("cloudformation")
    mode = {"DeletionMode": "FORCE_DELETE_STACK"} if force else {}
    with aws_told(f"deleting stack {stack.name}"):
        if stack.status != "DELETE_IN_PROGRESS":
            client.delete_stack(StackName=stack.id, **mode)
        ended = _await_end(watch, stack)
    if ended is not None:
        yield from _reasons(client, ended)


def _await_end(watch: Watch, stack: Stack) -> Stack | None:
    """None once it is gone."""
    until = watch.here.clock.time() + _PATIENCE
    while True:
        watch.look()
        found = stacks.one(watch.here, stack.id, resources=False)
        if found is None or found.status in _FAILED or watch.here.clock.time() > until:
            return found
        watch.here.clock.sleep(_POLL)


def _reasons(client: Any, stack: Stack) -> Iterator[str]:
    page = client.describe_stack_events(StackName=stack.id)
    failed = [event for event in page["StackEvents"] if event.get("ResourceStatus") == "DELETE_FAILED"]
    for event in failed[:_REASONS]:
        yield f"{stack.name}: {event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason given')}"
