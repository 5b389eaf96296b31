"""A virtual warehouse: what readers' queries run on. It sleeps when nobody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.sql import Sql

OUTPUTS: Final = ("name",)
PATIENCE: Final = 1200.0
#: As statements name a size, and as SHOW prints it.
_SIZES: Final = {
    "XSMALL": "X-Small",
    "SMALL": "Small",
    "MEDIUM": "Medium",
    "LARGE": "Large",
    "XLARGE": "X-Large",
    "XXLARGE": "2X-Large",
    "XXXLARGE": "3X-Large",
    "X4LARGE": "4X-Large",
    "X5LARGE": "5X-Large",
    "X6LARGE": "6X-Large",
}
_CREATE: Final = (
    "CREATE WAREHOUSE {name} WAREHOUSE_SIZE={size} AUTO_SUSPEND={seconds} AUTO_RESUME=TRUE INITIALLY_SUSPENDED=TRUE "
    "COMMENT={comment}"
)
_ALTER: Final = "ALTER WAREHOUSE {name} SET WAREHOUSE_SIZE={size} AUTO_SUSPEND={seconds} AUTO_RESUME=TRUE"
_SHOW: Final = "SHOW WAREHOUSES LIKE {pattern}"
_DROP: Final = "DROP WAREHOUSE IF EXISTS {name}"


@attrs.frozen
class Spec(Properties):
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")
    size: str = prop("How large it is, and so what a second costs.", default="XSMALL", one_of=tuple(_SIZES))
    auto_suspend_seconds: int = prop("Seconds without a query after which it sleeps, and costs nothing.", default=60)

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.name_problems(self.name)
        if self.auto_suspend_seconds < 1:
            yield "auto_suspend_seconds", "must be at least 1: a warehouse that never sleeps costs all the time"


def create(context: Ctx, spec: Spec) -> str:
    context.vendor.run(sql.statement(_CREATE, comment=sql.ownership_comment(context), **_settings(context, spec)))
    return _name(context, spec)


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    lookup.existing(context, _show(object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    found = lookup.existing(context, _show(object_id), object_id)
    wanted = {"size": _SIZES[spec.size], "auto_suspend": str(spec.auto_suspend_seconds), "auto_resume": "true"}
    if any(found.get(column, "").lower() != value.lower() for column, value in wanted.items()):
        context.vendor.run(sql.statement(_ALTER, **_settings(context, spec)))


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    drop = sql.statement(_DROP, name=sql.identifier(object_id))
    lookup.drop(context, _show(object_id), object_id, drop)


REPLACE_ON: Final = ("name",)


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    name = _name(context, spec)
    return lookup.ids(context, _show(name), name)


def _settings(context: Ctx, spec: Spec) -> dict[str, Sql]:
    return {
        "name": sql.identifier(_name(context, spec)),
        "size": sql.literal(spec.size),
        "seconds": sql.number(spec.auto_suspend_seconds),
    }


def _show(name: str) -> Sql:
    return sql.statement(_SHOW, pattern=sql.literal(name))


def _name(context: Ctx, spec: Spec) -> str:
    return sql.object_name(context, spec.name)
