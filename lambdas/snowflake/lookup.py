"""How resource types name their objects, look for them, and treat one that is missing or that somebody else created.

Snowflake gives no ids, so names are identities: deterministic, in plain capitals, kept apart from all other resources by the
hash in `context.name`. The comment holds the same name: an object of our name without it is unmanaged, and is neither changed
nor dropped, also where the user chose the name. External ids are derived from `context.origin`, which a resource keeps when it
is replaced: the new volume presents the id that the role's trust policy already names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeAlias

from lambdas.shared import errors
from lambdas.shared.errors import NotFound, Refused, ResourceMissing
from lambdas.shared.resource import Context
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import sql
from lambdas.snowflake.client import Row, Snowflake
from lambdas.snowflake.sql import Sql

Ctx: TypeAlias = Context[Snowflake]


def object_name(context: Ctx, chosen: str = "") -> str:
    """The object's name: the one that the user chose, otherwise ours."""
    return chosen.upper() if chosen else sql.plain_name(context.name)


def ownership_tag(context: Ctx) -> str:
    """What the comment of an object of ours holds; somebody may have added words of his own."""
    return f"lakeferry {context.name}"


def ownership_comment(context: Ctx) -> Sql:
    return sql.literal(ownership_tag(context))


def external_id(context: Ctx) -> str:
    return sql.external_id_of(context.origin)


def shown(context: Ctx, show: Sql, name: str) -> Row | None:
    """The row of exactly that name, whoever's it is. Patterns of SHOW find more: they know wildcards and no case."""
    return next((row for row in context.vendor.run(show) if row.get("name") == name), None)


def is_managed(context: Ctx, row: Row) -> bool:
    return ownership_tag(context) in row.get("comment", "")


def managed(context: Ctx, show: Sql, name: str) -> Row | None:
    """None where there is none. Somebody else's counts as none to delete, and raises Refused otherwise."""
    row = shown(context, show, name)
    if row is None or is_managed(context, row):
        return row
    if context.deleting:
        return None
    raise Refused(snowflake_errors.FOREIGN, f"{name} exists, and its comment doesn't hold `{ownership_tag(context)}`")


def existing(context: Ctx, show: Sql, name: str) -> Row:
    """Raises ResourceMissing where it is not there."""
    if row := managed(context, show, name):
        return row
    raise ResourceMissing(errors.VANISHED, f"{name} is not there")


def ids(context: Ctx, show: Sql, name: str, object_id: str = "") -> list[str]:
    return [object_id or name] if managed(context, show, name) else []


def drop(context: Ctx, show: Sql, name: str, statement: Sql) -> None:
    """Quiet about what is gone, and about what isn't ours."""
    with contextlib.suppress(NotFound):
        row = shown(context, show, name)
        if row is not None and is_managed(context, row):
            context.vendor.run(statement)


def in_container(context: Ctx, container_is_gone: Callable[[], bool], look: Callable[[], list[str]]) -> list[str]:
    """What `look` finds. What shall go is gone when what it was in is gone: Snowflake then says that it may not be seen."""
    try:
        return look()
    except NotFound:
        if context.deleting and container_is_gone():
            return []
        raise


def database_is_gone(context: Ctx, name: str) -> bool:
    return shown(context, sql.statement("SHOW DATABASES LIKE {pattern}", pattern=sql.literal(name)), name) is None


def role_is_gone(context: Ctx, name: str) -> bool:
    return shown(context, sql.statement("SHOW ROLES LIKE {pattern}", pattern=sql.literal(name)), name) is None


def schema_is_gone(context: Ctx, database: str, name: str) -> bool:
    if database_is_gone(context, database):
        return True
    show = sql.statement(
        "SHOW SCHEMAS LIKE {pattern} IN DATABASE {database}", pattern=sql.literal(name), database=sql.identifier(database)
    )
    return shown(context, show, name) is None
