"""A virtual warehouse for the readers' queries. It is suspended while there are no queries."""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import WAREHOUSE_SIZES, WarehouseProps
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = WarehouseProps
TIMEOUT_SECONDS: Final = 1200.0
_CREATE: Final = (
    "CREATE WAREHOUSE {name} WAREHOUSE_SIZE={size} AUTO_SUSPEND={seconds} AUTO_RESUME=TRUE "
    "INITIALLY_SUSPENDED=TRUE COMMENT={comment}"
)
_ALTER: Final = "ALTER WAREHOUSE {name} SET WAREHOUSE_SIZE={size} AUTO_SUSPEND={seconds} AUTO_RESUME=TRUE"
_SHOW: Final = "SHOW WAREHOUSES LIKE {pattern}"
_DROP: Final = "DROP WAREHOUSE IF EXISTS {name}"


def create(context: Ctx, spec: WarehouseProps) -> str:
    context.vendor.run(
        sql.statement(
            _CREATE, comment=lookup.write_ownership_comment(context), **_render_settings(context, spec)
        )
    )
    return lookup.choose_object_name(context, spec.name)


def is_ready(context: Ctx, spec: WarehouseProps, object_id: str) -> Outputs | None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: WarehouseProps, object_id: str) -> None:
    actual = lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    expected = {
        "size": WAREHOUSE_SIZES[spec.size],
        "auto_suspend": str(spec.auto_suspend_seconds),
        "auto_resume": "true",
    }
    if any(actual.get(column, "").lower() != value.lower() for column, value in expected.items()):
        context.vendor.run(sql.statement(_ALTER, **_render_settings(context, spec)))


def delete(context: Ctx, spec: WarehouseProps, object_id: str) -> None:
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: WarehouseProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context, spec.name)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)


def _render_settings(context: Ctx, spec: WarehouseProps) -> dict[str, Sql]:
    return {
        "name": sql.identifier(lookup.choose_object_name(context, spec.name)),
        "size": sql.literal(spec.size),
        "seconds": sql.number(spec.auto_suspend_seconds),
    }
