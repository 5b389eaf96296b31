"""How resource types name and find their objects, and how they treat objects that are missing or that
somebody else created.

Snowflake has no ids, so objects are identified by their names. Generated names are deterministic, in upper
case, and unique through the hash in `context.name`. An object's comment also contains `context.name`. An
object without it is unmanaged: it is neither changed nor dropped, whoever chose the name. If this resource
created an object of that name, a delete reports it: either somebody changed the comment, or dropped the
object and created another one.

External ids are derived from `context.resource_uid`, which stays the same when a resource is replaced: a new
volume presents the external id that is already in the role's trust policy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeAlias

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError, NotFound, Refused, ResourceMissing
from lambdas.shared.resource import Context
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import sql
from lambdas.snowflake.client import Row, Snowflake
from lambdas.snowflake.sql import Sql

Ctx: TypeAlias = Context[Snowflake]


def choose_object_name(context: Ctx, chosen: str = "") -> str:
    """Return the object's name: the one that the user chose, or else a generated one."""
    return chosen.upper() if chosen else sql.to_plain_name(context.name)


def write_ownership_tag(context: Ctx) -> str:
    """Return the text that a managed object's comment contains. Somebody may have added more text."""
    return f"lakeferry {context.name}"


def write_ownership_comment(context: Ctx) -> Sql:
    return sql.literal(write_ownership_tag(context))


def choose_external_id(context: Ctx) -> str:
    return sql.build_external_id(context.resource_uid)


def find_shown(context: Ctx, show: Sql, name: str) -> Row | None:
    """Return the row with exactly this name, managed or not.

    SHOW may return more: patterns have wildcards and ignore case.
    """
    return next((row for row in context.vendor.run(show) if row.get("name") == name), None)


def is_managed(context: Ctx, row: Row) -> bool:
    return write_ownership_tag(context) in row.get("comment", "")


def find_managed(context: Ctx, show: Sql, name: str) -> Row | None:
    """Return the managed object's row, or None. Raises LakeferryError for an unmanaged object.

    A delete returns None for an unmanaged object, unless this resource created one of that name.
    """
    row = find_shown(context, show, name)
    if row is None or is_managed(context, row):
        return row
    what = f"{name} exists, and its comment doesn't hold `{write_ownership_tag(context)}`"
    if not context.deleting:
        raise Refused(snowflake_errors.FOREIGN, what)
    if context.owned:
        raise LakeferryError(snowflake_errors.COMMENT_CHANGED, f"this deployment created {name}, but {what}")
    return None


def require_existing(context: Ctx, show: Sql, name: str) -> Row:
    """Return the managed object's row. Raises ResourceMissing if there is none."""
    if row := find_managed(context, show, name):
        return row
    raise ResourceMissing(errors.VANISHED, f"{name} is not there")


def find_ids(context: Ctx, show: Sql, name: str, known_id: str | None, object_id: str = "") -> list[str]:
    """Return the managed object's id. Raises LakeferryError if a known object has another name now.

    A role that sees all objects doesn't see a renamed one under its old name. Its comment still tells whose
    it is.
    """
    if find_managed(context, show, name):
        return [object_id or name]
    if known_id:
        for row in context.vendor.run(sql.of_any_name(show, name)):
            if is_managed(context, row) and row.get("name") != name:
                tag = write_ownership_tag(context)
                what = f"{name} was renamed to {row.get('name')}, whose comment holds `{tag}`"
                raise LakeferryError(snowflake_errors.RENAMED, what)
    return []


def drop(context: Ctx, show: Sql, name: str, statement: Sql) -> None:
    """Drop a managed object. It is no error if the object is gone or unmanaged."""
    with contextlib.suppress(NotFound):
        if find_managed(context, show, name):
            context.vendor.run(statement)


def treat_gone_container_as_empty(
    context: Ctx, container_is_gone: Callable[[], bool], look: Callable[[], list[str]]
) -> list[str]:
    """Return what `look` returns. An object to delete counts as gone if its container is gone.

    For objects in a container that doesn't exist, Snowflake returns the same error as for missing privileges.
    """
    try:
        return look()
    except NotFound:
        if context.deleting and container_is_gone():
            return []
        raise


def database_is_gone(context: Ctx, name: str) -> bool:
    return find_shown(context, sql.by_name("SHOW DATABASES LIKE {pattern}", name), name) is None


def role_is_gone(context: Ctx, name: str) -> bool:
    return find_shown(context, sql.by_name("SHOW ROLES LIKE {pattern}", name), name) is None


def schema_is_gone(context: Ctx, database: str, name: str) -> bool:
    if database_is_gone(context, database):
        return True
    show = sql.statement(
        "SHOW SCHEMAS LIKE {pattern} IN DATABASE {database}",
        pattern=sql.literal(name),
        database=sql.identifier(database),
    )
    return find_shown(context, show, name) is None
