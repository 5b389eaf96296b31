"""A grant of a privilege to a role, or of a role to a role or user. An existing grant is not repeated.

The grant is on a single object, on a role, or on all objects of a type in a schema or database. In a schema,
it includes existing and future objects; in a database, only existing ones, because future grants there need
MANAGE GRANTS.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import NotFound, ResourceMissing
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import (
    ON,
    PRIVILEGES,
    ROLE,
    SCHEMAS_IN_DATABASE,
    TABLES_IN_DATABASE,
    TABLES_IN_SCHEMA,
    VIEWS_IN_SCHEMA,
    WITH_FUTURE,
    GrantProps,
)
from lambdas.snowflake.sql import Sql

#: Names of object types in SHOW GRANTS, if they differ from those in GRANT.
_SHOWN_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "EXTERNAL VOLUME": ("EXTERNAL VOLUME", "VOLUME"),
    "ICEBERG TABLE": ("ICEBERG TABLE", "TABLE"),
}
_MEMBERS: Final[Mapping[str, tuple[str, str]]] = {
    TABLES_IN_SCHEMA: ("ICEBERG TABLE", "SHOW ICEBERG TABLES IN SCHEMA {path}"),
    TABLES_IN_DATABASE: ("ICEBERG TABLE", "SHOW ICEBERG TABLES IN DATABASE {path}"),
    SCHEMAS_IN_DATABASE: ("SCHEMA", "SHOW SCHEMAS IN DATABASE {path}"),
    VIEWS_IN_SCHEMA: ("VIEW", "SHOW VIEWS IN SCHEMA {path}"),
}
#: Schemas that Snowflake creates in each database, on which nothing can be granted.
_OWN_SCHEMAS: Final = frozenset({"INFORMATION_SCHEMA"})


def is_group(on: str) -> bool:
    return on in _MEMBERS


def on_group(privilege: str, which: str, on: str, path: Sql) -> Sql:
    """Return the SQL of a privilege on a group of objects. `which` is ALL or FUTURE."""
    return sql.statement(
        "{privilege} ON {which} {on} {path}",
        privilege=sql.word(privilege, of=PRIVILEGES),
        which=sql.word(which, of=("ALL", "FUTURE")),
        on=sql.word(on, of=_MEMBERS),
        path=path,
    )


def group_members(on: str, database: str, rows: list[Row]) -> list[tuple[str, ...]]:
    """Return the full names that SHOW lists for a group. `database` is the one that SHOW was limited to."""
    if _MEMBERS[on][0] == "SCHEMA":
        return [(database, row.get("name", "")) for row in rows if row.get("name") not in _OWN_SCHEMAS]
    return [(row.get("database_name", ""), row.get("schema_name", ""), row.get("name", "")) for row in rows]


def find_member_type(on: str) -> str:
    return _MEMBERS[on][0]


def is_granted(rows: list[Row], privilege: str, on: str, names: tuple[str, ...]) -> bool:
    """Return whether the rows of SHOW GRANTS TO ROLE contain the privilege."""
    return any(
        row.get("privilege") == privilege
        and row.get("granted_on", "").replace("_", " ") in _SHOWN_AS.get(on, (on,))
        and (sql.split(row.get("name", "")) == names or names == (row.get("name"),))
        for row in rows
    )


def is_granted_in_future(rows: list[Row], privilege: str, on: str, names: tuple[str, ...]) -> bool:
    """Return whether the rows of SHOW FUTURE GRANTS TO ROLE, whose names end in `.<ICEBERG_TABLE>` or another
    type, contain the privilege.
    """
    kind = find_member_type(on)
    return any(
        row.get("privilege") == privilege
        and row.get("grant_on", "").replace("_", " ") in _SHOWN_AS.get(kind, (kind,))
        and sql.split(row.get("name", "").rpartition(".<")[0]) == names
        for row in rows
    )


PROPERTIES: Final = GrantProps
#: SHOW GRANTS lists every grant of a role that it shows at all.
ABSENCE_IS_SHOWN: Final = True
TIMEOUT_SECONDS: Final = 1200.0
_GRANT: Final = "GRANT {what} TO {grantee}"
_REVOKE: Final = "REVOKE {what} FROM {grantee}"


def create(context: Ctx, spec: GrantProps) -> str:
    _converge(context, spec)
    return _build_id(spec)


def is_ready(context: Ctx, spec: GrantProps, object_id: str) -> Outputs | None:
    """Return the outputs once the grant exists. A group may have no members yet."""
    if spec.on not in (TABLES_IN_DATABASE, SCHEMAS_IN_DATABASE) and not _is_there(context, spec):
        raise ResourceMissing(errors.VANISHED, f"{object_id} is not granted")
    return {"id": object_id}


def update(context: Ctx, spec: GrantProps, object_id: str) -> None:
    _converge(context, spec)


def delete(context: Ctx, spec: GrantProps, object_id: str) -> None:
    if not is_group(spec.on):
        privileges = [_render_privilege(spec)]
    else:
        kinds = ("FUTURE", "ALL") if spec.on in WITH_FUTURE else ("ALL",)
        privileges = [on_group(spec.privilege, kind, spec.on, _render_path(spec)) for kind in kinds]
    for privilege in privileges:
        with contextlib.suppress(NotFound):
            context.vendor.run(sql.statement(_REVOKE, what=privilege, grantee=_render_grantee(spec)))


def find_existing(context: Ctx, spec: GrantProps, known_id: str | None) -> list[str]:
    def look() -> list[str]:
        return [_build_id(spec)] if _is_there(context, spec) else []

    def role_is_gone() -> bool:
        context.vendor.require_sight(spec)
        return lookup.role_is_gone(context, role)

    role = spec.names[0] if spec.on == ROLE else sql.to_exact_name(spec.to_role)
    return lookup.treat_gone_container_as_empty(context, role_is_gone, look)


def _is_there(context: Ctx, spec: GrantProps) -> bool:
    if spec.on == ROLE:
        return _is_member(context, spec)
    if spec.on in WITH_FUTURE and _has_future(context, spec):
        return True
    if not is_group(spec.on):
        return is_granted(_read_grants(context, spec), spec.privilege, spec.on, spec.names)
    if spec.on in WITH_FUTURE and not context.deleting:
        return False
    return any(_are_granted(context, spec))


def _converge(context: Ctx, spec: GrantProps) -> None:
    for statement in _list_missing_grants(context, spec):
        try:
            context.vendor.run(sql.statement(_GRANT, what=statement, grantee=_render_grantee(spec)))
        except NotFound as refused:
            raise _explain_missing(spec, refused) from None


def _explain_missing(spec: GrantProps, refused: NotFound) -> NotFound:
    """Return the error for a grantee that somebody named who isn't there. It names the key."""
    grantee = f"USER '{_name_grantee(spec)}'" if spec.to_user else f"ROLE '{_name_grantee(spec)}'"
    plain = refused.what.upper().replace('"', "").replace("\\", "")
    if not spec.named_by or grantee.upper() not in plain:
        return refused
    what = f"{spec.named_by} has {_name_grantee(spec)}: {refused.what}"
    return NotFound(snowflake_errors.GRANTEE_MISSING, what, patience=0.0)


