"""A catalog-linked database: it contains all tables of the catalog, including new ones.

It is never writable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lambdas.shared import errors
from lambdas.shared.errors import NotFound, Refused, ReplacementRequired, ResourceFailed
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import LinkedDatabaseProps
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = LinkedDatabaseProps
TIMEOUT_SECONDS: Final = 3000.0
_FAULT_PATIENCE: Final = 900.0
#: Tableflow creates the Glue database with its first table.
_NAMESPACE_PATIENCE: Final = 1800.0
#: With ALL, a DROP TABLE in Snowflake would delete Tableflow's table and its files.
_WRITES: Final = "NONE"
_CREATE: Final = (
    "CREATE DATABASE {name} LINKED_CATALOG=(CATALOG={integration}, ALLOWED_NAMESPACES=({namespaces}), "
    "ALLOWED_WRITE_OPERATIONS=NONE, SYNC_INTERVAL_SECONDS={seconds}) EXTERNAL_VOLUME={volume} "
    "COMMENT={comment}"
)
_ALTER: Final = "ALTER DATABASE {name} UPDATE LINKED_CATALOG {change}"
_ADD: Final = "ADD ({namespaces}) TO ALLOWED_NAMESPACES"
_REMOVE: Final = "REMOVE ({namespaces}) FROM ALLOWED_NAMESPACES"
_SET_SECONDS: Final = "SET SYNC_INTERVAL_SECONDS={seconds}"
_SET_WRITES: Final = "SET ALLOWED_WRITE_OPERATIONS=NONE"
_SHOW: Final = "SHOW DATABASES LIKE {pattern}"
_SCHEMAS: Final = "SHOW SCHEMAS IN DATABASE {name}"
_STATUS: Final = "SELECT SYSTEM$CATALOG_LINK_STATUS({name}) AS RESULT"
_CONFIG: Final = "SELECT SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG({name}) AS RESULT"
_DROP: Final = "DROP DATABASE IF EXISTS {name}"


def create(context: Ctx, spec: LinkedDatabaseProps) -> str:
    name = lookup.choose_object_name(context, spec.name)
    statement = sql.statement(
        _CREATE,
        name=sql.identifier(name),
        integration=sql.reference(sql.to_exact_name(spec.integration)),
        namespaces=_render_literals(spec.namespaces),
        seconds=sql.number(spec.sync_seconds),
        volume=sql.reference(sql.to_exact_name(spec.volume)),
        comment=lookup.write_ownership_comment(context),
    )
    context.vendor.run(statement)
    return name


def is_ready(context: Ctx, spec: LinkedDatabaseProps, object_id: str) -> Outputs | None:
    """Return the outputs once Snowflake reads the catalog without errors and shows the Glue databases as
    schemas.
    """
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    try:
        status = _call_system(context, _STATUS, object_id)
    except NotFound:
        raise
    except Refused as refused:
        status = {"error": refused.what}
    failures = status.get("failuredetails") or []
    if status.get("executionstate") == "RUNNING" and not failures:
        _require_shown(context, spec, object_id)
        return {"name": object_id}
    reason = f"{status.get('executionstate') or 'no state'}: {failures or status.get('error', '')}"
    reason = errors.shorten_detail(reason)
    raise ResourceFailed(
        snowflake_errors.LINK, f"linked database {object_id} is {reason}", patience=_FAULT_PATIENCE
    )


def update(context: Ctx, spec: LinkedDatabaseProps, object_id: str) -> None:
    """Update it. A change that needs a new database loses the grants on the schemas."""
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    config = _call_system(context, _CONFIG, object_id)
    links = {
        "catalogintegration": sql.to_exact_name(spec.integration),
        "externalvolume": sql.to_exact_name(spec.volume),
    }
    if differing := [key for key, value in links.items() if str(config.get(key, value)) != value]:
        raise ReplacementRequired(
            errors.OUTDATED, f"linked database {object_id} has another {', '.join(differing)}"
        )
    for change in _list_changes(spec, config):
        context.vendor.run(sql.statement(_ALTER, name=sql.identifier(object_id), change=change))


def delete(context: Ctx, spec: LinkedDatabaseProps, object_id: str) -> None:
    """Drop it. The tables in Glue and their files stay: they belong to Tableflow."""
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: LinkedDatabaseProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context, spec.name)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)


def _require_shown(context: Ctx, spec: LinkedDatabaseProps, name: str) -> None:
    rows = context.vendor.run(sql.statement(_SCHEMAS, name=sql.identifier(name)))
    schemas = {row.get("name", "").lower() for row in rows}
    if missing := [namespace for namespace in spec.namespaces if namespace.lower() not in schemas]:
        what = f"linked database {name} doesn't show {', '.join(missing)}"
        raise ResourceFailed(snowflake_errors.TRUST_NAMESPACE, what, patience=_NAMESPACE_PATIENCE)


def _list_changes(spec: LinkedDatabaseProps, config: dict[str, Any]) -> Iterator[Sql]:
    now = config.get("allowednamespaces")
    if isinstance(now, list):
        listed = [str(namespace) for namespace in now]
        if added := [namespace for namespace in spec.namespaces if namespace not in listed]:
            yield sql.statement(_ADD, namespaces=_render_literals(added))
        if removed := [namespace for namespace in listed if namespace not in spec.namespaces]:
            yield sql.statement(_REMOVE, namespaces=_render_literals(removed))
    if str(config.get("syncintervalseconds", spec.sync_seconds)) != str(spec.sync_seconds):
        yield sql.statement(_SET_SECONDS, seconds=sql.number(spec.sync_seconds))
    if str(config.get("allowedwriteoperations", _WRITES)).upper() != _WRITES:
        yield sql.statement(_SET_WRITES)


def _call_system(context: Ctx, template: str, name: str) -> dict[str, Any]:
    """Return the fields by lower-case name without underscores: Snowflake's functions write names with and
    without them.
    """
    status = context.vendor.document(sql.statement(template, name=sql.reference(name)))
    fields = status if isinstance(status, dict) else {}
    return {key.replace("_", "").lower(): value for key, value in fields.items()}


def _render_literals(texts: list[str]) -> Sql:
    return sql.listed([sql.literal(text) for text in texts])
