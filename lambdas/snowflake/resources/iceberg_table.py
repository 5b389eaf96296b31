"""A read-only Snowflake Iceberg table for a table of the Glue Data Catalog. AUTO_REFRESH is always on."""

from __future__ import annotations

from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import NotFound, Refused, ReplacementRequired, ResourceFailed
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.errors import mentions
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import IcebergTableProps
from lambdas.snowflake.resources import trust
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = IcebergTableProps
TIMEOUT_SECONDS: Final = 3000.0
#: Tableflow adds a new topic's table to Glue within about ten minutes.
_SOURCE_PATIENCE: Final = 1800.0
_ACCESS_PATIENCE: Final = 600.0
_REFRESH_PATIENCE: Final = 900.0
_RESTART_EVERY: Final = 120.0
_CREATE: Final = (
    "CREATE ICEBERG TABLE {path} EXTERNAL_VOLUME={volume} CATALOG={integration} {source} AUTO_REFRESH=TRUE "
    "COMMENT={comment}"
)
_SHOW: Final = "SHOW ICEBERG TABLES LIKE {pattern} IN SCHEMA {schema}"
_STATUS: Final = "SELECT SYSTEM$AUTO_REFRESH_STATUS({path}) AS RESULT"
_STOP: Final = "ALTER ICEBERG TABLE {path} SET AUTO_REFRESH=FALSE"
_REFRESH: Final = "ALTER ICEBERG TABLE {path} REFRESH"
_START: Final = "ALTER ICEBERG TABLE {path} SET AUTO_REFRESH=TRUE"
_DESC: Final = "DESC ICEBERG TABLE {path}"
_DROP: Final = "DROP ICEBERG TABLE IF EXISTS {path}"
_RUNNING: Final = "RUNNING"


def create(context: Ctx, spec: IcebergTableProps) -> str:
    source = sql.statement("CATALOG_TABLE_NAME={table}", table=sql.literal(spec.table))
    if spec.namespace:
        namespace = sql.statement("CATALOG_NAMESPACE={namespace}", namespace=sql.literal(spec.namespace))
        source = sql.listed([source, namespace], " ")
    statement = sql.statement(
        _CREATE,
        path=sql.path(spec.names),
        volume=sql.reference(sql.to_exact_name(spec.volume)),
        integration=sql.reference(sql.to_exact_name(spec.integration)),
        source=source,
        comment=lookup.write_ownership_comment(context),
    )
    try:
        context.vendor.run(statement)
    except Refused as refused:
        raise _find_cause(refused, spec) from None
    return sql.format_dotted(spec.names)


def is_ready(context: Ctx, spec: IcebergTableProps, object_id: str) -> Outputs | None:
    """Return the outputs once the refresh runs. A stopped refresh is restarted, at most every two minutes."""
    lookup.require_existing(context, _show(spec), spec.names[-1])
    state, reason = _refresh_state(context, spec)
    if state == _RUNNING:
        return {"name": spec.names[-1], "full_name": object_id}
    _restart_refresh(context, spec, state)
    raise ResourceFailed(
        snowflake_errors.REFRESH,
        f"table {object_id} is {state or 'not refreshed'}: {reason}",
        patience=_REFRESH_PATIENCE,
    )


def update(context: Ctx, spec: IcebergTableProps, object_id: str) -> None:
    """Raise ReplacementRequired for another source, which needs a new table.

    Streams on the old table are lost.
    """
    actual = lookup.require_existing(context, _show(spec), spec.names[-1])
    expected = {
        "external_volume_name": sql.to_exact_name(spec.volume),
        "catalog_name": sql.to_exact_name(spec.integration),
        "catalog_table_name": spec.table,
        **({"catalog_namespace": spec.namespace} if spec.namespace else {}),
    }
    if differing := [column for column, value in expected.items() if actual.get(column) != value]:
        raise ReplacementRequired(errors.OUTDATED, f"table {object_id} has another {', '.join(differing)}")
    if missing := _list_missing_columns(context, spec):
        raise ReplacementRequired(errors.OUTDATED, f"table {object_id} lacks {', '.join(missing)}")


def delete(context: Ctx, spec: IcebergTableProps, object_id: str) -> None:
    """Drop it. The table in Glue and its files stay: they belong to who writes them."""
    lookup.drop(context, _show(spec), spec.names[-1], sql.statement(_DROP, path=sql.path(spec.names)))


def find_existing(context: Ctx, spec: IcebergTableProps, known_id: str | None) -> list[str]:
    def look() -> list[str]:
        return lookup.find_ids(context, _show(spec), spec.names[-1], known_id, sql.format_dotted(spec.names))

    database, schema, _ = spec.names
    return lookup.treat_gone_container_as_empty(
        context, lambda: lookup.schema_is_gone(context, database, schema), look
    )


def _list_missing_columns(context: Ctx, spec: IcebergTableProps) -> list[str]:
    """Return the columns of the properties that the table in Snowflake doesn't have.

    An automatic refresh follows new rows. Nothing documents that it follows a change of columns alone.
    """
    if not spec.columns:
        return []
    rows = context.vendor.run(sql.statement(_DESC, path=sql.path(spec.names)))
    present = {row.get("name", "").upper() for row in rows}
    return [column for column in spec.columns if column.upper() not in present]


def _refresh_state(context: Ctx, spec: IcebergTableProps) -> tuple[str, str]:
    """Return the state, or "" if the refresh is off, and the details that Snowflake reports."""
    try:
        status = context.vendor.document(sql.statement(_STATUS, path=sql.reference(*spec.names)))
    except NotFound:
        raise
    except Refused as refused:
        return "", refused.what
    if not isinstance(status, dict):
        return "", "AUTO_REFRESH is off"
    return str(status.get("executionState") or ""), errors.shorten_detail(str(status))


def _restart_refresh(context: Ctx, spec: IcebergTableProps, state: str) -> None:
    """Restart a refresh that is off or stopped, unless it is STALLED.

    Snowflake refuses a manual refresh while it is on.
    """
    last = float(context.notes.get("restarted", "0"))
    if context.clock.time() - last < _RESTART_EVERY or state == "STALLED":
        return
    context.notes["restarted"] = str(context.clock.time())
    path = sql.path(spec.names)
    for template in (_STOP, _REFRESH, _START) if state else (_START,):
        try:
            context.vendor.run(sql.statement(template, path=path))
        except Refused as refused:
            if template == _START:
                raise _find_cause(refused, spec) from None


def _find_cause(refused: Refused, spec: IcebergTableProps) -> Refused:
    """Return the error that Snowflake's refusal means.

    New roles and tables may not be known everywhere yet.
    """
    if refused.kind is not snowflake_errors.INVALID:
        return refused
    source = f"{spec.namespace or 'the namespace'}.{spec.table}"
    if mentions(
        refused.what,
        "table not found",
        "not found in the catalog",
        "does not exist",
        "nosuchtable",
        "entitynotfound",
    ):
        return NotFound(
            snowflake_errors.TABLE_MISSING, f"{source}: {refused.what}", patience=_SOURCE_PATIENCE
        )
    if mentions(refused.what, "assume", "not authorized", "access denied", "accessdenied", "forbidden"):
        return NotFound(trust.choose_catalog_row(refused.what), refused.what, patience=_ACCESS_PATIENCE)
    return refused


def _show(spec: IcebergTableProps) -> Sql:
    database, schema, name = spec.names
    return sql.statement(_SHOW, pattern=sql.literal(name), schema=sql.path((database, schema)))
