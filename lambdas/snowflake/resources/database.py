"""A database, for the schema of the tables. Dropping it also drops what others have created in it."""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import DatabaseProps
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = DatabaseProps
TIMEOUT_SECONDS: Final = 1200.0
_CREATE: Final = "CREATE DATABASE {name} COMMENT={comment}"
_SHOW: Final = "SHOW DATABASES LIKE {pattern}"
_DROP: Final = "DROP DATABASE IF EXISTS {name}"


def create(context: Ctx, spec: DatabaseProps) -> str:
    name = lookup.object_name(context, spec.name)
    context.vendor.run(sql.statement(_CREATE, name=sql.identifier(name), comment=lookup.ownership_comment(context)))
    return name


def is_ready(context: Ctx, spec: DatabaseProps, object_id: str) -> Outputs | None:
    lookup.existing(context, show(object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    lookup.existing(context, show(object_id), object_id)


def delete(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    lookup.drop(context, show(object_id), object_id, sql.statement(_DROP, name=sql.identifier(object_id)))


def find_existing(context: Ctx, spec: DatabaseProps, known: str | None) -> list[str]:
    name = lookup.object_name(context, spec.name)
    return lookup.ids(context, show(name), name)


def show(name: str) -> Sql:
    return sql.statement(_SHOW, pattern=sql.literal(name))
