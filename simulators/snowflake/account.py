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
        self,
        name: str,
        clock: Clock,
        rng: random.Random,
        lake: Lake | None,
        *,
        region: str,
        organization: str = ORGANIZATION,
    ) -> None:
        self.organization = organization
        self.name = name
        self.clock = clock
        self.random = rng
        self.lake = lake
        self.region = region
        #: Names an account in its region. It stays when the account is renamed (docs.snowflake.com, "Account
        #: identifiers").
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
        """Add an object, and apply the future grants for its type of its schema or, if there are none, of its
        database.
        """
        self._objects[new.key] = new
        future = [
            grant
            for grant in self.future
            if grant.domain is new.domain and new.name[: len(grant.container.name)] == grant.container.name
        ]
        of_schema = [grant for grant in future if grant.container.domain is Domain.SCHEMA]
        for grant in of_schema or future:
            by = self.find(*grant.container).owner
            self.grants.append(Grant(grant.privilege, new.key, grant.to, grant.option, by, new.created))

    def find(self, domain: Domain, name: Name) -> Any:
        """Return the object, whose class depends on the domain, or None. `name` is case-sensitive."""
        return self._objects.get(Key(domain, name))

    def look_up(self, domain: Domain, name: Name) -> Any:
        """Return the object or None.

        The case of names is ignored in a catalog-linked database that is case-insensitive.
        """
        existing = self.find(domain, name)
        database: Database | None = self.find(Domain.DATABASE, name[:1])
        if existing or not (domain.depth > 1 and database and database.link and database.link.insensitive):
            return existing
        lower_name = [part.lower() for part in name]
        objects = self.list_contents(name[:1], domain)
        for object_ in objects:
            if [part.lower() for part in object_.name] == lower_name:
                return object_
        return None

    def all(self, model: type[T]) -> list[T]:
        return [object_ for object_ in self._objects.values() if isinstance(object_, model)]

    def list_contents(self, name: Name, domain: Domain | None = None) -> Iterator[SnowflakeObject]:
        """Yield the objects in a database or schema."""
        for object_ in list(self._objects.values()):
            if (
                object_.domain.depth > len(name)
                and object_.name[: len(name)] == name
                and domain in (None, object_.domain)
            ):
                yield object_

    def remove(self, object_: SnowflakeObject) -> None:
        """Remove an object and its contents, with all grants on them and to them."""
        keys = {object_.key}
        if object_.domain in (Domain.DATABASE, Domain.SCHEMA):
            keys |= {content.key for content in self.list_contents(object_.name)}
        self._objects = {key: content for key, content in self._objects.items() if key not in keys}
        roles = {key.name[0] for key in keys if key.domain is Domain.ROLE}
        self.grants = [grant for grant in self.grants if grant.on not in keys and grant.to not in roles]
        self.future = [
            grant for grant in self.future if grant.container not in keys and grant.to not in roles
        ]
        self.memberships = [
            membership
            for membership in self.memberships
            if membership.to not in keys and membership.role not in roles
        ]

    def rename(self, object_: SnowflakeObject, name: Name) -> None:
        """Rename an object that contains no others. Grants on it and to it remain."""
        old = object_.key
        new = Key(object_.domain, name)
        del self._objects[old]
        object_.name = name
        self._objects[new] = object_
        for number, grant in enumerate(self.grants):
            if grant.on == old:
                self.grants[number] = attrs.evolve(grant, on=new)
        for number, membership in enumerate(self.memberships):
            if membership.to == old:
                self.memberships[number] = attrs.evolve(membership, to=new)

    def objects(self) -> dict[str, list[str]]:
        """Return the names of all objects and grants, by type, without the predefined ones."""
        names: dict[str, list[str]] = {domain.value: [] for domain in Domain if domain is not Domain.ACCOUNT}
        for object_ in self._objects.values():
            if object_.domain is not Domain.ACCOUNT and not (
                object_.domain is Domain.ROLE and object_.label in SYSTEM_ROLES
            ):
                names[object_.domain.value].append(".".join(object_.name))
        names["GRANT"] = [
            f"{grant.privilege} ON {grant.on.domain.value} {'.'.join(grant.on.name)} TO {grant.to}"
            for grant in self.grants
            if grant.by
        ]
        names["FUTURE GRANT"] = [
            f"{grant.privilege} ON {grant.domain.value} IN {'.'.join(grant.container.name)} TO {grant.to}"
            for grant in self.future
        ]
        names["ROLE GRANT"] = [
            f"{membership.role} TO {membership.to.domain.value} {'.'.join(membership.to.name)}"
            for membership in self.memberships
            if membership.by
        ]
        return {label: sorted(labels) for label, labels in names.items()}

    def create_random_text(self, length: int) -> str:
        return "".join(self.random.choices(string.ascii_uppercase + string.digits, k=length))
