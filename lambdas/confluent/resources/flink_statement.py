"""A Flink SQL statement, and the statement that undoes it.

Text and properties of a statement can't be changed, and deleting it doesn't undo its effects. So a statement's name ends in a
fingerprint of both, and a changed text is a new statement. Before the old statement is deleted, it is stopped and its undo
statement runs to completion. The statement itself is deleted last: once it is gone, nothing is left to do.
"""

from __future__ import annotations

import re
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import RestClient, get_path, path, text
from lambdas.confluent.flink_sql import fingerprint
from lambdas.confluent.lookup import Ctx, existing, in_container
from lambdas.confluent.properties import FlinkStatementProps
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, NeedsReplacement, Refused, ReplacementRequired, ResourceFailed
from lambdas.shared.resource import Outputs

PROPERTIES: Final = FlinkStatementProps
TIMEOUT_SECONDS: Final = 3000.0
#: Seconds for which a failure may be temporary, because Flink takes some time to see new roles and the tables of new topics.
_FAULT_PATIENCE: Final = 600.0
_IDLE: Final = ("STOPPED", "COMPLETED", "FAILED")
_UNDONE: Final = "undone"
_RAN: Final = "ran"


def create(context: Ctx, spec: FlinkStatementProps) -> str:
    plane = _plane(context, spec)
    name = _name(context, spec)
    if plane.read(_route(context, spec, _undo_name(name))) is not None:
        plane.delete(_route(context, spec, _undo_name(name)))
        raise InProgress(confluent_errors.FLINK_FAILED, f"an earlier undo of {name} is being deleted")
    for note in (_UNDONE, _RAN):
        context.notes.pop(note, None)
    plane.post(_route(context, spec), _statement(context, spec, name, spec.sql))
    return name


def is_ready(context: Ctx, spec: FlinkStatementProps, object_id: str) -> Outputs | None:
    actual = existing(_plane(context, spec).read(_route(context, spec, object_id)), f"statement {object_id}")
    phase = text(actual, "status", "phase")
    if phase in ("FAILED", "FAILING"):
        what = f"statement {object_id} failed: {text(actual, 'status', 'detail')[:300]}"
        if not _has_run(context, object_id):
            raise NeedsReplacement(confluent_errors.FLINK_FAILED, what, patience=_FAULT_PATIENCE)
        # Replacing it would run its undo, which drops the table and all its rows. A rollback must not fail because of it either.
        if not context.rolling_back():
            raise ResourceFailed(confluent_errors.FLINK_STOPPED_RUNNING, what, patience=_FAULT_PATIENCE)
        return {"name": object_id, "phase": phase}
    if phase == "STOPPED":
        _require_not_undone(context, spec, object_id)
        _put(context, spec, actual, stopped=False)
    if phase not in ("RUNNING", "COMPLETED", "DEGRADED"):
        return None
    context.notes[_RAN] = object_id
    return {"name": object_id, "phase": phase}


