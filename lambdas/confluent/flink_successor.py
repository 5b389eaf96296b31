"""Edit a statement in place: another statement goes on where it stopped, and its table keeps the rows.

Confluent can't change the text of a statement. A stateless statement can be followed by another one that
begins at its offsets (`sql.tables.initial-offset-from`), so that each record is read once (docs.confluent.io,
"Carry-over Offsets"). The statement is stopped first, and deleted when its successor runs. At any time,
exactly one of the two holds the position up to which the table is filled, and only that one may run:

- the statement, until its successor has read a record;
- then its successor. To return to the old text, the successor is stopped, and a third statement goes on.

A record counts as read if `status.latest_offsets` says so, and this is decided only of a statement that has
ended: then no answer can be out of date. Flink commits rows and offsets with the same checkpoint, so a
statement that failed with no other offsets than those it began with has written nothing. Where a failed
statement has moved, its offsets are not known to be final. Then nothing goes on from it, and nothing is read
again.

Confluent has no other way that keeps the rows: materialized tables can't be made of tables that exist, and
drop their state with each edit ("CREATE MATERIALIZED TABLE").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.flink_gateway import (
    INITIAL_OFFSET_FROM,
    build_route,
    build_statement,
    build_successor_name,
    connect,
    put,
)
from lambdas.confluent.flink_properties import FlinkStatementProps
from lambdas.confluent.flink_sql import normalize
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.rest_client import get_path, get_text
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, Refused, ResourceFailed, shorten_detail

#: Notes: the name of a successor that may exist, the offsets at which it begins, since when it was not found,
#: and what an edit in place keeps.
_NEXT: Final = "next"
_NEXT_BEGINS_AT: Final = "next begins at"
_NEXT_MISSING: Final = "next missing since"
_SHAPE: Final = "shape"
#: Seconds for which a statement that exists may not be found.
_GONE_PATIENCE: Final = 120.0
#: Seconds after which a request without an answer can no longer take effect.
_ABSENCE_GAP: Final = 60.0
_ENDED: Final = ("FAILED", "COMPLETED")
_IDLE: Final = ("STOPPED", *_ENDED)
_ON_ITS_WAY: Final = ("STOPPING", "FAILING", "DELETING")


class CannotGoOn(Refused):
    """No statement can go on where this one stopped."""


@attrs.frozen
class Shape:
    """What an edit in place keeps. `head` is the text before the query."""

    head: str
    columns: Sequence[str]
    reads: Sequence[str]

    def explain_difference(self, after: Shape) -> str:
        """Return why a statement of the other shape can't go on where one of this shape stopped, or ""."""
        if normalize(self.head) != normalize(after.head):
            return "the text before its query changes, and the table can't change"
        if set(self.columns) != set(after.columns):
            changed = sorted({*self.columns} ^ {*after.columns})
            return f"its columns change ({', '.join(changed)}), and the table can't change"
        if set(self.reads) != set(after.reads):
            changed = sorted({*self.reads} ^ {*after.reads})
            return f"it reads other tables ({', '.join(changed)}), for which there are no offsets"
        return ""


def remember_shape(context: Ctx, spec: FlinkStatementProps) -> None:
    """Note what the next edit in place must keep."""
    if spec.insert_sql:
        context.notes[_SHAPE] = json.dumps(attrs.asdict(Shape(spec.head, spec.columns, spec.reads)))
    else:
        context.notes.pop(_SHAPE, None)


def settle_successor(context: Ctx, spec: FlinkStatementProps, object_id: str, wanted: str) -> str:
    """Remove a successor that an earlier request sent, unless it is the wanted one.

    Return its name if it holds the position: it is stopped then, and takes the place of the statement. Return
    "" if the statement itself holds it. Raises InProgress.
    """
    name = context.notes.get(_NEXT, "")
    if name in ("", wanted, object_id):
        return ""
    plane = connect(context, spec)
    successor = plane.read(build_route(context, spec, name))
    if successor is None:
        _require_absence(context, name)
        _forget_successor(context)
        return ""
    context.notes.pop(_NEXT_MISSING, None)
    phase = get_text(successor, "status", "phase")
    if phase in _ON_ITS_WAY:
        raise InProgress(errors.WAITING, f"statement {name} is {phase}")
    if phase not in _IDLE:
        put(context, spec, successor, stopped=True)
        raise InProgress(errors.WAITING, f"statement {name} is being stopped")
    if _holds_position(context, successor):
        if plane.read(build_route(context, spec, object_id)) is not None:
            plane.delete(build_route(context, spec, object_id))
        _forget_successor(context)
        return name
    plane.delete(build_route(context, spec, name))
    raise InProgress(errors.WAITING, f"statement {name} is being deleted")


