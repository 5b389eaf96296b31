"""The user and roles that run a statement. It checks their privileges, and resolves names to objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from simulators.snowflake.account import PUBLIC, Account
from simulators.snowflake.errors import SqlError, denied, missing
from simulators.snowflake.model import Domain, Key, Name, SnowflakeObject, User, Warehouse
from simulators.snowflake.parser import Cursor

_MANAGE: Final = "MANAGE GRANTS"
#: A role needs one of these privileges on a database or schema to use the objects in it.
_TRAVERSE: Final = ("USAGE", "CREATE SCHEMA", "CREATE ICEBERG TABLE", "CREATE VIEW", "MONITOR")


class Session:
    """`role` is the primary role, which owns the objects that it creates.

    If the user has secondary roles, the session also has the privileges of the user's other roles, except to
    create objects.
    """

    def __init__(
        self,
        account: Account,
        user: User,
        role: str,
        *,
        warehouse: str = "",
        database: str = "",
        schema: str = "",
    ) -> None:
        self.account = account
        self.user = user
        self.role = role
        self.warehouse = warehouse
        self.database = database
        self.schema = schema

    @property
    def roles(self) -> set[str]:
        secondary_roles = list_granted_roles(self.account, self.user) if self.user.secondary_roles else []
        return list_inherited_roles(self.account, [self.role, *secondary_roles])

    def has(self, privilege: str, on: SnowflakeObject, *, primary: bool = False) -> bool:
        """Return whether a role has the privilege by ownership or by a grant.

        With `primary`, secondary roles don't count.
        """
        roles = list_inherited_roles(self.account, [self.role]) if primary else self.roles
        return on.owner in roles or any(
            grant.on == on.key and grant.privilege == privilege and grant.to in roles
            for grant in self.account.grants
        )

    def may_grant(self, privilege: str, on: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            self.manages_grants
            or on.owner in roles
            or any(
                grant.option and grant.on == on.key and grant.privilege == privilege and grant.to in roles
                for grant in self.account.grants
            )
        )

    @property
    def manages_grants(self) -> bool:
        return self.has(_MANAGE, self.account.root)

    def can_see(self, object_: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            object_.owner in roles
            or self.manages_grants
            or any(grant.on == object_.key and grant.to in roles for grant in self.account.grants)
            or (object_.domain is Domain.ROLE and object_.label in roles)
            or object_ is self.user
        )

    def require(self, privilege: str, on: SnowflakeObject, *, primary: bool = False) -> None:
        """Raise SqlError if the session lacks the privilege: 003001 if it sees the object, otherwise
        002003.
        """
        if self.has(privilege, on, primary=primary):
            return
        if on.domain is not Domain.ACCOUNT and not self.can_see(on):
            raise missing(on.domain.value, on.name)
        raise denied(on.domain.value, on.name)

    def require_any(self, privileges: Iterable[str], on: SnowflakeObject) -> None:
        *first_privileges, last = privileges
        if not any(self.has(privilege, on) for privilege in first_privileges):
            self.require(last, on)

    def qualify_name(self, domain: Domain, name: Name) -> Name:
        """Qualify the name with the session's database and schema if necessary.

        Raises SqlError if the session has none.
        """
        if len(name) > domain.depth:
            raise missing(domain.value, name)
        current = (self.database, self.schema)[: domain.depth - len(name)]
        if not all(current):
            raise SqlError(
                "090105",
                "22000",
                "Cannot perform operation. This session does not have a current database. "
                "Call 'USE DATABASE', or use a qualified name.",
            )
        return (*current, *name)

    def resolve(self, domain: Domain, name: Name, *, granting: bool = False) -> Any:
        """Return the object, whose class depends on the domain.

        Raises SqlError 002003 if it doesn't exist, or the session may not see it or its containers. With
        `granting`, a session with MANAGE GRANTS sees all containers.
        """
        name = self.qualify_name(domain, name)
        self.find_container(domain, name, granting=granting)
        existing: SnowflakeObject | None = self.account.look_up(domain, name)
        if existing is None or not self.can_see(existing):
            raise missing(domain.value, name)
        return existing

    def resolve_text(self, domain: Domain, text: str) -> Any:
        """Return the object with the name in a string, such as 'V', 'D.S.T' or 'LDB."lkc-1"."t"'.

        Raises SqlError.
        """
        cursor = Cursor(text)
        name = cursor.read_name()
        cursor.end()
        return self.resolve(domain, name)

    def find_container(self, domain: Domain, name: Name, *, granting: bool = False) -> SnowflakeObject:
        """Return the container of the object with this name: the account, a database or a schema.

        Raises SqlError 002003.
        """
        container: SnowflakeObject = self.account.root
        for depth, container_domain in enumerate((Domain.DATABASE, Domain.SCHEMA)[: domain.depth - 1], 1):
            outer: SnowflakeObject | None = self.account.look_up(container_domain, name[:depth])
            sees_all = granting and self.manages_grants
            if outer is None or not (sees_all or any(self.has(privilege, outer) for privilege in _TRAVERSE)):
                raise missing(container_domain.value, name[:depth])
            container = outer
        return container

    def get_running_warehouse(self) -> Warehouse:
        """Return the session's warehouse, resumed if necessary. Raises SqlError 000606."""
        warehouse: Warehouse | None = self.account.find(Domain.WAREHOUSE, (self.warehouse,))
        now = self.account.clock.now()
        if (
            warehouse is None
            or not self.has("USAGE", warehouse)
            or not (warehouse.auto_resume or warehouse.is_running(now))
        ):
            raise SqlError(
                "000606",
                "57P03",
                "No active warehouse selected in the current session.  "
                "Select an active warehouse with the 'use warehouse' command.",
            )
        warehouse.last_used = now
        return warehouse


def list_inherited_roles(account: Account, roles: Iterable[str]) -> set[str]:
    """Return the roles with all roles that are granted to them, directly or indirectly, and PUBLIC, which
    every user has.
    """
    result = {PUBLIC}
    pending_roles = list(roles)
    while pending_roles:
        role = pending_roles.pop()
        if role not in result or role == PUBLIC:
            result.add(role)
            key = Key(Domain.ROLE, (role,))
            memberships = [membership for membership in account.memberships if membership.to == key]
            pending_roles += [membership.role for membership in memberships if membership.role not in result]
    return result


def list_granted_roles(account: Account, user: User) -> list[str]:
    return [membership.role for membership in account.memberships if membership.to == user.key]
