"""SHOW GRANTS, and SHOW FUTURE GRANTS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from simulators.snowflake.account import FutureGrant, Grant
from simulators.snowflake.errors import denied, not_simulated
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.model import Domain, SnowflakeObject
from simulators.snowflake.names import shown
from simulators.snowflake.privileges import OWNERSHIP, read_domain
from simulators.snowflake.results import Result, table
from simulators.snowflake.session import Session

_PRIVILEGES: Final = "created_on privilege granted_on name granted_to grantee_name grant_option granted_by granted_by_role_type"
_MEMBERS: Final = "created_on role granted_to grantee_name granted_by"
_FUTURE: Final = "created_on privilege grant_on name grant_to grantee_name grant_option"


def show(session: Session, cursor: Cursor) -> Result:
    if cursor.take("ON"):
        return _on(session, cursor)
    if cursor.take("OF"):
        cursor.expect("ROLE")
        role = _role(session, cursor)
        return _members(session, lambda each, to: each == role.label)
    if cursor.take("TO", "USER"):
        user = session.resolve(Domain.USER, cursor.name())
        cursor.end()
        return _members(session, lambda each, to: to is user)
    if cursor.take("TO", "ROLE"):
        return _to(session, _role(session, cursor))
    if cursor.at("TO"):
        raise not_simulated("SHOW GRANTS TO something that is no role or user")
    cursor.end()
    return _members(session, lambda each, to: to is session.user)


def _role(session: Session, cursor: Cursor) -> SnowflakeObject:
    role = session.resolve(Domain.ROLE, cursor.name())
    cursor.end()
    return role


def _on(session: Session, cursor: Cursor) -> Result:
    domain = read_domain(cursor)
    thing = session.account.itself if domain is Domain.ACCOUNT else session.resolve(domain, cursor.name(), granting=True)
    cursor.end()
    owned = [_owning(thing)] if thing.owner else []
    return _rows(owned + [each for each in session.account.grants if each.on == thing.key])


def _to(session: Session, role: SnowflakeObject) -> Result:
    account = session.account
    owned = [
        _owning(each) for each in account.all(SnowflakeObject) if each.owner == role.label and each.domain is not Domain.ACCOUNT
    ]
    granted = [each for each in account.grants if each.to == role.label]
    roles = [
        Grant("USAGE", account.find(Domain.ROLE, (each.role,)).key, role.label, False, each.by, each.created)
        for each in account.memberships
        if each.to == role.key
    ]
    return _rows(owned + granted + roles)


def _owning(thing: SnowflakeObject) -> Grant:
    return Grant(OWNERSHIP, thing.key, thing.owner, True, thing.owner, thing.created)


def _rows(grants: Iterable[Grant]) -> Result:
    return table(
        _PRIVILEGES,
        (
            (
                each.created,
                each.privilege,
                each.on.domain.shown,
                shown(each.on.name),
                "ROLE",
                each.to,
                each.option,
                each.by,
                "ROLE" if each.by else "",
            )
            for each in grants
        ),
    )


def _members(session: Session, wanted: Callable[[str, SnowflakeObject], bool]) -> Result:
    account = session.account
    found = [each for each in account.memberships if wanted(each.role, account.find(*each.to))]
    return table(_MEMBERS, ((each.created, each.role, each.to.domain.value, each.to.name[0], each.by) for each in found))


def show_future(session: Session, cursor: Cursor) -> Result:
    if cursor.take("TO", "ROLE"):
        role = _role(session, cursor)
        return _future_rows(each for each in session.account.future if each.to == role.label)
    cursor.expect("IN")
    domain = Domain.DATABASE if cursor.take("DATABASE") else Domain.SCHEMA
    if domain is Domain.SCHEMA:
        cursor.expect("SCHEMA")
    container = session.resolve(domain, cursor.name())
    cursor.end()
    if not session.manages_grants and not session.has(OWNERSHIP, container):
        raise denied(domain.value, container.name)
    return _future_rows(each for each in session.account.future if each.container == container.key)


def _future_rows(grants: Iterable[FutureGrant]) -> Result:
    return table(
        _FUTURE,
        (
            (
                each.created,
                each.privilege,
                each.domain.shown,
                f"{shown(each.container.name)}.<{each.domain.shown}>",
                "ROLE",
                each.to,
                each.option,
            )
            for each in grants
        ),
    )
