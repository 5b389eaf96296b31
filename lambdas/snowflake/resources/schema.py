"""A schema with managed access: its owner, not MANAGE GRANTS, then decides who may read tables that are still to come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.sql import Sql

OUTPUTS: Final = ("name", "full_name")
PATIENCE: Final = 1200.0
_MANAGED: Final = "MANAGED ACCESS"
_CREATE: Final = "CREATE SCHEMA {path} WITH MANAGED ACCESS COMMENT={comment}"
_ALTER: Final = "ALTER SCHEMA {path} ENABLE MANAGED ACCESS"
_SHOW: Final = "SHOW SCHEMAS LIKE {pattern} IN DATABASE {database}"
_DROP: Final = "DROP SCHEMA IF EXISTS {path}"


@attrs.frozen
class Spec(Properties):
    database: str = prop("The database's name.")
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.name_problems(self.name)


def create(context: Ctx, spec: Spec) -> str:
    context.vendor.run(sql.statement(_CREATE, path=_path(context, spec), comment=sql.ownership_comment(context)))
    return _id(context, spec)


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    _existing(context, spec)
    return {"name": sql.object_name(context, spec.name), "full_name": object_id}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    if _MANAGED not in _existing(context, spec).get("options", "").upper():
        context.vendor.run(sql.statement(_ALTER, path=_path(context, spec)))


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    name = sql.object_name(context, spec.name)
    lookup.drop(context, _show(context, spec), name, sql.statement(_DROP, path=_path(context, spec)))


REPLACE_ON: Final = ("database", "name")


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    def look() -> list[str]:
        return lookup.ids(context, _show(context, spec), sql.object_name(context, spec.name), _id(context, spec))

    return lookup.in_container(context, lambda: lookup.database_is_gone(context, sql.named(spec.database)), look)


def _existing(context: Ctx, spec: Spec) -> Row:
    return lookup.existing(context, _show(context, spec), sql.object_name(context, spec.name))


def _names(context: Ctx, spec: Spec) -> tuple[str, str]:
    return sql.named(spec.database), sql.object_name(context, spec.name)


def _path(context: Ctx, spec: Spec) -> Sql:
    return sql.path(_names(context, spec))


def _id(context: Ctx, spec: Spec) -> str:
    return sql.dotted(_names(context, spec))


def _show(context: Ctx, spec: Spec) -> Sql:
    database, name = _names(context, spec)
    return sql.statement(_SHOW, pattern=sql.literal(name), database=sql.identifier(database))
