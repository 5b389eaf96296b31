"""One simulated account: its objects and grants."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from simulators.snowflake.behavior import Behavior
from simulators.snowflake.model import (
    AccountObject,
    Database,
    Domain,
    FutureGrant,
    Grant,
    Key,
    Membership,
    Name,
    Role,
    SnowflakeObject,
)

if TYPE_CHECKING:
    from simulators.core.clock import Clock
    from simulators.snowflake.lake import Lake

T = TypeVar("T", bound=SnowflakeObject)

ADMIN: Final = "ACCOUNTADMIN"
PUBLIC: Final = "PUBLIC"
ORGANIZATION: Final = "SIMULATED"
#: The system-defined roles, each with the role that it is granted to.
SYSTEM_ROLES: Final = {
    ADMIN: "",
    "SYSADMIN": ADMIN,
    "SECURITYADMIN": ADMIN,
    "USERADMIN": "SECURITYADMIN",
    PUBLIC: "",
}
_INITIAL_GRANTS: Final = {
    "SYSADMIN": ("CREATE DATABASE", "CREATE WAREHOUSE"),
    "USERADMIN": ("CREATE USER", "CREATE ROLE"),
    "SECURITYADMIN": ("MANAGE GRANTS",),
}


class Account:
    """`lake` is the AWS account that has the tables. Without one, checks that need AWS succeed."""

    def __init__(
        self, name: str, clock: Clock, rng: random.Random, lake: Lake | None, *, region: str, organization: str = ORGANIZATION
    ) -> None:
        self.organization = organization
        self.name, self.clock, self.random, self.lake, self.region = name, clock, rng, lake, region
        #: Names an account in its region. It stays when the account is renamed (docs.snowflake.com, "Account identifiers").
        self.locator = name
        self.behavior = Behavior()
        self._objects: dict[Key, SnowflakeObject] = {}
        self.grants: list[Grant] = []
        self.future: list[FutureGrant] = []
        self.memberships: list[Membership] = []
        #: Details of failed logins, by the id in the answer to the client.
        self.failed_logins: dict[str, dict[str, Any]] = {}
        self.root = AccountObject(name=(name,), owner=ADMIN, created=clock.now())
        self.add(self.root)
        self._add_system_roles()

    @property
    def identifier(self) -> str:
        """Return the account identifier: organization and account name."""
        return f"{self.organization}-{self.name}"

    def _add_system_roles(self) -> None:
        now = self.clock.now()
        for role, parent in SYSTEM_ROLES.items():
            self.add(Role(name=(role,), owner="", created=now))
            if parent:
                self.memberships.append(Membership(role, Key(Domain.ROLE, (parent,)), "", now))
            for privilege in _INITIAL_GRANTS.get(role, ()):
                self.grants.append(Grant(privilege, self.root.key, role, True, "", now))

    def add(self, new: SnowflakeObject) -> None:
        """Add an object, and apply the future grants for its type of its schema or, if there are none, of its database."""
        self._objects[new.key] = new
        future = [
            each
            for each in self.future
            if each.domain is new.domain and new.name[: len(each.container.name)] == each.container.name
        ]
        of_schema = [each for each in future if each.container.domain is Domain.SCHEMA]
        for each in of_schema or future:
            by = self.find(*each.container).owner
            self.grants.append(Grant(each.privilege, new.key, each.to, each.option, by, new.created))

    def find(self, domain: Domain, name: Name) -> Any:
        """Return the object, whose class depends on the domain, or None. `name` is case-sensitive."""
        return self._objects.get(Key(domain, name))

    def lookup(self, domain: Domain, name: Name) -> Any:
        """Return the object or None. The case of names is ignored in a catalog-linked database that is case-insensitive."""
        existing = self.find(domain, name)
        database: Database | None = self.find(Domain.DATABASE, name[:1])
        if existing or not (domain.depth > 1 and database and database.link and database.link.insensitive):
            return existing
        folded = [part.lower() for part in name]
        return next((each for each in self.contents(name[:1], domain) if [part.lower() for part in each.name] == folded), None)

    def all(self, model: type[T]) -> list[T]:
        return [each for each in self._objects.values() if isinstance(each, model)]

    def contents(self, name: Name, domain: Domain | None = None) -> Iterator[SnowflakeObject]:
        """Yield the objects in a database or schema."""
        for each in list(self._objects.values()):
            if each.domain.depth > len(name) and each.name[: len(name)] == name and domain in (None, each.domain):
                yield each

    def remove(self, removed: SnowflakeObject) -> None:
        """Remove an object and its contents, with all grants on them and to them."""
        contents = list(self.contents(removed.name)) if removed.domain in (Domain.DATABASE, Domain.SCHEMA) else []
        keys = {each.key for each in [removed, *contents]}
        self._objects = {key: each for key, each in self._objects.items() if key not in keys}
        roles = {key.name[0] for key in keys if key.domain is Domain.ROLE}
        self.grants = [each for each in self.grants if each.on not in keys and each.to not in roles]
        self.future = [each for each in self.future if each.container not in keys and each.to not in roles]
        self.memberships = [each for each in self.memberships if each.to not in keys and each.role not in roles]

    def rename(self, renamed: SnowflakeObject, name: Name) -> None:
        """Rename an object that contains no others. Grants on it and to it remain."""
        old, new = renamed.key, Key(renamed.domain, name)
        del self._objects[old]
        renamed.name = name
        self._objects[new] = renamed
        self.grants = [attrs.evolve(each, on=new) if each.on == old else each for each in self.grants]
        self.memberships = [attrs.evolve(each, to=new) if each.to == old else each for each in self.memberships]

    def objects(self) -> dict[str, list[str]]:
        """Return the names of all objects and grants, by type, without the predefined ones."""
        names: dict[str, list[str]] = {domain.value: [] for domain in Domain if domain is not Domain.ACCOUNT}
        for each in self._objects.values():
            if each.domain is not Domain.ACCOUNT and not (each.domain is Domain.ROLE and each.label in SYSTEM_ROLES):
                names[each.domain.value].append(".".join(each.name))
        names["GRANT"] = [
            f"{each.privilege} ON {each.on.domain.value} {'.'.join(each.on.name)} TO {each.to}" for each in self.grants if each.by
        ]
        names["FUTURE GRANT"] = [
            f"{each.privilege} ON {each.domain.value} IN {'.'.join(each.container.name)} TO {each.to}" for each in self.future
        ]
        names["ROLE GRANT"] = [
            f"{each.role} TO {each.to.domain.value} {'.'.join(each.to.name)}" for each in self.memberships if each.by
        ]
        return {label: sorted(each) for label, each in names.items()}

    def random_text(self, length: int) -> str:
        return "".join(self.random.choices(string.ascii_uppercase + string.digits, k=length))
