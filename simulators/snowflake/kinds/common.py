"""What the kinds share: how a name is taken, looked up and refused, and what SHOW lets through."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from simulators.snowflake.errors import SqlError, exists, not_simulated
from simulators.snowflake.future import apply_to
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.model import Domain, SnowflakeObject
from simulators.snowflake.names import Name, like, shown
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, status
from simulators.snowflake.session import Session

T = TypeVar("T", bound=SnowflakeObject)


class Making(NamedTuple):
    """CREATE [OR REPLACE] … [IF NOT EXISTS]."""

    or_replace: bool
    if_not_exists: bool


class Kind(NamedTuple):
    """Words of SQL, and what follows them. `create` and the others read on where the words end."""

    words: str
    plural: str
    create: Callable[[Session, Cursor, Making], Result]
    alter: Callable[[Session, Cursor], Result]
    drop: Callable[[Session, Cursor], Result]
    show: Callable[[Session, Cursor], Result]
    describe: Callable[[Session, Cursor], Result] | None


def free(  # noqa: PLR0917  (each from another source)
    session: Session, domain: Domain, name: Name, privilege: str, making: Making, replaceable: Callable[[SnowflakeObject], None]
) -> Result | None:
    """Whether the name can be made: a result where it is there and may be. `replaceable` raises where it may not go."""
    container = session.container(domain, name)
    session.require(privilege, container, primary=True)
    found = session.account.find(domain, name)
    if found is None:
        return None
    if making.if_not_exists:
        return status(f"{shown(name[-1:])} already exists, statement succeeded.")
    if not making.or_replace:
        raise exists(name)
    session.require("OWNERSHIP", found)
    replaceable(found)
    session.account.remove(found)
    return None


def freely(thing: SnowflakeObject) -> None:
    """It may be replaced at any time."""


def created(session: Session, thing: SnowflakeObject, kind: str) -> Result:
    """The thing is there from now on, with what future grants give on it."""
    session.account.add(thing)
    apply_to(session.account, thing)
    return status(f"{kind} {shown(thing.name[-1:])} successfully created.")


class Dropping(NamedTuple):
    thing: SnowflakeObject | None
    restrict: bool
    absent: Result


def dropping(session: Session, cursor: Cursor, domain: Domain) -> Dropping:
    """What is to go; None where it is gone already and may be."""
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.name()
    restrict = cursor.take("RESTRICT")
    if not restrict:
        cursor.take("CASCADE")
    cursor.end()
    gone = status(f"Drop statement executed successfully ({shown(name[-1:])} already dropped).")
    try:
        thing = session.resolve(domain, name)
    except SqlError as error:
        if if_exists and error.code == "002003":
            return Dropping(None, restrict, gone)
        raise
    session.require("OWNERSHIP", thing)
    return Dropping(thing, restrict, gone)


def dropped(session: Session, thing: SnowflakeObject) -> Result:
    session.account.remove(thing)
    return status(f"{shown(thing.name[-1:])} successfully dropped.")


def altering(session: Session, cursor: Cursor, domain: Domain) -> SnowflakeObject | None:
    """What is to change; None where it isn't there and IF EXISTS was said."""
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.name()
    try:
        return session.resolve(domain, name)
    except SqlError as error:
        if if_exists and error.code == "002003":
            return None
        raise


def renamed(session: Session, cursor: Cursor, thing: SnowflakeObject) -> Result:
    """After RENAME TO, of what nothing else is in."""
    session.require("OWNERSHIP", thing)
    name = session.full(thing.domain, cursor.name())
    cursor.end()
    if session.account.find(thing.domain, name) is not None:
        raise exists(name)
    session.account.rename(thing, name)
    return status()


def unset_names(cursor: Cursor) -> list[str]:
    """After UNSET: names of properties, with commas between."""
    names = [cursor.word()]
    while cursor.take_sign(","):
        names.append(cursor.word())
    cursor.end()
    return names


def set_options(cursor: Cursor, kind: str, known: str, others: str = "") -> Options:
    """After SET: at least one property."""
    if cursor.at("TAG"):
        raise not_simulated("tags")
    given = cursor.options()
    cursor.end()
    if not given:
        cursor.refuse()
    return Options(kind, given, known, others)


class Listing(NamedTuple):
    """What SHOW was asked for: `within` is empty for the whole account."""

    pattern: re.Pattern[str]
    within: Name
    prefix: str
    limit: int | None

    def of(self, session: Session, kind: type[T]) -> list[T]:
        """Those that the role may see, by name."""
        found = [
            each
            for each in session.account.all(kind)
            if self.pattern.fullmatch(each.label)
            and each.name[: len(self.within)] == self.within
            and each.label.startswith(self.prefix)
            and session.sees(each)
        ]
        return sorted(found, key=lambda each: each.name)[: self.limit]


def listing(session: Session, cursor: Cursor, domain: Domain) -> Listing:
    pattern = like(cursor.string()) if cursor.take("LIKE") else re.compile(".*", re.DOTALL)
    within = _within(session, cursor) if domain.depth > 1 else ()
    prefix = cursor.string() if cursor.take("STARTS", "WITH") else ""
    limit = None
    if cursor.take("LIMIT"):
        limit = cursor.number()
        if cursor.at("FROM"):
            raise not_simulated("SHOW … LIMIT … FROM")
    cursor.end()
    return Listing(pattern, within, prefix, limit)


def _within(session: Session, cursor: Cursor) -> Name:
    if not cursor.take("IN"):
        here = (session.database, session.schema)
        return here if all(here) else here[:1] if here[0] else ()
    if cursor.take("ACCOUNT"):
        return ()
    domain = Domain.DATABASE if cursor.take("DATABASE") else Domain.SCHEMA if cursor.take("SCHEMA") else None
    name = cursor.name()
    if domain is None:
        domain = Domain.SCHEMA if len(name) > 1 else Domain.DATABASE
    return session.resolve(domain, name).name