def _list_missing_grants(context: Ctx, spec: GrantProps) -> Iterator[Sql]:
    """Yield the missing grants.

    Existing objects are listed only after the grant on future ones, so no object is missed.
    """
    if not is_group(spec.on):
        if not _is_there(context, spec):
            yield _render_privilege(spec)
        return
    if spec.on in WITH_FUTURE and not _has_future(context, spec):
        yield on_group(spec.privilege, "FUTURE", spec.on, _render_path(spec))
    if not all(_are_granted(context, spec)):
        yield on_group(spec.privilege, "ALL", spec.on, _render_path(spec))


def _are_granted(context: Ctx, spec: GrantProps) -> list[bool]:
    """Return for each member of the group whether the role has the privilege on it."""
    try:
        rows = context.vendor.run(sql.statement(_MEMBERS[spec.on][1], path=_render_path(spec)))
    except NotFound:
        if context.deleting:
            return []
        raise
    members = group_members(spec.on, spec.names[0], rows)
    grants = _read_grants(context, spec) if members else []
    kind = find_member_type(spec.on)
    return [is_granted(grants, spec.privilege, kind, names) for names in members]


def _read_grants(context: Ctx, spec: GrantProps) -> list[Row]:
    role = sql.identifier(sql.to_exact_name(spec.to_role))
    return context.vendor.run(sql.statement("SHOW GRANTS TO ROLE {role}", role=role))


def _has_future(context: Ctx, spec: GrantProps) -> bool:
    role = sql.identifier(sql.to_exact_name(spec.to_role))
    rows = context.vendor.run(sql.statement("SHOW FUTURE GRANTS TO ROLE {role}", role=role))
    return is_granted_in_future(rows, spec.privilege, spec.on, spec.names)


def _is_member(context: Ctx, spec: GrantProps) -> bool:
    rows = context.vendor.run(sql.statement("SHOW GRANTS OF ROLE {role}", role=_render_path(spec)))
    name = _name_grantee(spec)
    kind = "ROLE" if spec.to_role else "USER"
    return any(
        row.get("granted_to") == kind and row.get("grantee_name") in (name, sql.identifier(name).text)
        for row in rows
    )


def _name_grantee(spec: GrantProps) -> str:
    return sql.to_exact_name(spec.to_role or spec.to_user)


def _render_privilege(spec: GrantProps) -> Sql:
    if spec.on == ROLE:
        return sql.statement("ROLE {role}", role=_render_path(spec))
    privilege = sql.word(spec.privilege, of=PRIVILEGES)
    on = sql.word(spec.on, of=ON)
    return sql.statement("{privilege} ON {on} {path}", privilege=privilege, on=on, path=_render_path(spec))


def _render_grantee(spec: GrantProps) -> Sql:
    grantee = sql.identifier(_name_grantee(spec))
    if spec.to_role:
        return sql.statement("ROLE {role}", role=grantee)
    return sql.statement("USER {user}", user=grantee)


def _render_path(spec: GrantProps) -> Sql:
    return sql.path(spec.names)


def _build_id(spec: GrantProps) -> str:
    grantee = (
        f"ROLE {sql.to_exact_name(spec.to_role)}"
        if spec.to_role
        else f"USER {sql.to_exact_name(spec.to_user)}"
    )
    return f"{spec.privilege} ON {spec.on} {sql.format_dotted(spec.names)} TO {grantee}"
