"""The database that contains the tables' schema. Dropping it also drops what others have created in it."""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import DatabaseProps

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
    lookup.existing(context, sql.by_name(_SHOW, object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    lookup.existing(context, sql.by_name(_SHOW, object_id), object_id)


def delete(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: DatabaseProps, known: str | None) -> list[str]:
    name = lookup.object_name(context, spec.name)
    return lookup.ids(context, sql.by_name(_SHOW, name), name, known)
