"""A Flink SQL statement, and the statement that undoes it.

Text and properties of a statement can't be changed, and deleting it doesn't undo its effects. So a
statement's name ends in a fingerprint of both, and a changed text is a new statement. It goes on where the
old one stopped (flink_successor.py), or is refused. With `drop_on_edit`, it begins with an empty table:
before the old statement is deleted, it is stopped and its undo statement runs to completion. The statement
itself is deleted last: once it is gone, nothing is left to do.

The name is the resource's own, the table isn't: somebody else may have its topic or its subjects. Flink adds
a version to their subject without an error, and DROP TABLE deletes topic and subjects. So they must not exist
before the statement is sent, and the undo runs only for a table that the statement itself created.

Confluent deletes a statement 30 days after it was stopped or ended, and its table stays
(terraform-provider-confluent, issue 687). Sending such a statement again would fail, or write every record a
second time.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent import flink_successor
from lambdas.confluent.flink_gateway import (
    build_former_name,
    build_name,
    build_route,
    build_statement,
    build_successor_name,
    build_undo_name,
    connect,
    find_key_owner,
    put,
)
from lambdas.confluent.flink_properties import FlinkStatementProps
from lambdas.confluent.flink_sql import fingerprint
from lambdas.confluent.flink_table import has_topic, require_no_table
from lambdas.confluent.lookup import Ctx, require_existing, require_unprotected, treat_gone_container_as_empty
from lambdas.confluent.rest_client import RestClient, get_text
from lambdas.shared import errors
from lambdas.shared.errors import (
    InProgress,
    NeedsReplacement,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    ResourceMissing,
    shorten_detail,
)
from lambdas.shared.resource import Outputs

PROPERTIES: Final = FlinkStatementProps
TIMEOUT_SECONDS: Final = 3000.0
#: Seconds for which a failure may be temporary, because Flink takes some time to see new roles and the tables
#: of new topics.
_FAULT_PATIENCE: Final = 600.0
_IDLE: Final = ("STOPPED", "COMPLETED", "FAILED")
_UNDONE: Final = "undone"
_RAN: Final = "ran"
_PHASE: Final = "phase"
_TEXT: Final = "text"
#: A note about the table: _OURS if topic and subjects did not exist when the statement was sent, _NOT_PROVEN
#: if that is not known. States of earlier releases don't have it.
_TABLE: Final = "table"
_OURS: Final = "ours"
_NOT_PROVEN: Final = "not proven"
#: Seconds for which a statement that exists may not be found.
_GONE_PATIENCE: Final = 120.0


def create(context: Ctx, spec: FlinkStatementProps) -> str:
    """Send the statement. Raises Refused if the topic or a subject of its table exists."""
    plane = connect(context, spec)
    name = build_name(context, spec)
    undo_route = build_route(context, spec, build_undo_name(name))
    if plane.read(undo_route) is not None:
        plane.delete(undo_route)
        raise InProgress(confluent_errors.FLINK_FAILED, f"an earlier undo of {name} is being deleted")
    require_no_table(context, spec, was_dropped=_UNDONE in context.notes)
    body = build_statement(context, spec, name, spec.sql)
    for note in (_UNDONE, _RAN, _PHASE):
        context.notes.pop(note, None)
    context.notes[_TABLE] = _OURS
    _remember_text(context, spec, name)
    context.claim()
    plane.post(build_route(context, spec), body)
    return name


def is_ready(context: Ctx, spec: FlinkStatementProps, object_id: str) -> Outputs | None:
    actual = connect(context, spec).read(build_route(context, spec, object_id))
    if actual is None and _has_ended(context, spec, object_id):
        return _build_ended_outputs(context, object_id)
    actual = require_existing(actual, f"statement {object_id}")
    phase = get_text(actual, "status", "phase")
    detail = shorten_detail(get_text(actual, "status", "detail"))
    table_existed = "already exists" in detail.lower()
    if spec.topic and phase in ("FAILED", "FAILING", "COMPLETED") and table_existed:
        context.notes[_TABLE] = _NOT_PROVEN
        raise Refused(
            confluent_errors.FOREIGN_TOPIC,
            f"statement {object_id} did not create topic {spec.topic}: {detail}",
        )
    if phase in ("FAILED", "FAILING"):
        message = f"statement {object_id} failed: {detail}"
        if not _has_run(context, object_id):
            raise NeedsReplacement(confluent_errors.FLINK_FAILED, message, patience=_FAULT_PATIENCE)
        # Replacing it would run its undo, which drops the table and all its rows. A rollback must not fail
        # because of it either.
        if not context.rolling_back():
            raise ResourceFailed(confluent_errors.FLINK_STOPPED_RUNNING, message, patience=_FAULT_PATIENCE)
        return {"name": object_id, "phase": phase}
    if phase == "STOPPED":
        _require_not_undone(context, spec, object_id)
        put(context, spec, actual, stopped=False)
    if phase not in ("RUNNING", "COMPLETED", "DEGRADED"):
        return None
    context.notes[_RAN] = object_id
    context.notes[_PHASE] = phase
    return {"name": object_id, "phase": phase}


def update(context: Ctx, spec: FlinkStatementProps, object_id: str) -> str | None:
    """Change the pool and the account, which requires a stopped statement.

    Every other change needs a new statement. Return the name of one that went on where this one stopped.
    """
    has_text = _has_text(context, spec, object_id)
    is_in_place = not has_text and not _drops_table(context, spec)
    wanted = build_successor_name(context, spec, object_id) if is_in_place else ""
    if successor := flink_successor.settle_successor(context, spec, object_id, wanted):
        context.notes[_RAN] = successor
        return successor
    if is_in_place:
        return _edit_in_place(context, spec, object_id)
    actual = connect(context, spec).read(build_route(context, spec, object_id))
    has_ended = actual is None and _has_ended(context, spec, object_id)
    if not has_ended:
        actual = require_existing(actual, f"statement {object_id}")
    if not has_text:
        _require_replaceable(context, spec, object_id)
        if has_ended and not _needs_undo(context, context.previous or spec, object_id):
            raise ResourceMissing(
                errors.VANISHED, f"statement {object_id} is gone, and nothing is left to undo"
            )
        raise ReplacementRequired(errors.OUTDATED, f"statement {object_id} has another text")
    _remember_text(context, spec, object_id)
    if actual is not None:
        _move(context, spec, actual)
    return None


def _drops_table(context: Ctx, spec: FlinkStatementProps) -> bool:
    """Return whether a changed text drops the table.

    The properties that made the change decide: in a rollback, the ones before it.
    """
    before = context.previous
    is_rollback = isinstance(before, FlinkStatementProps) and context.rolling_back()
    return before.drop_on_edit if is_rollback else spec.drop_on_edit


def _edit_in_place(context: Ctx, spec: FlinkStatementProps, object_id: str) -> str | None:
    """Return the name of the statement that went on; None in a rollback if nothing can go on.

    A rollback must not fail because of it: it leaves a statement that has ended, and what it wrote.
    """
    try:
        name, phase = flink_successor.go_on(context, spec, object_id)
    except flink_successor.CannotGoOn:
        if context.rolling_back():
            return None
        raise
    context.notes[_RAN] = name
    context.notes[_PHASE] = phase
    _remember_text(context, spec, name)
    return name


def _remember_text(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    context.notes[_TEXT] = f"{object_id} {fingerprint(spec.sql, spec.properties)}"
    flink_successor.remember_shape(context, spec)


def _move(context: Ctx, spec: FlinkStatementProps, actual: dict[str, Any]) -> None:
    """Move the statement to another pool or account. Raises InProgress until it is stopped."""
    object_id = get_text(actual, "name")
    if get_text(actual, "status", "phase") in _IDLE:
        _require_not_undone(context, spec, object_id)
    principal = spec.service_account_id or find_key_owner(context, spec)
    expected_settings = {"compute_pool_id": spec.compute_pool_id, "principal": principal}
    is_current = all(get_text(actual, "spec", name) == value for name, value in expected_settings.items())
    if is_current:
        return
    if get_text(actual, "status", "phase") not in _IDLE:
        put(context, spec, actual, stopped=True)
        raise InProgress(errors.WAITING, f"statement {object_id} is being stopped to move it")
    put(context, spec, actual, stopped=False, **expected_settings)


def delete(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    flink_successor.stop_successor(context, spec, object_id)
    plane = connect(context, spec)
    actual = plane.read(build_route(context, spec, object_id))
    if actual is not None and get_text(actual, "status", "phase") not in (*_IDLE, "DELETING"):
        put(context, spec, actual, stopped=True)
        raise InProgress(errors.WAITING, f"statement {object_id} is being stopped")
    if _needs_undo(context, spec, object_id):
        if spec.cluster_id:
            require_unprotected(context, spec, f"statement {object_id} has a table with records")
        _undo(context, spec, plane, object_id)
    undo_route = build_route(context, spec, build_undo_name(object_id))
    if plane.read(undo_route) is not None:
        plane.delete(undo_route)
        raise InProgress(errors.WAITING, f"the undo of {object_id} is being deleted")
    if actual is not None:
        plane.delete(build_route(context, spec, object_id))


def find_existing(context: Ctx, spec: FlinkStatementProps, known_id: str | None) -> list[str]:
    """Return the ids.

    Confluent drops ended statements after 30 days; one to delete still counts until its undo has run.
    """

    def find_objects() -> list[str]:
        plane = connect(context, spec)
        if not context.deleting:
            existing_names = _list_existing_names(context, spec, plane, known_id)
            if existing_names and not context.owned:
                # The state was lost. The name proves that the statement is ours, but not that it created its
                # table.
                context.notes[_TABLE] = _OURS if spec.adopt else _NOT_PROVEN
            return existing_names
        managed_name = re.compile(re.escape(context.name) + "-[0-9a-f]{8}(-undo)?")
        names = set()
        for statement in plane.pages(build_route(context, spec)):
            name = get_text(statement, "name")
            if managed_name.fullmatch(name):
                names.add(name.removesuffix("-undo"))
        if known_id and _needs_undo(context, spec, known_id):
            names.add(known_id)
        names.update(_list_existing_names(context, spec, plane, known_id))
        return sorted(names)

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_environment_gone(spec.environment_id), find_objects
    )


def _list_existing_names(
    context: Ctx, spec: FlinkStatementProps, plane: RestClient, known_id: str | None
) -> list[str]:
    """Return which of the names that the statement may have exist."""
    possible_names = [build_name(context, spec), build_former_name(context, spec)]
    if known_id:
        possible_names.append(known_id)
    return [
        name
        for name in dict.fromkeys(possible_names)
        if plane.read(build_route(context, spec, name)) is not None
    ]


def has_completed(context: Ctx, spec: FlinkStatementProps, object_id: str) -> bool:
    """Return whether a statement that is not there had completed, and its table is there.

    Confluent drops it after 30 days.
    """
    return context.notes.get(_PHASE) == "COMPLETED" and _has_ended(context, spec, object_id)


def _has_run(context: Ctx, object_id: str) -> bool:
    """Return whether the statement has run: a note says so, or CloudFormation is updating it and so created
    it before.
    """
    if context.notes.get(_RAN) == object_id:
        return True
    before = context.previous
    if not isinstance(before, FlinkStatementProps):
        return False
    return object_id in (build_name(context, before), build_former_name(context, before))


def _require_replaceable(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    """Raise Refused if a new statement can't take the place of this one, because the table would go or can't
    be created again.
    """
    if spec.tableflow_topics:
        raise Refused(
            confluent_errors.FLINK_TABLEFLOW,
            f"statement {object_id} writes {', '.join(spec.tableflow_topics)}",
        )
    if context.notes.get(_TABLE) == _NOT_PROVEN:
        raise Refused(
            confluent_errors.FOREIGN_TOPIC, f"statement {object_id} may not have created topic {spec.topic}"
        )


def _has_ended(context: Ctx, spec: FlinkStatementProps, object_id: str) -> bool:
    """Return whether a statement that is not there has run, and its table is there: Confluent or a person
    deleted it.
    """
    if context.notes.get(_RAN) != object_id or context.notes.get(_UNDONE) == object_id:
        return False
    return not spec.topic or has_topic(context, spec)


def _build_ended_outputs(context: Ctx, object_id: str) -> Outputs:
    """Return the outputs of a statement that had done all its work.

    Raises ResourceFailed for one that should still run.
    """
    phase = context.notes.get(_PHASE, "")
    if phase != "COMPLETED" and not context.rolling_back():
        message = f"statement {object_id} is gone, and its table is there"
        raise ResourceFailed(confluent_errors.FLINK_ENDED, message, patience=_GONE_PATIENCE)
    return {"name": object_id, "phase": phase or "STOPPED"}


def _has_text(context: Ctx, spec: FlinkStatementProps, object_id: str) -> bool:
    """Return whether the statement has the text and properties of `spec`, apart from the names of environment
    and cluster.

    Statements of earlier releases have a fingerprint with these names in their own names, and names may
    change.
    """
    if object_id in (build_name(context, spec), build_former_name(context, spec)):
        return True
    new_fingerprint = fingerprint(spec.sql, spec.properties)
    if context.notes.get(_TEXT) == f"{object_id} {new_fingerprint}":
        return True
    before = context.previous
    if not isinstance(before, FlinkStatementProps) or object_id != build_former_name(context, before):
        return False
    return fingerprint(before.sql, before.properties) == new_fingerprint


def _needs_undo(context: Ctx, spec: FlinkStatementProps, object_id: str) -> bool:
    """Return whether the statement's undo must still run.

    A table that stays, or isn't the statement's, has none. Of statements that went on where another one
    stopped, the one that ran last has it.
    """
    is_undone = context.notes.get(_UNDONE) == object_id
    ran_last = context.notes.get(_RAN, object_id) == object_id
    if not spec.undo_sql or is_undone or not ran_last or context.notes.get(_TABLE) == _NOT_PROVEN:
        return False
    is_deleted = context.previous is None
    table_stays = spec.keep_table and is_deleted and context.notes.get(_RAN) == object_id
    return not table_stays or context.rolling_back()


def _require_not_undone(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    """Raise ReplacementRequired if a rollback may have dropped the statement's table: resuming would not
    help.
    """
    undo = build_route(context, spec, build_undo_name(object_id))
    if context.notes.get(_UNDONE) == object_id or connect(context, spec).read(undo) is not None:
        raise ReplacementRequired(errors.OUTDATED, f"statement {object_id} was undone")


def _undo(context: Ctx, spec: FlinkStatementProps, plane: RestClient, object_id: str) -> None:
    """Run the undo. Raises InProgress until it has completed and a note records that."""
    name = build_undo_name(object_id)
    actual = plane.read(build_route(context, spec, name))
    if actual is None:
        plane.post(build_route(context, spec), build_statement(context, spec, name, spec.undo_sql))
        raise InProgress(errors.WAITING, f"statement {name} runs")
    phase = get_text(actual, "status", "phase")
    if phase == "FAILED":
        plane.delete(build_route(context, spec, name))
        reason = shorten_detail(get_text(actual, "status", "detail"))
        raise ResourceFailed(
            confluent_errors.FLINK_FAILED, f"statement {name} failed: {reason}", patience=_FAULT_PATIENCE
        )
    if phase == "COMPLETED":
        context.notes[_UNDONE] = object_id
    raise InProgress(errors.WAITING, f"statement {name} is {phase}")
