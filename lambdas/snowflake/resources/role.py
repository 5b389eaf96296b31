"""An account role. What it may do are grants of their own."""

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
_CREATE: Final = "CREATE ROLE {name} COMMENT={comment}"
_SHOW: Final = "SHOW ROLES LIKE {pattern}"
_DROP: Final = "DROP ROLE IF EXISTS {name}"


@attrs.frozen
class Spec(Properties):
    name: str = prop(f"A name of your own: {sql.CHOSEN}.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        yield from sql.name_problems(self.name)


def create(context: Ctx, spec: Spec) -> str:
    name = sql.object_name(context, spec.name)
    context.vendor.run(sql.statement(_CREATE, name=sql.identifier(name), comment=sql.ownership_comment(context)))
    return name


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    lookup.existing(context, show(object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    lookup.existing(context, show(object_id), object_id)


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    """What the role was granted goes with it."""
    lookup.drop(context, show(object_id), object_id, sql.statement(_DROP, name=sql.identifier(object_id)))


REPLACE_ON: Final = ("name",)


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    name = sql.object_name(context, spec.name)
    return lookup.ids(context, show(name), name)


def show(name: str) -> Sql:
    return sql.statement(_SHOW, pattern=sql.literal(name))
