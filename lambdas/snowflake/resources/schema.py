"""A schema with managed access: its owner may grant privileges on future tables, without MANAGE GRANTS."""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import SchemaProps
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = SchemaProps
TIMEOUT_SECONDS: Final = 1200.0
_MANAGED: Final = "MANAGED ACCESS"
_CREATE: Final = "CREATE SCHEMA {path} WITH MANAGED ACCESS COMMENT={comment}"
_ALTER: Final = "ALTER SCHEMA {path} ENABLE MANAGED ACCESS"
_SHOW: Final = "SHOW SCHEMAS LIKE {pattern} IN DATABASE {database}"
_DROP: Final = "DROP SCHEMA IF EXISTS {path}"


def create(context: Ctx, spec: SchemaProps) -> str:
    context.vendor.run(
        sql.statement(
            _CREATE, path=_render_path(context, spec), comment=lookup.write_ownership_comment(context)
        )
    )
    return _build_id(context, spec)


def is_ready(context: Ctx, spec: SchemaProps, object_id: str) -> Outputs | None:
    _require_existing(context, spec)
    return {"name": lookup.choose_object_name(context, spec.name), "full_name": object_id}


def update(context: Ctx, spec: SchemaProps, object_id: str) -> None:
    if _MANAGED not in _require_existing(context, spec).get("options", "").upper():
        context.vendor.run(sql.statement(_ALTER, path=_render_path(context, spec)))


def delete(context: Ctx, spec: SchemaProps, object_id: str) -> None:
    name = lookup.choose_object_name(context, spec.name)
    lookup.drop(context, _show(context, spec), name, sql.statement(_DROP, path=_render_path(context, spec)))


def find_existing(context: Ctx, spec: SchemaProps, known_id: str | None) -> list[str]:
    def look() -> list[str]:
        return lookup.find_ids(
            context,
            _show(context, spec),
            lookup.choose_object_name(context, spec.name),
            known_id,
            _build_id(context, spec),
        )

    return lookup.treat_gone_container_as_empty(
        context, lambda: lookup.database_is_gone(context, sql.to_exact_name(spec.database)), look
    )


def _require_existing(context: Ctx, spec: SchemaProps) -> Row:
    return lookup.require_existing(
        context, _show(context, spec), lookup.choose_object_name(context, spec.name)
    )


def _choose_names(context: Ctx, spec: SchemaProps) -> tuple[str, str]:
    return sql.to_exact_name(spec.database), lookup.choose_object_name(context, spec.name)


def _render_path(context: Ctx, spec: SchemaProps) -> Sql:
    return sql.path(_choose_names(context, spec))


def _build_id(context: Ctx, spec: SchemaProps) -> str:
    return sql.format_dotted(_choose_names(context, spec))


def _show(context: Ctx, spec: SchemaProps) -> Sql:
    database, name = _choose_names(context, spec)
    return sql.statement(_SHOW, pattern=sql.literal(name), database=sql.identifier(database))
