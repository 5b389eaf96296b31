"""Forgets an object that a person deleted at its vendor, so that the deletion of its stack doesn't wait for a
proof.
"""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory.known import (
    Answer,
    Existence,
    ExistenceChecker,
    KnownResource,
    open_states,
    read_known,
)
from lambdas.custom_resources.request import build_state_key
from lambdas.custom_resources.state import ResourceState, StateStore

_VISIBLE = (Answer.THERE, Answer.STOPPED, Answer.RENAMED)


@attrs.frozen
class Forgettable:
    """An object that may be forgotten, and what its vendor says of it."""

    known: KnownResource
    states: StateStore
    existence: Existence

    @property
    def object_id(self) -> str:
        facts = self.known.state.facts if self.known.state else None
        return (facts.object_id or facts.lost_id or "") if facts else ""

    @property
    def tenant(self) -> str:
        return self.known.state.facts.tenant if self.known.state else ""

    def __str__(self) -> str:
        where = f" in {self.tenant}" if self.tenant else ""
        return f"{self.known.identity.kind} {self.object_id or self.known.identity.logical_id}{where}"


def find(ctx: DeploymentContext, stack_name: str, logical_id: str) -> Forgettable:
    """Raises CommandFailed if there is no such object, or if it exists; LakeferryError if the states can't be
    read.
    """
    with translate_aws_errors(f"reading stack {stack_name}"):
        is_own = stack_name in stacks.list_names(ctx)
        stack = stacks.describe(ctx, stack_name, with_resources=True) if is_own else None
    if stack is None:
        raise CommandFailed(
            "FORGET-UNKNOWN",
            f"this deployment has no stack {stack_name}; its stacks: {', '.join(ctx.stacks)}",
        )
    known_resources = read_known(ctx, stack)
    states = open_states(ctx, stack)
    known = next(
        (resource for resource in known_resources if resource.identity.logical_id == logical_id), None
    )
    if known is None or known.state is None or states is None:
        with_state = [resource.identity.logical_id for resource in known_resources if resource.state]
        message = (
            f"{stack_name} has no state of {logical_id}; it has those of {', '.join(with_state) or 'nothing'}"
        )
        raise CommandFailed("FORGET-UNKNOWN", message)
    existence = ExistenceChecker(ctx, deleting=True).look(known)
    found = Forgettable(known, states, existence)
    if existence.answer in _VISIBLE:
        raise CommandFailed("FORGET-EXISTS", f"{found} exists: the login sees it")
    return found


def forget(ctx: DeploymentContext, found: Forgettable, why: str) -> str:
    """Write into the state who forgot the object, when and why, and return that.

    Raises CommandFailed, LakeferryError.
    """
    with translate_aws_errors("reading the AWS identity"):
        person = str(ctx.client("sts").get_caller_identity()["Arn"])
    now = ctx.clock.time()
    note = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M UTC} by {person}: {why}"

    def change(state: ResourceState | None) -> ResourceState:
        if state is None:
            raise CommandFailed("FORGET-UNKNOWN", f"the state of {found} is gone")
        if state.lease_owner and state.lease_until > now:
            raise CommandFailed("STACK-BUSY", f"a function works on {found} at the moment")
        return attrs.evolve(state, facts=attrs.evolve(state.facts, forgotten=note))

    found.states.change(build_state_key(found.known.stack.id, found.known.identity), change)
    return note
