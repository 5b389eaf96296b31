"""GRANT and REVOKE: of privileges, of roles, of ownership, on what there is and on what will be."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

from simulators.snowflake.account import PUBLIC, FutureGrant, Grant, Membership
from simulators.snowflake.errors import SqlError, denied, missing, not_simulated, syntax
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.model import Domain, Key, SnowflakeObject
from simulators.snowflake.names import Name
from simulators.snowflake.privileges import OWNERSHIP, meant, read_domain, read_plural, read_privileges
from simulators.snowflake.results import Result, status
from simulators.snowflake.session import Session, inherited


class Order(NamedTuple):
    """What GRANT and REVOKE have in common."""

    session: Session
    privileges: list[str]
    revoking: bool


def change(session: Session, cursor: Cursor, *, revoking: bool) -> Result:
    for words in (("DATABASE", "ROLE"), ("APPLICATION",), ("IMPORTED", "PRIVILEGES"), ("GRANT", "OPTION"), ("CALLER",)):
        if cursor.at(*words):
            raise not_simulated(f"grants of {' '.join(words)}")
    if cursor.take("ROLE"):
        return _role(session, cursor, revoking=revoking)
    order = Order(session, read_privileges(cursor), revoking)
    cursor.expect("ON")
    if cursor.take("FUTURE"):
        return _future(order, cursor)
    if cursor.take("ALL"):
        return _all(order, cursor)
    domain = read_domain(cursor)
    name = session.account.itself.name if domain is Domain.ACCOUNT else cursor.name()
    ending = _ending(order, cursor)
    to = _existing_role(session, ending.to)
    thing = session.account.itself if domain is Domain.ACCOUNT else session.resolve(domain, name, granting=True)
    if order.privileges == [OWNERSHIP]:
        return _ownership(order, ending, thing, to)
    _apply(order, thing, meant(order.privileges, domain), to, option=ending.option)
    return status()


class Ending(NamedTuple):
    """To whom, and whether the role may pass it on. `current` is what becomes of the grants that there are."""

    to: Name
    option: bool
    current: str


def _ending(order: Order, cursor: Cursor) -> Ending:
    """Up to the statement's end, so that what is no SQL is refused as that, whatever the names are."""
    cursor.expect("FROM" if order.revoking else "TO")
    for other in ("USER", "SHARE", "DATABASE", "APPLICATION"):
        if cursor.at(other):
            raise not_simulated(f"privileges of a {other}")
    cursor.take("ROLE")
    to, option, current = cursor.name(), False, ""
    if order.revoking:
        _ = cursor.take("CASCADE") or cursor.take("RESTRICT")
    elif order.privileges == [OWNERSHIP]:
        current = next((word for word in ("COPY", "REVOKE") if cursor.take(word, "CURRENT", "GRANTS")), "")
    else:
        option = cursor.take("WITH", "GRANT", "OPTION")
    cursor.end()
    return Ending(to, option, current)


def _existing_role(session: Session, name: Name) -> str:
    if session.account.find(Domain.ROLE, name) is None:
        raise missing("ROLE", name)
    return name[0]


def _apply(order: Order, thing: SnowflakeObject, privileges: list[str], to: str, *, option: bool) -> None:
    session, account = order.session, order.session.account
    for privilege in privileges:
        if not _may(session, privilege, thing):
            raise denied(thing.domain.value, thing.name)
    for privilege in privileges:
        there = [each for each in account.grants if (each.privilege, each.on, each.to) == (privilege, thing.key, to)]
        if there and not order.revoking and (there[0].option or not option):
            continue
        account.grants = [each for each in account.grants if each not in there]
        if not order.revoking:
            account.grants.append(Grant(privilege, thing.key, to, option, session.role, account.clock.now()))


def _may(session: Session, privilege: str, thing: SnowflakeObject) -> bool:
    """In a schema with managed access, its owner decides in place of the things' owners."""
    if thing.domain is Domain.ICEBERG_TABLE:
        schema: Any = session.account.find(Domain.SCHEMA, thing.name[:2])
        if schema.managed_access:
            return session.manages_grants or session.has(OWNERSHIP, schema)
    return session.may_grant(privilege, thing)


