"""Databases whose schemas and tables are those of a catalog. Only reading is simulated."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simulators.snowflake import refreshing
from simulators.snowflake.errors import not_simulated
from simulators.snowflake.grammar import Cursor, Value
from simulators.snowflake.kinds.references import by_literal
from simulators.snowflake.model import Database, Domain
from simulators.snowflake.names import Name, shown
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, clock_time, status
from simulators.snowflake.session import Session

_LINK: Final = "CATALOG ALLOWED_NAMESPACES ALLOWED_WRITE_OPERATIONS SYNC_INTERVAL_SECONDS NAMESPACE_MODE CATALOG_CASE_SENSITIVITY"
_LINK_OTHERS: Final = "BLOCKED_NAMESPACES NAMESPACE_FLATTEN_DELIMITER"


@attrs.define
class Link:
    """`allowed` empty is every namespace. `insensitive` names are found in any case."""

    catalog: Name
    volume: Name
    allowed: list[str]
    seconds: int
    insensitive: bool = True
    attempted: float = 0.0
    failures: list[str] = attrs.Factory(list)


@attrs.frozen
class Wish:
    """A link as a statement asks for it: names not yet looked up."""

    catalog: str
    volume: str
    allowed: list[str]
    seconds: int
    insensitive: bool


def read(given: dict[str, Value]) -> Wish:
    outer = Options("DATABASE", given, " ".join(given))
    link = outer.inside("LINKED_CATALOG", _LINK, _LINK_OTHERS)
    link.require("CATALOG")
    if link.choice("ALLOWED_WRITE_OPERATIONS", "NONE ALL", "ALL") != "NONE":
        raise not_simulated("a linked database that Snowflake may write to: set ALLOWED_WRITE_OPERATIONS = NONE")
    if link.choice("NAMESPACE_MODE", "IGNORE_NESTED_NAMESPACE FLATTEN_NESTED_NAMESPACE", "IGNORE_NESTED_NAMESPACE")[0] == "F":
        raise not_simulated("NAMESPACE_MODE FLATTEN_NESTED_NAMESPACE")
    outer.require("EXTERNAL_VOLUME")
    return Wish(
        link.text("CATALOG"),
        outer.text("EXTERNAL_VOLUME"),
        list(link.strings("ALLOWED_NAMESPACES")),
        link.integer("SYNC_INTERVAL_SECONDS", 30, 30, 86_400),
        link.choice("CATALOG_CASE_SENSITIVITY", "CASE_SENSITIVE CASE_INSENSITIVE", "CASE_INSENSITIVE") == "CASE_INSENSITIVE",
    )


def begin(session: Session, database: Database, wish: Wish) -> None:
    """Its schemas and tables come with the first sync."""
    catalog = by_literal(session, Domain.INTEGRATION, wish.catalog)
    volume = by_literal(session, Domain.VOLUME, wish.volume)
    session.require("USAGE", catalog)
    session.require("USAGE", volume)
    database.link = Link(catalog.name, volume.name, wish.allowed, wish.seconds, wish.insensitive)
    account = session.account
    account.clock.after(0, lambda: refreshing.sync(account, database) if account.find(*database.key) is database else None)
    refreshing.follow_catalog(account, database)


def alter(session: Session, cursor: Cursor, database: Database) -> Result:
    """After UPDATE LINKED_CATALOG."""
    if database.link is None:
        cursor.refuse()
    session.require("OWNERSHIP", database)
    link: Link = database.link
    if cursor.take("ADD"):
        added = _names(cursor, "TO")
        link.allowed += [each for each in added if each not in link.allowed]
    elif cursor.take("REMOVE"):
        removed = _names(cursor, "FROM")
        link.allowed = [each for each in link.allowed if each not in removed]
    else:
        cursor.expect("SET")
        options = Options("LINKED_CATALOG", cursor.options(), "SYNC_INTERVAL_SECONDS ALLOWED_WRITE_OPERATIONS")
        cursor.end()
        if options.choice("ALLOWED_WRITE_OPERATIONS", "NONE ALL", "NONE") != "NONE":
            raise not_simulated("ALLOWED_WRITE_OPERATIONS ALL")
        link.seconds = options.integer("SYNC_INTERVAL_SECONDS", link.seconds, 30, 86_400)
    return status()


def _names(cursor: Cursor, word: str) -> list[str]:
    cursor.expect_sign("(")
    found = [cursor.string()]
    while cursor.take_sign(","):
        found.append(cursor.string())
    cursor.expect_sign(")")
    cursor.expect(word, "ALLOWED_NAMESPACES")
    cursor.end()
    return found


def link_status(database: Database) -> dict[str, Any]:
    link: Link = database.link
    failures = [{"qualifiedEntityName": shown(database.name), "entityDomain": "DATABASE", "operation": "DISCOVER"}]
    return {
        "failureDetails": [failures[0] | {"errorMessage": each} for each in link.failures],
        "executionState": refreshing.RUNNING,
        "lastLinkAttemptStartTime": clock_time(link.attempted) if link.attempted else None,
    }


def configuration(database: Database) -> dict[str, Any]:
    link: Link = database.link
    return {
        "catalog": shown(link.catalog),
        "externalVolume": shown(link.volume),
        "allowedNamespaces": link.allowed,
        "blockedNamespaces": [],
        "allowedWriteOperations": "NONE",
        "syncIntervalSeconds": link.seconds,
        "namespaceMode": "IGNORE_NESTED_NAMESPACE",
        "catalogCaseSensitivity": "CASE_INSENSITIVE" if link.insensitive else "CASE_SENSITIVE",
    }
