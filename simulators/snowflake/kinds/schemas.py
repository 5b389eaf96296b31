"""Schemas."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake.errors import invalid_property, not_simulated, unsupported
from simulators.snowflake.grammar import Cursor
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
from simulators.snowflake.model import Domain, Schema
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, records, status, table
from simulators.snowflake.session import Session

_LABEL: Final = "SCHEMA"
_KNOWN: Final = "COMMENT"
OTHERS: Final = (
    "DATA_RETENTION_TIME_IN_DAYS MAX_DATA_EXTENSION_TIME_IN_DAYS EXTERNAL_VOLUME CATALOG REPLACE_INVALID_CHARACTERS "
    "DEFAULT_DDL_COLLATION LOG_LEVEL TRACE_LEVEL STORAGE_SERIALIZATION_POLICY CATALOG_SYNC OBJECT_VISIBILITY"
)
_SHOWN: Final = (
    "created_on name is_default is_current database_name owner comment options retention_time owner_role_type "
    "classification_profile_database classification_profile_schema classification_profile object_visibility"
)


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = session.full(Domain.SCHEMA, cursor.name())
    if cursor.at("CLONE"):
        raise not_simulated("CREATE SCHEMA … CLONE")
    managed = cursor.take("WITH", "MANAGED", "ACCESS")
    options = Options(_LABEL, cursor.options(), _KNOWN, OTHERS)
    cursor.end()
    if there := free(session, Domain.SCHEMA, name, "CREATE SCHEMA", making, freely):
        return there
    if session.account.find(Domain.DATABASE, name[:1]).link:
        raise unsupported("CREATE SCHEMA in a catalog-linked database whose writes are not allowed")
    now, comment = session.account.clock.now(), options.string("COMMENT")
    return created(session, Schema(name=name, owner=session.role, created=now, comment=comment, managed_access=managed), "Schema")


def alter(session: Session, cursor: Cursor) -> Result:
    schema: Any = altering(session, cursor, Domain.SCHEMA)
    if schema is None:
        return status()
    for word, managed in (("ENABLE", True), ("DISABLE", False)):
        if cursor.take(word, "MANAGED", "ACCESS"):
            cursor.end()
            session.require("OWNERSHIP", schema)
            schema.managed_access = managed
            return status()
    if cursor.at("RENAME") or cursor.at("SWAP"):
        raise not_simulated(f"ALTER SCHEMA … {cursor.word()}")
    if cursor.take("UNSET"):
        if (names := unset_names(cursor)) != [_KNOWN]:
            raise invalid_property(names[0], _LABEL)
        comment = ""
    else:
        cursor.expect("SET")
        comment = set_options(cursor, _LABEL, _KNOWN, OTHERS).string("COMMENT")
    session.require("MODIFY", schema)
    schema.comment = comment
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.SCHEMA)
    return dropped(session, found.thing) if found.thing else found.absent


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.SCHEMA)
    return records(_SHOWN, (_row(session, each) for each in wanted.of(session, Schema)))


def _row(session: Session, schema: Schema) -> dict[str, Any]:
    return {
        "created_on": schema.created,
        "name": schema.label,
        "is_default": "N",
        "is_current": "Y" if schema.name == (session.database, session.schema) else "N",
        "database_name": schema.name[0],
        "owner": schema.owner,
        "comment": schema.comment,
        "options": "MANAGED ACCESS" if schema.managed_access else "",
        "retention_time": "1",
        "owner_role_type": "ROLE",
    }


def describe(session: Session, cursor: Cursor) -> Result:
    schema = session.resolve(Domain.SCHEMA, cursor.name())
    cursor.end()
    inside = session.account.below(schema.name, Domain.ICEBERG_TABLE)
    return table("created_on name kind", [(each.created, each.label, "TABLE") for each in inside if session.sees(each)])


KIND: Final = Kind(_LABEL, "SCHEMAS", create, alter, drop, show, describe)
