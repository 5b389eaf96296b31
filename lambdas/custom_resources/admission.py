"""Whose turn it is. Events come twice, late and in the wrong order, and only CloudFormation knows what it wants now.

The first event of a request takes the object over from the request before it, which may do nothing more. A delete always
may. A create or an update after a delete, and an update after a rollback, may come too late: then CloudFormation is asked.
"""

from __future__ import annotations

import attrs

from lambdas.custom_resources.request import DELETE, UPDATE, Request
from lambdas.custom_resources.stacks import Stacks
from lambdas.custom_resources.state import Progress, Row
from lambdas.shared import errors
from lambdas.shared.errors import Overtaken

#: How many requests before the current one are known by their ids.
_REMEMBERED = 50


def admit(row: Row | None, request: Request, *, name: str, now: float, stacks: Stacks) -> Row:
    """The row with `request` in force. Raises Overtaken where its turn is over, or never came.

    CloudFormation sends a request that failed again with the same id when the deployment is retried: its waiting starts afresh.
    """
    started = request.started or now
    if row is not None and row.request_id == request.id:
        return row if started <= row.since or not request.started else attrs.evolve(row, since=started, progress=Progress())
    if row is not None and request.id in row.past:
        raise Overtaken(errors.OVERTAKEN, f"request {request.id} was answered before")
    backward = request.verb == UPDATE and not stacks.is_forward(request.stack_id)
    if row is None:
        return Row(request.id, request.verb, request.mark, started, name, backward=backward)
    if request.verb != DELETE:
        _require_timely(row, request, backward, stacks)
    return attrs.evolve(
        row,
        request_id=request.id,
        verb=request.verb,
        mark=request.mark,
        since=started,
        past=[*row.past, row.request_id][-_REMEMBERED:],
        backward=backward,
        progress=Progress(),
    )


def _require_timely(row: Row, request: Request, backward: bool, stacks: Stacks) -> None:
    if row.verb == DELETE and not stacks.is_creating(request.stack_id, request.logical_id):
        raise Overtaken(errors.OVERTAKEN, f"{request.verb} came after the delete, and CloudFormation no longer waits for it")
    # A rollback that is tried again wants the same as the one before; a forward update that comes late wants something else.
    if row.backward and backward and row.mark != request.mark:
        raise Overtaken(errors.OVERTAKEN, "an update came after its own rollback")
