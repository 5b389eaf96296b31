"""A privilege of a role, or a role of a role or user. What is granted already is not granted again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import attrs

from lambdas.shared import errors
from lambdas.shared.errors import NotFound, Vanished
from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs
from lambdas.snowflake import lookup, privileges, sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.privileges import ON, PARTS, ROLE, TABLES_IN_SCHEMA
from lambdas.snowflake.sql import Sql

OUTPUTS: Final = ("id",)
PATIENCE: Final = 1200.0
_GRANT: Final = "GRANT {what} TO {grantee}"
_REVOKE: Final = "REVOKE {what} FROM {grantee}"


@attrs.frozen
class Spec(Properties):
    privilege: str = prop(
        "What may be done. On a role it stands for being in the role.",
        default=privileges.USAGE,
        one_of=privileges.PRIVILEGES,
    )
    on: str = prop("On what; the last three are all of a sort, in SCHEMA those that are still to come too.", one_of=tuple(ON))
    name: str = prop("Its name in full, as in SQL.")
    to_role: str = prop("The role that gets it.", default="")
    to_user: str = prop("The user that gets it, where `on` is ROLE.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.privilege not in ON[self.on]:
            yield "privilege", f"{self.privilege} can't be granted on {self.on}; {', '.join(ON[self.on])} can"
        if len(self.names) != PARTS.get(self.on, 1):
            yield "name", f"{self.name!r} is no name of {PARTS.get(self.on, 1)} parts, joined by dots"
        if bool(self.to_role) == bool(self.to_user):
            yield "to_role", "give either to_role or to_user"
        if self.to_user and self.on != ROLE:
            yield "to_user", f"only roles are granted to users; grant {self.on} to a role"

    @property
    def names(self) -> tuple[str, ...]:
        return sql.split(self.name)


def create(context: Ctx, spec: Spec) -> str:
    _converge(context, spec)
    return _id(spec)


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    """Of a group in a database there may be nothing yet."""
    if spec.on not in (privileges.TABLES_IN_DATABASE, privileges.SCHEMAS_IN_DATABASE) and not _is_there(context, spec):
        raise Vanished(errors.VANISHED, f"{object_id} is not granted")
    return {"id": object_id}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    _converge(context, spec)


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    for what in _revoked(spec):
        with contextlib.suppress(NotFound):
            context.vendor.run(sql.statement(_REVOKE, what=what, grantee=_grantee(spec)))


REPLACE_ON: Final = ("privilege", "on", "name", "to_role", "to_user")


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    def look() -> list[str]:
        return [_id(spec)] if _is_there(context, spec) else []

    role = spec.names[0] if spec.on == ROLE else sql.named(spec.to_role)
    return lookup.in_container(context, lambda: lookup.role_is_gone(context, role), look)


def _is_there(context: Ctx, spec: Spec) -> bool:
    if spec.on == ROLE:
        return _is_member(context, spec)
    if spec.on == TABLES_IN_SCHEMA and _has_future(context, spec):
        return True
    if not privileges.is_group(spec.on):
        return privileges.is_granted(_grants(context, spec), spec.privilege, spec.on, spec.names)
    if spec.on == TABLES_IN_SCHEMA and not context.deleting:
        return False
    return any(_are_granted(context, spec))


def _converge(context: Ctx, spec: Spec) -> None:
    for what in _missing(context, spec):
        context.vendor.run(sql.statement(_GRANT, what=what, grantee=_grantee(spec)))


def _missing(context: Ctx, spec: Spec) -> Iterator[Sql]:
    """What is to come stands first, and the look at what is there comes after it was granted: nothing slips between."""
    if not privileges.is_group(spec.on):
        if not _is_there(context, spec):
            yield _what(spec)
        return
    if spec.on == TABLES_IN_SCHEMA and not _has_future(context, spec):
        yield privileges.group(spec.privilege, "FUTURE", spec.on, _path(spec))
    if not all(_are_granted(context, spec)):
        yield privileges.group(spec.privilege, "ALL", spec.on, _path(spec))


def _are_granted(context: Ctx, spec: Spec) -> list[bool]:
    """For each member of the group, whether the role has the privilege on it."""
    try:
        rows = context.vendor.run(privileges.show_members(spec.on, _path(spec)))
    except NotFound:
        if context.deleting:
            return []
        raise
    found = privileges.members(spec.on, spec.names[0], rows)
    grants = _grants(context, spec) if found else []
    kind = privileges.member_kind(spec.on)
    return [privileges.is_granted(grants, spec.privilege, kind, names) for names in found]


def _grants(context: Ctx, spec: Spec) -> list[Row]:
    role = sql.identifier(sql.named(spec.to_role))
    return context.vendor.run(sql.statement("SHOW GRANTS TO ROLE {role}", role=role))


def _has_future(context: Ctx, spec: Spec) -> bool:
    role = sql.identifier(sql.named(spec.to_role))
    rows = context.vendor.run(sql.statement("SHOW FUTURE GRANTS TO ROLE {role}", role=role))
    return privileges.is_granted_in_future(rows, spec.privilege, spec.on, spec.names)


def _is_member(context: Ctx, spec: Spec) -> bool:
    rows = context.vendor.run(sql.statement("SHOW GRANTS OF ROLE {role}", role=_path(spec)))
    wanted = ("ROLE", sql.named(spec.to_role)) if spec.to_role else ("USER", sql.named(spec.to_user))
    return any((row.get("granted_to"), row.get("grantee_name")) == wanted for row in rows)


def _what(spec: Spec) -> Sql:
    if spec.on == ROLE:
        return sql.statement("ROLE {role}", role=_path(spec))
    return privileges.single(spec.privilege, spec.on, _path(spec))


def _revoked(spec: Spec) -> list[Sql]:
    if not privileges.is_group(spec.on):
        return [_what(spec)]
    which = ("FUTURE", "ALL") if spec.on == TABLES_IN_SCHEMA else ("ALL",)
    return [privileges.group(spec.privilege, one, spec.on, _path(spec)) for one in which]


def _grantee(spec: Spec) -> Sql:
    if spec.to_role:
        return sql.statement("ROLE {role}", role=sql.identifier(sql.named(spec.to_role)))
    return sql.statement("USER {user}", user=sql.identifier(sql.named(spec.to_user)))


def _path(spec: Spec) -> Sql:
    return sql.path(spec.names)


def _id(spec: Spec) -> str:
    grantee = f"ROLE {sql.named(spec.to_role)}" if spec.to_role else f"USER {sql.named(spec.to_user)}"
    return f"{spec.privilege} ON {spec.on} {sql.dotted(spec.names)} TO {grantee}"
