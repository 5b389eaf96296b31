"""Databases. One that is linked to a catalog is made, and its link changed, by linked_databases.py."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake.errors import invalid_property, not_simulated
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.kinds import linked_databases
from simulators.snowflake.kinds.common import (
    Kind,
    Making,
    altering,
    created,
    dropped,
    dropping,
    free,
    freely,
    listing,
    set_options,
    unset_names,
)
from simulators.snowflake.kinds.schemas import OTHERS
from simulators.snowflake.model import Database, Domain, Schema
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, records, status, table
from simulators.snowflake.session import Session

_LABEL: Final = "DATABASE"
_KNOWN: Final = "COMMENT"
_SHOWN: Final = (
    "created_on name is_default is_current origin owner comment options retention_time kind budget owner_role_type "
    "object_visibility"
)


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    if cursor.at("CLONE") or cursor.at("FROM") or cursor.at("AS"):
        raise not_simulated(f"CREATE DATABASE … {cursor.word()}")
    given = cursor.options()
    cursor.end()
    linked = "LINKED_CATALOG" in given
    link = linked_databases.read(given) if linked else None
    options = Options(_LABEL, given, f"{_KNOWN} LINKED_CATALOG EXTERNAL_VOLUME" if linked else _KNOWN, OTHERS)
    if there := free(session, Domain.DATABASE, name, "CREATE DATABASE", making, freely):
        return there
    now, comment = session.account.clock.now(), options.string("COMMENT")
    database = Database(name=name, owner=session.role, created=now, comment=comment)
    if link:
        linked_databases.begin(session, database, link)
    made = created(session, database, "Database")
    if not link:
        created(session, Schema(name=(*name, "PUBLIC"), owner=session.role, created=now), "Schema")
    return made


def alter(session: Session, cursor: Cursor) -> Result:
    database: Any = altering(session, cursor, Domain.DATABASE)
    if database is None:
        return status()
    if cursor.take("UPDATE", "LINKED_CATALOG"):
        return linked_databases.alter(session, cursor, database)
    if cursor.at("RENAME") or cursor.at("SWAP"):
        raise not_simulated(f"ALTER DATABASE … {cursor.word()}")
    if cursor.take("UNSET"):
        if (names := unset_names(cursor)) != [_KNOWN]:
            raise invalid_property(names[0], _LABEL)
        comment = ""
    else:
        cursor.expect("SET")
        comment = set_options(cursor, _LABEL, _KNOWN, OTHERS).string("COMMENT")
    session.require("MODIFY", database)
    database.comment = comment
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.DATABASE)
    return dropped(session, found.thing) if found.thing else found.absent


def show(session: Session, cursor: Cursor) -> Result:
    cursor.take("IN", "ACCOUNT")
    wanted = listing(session, cursor, Domain.DATABASE)
    return records(_SHOWN, (_row(session, each) for each in wanted.of(session, Database)))


def _row(session: Session, database: Database) -> dict[str, Any]:
    return {
        "created_on": database.created,
        "name": database.label,
        "is_default": "N",
        "is_current": "Y" if database.label == session.database else "N",
        "owner": database.owner,
        "comment": database.comment,
        "retention_time": "1",
        "kind": "CATALOG-LINKED DATABASE" if database.link else "STANDARD",
        "budget": None,
        "owner_role_type": "ROLE",
    }


def describe(session: Session, cursor: Cursor) -> Result:
    database = session.resolve(Domain.DATABASE, cursor.name())
    cursor.end()
    inside = session.account.below(database.name, Domain.SCHEMA)
    return table("created_on name kind", [(each.created, each.label, "SCHEMA") for each in inside if session.sees(each)])


KIND: Final = Kind(_LABEL, "DATABASES", create, alter, drop, show, describe)