class Place(NamedTuple):
    """IN DATABASE or IN SCHEMA, and of which things there."""

    of: Domain
    domain: Domain
    name: Name


def _place(cursor: Cursor) -> Place:
    of = read_plural(cursor)
    cursor.expect("IN")
    domain = Domain.DATABASE if cursor.take("DATABASE") else Domain.SCHEMA
    if domain is Domain.SCHEMA:
        cursor.expect("SCHEMA")
    return Place(of, domain, cursor.name())


def _all(order: Order, cursor: Cursor) -> Result:
    session, place, ending = order.session, _place(cursor), _ending(order, cursor)
    to = _existing_role(session, ending.to)
    container = session.resolve(place.domain, place.name, granting=True)
    privileges = meant(order.privileges, place.of)
    found = list(session.account.below(container.name, place.of))
    for each in found:
        _apply(order, each, privileges, to, option=ending.option)
    return status(f"Statement executed successfully. {len(found)} objects affected.")


def _future(order: Order, cursor: Cursor) -> Result:
    session, account = order.session, order.session.account
    place, ending = _place(cursor), _ending(order, cursor)
    to = _existing_role(session, ending.to)
    container: Any = session.resolve(place.domain, place.name, granting=True)
    managed = container.domain is Domain.SCHEMA and container.managed_access and session.has(OWNERSHIP, container)
    if not (managed or session.manages_grants):
        raise denied(container.domain.value, container.name)
    for privilege in meant(order.privileges, place.of):
        account.future = [
            each
            for each in account.future
            if (each.privilege, each.domain, each.container, each.to) != (privilege, place.of, container.key, to)
        ]
        if not order.revoking:
            now = account.clock.now()
            account.future.append(FutureGrant(privilege, place.of, container.key, to, ending.option, now))
    return status()


def _ownership(order: Order, ending: Ending, thing: SnowflakeObject, to: str) -> Result:
    if order.revoking:
        raise syntax("OWNERSHIP can't be revoked, only granted to another role")
    session, account = order.session, order.session.account
    if not session.manages_grants:
        session.require(OWNERSHIP, thing)
    dependent = [each for each in account.grants if each.on == thing.key]
    if dependent and not ending.current:
        raise SqlError(
            "003036",
            "42501",
            f"SQL access control error:\nDependent grant of privilege '{dependent[0].privilege}' on securable "
            f"'{'.'.join(thing.name)}' to role '{dependent[0].to}' exists. It must be revoked first.",
        )
    account.grants = [
        attrs.evolve(each, by=to) if each.on == thing.key else each
        for each in account.grants
        if ending.current == "COPY" or each.on != thing.key
    ]
    thing.owner = to
    return status()


def _role(session: Session, cursor: Cursor, *, revoking: bool) -> Result:
    account, granted = session.account, cursor.name()
    cursor.expect("FROM" if revoking else "TO")
    domain = Domain.USER if cursor.take("USER") else Domain.ROLE
    if domain is Domain.ROLE:
        cursor.expect("ROLE")
    name = cursor.name()
    cursor.end()
    role = session.resolve(Domain.ROLE, granted, granting=True)
    if account.find(domain, name) is None:
        raise missing(domain.value, name)
    if role.label == PUBLIC:
        raise syntax("role PUBLIC is everybody's already")
    if not session.manages_grants:
        session.require(OWNERSHIP, role)
    if domain is Domain.ROLE and not revoking and name[0] in inherited(account, [role.label]):
        raise SqlError("003013", "42501", f"Cannot grant role {role.label} to {name[0]}: it would make a cycle of roles.")
    member = Key(domain, name)
    there = [each for each in account.memberships if (each.role, each.to) == (role.label, member)]
    if revoking:
        account.memberships = [each for each in account.memberships if each not in there]
    elif not there:
        account.memberships.append(Membership(role.label, member, session.role, account.clock.now()))
    return status()