def stop_successor(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    """Stop a successor that may exist, because the table is about to go. Raises InProgress."""
    name = context.notes.get(_NEXT, object_id)
    if name == object_id:
        return
    successor = connect(context, spec).read(build_route(context, spec, name))
    if successor is not None and get_text(successor, "status", "phase") not in (*_IDLE, *_ON_ITS_WAY):
        put(context, spec, successor, stopped=True)
        raise InProgress(errors.WAITING, f"statement {name} is being stopped")


def go_on(context: Ctx, spec: FlinkStatementProps, object_id: str) -> tuple[str, str]:
    """Return name and phase of the statement with the text of `spec` that went on where this one stopped.

    Raises InProgress until it runs, CannotGoOn before anything was changed, and ResourceFailed if it did not
    start: then this statement goes on itself.
    """
    plane = connect(context, spec)
    before = plane.read(build_route(context, spec, object_id))
    name = build_successor_name(context, spec, object_id)
    successor = plane.read(build_route(context, spec, name))
    if successor is None:
        _require_position(context, spec, object_id, before)
        assert before is not None
        if get_text(before, "status", "phase") != "STOPPED":
            _require_no_other_successor(context, spec, object_id, name)
            _stop(context, spec, before)
        context.notes[_NEXT] = name
        context.notes[_NEXT_BEGINS_AT] = json.dumps(_read_offsets(before))
        context.claim()
        plane.post(
            build_route(context, spec), build_statement(context, spec, name, spec.insert_sql, object_id)
        )
        raise InProgress(errors.WAITING, f"statement {name} begins where {object_id} stopped")
    phase = get_text(successor, "status", "phase")
    if phase == "FAILED" and not _holds_position(context, successor):
        if before is not None and get_text(before, "status", "phase") == "STOPPED":
            put(context, spec, before, stopped=False)
            raise InProgress(errors.WAITING, f"statement {name} failed; {object_id} goes on")
        plane.delete(build_route(context, spec, name))
        detail = shorten_detail(get_text(successor, "status", "detail"))
        message = f"statement {name} failed: {detail}. {object_id} goes on"
        raise ResourceFailed(confluent_errors.FLINK_FAILED, message)
    if phase == "PENDING" and before is not None and get_text(before, "status", "phase") not in _IDLE:
        _stop(context, spec, before)
    if phase == "STOPPED":
        put(context, spec, successor, stopped=False)
    if phase not in ("RUNNING", "DEGRADED", *_ENDED):
        raise InProgress(errors.WAITING, f"statement {name} is {phase}")
    if before is not None:
        plane.delete(build_route(context, spec, object_id))
    _forget_successor(context)
    return name, phase


def _stop(context: Ctx, spec: FlinkStatementProps, before: dict[str, Any]) -> None:
    """Stop the statement, and raise InProgress."""
    name = get_text(before, "name")
    if get_text(before, "status", "phase") not in _ON_ITS_WAY:
        put(context, spec, before, stopped=True)
    raise InProgress(errors.WAITING, f"statement {name} is being stopped")


def _require_position(
    context: Ctx, spec: FlinkStatementProps, object_id: str, before: dict[str, Any] | None
) -> None:
    """Raise CannotGoOn unless the statement has offsets at which one with the text of `spec` can begin."""
    phase = get_text(before, "status", "phase") if before is not None else "gone"
    if phase in ("gone", "FAILING", "DELETING", *_ENDED):
        raise CannotGoOn(
            confluent_errors.FLINK_NO_OFFSETS,
            f"statement {object_id} is {phase}, and it is not proved up to which record its table is filled",
            patience=_GONE_PATIENCE if phase == "gone" else 0.0,
        )
    problem = "its query is not proved to be stateless; `lakeferry plan` says why"
    shape = context.notes.get(_SHAPE)
    if spec.insert_sql and shape is None:
        problem = "its deployed query is not proved to be stateless, or was deployed by an earlier release"
    elif spec.insert_sql and shape is not None:
        kept = Shape(**json.loads(shape))
        problem = kept.explain_difference(Shape(spec.head, spec.columns, spec.reads))
    if problem:
        raise CannotGoOn(confluent_errors.FLINK_NOT_IN_PLACE, f"statement {object_id}: {problem}")


def _require_no_other_successor(context: Ctx, spec: FlinkStatementProps, object_id: str, wanted: str) -> None:
    """Raise InProgress if another statement waits for this one to stop: both would read the same records."""
    for statement in connect(context, spec).pages(build_route(context, spec)):
        name = get_text(statement, "name")
        waits_for = get_text(statement, "spec", "properties", INITIAL_OFFSET_FROM)
        if waits_for == object_id and name != wanted and name.startswith(context.name):
            context.notes[_NEXT] = name
            raise InProgress(errors.WAITING, f"statement {name} waits for {object_id}, and is removed first")


def _require_absence(context: Ctx, name: str) -> None:
    """Raise InProgress until a request to send the statement, whose answer was lost, can't take effect."""
    now = context.clock.time()
    since = float(context.notes.setdefault(_NEXT_MISSING, str(now)))
    if now - since < _ABSENCE_GAP:
        raise InProgress(errors.WAITING, f"searching once more for statement {name}")
    context.notes.pop(_NEXT_MISSING)


def _forget_successor(context: Ctx) -> None:
    for note in (_NEXT, _NEXT_BEGINS_AT, _NEXT_MISSING):
        context.notes.pop(note, None)


def _holds_position(context: Ctx, successor: dict[str, Any]) -> bool:
    """Return whether a successor that has ended may have filled the table further than the statement did."""
    offsets = _read_offsets(successor)
    if get_text(successor, "status", "phase") == "STOPPED":
        return bool(offsets)
    return bool(offsets) and offsets != json.loads(context.notes.get(_NEXT_BEGINS_AT, "{}"))


def _read_offsets(statement: dict[str, Any]) -> dict[str, list[str]]:
    """Return the positions of the partitions of each topic, such as `partition:0,offset:100`."""
    offsets = get_path(statement, "status", "latest_offsets") or {}
    return {topic: sorted(str(positions).split(";")) for topic, positions in offsets.items()}
