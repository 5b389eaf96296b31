"""SHOW GRANTS and SHOW FUTURE GRANTS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from simulators.snowflake.errors import denied, not_simulated
from simulators.snowflake.model import (
    Domain,
    FutureGrant,
    Grant,
    Key,
    Membership,
    Role,
    SnowflakeObject,
    to_sql_name,
)
from simulators.snowflake.parser import Cursor
from simulators.snowflake.privileges import OWNERSHIP, read_container_domain, read_domain
from simulators.snowflake.results import Result, build_table
from simulators.snowflake.session import Session

_GRANT_COLUMNS: Final = (
    "created_on privilege granted_on name granted_to grantee_name grant_option granted_by "
    "granted_by_role_type"
)
_MEMBERSHIP_COLUMNS: Final = "created_on role granted_to grantee_name granted_by"
_FUTURE_COLUMNS: Final = "created_on privilege grant_on name grant_to grantee_name grant_option"


def show_grants(session: Session, cursor: Cursor) -> Result:
    if cursor.take("ON"):
        return _show_on(session, cursor)
    if cursor.take("OF"):
        cursor.expect("ROLE")
        role = _read_role(session, cursor)
        return _build_memberships_table(session, lambda membership: membership.role == role.label)
    if cursor.take("TO", "USER"):
        user = session.resolve(Domain.USER, cursor.read_name())
        cursor.end()
        return _build_memberships_table(session, lambda membership: membership.to == user.key)
    if cursor.take("TO", "ROLE"):
        return _show_to(session, _read_role(session, cursor))
    if cursor.is_at("TO"):
        raise not_simulated("SHOW GRANTS TO anything but a role or user")
    cursor.end()
    return _build_memberships_table(session, lambda membership: membership.to == session.user.key)


def _read_role(session: Session, cursor: Cursor) -> Role:
    role: Role = session.resolve(Domain.ROLE, cursor.read_name())
    cursor.end()
    return role


def _show_on(session: Session, cursor: Cursor) -> Result:
    domain = read_domain(cursor)
    on: SnowflakeObject = session.account.root
    if domain is not Domain.ACCOUNT:
        on = session.resolve(domain, cursor.read_name(), granting=True)
    cursor.end()
    ownerships = [_build_ownership(on)] if on.owner else []
    return _build_grants_table(ownerships + [grant for grant in session.account.grants if grant.on == on.key])


def _show_to(session: Session, role: Role) -> Result:
    account = session.account
    objects = account.all(SnowflakeObject)
    ownerships = [
        _build_ownership(object_)
        for object_ in objects
        if object_.owner == role.label and object_.domain is not Domain.ACCOUNT
    ]
    grants = [grant for grant in account.grants if grant.to == role.label]
    roles = [
        Grant(
            "USAGE",
            Key(Domain.ROLE, (membership.role,)),
            role.label,
            False,
            membership.by,
            membership.created,
        )
        for membership in account.memberships
        if membership.to == role.key
    ]
    return _build_grants_table(ownerships + grants + roles)


def _build_ownership(object_: SnowflakeObject) -> Grant:
    return Grant(OWNERSHIP, object_.key, object_.owner, True, object_.owner, object_.created)


def _build_grants_table(grants: Iterable[Grant]) -> Result:
    rows = []
    for grant in grants:
        grantor_type = "ROLE" if grant.by else ""
        rows.append(
            (
                grant.created,
                grant.privilege,
                grant.on.domain.label,
                to_sql_name(grant.on.name),
                "ROLE",
                grant.to,
                grant.option,
                grant.by,
                grantor_type,
            )
        )
    return build_table(_GRANT_COLUMNS, rows)


def _build_memberships_table(session: Session, is_listed: Callable[[Membership], bool]) -> Result:
    rows = (
        (
            membership.created,
            membership.role,
            membership.to.domain.value,
            membership.to.name[0],
            membership.by,
        )
        for membership in session.account.memberships
        if is_listed(membership)
    )
    return build_table(_MEMBERSHIP_COLUMNS, rows)


def show_future_grants(session: Session, cursor: Cursor) -> Result:
    if cursor.take("TO", "ROLE"):
        role = _read_role(session, cursor)
        return _build_future_grants_table(grant for grant in session.account.future if grant.to == role.label)
    cursor.expect("IN")
    domain = read_container_domain(cursor)
    container = session.resolve(domain, cursor.read_name())
    cursor.end()
    if not session.manages_grants and not session.has(OWNERSHIP, container):
        raise denied(domain.value, container.name)
    return _build_future_grants_table(
        grant for grant in session.account.future if grant.container == container.key
    )


def _build_future_grants_table(grants: Iterable[FutureGrant]) -> Result:
    rows = (
        (
            grant.created,
            grant.privilege,
            grant.domain.label,
            f"{to_sql_name(grant.container.name)}.<{grant.domain.label}>",
            "ROLE",
            grant.to,
            grant.option,
        )
        for grant in grants
    )
    return build_table(_FUTURE_COLUMNS, rows)
