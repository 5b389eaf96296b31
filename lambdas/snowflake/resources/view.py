"""A secure view of an Iceberg table, with the columns that people may see and no others.

Who may select from it needs no privilege on the table, because a view runs with the rights of its owner, and
a secure one shows its text to its owner only. It names its columns one by one: a column that the table gets
later is in the view only when the properties name it.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import NotFound, Refused, ResourceFailed
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import ViewProps
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = ViewProps
TIMEOUT_SECONDS: Final = 3000.0
#: A new table gets its columns with its first refresh.
_COLUMNS_PATIENCE: Final = 900.0
_CREATE: Final = "CREATE SECURE VIEW {path} COMMENT={comment} AS {query}"
#: Without COPY GRANTS, a replaced view loses the grants that somebody added (docs.snowflake.com, CREATE
#: VIEW).
_REPLACE: Final = "CREATE OR REPLACE SECURE VIEW {path} COPY GRANTS COMMENT={comment} AS {query}"
_QUERY: Final = "SELECT {columns} FROM {table}"
_SHOW: Final = "SHOW VIEWS LIKE {pattern} IN SCHEMA {schema}"
_DESC_TABLE: Final = "DESC ICEBERG TABLE {path}"
_DESC: Final = "DESC VIEW {path}"
_DROP: Final = "DROP VIEW IF EXISTS {path}"


def create(context: Ctx, spec: ViewProps) -> str:
    context.vendor.run(_render(_CREATE, context, spec, _list_shown_columns(context, spec)))
    return sql.format_dotted(spec.names)


def is_ready(context: Ctx, spec: ViewProps, object_id: str) -> Outputs | None:
    """Return the outputs if the view is secure and shows nothing but the columns of the properties."""
    row = lookup.require_existing(context, _show(spec), spec.names[-1])
    allowed = {column.upper() for column in spec.columns}
    excess = [column for column in _describe(context, _DESC, spec.names) if column.upper() not in allowed]
    if excess or not _is_secure(row):
        reason = f"shows {', '.join(excess)}" if excess else "isn't secure, so that its text can be read"
        raise ResourceFailed(snowflake_errors.VIEW, f"view {object_id} {reason}")
    return {"name": spec.names[-1], "full_name": object_id}


def update(context: Ctx, spec: ViewProps, object_id: str) -> None:
    """Replace the view if it isn't secure, or has other columns or another query. The grants on it stay."""
    row = lookup.require_existing(context, _show(spec), spec.names[-1])
    columns = _list_shown_columns(context, spec)
    has_query = row.get("text", "").rstrip("; \n").endswith(_render_query(spec, columns).text)
    if not (_is_secure(row) and has_query and _has_columns(context, spec, columns)):
        context.vendor.run(_render(_REPLACE, context, spec, columns))


def delete(context: Ctx, spec: ViewProps, object_id: str) -> None:
    lookup.drop(context, _show(spec), spec.names[-1], sql.statement(_DROP, path=sql.path(spec.names)))


def find_existing(context: Ctx, spec: ViewProps, known_id: str | None) -> list[str]:
    def look() -> list[str]:
        return lookup.find_ids(context, _show(spec), spec.names[-1], known_id, sql.format_dotted(spec.names))

    database, schema, _ = spec.names
    return lookup.treat_gone_container_as_empty(
        context, lambda: lookup.schema_is_gone(context, database, schema), look
    )


def _list_shown_columns(context: Ctx, spec: ViewProps) -> list[str]:
    """Return those of the properties' columns that the table has, as the table names them.

    Raises ResourceFailed if it has none of them yet.
    """
    allowed = {column.upper() for column in spec.columns}
    names = _describe(context, _DESC_TABLE, sql.split(spec.table))
    shown = [name for name in names if name.upper() in allowed]
    if not shown:
        what = f"table {spec.table} has none of the columns that its view may show"
        raise ResourceFailed(snowflake_errors.VIEW, what, patience=_COLUMNS_PATIENCE)
    return shown


def _has_columns(context: Ctx, spec: ViewProps, columns: list[str]) -> bool:
    try:
        return _describe(context, _DESC, spec.names) == columns
    except NotFound:
        raise
    except Refused:
        return False  # Snowflake can't describe a view whose table lost a column


def _describe(context: Ctx, template: str, names: tuple[str, ...]) -> list[str]:
    rows = context.vendor.run(sql.statement(template, path=sql.path(names)))
    return [row.get("name", "") for row in rows]


def _is_secure(row: Row) -> bool:
    return row.get("is_secure", "").lower() in ("true", "y")


def _render_query(spec: ViewProps, columns: list[str]) -> Sql:
    names = sql.listed([sql.identifier(column) for column in columns])
    return sql.statement(_QUERY, columns=names, table=sql.path(sql.split(spec.table)))


def _render(template: str, context: Ctx, spec: ViewProps, columns: list[str]) -> Sql:
    return sql.statement(
        template,
        path=sql.path(spec.names),
        comment=lookup.write_ownership_comment(context),
        query=_render_query(spec, columns),
    )


def _show(spec: ViewProps) -> Sql:
    database, schema, name = spec.names
    return sql.statement(_SHOW, pattern=sql.literal(name), schema=sql.path((database, schema)))
