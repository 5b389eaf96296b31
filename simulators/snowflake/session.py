"""Who runs a statement, with which roles: what they may see and do."""

from __future__ import annotations

from collections.abc import Iterable

from simulators.snowflake.account import PUBLIC, Account
from simulators.snowflake.errors import SqlError, denied, missing
from simulators.snowflake.model import Domain, Key, SnowflakeObject, User, Warehouse
from simulators.snowflake.names import Name

_MANAGE = "MANAGE GRANTS"


class Session:
    """`role` owns what is made; with secondary roles, the user's other roles may do everything else too."""

    def __init__(
        self, account: Account, user: User, role: str, *, warehouse: str = "", database: str = "", schema: str = ""
    ) -> None:
        self.account, self.user, self.role = account, user, role
        self.warehouse, self.database, self.schema = warehouse, database, schema

    @property
    def primary(self) -> set[str]:
        return inherited(self.account, [self.role])

    @property
    def roles(self) -> set[str]:
        others = granted_to(self.account, self.user) if self.user.secondary_roles else []
        return inherited(self.account, [self.role, *others])

    def has(self, privilege: str, thing: SnowflakeObject, *, primary: bool = False) -> bool:
        """By ownership, or by a grant."""
        roles = self.primary if primary else self.roles
        return thing.owner in roles or any(
            each.on == thing.key and each.privilege == privilege and each.to in roles for each in self.account.grants
        )

    def may_grant(self, privilege: str, thing: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            self.manages_grants
            or thing.owner in roles
            or any(
                each.option and each.on == thing.key and each.privilege == privilege and each.to in roles
                for each in self.account.grants
            )
        )

    @property
    def manages_grants(self) -> bool:
        return self.has(_MANAGE, self.account.itself)

    def sees(self, thing: SnowflakeObject) -> bool:
        roles = self.roles
        return (
            thing.owner in roles
            or self.manages_grants
            or any(each.on == thing.key and each.to in roles for each in self.account.grants)
            or (thing.domain is Domain.ROLE and thing.label in roles)
            or thing is self.user
        )

    def require(self, privilege: str, thing: SnowflakeObject, *, primary: bool = False) -> None:
        """Raises SqlError: 003001 where the role sees the thing, else 002003."""
        if self.has(privilege, thing, primary=primary):
            return
        if thing.domain is not Domain.ACCOUNT and not self.sees(thing):
            raise missing(thing.domain.value, thing.name)
        raise denied(thing.domain.value, thing.name)

    def require_any(self, privileges: Iterable[str], thing: SnowflakeObject) -> None:
        *others, last = privileges
        if not any(self.has(each, thing) for each in others):
            self.require(last, thing)

    def full(self, domain: Domain, name: Name) -> Name:
        """With the session's database and schema where the name has none."""
        if len(name) > domain.depth:
            raise missing(domain.value, name)
        here = (self.database, self.schema)[: domain.depth - 1] if domain.depth > 1 else ()
        lacking = domain.depth - len(name)
        if lacking and not all(here[:lacking]):
            raise SqlError(
                "090105",
                "22000",
                "Cannot perform operation. This session does not have a current database. "
                "Call 'USE DATABASE', or use a qualified name.",
            )
        return (*here[:lacking], *name)

    def resolve(self, domain: Domain, name: Name, *, granting: bool = False) -> SnowflakeObject:
        """The thing, where the role may know of it and of what it is in. Raises SqlError 002003."""
        name = self.full(domain, name)
        self.container(domain, name, granting=granting)
        thing: SnowflakeObject | None = self.account.lookup(domain, name)
        if thing is None or not self.sees(thing):
            raise missing(domain.value, name)
        return thing

    def container(self, domain: Domain, name: Name, *, granting: bool = False) -> SnowflakeObject:
        """The account, database or schema that the name is in."""
        found: SnowflakeObject = self.account.itself
        for depth, each in enumerate((Domain.DATABASE, Domain.SCHEMA)[: domain.depth - 1], 1):
            above: SnowflakeObject | None = self.account.lookup(each, name[:depth])
            free = granting and self.manages_grants
            if above is None or not (free or self._enters(above)):
                raise missing(each.value, name[:depth])
            found = above
        return found

    def _enters(self, container: SnowflakeObject) -> bool:
        return any(self.has(each, container) for each in ("USAGE", "CREATE SCHEMA", "CREATE ICEBERG TABLE", "MONITOR"))

    def running_warehouse(self) -> Warehouse:
        """Resumed where need be. Raises SqlError 000606."""
        found: Warehouse | None = self.account.find(Domain.WAREHOUSE, (self.warehouse,))
        now = self.account.clock.now()
        if found is None or not self.has("USAGE", found) or not (found.auto_resume or running(found, now)):
            raise SqlError(
                "000606",
                "57P03",
                "No active warehouse selected in the current session.  "
                "Select an active warehouse with the 'use warehouse' command.",
            )
        found.last_used = now
        return found


def running(warehouse: Warehouse, now: float) -> bool:
    """It suspends itself after a while of rest."""
    if warehouse.last_used is None:
        return False
    return warehouse.auto_suspend == 0 or now < warehouse.last_used + warehouse.auto_suspend


def inherited(account: Account, roles: Iterable[str]) -> set[str]:
    """The roles, those granted to them, and so on; PUBLIC is everybody's."""
    found, left = {PUBLIC}, list(roles)
    while left:
        role = left.pop()
        if role not in found or role == PUBLIC:
            found.add(role)
            key = Key(Domain.ROLE, (role,))
            left += [each.role for each in account.memberships if each.to == key and each.role not in found]
    return found


def granted_to(account: Account, user: User) -> list[str]:
    return [each.role for each in account.memberships if each.to == user.key]
