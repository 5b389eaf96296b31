"""The user and the roles that run a statement: what they may see and do, and which objects names refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from simulators.snowflake.account import PUBLIC, Account
from simulators.snowflake.errors import SqlError, denied, missing
from simulators.snowflake.model import Domain, Key, Name, SnowflakeObject, User, Warehouse
from simulators.snowflake.parser import Cursor

_MANAGE: Final = "MANAGE GRANTS"
#: Any of these privileges on a database or schema lets a role refer to what is in it.
_TRAVERSE: Final = ("USAGE", "CREATE SCHEMA", "CREATE ICEBERG TABLE", "MONITOR")


class Session:
    """`role` owns what is created. With secondary roles, the user's other roles may do everything but create."""

    def __init__(
        self, account: Account, user: User, role: str, *, warehouse: str = "", database: str = "", schema: str = ""
    ) -> None:
        self.account, self.user, self.role = account, user, role
        self.warehouse, self.database, self.schema = warehouse, database, schema

    @property
    def roles(self) -> set[str]:
        others = granted_to(self.account, self.user) if self.user.secondary_roles else []
        return inherited(self.account, [self.role, *others])

    def has(self, privilege: str, on: SnowflakeObject, *, primary: bool = False) -> bool:
        """Return whether a role has the privilege, by ownership or by a grant. `primary` ignores secondary roles."""
        roles = inherited(self.account, [self.role]) if primary else self.roles
        return on.owner in roles or any(
            each.on == on.key and each.privilege == privilege and each.to in roles for each in self.account.grants
        )

    def may_grant(self, privilege: str, on: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            self.manages_grants
            or on.owner in roles
            or any(
                each.option and each.on == on.key and each.privilege == privilege and each.to in roles
                for each in self.account.grants
            )
        )

    @property
    def manages_grants(self) -> bool:
        return self.has(_MANAGE, self.account.root)

    def sees(self, each: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            each.owner in roles
            or self.manages_grants
            or any(grant.on == each.key and grant.to in roles for grant in self.account.grants)
            or (each.domain is Domain.ROLE and each.label in roles)
            or each is self.user
        )

    def require(self, privilege: str, on: SnowflakeObject, *, primary: bool = False) -> None:
        """Raise SqlError without the privilege: 003001 if the role sees the object, else 002003."""
        if self.has(privilege, on, primary=primary):
            return
        if on.domain is not Domain.ACCOUNT and not self.sees(on):
            raise missing(on.domain.value, on.name)
        raise denied(on.domain.value, on.name)

    def require_any(self, privileges: Iterable[str], on: SnowflakeObject) -> None:
        *others, last = privileges
        if not any(self.has(each, on) for each in others):
            self.require(last, on)

    def full_name(self, domain: Domain, name: Name) -> Name:
        """Return the name with the session's database and schema if it lacks them. Raises SqlError if there are none."""
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
        """Return the object, as Any: its class follows from the domain.

        Raises SqlError 002003 if it doesn't exist, or the role may not see it or its containers. For a role that manages
        grants, `granting` makes containers visible.
        """
        name = self.full_name(domain, name)
        self.container(domain, name, granting=granting)
        existing: SnowflakeObject | None = self.account.lookup(domain, name)
        if existing is None or not self.sees(existing):
            raise missing(domain.value, name)
        return existing

    def resolve_text(self, domain: Domain, text: str) -> Any:
        """Return the object that a string names: 'V', 'D.S.T', 'LDB."lkc-1"."t"'. Raises SqlError."""
        cursor = Cursor(text)
        name = cursor.name()
        cursor.end()
        return self.resolve(domain, name)

    def container(self, domain: Domain, name: Name, *, granting: bool = False) -> SnowflakeObject:
        """Return the account, database or schema of the name. Raises SqlError 002003."""
        container: SnowflakeObject = self.account.root
        for depth, each in enumerate((Domain.DATABASE, Domain.SCHEMA)[: domain.depth - 1], 1):
            outer: SnowflakeObject | None = self.account.lookup(each, name[:depth])
            visible = granting and self.manages_grants
            if outer is None or not (visible or any(self.has(privilege, outer) for privilege in _TRAVERSE)):
                raise missing(each.value, name[:depth])
            container = outer
        return container

    def running_warehouse(self) -> Warehouse:
        """Return the session's warehouse, resumed if necessary. Raises SqlError 000606."""
        warehouse: Warehouse | None = self.account.find(Domain.WAREHOUSE, (self.warehouse,))
        now = self.account.clock.now()
        if warehouse is None or not self.has("USAGE", warehouse) or not (warehouse.auto_resume or warehouse.is_running(now)):
            raise SqlError(
                "000606",
                "57P03",
                "No active warehouse selected in the current session.  "
                "Select an active warehouse with the 'use warehouse' command.",
            )
        warehouse.last_used = now
        return warehouse


def inherited(account: Account, roles: Iterable[str]) -> set[str]:
    """Return the roles, the roles granted to them, and so on, with PUBLIC, which everybody has."""
    result, left = {PUBLIC}, list(roles)
    while left:
        role = left.pop()
        if role not in result or role == PUBLIC:
            result.add(role)
            key = Key(Domain.ROLE, (role,))
            left += [each.role for each in account.memberships if each.to == key and each.role not in result]
    return result


def granted_to(account: Account, user: User) -> list[str]:
    return [each.role for each in account.memberships if each.to == user.key]
