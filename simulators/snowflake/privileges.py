"""GRANT and REVOKE for privileges, roles and ownership, also on future objects."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import attrs

from simulators.snowflake.account import PUBLIC
from simulators.snowflake.errors import SqlError, denied, missing, not_simulated, syntax
from simulators.snowflake.model import (
    Domain,
    FutureGrant,
    Grant,
    Key,
    Membership,
    Name,
    Role,
    SnowflakeObject,
)
from simulators.snowflake.parser import Cursor, TokenType
from simulators.snowflake.results import Result, build_status
from simulators.snowflake.session import Session, list_inherited_roles

OWNERSHIP: Final = "OWNERSHIP"
_SCHEMA_OBJECTS: Final = (
    "TABLE,VIEW,STAGE,STREAM,TASK,PIPE,FUNCTION,PROCEDURE,SEQUENCE,FILE FORMAT,SECRET,TAG,DYNAMIC "
    "TABLE,EXTERNAL TABLE,MASKING POLICY,ROW ACCESS POLICY,NETWORK "
    "RULE,ALERT,SERVICE,NOTEBOOK,STREAMLIT,MATERIALIZED VIEW,TEMPORARY TABLE"
).split(",")
#: By domain: the privileges on its objects, without OWNERSHIP, which exists for all domains.
PRIVILEGES: Final[dict[Domain, tuple[str, ...]]] = {
    Domain.ACCOUNT: (
        "CREATE DATABASE",
        "CREATE WAREHOUSE",
        "CREATE ROLE",
        "CREATE USER",
        "CREATE INTEGRATION",
        "CREATE EXTERNAL VOLUME",
        "MANAGE GRANTS",
        "MONITOR USAGE",
        "MONITOR EXECUTION",
        "EXECUTE TASK",
        "MANAGE WAREHOUSES",
        "MONITOR SECURITY",
    ),
    Domain.WAREHOUSE: ("APPLYBUDGET", "MODIFY", "MONITOR", "OPERATE", "USAGE"),
    Domain.DATABASE: ("APPLYBUDGET", "CREATE SCHEMA", "CREATE DATABASE ROLE", "MODIFY", "MONITOR", "USAGE"),
    Domain.SCHEMA: (
        "MODIFY",
        "MONITOR",
        "USAGE",
        "CREATE ICEBERG TABLE",
        *(f"CREATE {kind}" for kind in _SCHEMA_OBJECTS),
    ),
    Domain.USER: ("MONITOR", "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"),
    Domain.ROLE: (),
    Domain.VOLUME: ("USAGE",),
    Domain.INTEGRATION: ("USAGE", "USE_ANY_ROLE"),
    Domain.ICEBERG_TABLE: (
        "APPLYBUDGET",
        "DELETE",
        "INSERT",
        "REFERENCES",
        "SELECT",
        "TRUNCATE",
        "UPDATE",
        "EVOLVE SCHEMA",
    ),
    Domain.VIEW: ("APPLYBUDGET", "DELETE", "INSERT", "REFERENCES", "SELECT", "TRUNCATE", "UPDATE"),
}
_PLURALS: Final = {
    "ICEBERG TABLES": Domain.ICEBERG_TABLE,
    "SCHEMAS": Domain.SCHEMA,
    "VIEWS": Domain.VIEW,
}


class Change(NamedTuple):
    """What GRANT and REVOKE statements have in common."""

    session: Session
    privileges: list[str]
    revoking: bool


class Grantee(NamedTuple):
    """What follows TO or FROM.

    `current` is COPY or REVOKE in GRANT OWNERSHIP … CURRENT GRANTS, otherwise empty.
    """

    name: Name
    option: bool
    current: str


class Scope(NamedTuple):
    """All objects of the domain `of` in a database or schema, whose domain and name are `domain` and
    `name`.
    """

    of: Domain
    domain: Domain
    name: Name


def change_grants(session: Session, cursor: Cursor, *, revoking: bool) -> Result:
    """Run a GRANT or REVOKE statement. The cursor is after its first word. Raises SqlError."""
    for words in (
        ("DATABASE", "ROLE"),
        ("APPLICATION",),
        ("IMPORTED", "PRIVILEGES"),
        ("GRANT", "OPTION"),
        ("CALLER",),
    ):
        if cursor.is_at(*words):
            raise not_simulated(f"grants of {' '.join(words)}")
    if cursor.take("ROLE"):
        return _change_membership(session, cursor, revoking=revoking)
    change = Change(session, _read_privileges(cursor), revoking)
    cursor.expect("ON")
    if cursor.take("FUTURE"):
        return _change_future(change, cursor)
    if cursor.take("ALL"):
        return _change_all(change, cursor)
    domain = read_domain(cursor)
    name = session.account.root.name if domain is Domain.ACCOUNT else cursor.read_name()
    grantee = _read_grantee(change, cursor)
    to = _find_role(session, grantee.name)
    on = session.account.root if domain is Domain.ACCOUNT else session.resolve(domain, name, granting=True)
    if change.privileges == [OWNERSHIP]:
        return _change_owner(change, grantee, on, to)
    _apply(change, on, _expand_privileges(change.privileges, domain), to, option=grantee.option)
    return build_status()


def _read_privileges(cursor: Cursor) -> list[str]:
    """Read the privileges before ON, which are separated by commas.

    Both ALL and ALL PRIVILEGES are returned as ALL.
    """
    privileges = []
    while True:
        words = [cursor.read_word()]
        while cursor.next.type is TokenType.WORD and not cursor.is_at("ON"):
            words.append(cursor.read_word())
        privilege = " ".join(words)
        if privilege == "ALL PRIVILEGES":
            privilege = "ALL"
        privileges.append(privilege)
        if not cursor.take_sign(","):
            return privileges


def _expand_privileges(privileges: list[str], domain: Domain) -> list[str]:
    """Return the privileges, with ALL expanded.

    Raises SqlError if objects of the domain have no such privilege.
    """
    if privileges == ["ALL"]:
        return list(PRIVILEGES[domain])
    for privilege in privileges:
        if privilege not in (*PRIVILEGES[domain], OWNERSHIP):
            raise syntax(f"Invalid object type '{domain.label}' for privilege '{privilege}'")
    return privileges


def read_domain(cursor: Cursor) -> Domain:
    """Read the object type before a name. TABLE means ICEBERG TABLE too."""
    for domain in Domain:
        if cursor.take(*domain.value.split()):
            return domain
    if cursor.take("TABLE"):
        return Domain.ICEBERG_TABLE
    raise _build_unknown_type_error(cursor, _SCHEMA_OBJECTS)


def _read_scope(cursor: Cursor) -> Scope:
    object_domain = _read_plural_domain(cursor)
    cursor.expect("IN")
    domain = read_container_domain(cursor)
    return Scope(object_domain, domain, cursor.read_name())


def _read_plural_domain(cursor: Cursor) -> Domain:
    for words, domain in _PLURALS.items():
        if cursor.take(*words.split()):
            return domain
    raise _build_unknown_type_error(cursor, [f"{kind}S" for kind in _SCHEMA_OBJECTS])


def read_container_domain(cursor: Cursor) -> Domain:
    if cursor.take("DATABASE"):
        return Domain.DATABASE
    cursor.expect("SCHEMA")
    return Domain.SCHEMA


def _build_unknown_type_error(cursor: Cursor, not_simulated_types: list[str]) -> SqlError:
    for privilege in not_simulated_types:
        if cursor.is_at(*privilege.split()):
            return not_simulated(f"grants on {privilege}")
    return cursor.build_unexpected_error()


def _read_grantee(change: Change, cursor: Cursor) -> Grantee:
    """Read the rest of the statement, so that a syntax error is reported even if the named objects don't
    exist.
    """
    preposition = "FROM" if change.revoking else "TO"
    cursor.expect(preposition)
    for scope in ("USER", "SHARE", "DATABASE", "APPLICATION"):
        if cursor.is_at(scope):
            raise not_simulated(f"privileges of a {scope}")
    cursor.take("ROLE")
    name = cursor.read_name()
    option = False
    current = ""
    if change.revoking:
        _ = cursor.take("CASCADE") or cursor.take("RESTRICT")
    elif change.privileges == [OWNERSHIP]:
        if cursor.take("COPY", "CURRENT", "GRANTS"):
            current = "COPY"
        elif cursor.take("REVOKE", "CURRENT", "GRANTS"):
            current = "REVOKE"
    else:
        option = cursor.take("WITH", "GRANT", "OPTION")
    cursor.end()
    return Grantee(name, option, current)


def _find_role(session: Session, name: Name) -> str:
    if session.account.find(Domain.ROLE, name) is None:
        raise missing("ROLE", name)
    return name[0]


def _apply(change: Change, on: SnowflakeObject, privileges: list[str], to: str, *, option: bool) -> None:
    session = change.session
    account = change.session.account
    for privilege in privileges:
        if not _may_grant(session, privilege, on):
            raise denied(on.domain.value, on.name)
    for privilege in privileges:
        same_grants = [
            grant
            for grant in account.grants
            if (grant.privilege, grant.on, grant.to) == (privilege, on.key, to)
        ]
        if same_grants and not change.revoking and (same_grants[0].option or not option):
            continue
        account.grants = [grant for grant in account.grants if grant not in same_grants]
        if not change.revoking:
            account.grants.append(Grant(privilege, on.key, to, option, session.role, account.clock.now()))


def _may_grant(session: Session, privilege: str, on: SnowflakeObject) -> bool:
    """Return whether the session may grant it.

    In a managed access schema, the schema's owner may grant it, not the object's.
    """
    if on.domain in (Domain.ICEBERG_TABLE, Domain.VIEW):
        schema: Any = session.account.find(Domain.SCHEMA, on.name[:2])
        if schema.managed_access:
            return session.manages_grants or session.has(OWNERSHIP, schema)
    return session.may_grant(privilege, on)


def _change_all(change: Change, cursor: Cursor) -> Result:
    session = change.session
    scope = _read_scope(cursor)
    grantee = _read_grantee(change, cursor)
    to = _find_role(session, grantee.name)
    container = session.resolve(scope.domain, scope.name, granting=True)
    privileges = _expand_privileges(change.privileges, scope.of)
    contents = list(session.account.list_contents(container.name, scope.of))
    for object_ in contents:
        _apply(change, object_, privileges, to, option=grantee.option)
    return build_status(f"Statement executed successfully. {len(contents)} objects affected.")


def _change_future(change: Change, cursor: Cursor) -> Result:
    session = change.session
    account = change.session.account
    scope = _read_scope(cursor)
    grantee = _read_grantee(change, cursor)
    to = _find_role(session, grantee.name)
    container = session.resolve(scope.domain, scope.name, granting=True)
    managed = (
        container.domain is Domain.SCHEMA and container.managed_access and session.has(OWNERSHIP, container)
    )
    if not (managed or session.manages_grants):
        raise denied(container.domain.value, container.name)
    for privilege in _expand_privileges(change.privileges, scope.of):
        future_key = (privilege, scope.of, container.key, to)
        account.future = [
            grant
            for grant in account.future
            if (grant.privilege, grant.domain, grant.container, grant.to) != future_key
        ]
        if not change.revoking:
            account.future.append(FutureGrant(*future_key, grantee.option, account.clock.now()))
    return build_status()


def _change_owner(change: Change, grantee: Grantee, on: SnowflakeObject, to: str) -> Result:
    if change.revoking:
        raise syntax("OWNERSHIP can't be revoked, only granted to another role")
    session = change.session
    account = change.session.account
    if not session.manages_grants:
        session.require(OWNERSHIP, on)
    dependent_grants = [grant for grant in account.grants if grant.on == on.key]
    if dependent_grants and not grantee.current:
        grant = dependent_grants[0]
        raise SqlError(
            "003036",
            "42501",
            f"SQL access control error:\nDependent grant of privilege '{grant.privilege}' on "
            f"securable '{'.'.join(on.name)}' to role '{grant.to}' exists. It must be revoked first.",
        )
    if grantee.current == "COPY":
        for number, grant in enumerate(account.grants):
            if grant.on == on.key:
                account.grants[number] = attrs.evolve(grant, by=to)
    else:
        account.grants = [grant for grant in account.grants if grant.on != on.key]
    on.owner = to
    return build_status()


def _change_membership(session: Session, cursor: Cursor, *, revoking: bool) -> Result:
    account = session.account
    granted_role = cursor.read_name()
    preposition = "FROM" if revoking else "TO"
    cursor.expect(preposition)
    domain = Domain.USER if cursor.take("USER") else Domain.ROLE
    if domain is Domain.ROLE:
        cursor.expect("ROLE")
    name = cursor.read_name()
    cursor.end()
    role: Role = session.resolve(Domain.ROLE, granted_role, granting=True)
    if account.find(domain, name) is None:
        raise missing(domain.value, name)
    if role.label == PUBLIC:
        raise syntax("role PUBLIC is granted to every user and can't be granted or revoked")
    if not session.manages_grants:
        session.require(OWNERSHIP, role)
    if domain is Domain.ROLE and not revoking and name[0] in list_inherited_roles(account, [role.label]):
        raise SqlError(
            "003013", "42501", f"Cannot grant role {role.label} to {name[0]}: it would make a cycle of roles."
        )
    member = Key(domain, name)
    same_memberships = [
        membership
        for membership in account.memberships
        if (membership.role, membership.to) == (role.label, member)
    ]
    if revoking:
        account.memberships = [
            membership for membership in account.memberships if membership not in same_memberships
        ]
    elif not same_memberships:
        account.memberships.append(Membership(role.label, member, session.role, account.clock.now()))
    return build_status()