def update(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    """Change the pool and the account, which requires a stopped statement. Every other change needs a new statement."""
    actual = existing(_plane(context, spec).read(_route(context, spec, object_id)), f"statement {object_id}")
    if object_id != _name(context, spec):
        if spec.tableflow_topics:
            raise Refused(confluent_errors.FLINK_TABLEFLOW, f"statement {object_id} writes {', '.join(spec.tableflow_topics)}")
        raise ReplacementRequired(errors.OUTDATED, f"statement {object_id} has another text")
    if text(actual, "status", "phase") in _IDLE:
        _require_not_undone(context, spec, object_id)
    wanted = {"compute_pool_id": spec.compute_pool_id, "principal": spec.service_account_id}
    if all(text(actual, "spec", name) == value for name, value in wanted.items()):
        return
    if text(actual, "status", "phase") not in _IDLE:
        _put(context, spec, actual, stopped=True)
        raise InProgress(errors.WAITING, f"statement {object_id} is being stopped to move it")
    _put(context, spec, actual, stopped=False, **wanted)


def delete(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    plane = _plane(context, spec)
    actual = plane.read(_route(context, spec, object_id))
    if actual is not None and text(actual, "status", "phase") not in (*_IDLE, "DELETING"):
        _put(context, spec, actual, stopped=True)
        raise InProgress(errors.WAITING, f"statement {object_id} is being stopped")
    if spec.undo_sql and context.notes.get(_UNDONE) != object_id:
        _undo(context, spec, plane, object_id)
    if plane.read(_route(context, spec, _undo_name(object_id))) is not None:
        plane.delete(_route(context, spec, _undo_name(object_id)))
        raise InProgress(errors.WAITING, f"the undo of {object_id} is being deleted")
    if actual is not None:
        plane.delete(_route(context, spec, object_id))


def find_existing(context: Ctx, spec: FlinkStatementProps, known: str | None) -> list[str]:
    """Return the ids. Confluent drops ended statements after 30 days; one to delete still counts until its undo has run."""

    def look() -> list[str]:
        plane = _plane(context, spec)
        candidates = dict.fromkeys(filter(None, (_name(context, spec), known)))
        if not context.deleting:
            return [name for name in candidates if plane.read(_route(context, spec, name)) is not None]
        listed = {text(one, "name") for one in plane.pages(_route(context, spec))}
        managed = re.compile(re.escape(context.name) + "-[0-9a-f]{8}(-undo)?")
        names = {name.removesuffix("-undo") for name in listed if managed.fullmatch(name)}
        if known and spec.undo_sql and context.notes.get(_UNDONE) != known:
            names.add(known)
        return sorted(names | {name for name in candidates if plane.read(_route(context, spec, name)) is not None})

    return in_container(context, lambda: context.vendor.environment_is_gone(spec.environment_id), look)


def _has_run(context: Ctx, object_id: str) -> bool:
    """Return whether the statement has run: a note says so, or CloudFormation is updating it and so created it before."""
    before = context.previous
    return context.notes.get(_RAN) == object_id or (
        isinstance(before, FlinkStatementProps) and _name(context, before) == object_id
    )


def _require_not_undone(context: Ctx, spec: FlinkStatementProps, object_id: str) -> None:
    """Raise ReplacementRequired if a rollback may have dropped the statement's table: resuming would not help."""
    undo = _route(context, spec, _undo_name(object_id))
    if context.notes.get(_UNDONE) == object_id or _plane(context, spec).read(undo) is not None:
        raise ReplacementRequired(errors.OUTDATED, f"statement {object_id} was undone")


def _undo(context: Ctx, spec: FlinkStatementProps, plane: RestClient, object_id: str) -> None:
    """Run the undo. Raises InProgress until it has completed and a note records that."""
    name = _undo_name(object_id)
    actual = plane.read(_route(context, spec, name))
    if actual is None:
        plane.post(_route(context, spec), _statement(context, spec, name, spec.undo_sql))
        raise InProgress(errors.WAITING, f"statement {name} runs")
    phase = text(actual, "status", "phase")
    if phase == "FAILED":
        plane.delete(_route(context, spec, name))
        reason = text(actual, "status", "detail")[:300]
        raise ResourceFailed(confluent_errors.FLINK_FAILED, f"statement {name} failed: {reason}", patience=_FAULT_PATIENCE)
    if phase == "COMPLETED":
        context.notes[_UNDONE] = object_id
    raise InProgress(errors.WAITING, f"statement {name} is {phase}")


def _put(context: Ctx, spec: FlinkStatementProps, actual: dict[str, Any], **changes: Any) -> None:
    """Send the whole statement with the resource version that was read, as the gateway requires."""
    kept = {name: actual[name] for name in ("name", "organization_id", "environment_id", "metadata") if name in actual}
    writable = ("statement", "properties", "compute_pool_id", "principal", "stopped")
    current = {name: value for name in writable if (value := get_path(actual, "spec", name)) is not None}
    route = _route(context, spec, text(actual, "name"))
    _plane(context, spec).put(route, {**kept, "spec": {**current, **changes}})


def _statement(context: Ctx, spec: FlinkStatementProps, name: str, sql: str) -> dict[str, Any]:
    return {
        "name": name,
        "organization_id": context.vendor.organization_id,
        "environment_id": spec.environment_id,
        "spec": {
            "statement": sql,
            "properties": _properties(spec),
            "compute_pool_id": spec.compute_pool_id,
            "principal": spec.service_account_id,
            "stopped": False,
        },
    }


def _properties(spec: FlinkStatementProps) -> dict[str, str]:
    return {**spec.properties, "sql.current-catalog": spec.catalog, "sql.current-database": spec.database}


def _name(context: Ctx, spec: FlinkStatementProps) -> str:
    return f"{context.name}-{fingerprint(spec.sql, _properties(spec))}"


def _undo_name(name: str) -> str:
    return f"{name}-undo"


def _plane(context: Ctx, spec: FlinkStatementProps) -> RestClient:
    return context.vendor.flink(spec.region, context.secrets.read_key(spec.credentials))


def _route(context: Ctx, spec: FlinkStatementProps, *name: str) -> str:
    parent = ("organizations", context.vendor.organization_id, "environments", spec.environment_id)
    return path("sql", "v1", *parent, "statements", *name)
