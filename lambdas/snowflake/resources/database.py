"""The database with the tables' schema.

It is dropped only if no other schema is in it, and can be restored for a time.
"""

from __future__ import annotations

import contextlib
from typing import Final

from lambdas.shared.errors import DETAIL_LENGTH, LakeferryError, NotFound
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import DatabaseProps

PROPERTIES: Final = DatabaseProps
TIMEOUT_SECONDS: Final = 1200.0
_CREATE: Final = "CREATE DATABASE {name} COMMENT={comment}"
_SHOW: Final = "SHOW DATABASES LIKE {pattern}"
_DROP: Final = "DROP DATABASE IF EXISTS {name}"
_SCHEMAS: Final = "SHOW SCHEMAS IN DATABASE {name}"
#: Schemas that Snowflake creates in each database.
_OWN_SCHEMAS: Final = frozenset({"INFORMATION_SCHEMA", "PUBLIC"})
#: Seconds for which a schema that was dropped just before may still be listed.
_EMPTY_PATIENCE: Final = 120.0


def create(context: Ctx, spec: DatabaseProps) -> str:
    name = lookup.choose_object_name(context, spec.name)
    context.vendor.run(
        sql.statement(_CREATE, name=sql.identifier(name), comment=lookup.write_ownership_comment(context))
    )
    return name


def is_ready(context: Ctx, spec: DatabaseProps, object_id: str) -> Outputs | None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)


def delete(context: Ctx, spec: DatabaseProps, object_id: str) -> None:
    """Drop it.

    Raises LakeferryError while it has a schema: the deployment's own is dropped before, so this one is
    somebody's.
    """
    with contextlib.suppress(NotFound):
        if lookup.find_managed(context, sql.by_name(_SHOW, object_id), object_id):
            rows = context.vendor.run(sql.by_name(_SCHEMAS, object_id))
            schemas = sorted({row.get("name", "") for row in rows} - _OWN_SCHEMAS)
            if schemas:
                what = f"database {object_id} still has the schemas {', '.join(schemas)[:DETAIL_LENGTH]}"
                raise LakeferryError(snowflake_errors.DATABASE_NOT_EMPTY, what, patience=_EMPTY_PATIENCE)
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: DatabaseProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context, spec.name)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)
