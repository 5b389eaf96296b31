"""An account role. Its privileges are separate resources of type snowflake_grant."""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import RoleProps

PROPERTIES: Final = RoleProps
TIMEOUT_SECONDS: Final = 1200.0
_CREATE: Final = "CREATE ROLE {name} COMMENT={comment}"
_SHOW: Final = "SHOW ROLES LIKE {pattern}"
_DROP: Final = "DROP ROLE IF EXISTS {name}"


def create(context: Ctx, spec: RoleProps) -> str:
    name = lookup.choose_object_name(context, spec.name)
    context.vendor.run(
        sql.statement(_CREATE, name=sql.identifier(name), comment=lookup.write_ownership_comment(context))
    )
    return name


def is_ready(context: Ctx, spec: RoleProps, object_id: str) -> Outputs | None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    return {"name": object_id}


def update(context: Ctx, spec: RoleProps, object_id: str) -> None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)


def delete(context: Ctx, spec: RoleProps, object_id: str) -> None:
    """Drop it. Its grants are dropped too."""
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: RoleProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context, spec.name)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)
