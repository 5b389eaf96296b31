"""One simulated account: everything there is in it, and who was granted what."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from simulators.snowflake.model import AccountObject, Domain, Key, Role, SnowflakeObject
from simulators.snowflake.names import Name
from simulators.snowflake.ways import Ways

if TYPE_CHECKING:
    from simulators.core.clock import Clock
    from simulators.snowflake.lake import Lake

T = TypeVar("T", bound=SnowflakeObject)

ADMIN: Final = "ACCOUNTADMIN"
PUBLIC: Final = "PUBLIC"
ORGANIZATION: Final = "SIMULATED"
#: Of each role that every account has: the role that it is granted to.
SYSTEM_ROLES: Final = {
    ADMIN: "",
    "SYSADMIN": ADMIN,
    "SECURITYADMIN": ADMIN,
    "USERADMIN": "SECURITYADMIN",
    PUBLIC: "",
}
_FIRST_GRANTS: Final = {
    "SYSADMIN": ("CREATE DATABASE", "CREATE WAREHOUSE"),
    "USERADMIN": ("CREATE USER", "CREATE ROLE"),
    "SECURITYADMIN": ("MANAGE GRANTS",),
}


@attrs.frozen
class Grant:
    privilege: str
    on: Key
    to: str
    option: bool
    by: str
    created: float


@attrs.frozen
class FutureGrant:
    """On each `domain` that will be made in `container`."""

    privilege: str
    domain: Domain
    container: Key
    to: str
    option: bool
    created: float


@attrs.frozen
class Membership:
    """`role` was granted to a role or a user."""

    role: str
    to: Key
    by: str
    created: float


class Account:
    """`lake` is the AWS that tables lie in; without one, whatever needs AWS is taken for well."""

    def __init__(
        self, name: str, clock: Clock, rng: random.Random, lake: Lake | None, *, region: str, organization: str = ORGANIZATION
    ) -> None:
        self.organization = organization
        self.name, self.clock, self.random, self.lake, self.region = name, clock, rng, lake, region
        self.ways = Ways()
        self._things: dict[Key, SnowflakeObject] = {}
        self.grants: list[Grant] = []
        self.future: list[FutureGrant] = []
        self.memberships: list[Membership] = []
        #: Of each login that failed: why, by the id that its answer has.
        self.failed_logins: dict[str, dict[str, Any]] = {}
        self.itself = AccountObject(name=(name,), owner=ADMIN, created=clock.now())
        self.add(self.itself)
        self._found()

    @property
    def identifier(self) -> str:
        """As in its address."""
        return f"{self.organization}-{self.name}"

    def _found(self) -> None:
        now = self.clock.now()
        for role, parent in SYSTEM_ROLES.items():
            self.add(Role(name=(role,), owner="", created=now))
            if parent:
                self.memberships.append(Membership(role, Key(Domain.ROLE, (parent,)), "", now))
            for privilege in _FIRST_GRANTS.get(role, ()):
                self.grants.append(Grant(privilege, self.itself.key, role, True, "", now))

    def add(self, thing: SnowflakeObject) -> None:
        self._things[thing.key] = thing

    def find(self, domain: Domain, name: Name) -> Any:
        """The thing, or None. As Any: its class follows from the domain."""
        return self._things.get(Key(domain, name))

    def lookup(self, domain: Domain, name: Name) -> Any:
        """As `find`; in a database linked without regard to case, also by a name in another case."""
        found = self.find(domain, name)
        database = self.find(Domain.DATABASE, name[:1])
        if found or not (domain.depth > 1 and database and database.link and database.link.insensitive):
            return found
        folded = [part.lower() for part in name]
        return next((each for each in self.below(name[:1], domain) if [part.lower() for part in each.name] == folded), None)

    def all(self, kind: type[T]) -> list[T]:
        return [each for each in self._things.values() if isinstance(each, kind)]

    def below(self, name: Name, domain: Domain | None = None) -> Iterator[SnowflakeObject]:
        """What is in a database or schema."""
        for each in list(self._things.values()):
            if each.domain.depth > len(name) and each.name[: len(name)] == name and domain in (None, each.domain):
                yield each

    def remove(self, thing: SnowflakeObject) -> None:
        """With what is in it, and with all grants on and to them."""
        inside = list(self.below(thing.name)) if thing.domain in (Domain.DATABASE, Domain.SCHEMA) else []
        gone = {each.key for each in [thing, *inside]}
        self._things = {key: each for key, each in self._things.items() if key not in gone}
        roles = {key.name[0] for key in gone if key.domain is Domain.ROLE}
        self.grants = [each for each in self.grants if each.on not in gone and each.to not in roles]
        self.future = [each for each in self.future if each.container not in gone and each.to not in roles]
        self.memberships = [each for each in self.memberships if each.to not in gone and each.role not in roles]

    def rename(self, thing: SnowflakeObject, name: Name) -> None:
        """With grants on it and to it."""
        old, new = thing.key, Key(thing.domain, name)
        del self._things[old]
        thing.name = name
        self.add(thing)
        self.grants = [attrs.evolve(each, on=new) if each.on == old else each for each in self.grants]
        self.memberships = [attrs.evolve(each, to=new) if each.to == old else each for each in self.memberships]

    def objects(self) -> dict[str, list[str]]:
        """Names of everything there is, by kind, less what every account has."""
        found: dict[str, list[str]] = {domain.value: [] for domain in Domain if domain is not Domain.ACCOUNT}
        for each in self._things.values():
            if each.domain is not Domain.ACCOUNT and not (each.domain is Domain.ROLE and each.label in SYSTEM_ROLES):
                found[each.domain.value].append(".".join(each.name))
        found["GRANT"] = [
            f"{each.privilege} ON {each.on.domain.value} {'.'.join(each.on.name)} TO {each.to}" for each in self.grants if each.by
        ]
        found["FUTURE GRANT"] = [
            f"{each.privilege} ON {each.domain.value} IN {'.'.join(each.container.name)} TO {each.to}" for each in self.future
        ]
        found["ROLE GRANT"] = [
            f"{each.role} TO {each.to.domain.value} {'.'.join(each.to.name)}" for each in self.memberships if each.by
        ]
        return {kind: sorted(names) for kind, names in found.items()}

    def new_text(self, length: int, alphabet: str = string.ascii_uppercase + string.digits) -> str:
        return "".join(self.random.choices(alphabet, k=length))
