"""Which privileges there are on what, and how GRANT names them."""

from __future__ import annotations

from typing import Final

from simulators.snowflake.errors import SqlError, not_simulated, syntax
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.model import Domain
from simulators.snowflake.tokens import Sort

OWNERSHIP: Final = "OWNERSHIP"
_SCHEMA_OBJECTS: Final = (
    "TABLE,VIEW,STAGE,STREAM,TASK,PIPE,FUNCTION,PROCEDURE,SEQUENCE,FILE FORMAT,SECRET,TAG,DYNAMIC TABLE,EXTERNAL TABLE,"
    "MASKING POLICY,ROW ACCESS POLICY,NETWORK RULE,ALERT,SERVICE,NOTEBOOK,STREAMLIT,MATERIALIZED VIEW,TEMPORARY TABLE"
)
PRIVILEGES: Final[dict[Domain, tuple[str, ...]]] = {
    Domain.ACCOUNT: (
        "CREATE DATABASE",
        "CREATE WAREHOUSE",
        "CREATE ROLE",
        "CREATE USER",
        "CREATE INTEGRATION",
        "CREATE EXTERNAL VOLUME",
        "MANAGE GRANTS",
        "MONITOR USAGE",
        "MONITOR EXECUTION",
        "EXECUTE TASK",
        "MANAGE WAREHOUSES",
        "MONITOR SECURITY",
    ),
    Domain.WAREHOUSE: ("APPLYBUDGET", "MODIFY", "MONITOR", "OPERATE", "USAGE"),
    Domain.DATABASE: ("APPLYBUDGET", "CREATE SCHEMA", "CREATE DATABASE ROLE", "MODIFY", "MONITOR", "USAGE"),
    Domain.SCHEMA: (
        "MODIFY",
        "MONITOR",
        "USAGE",
        "CREATE ICEBERG TABLE",
        *(f"CREATE {each}" for each in _SCHEMA_OBJECTS.split(",")),
    ),
    Domain.USER: ("MONITOR", "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"),
    Domain.ROLE: (),
    Domain.VOLUME: ("USAGE",),
    Domain.INTEGRATION: ("USAGE", "USE_ANY_ROLE"),
    Domain.ICEBERG_TABLE: ("APPLYBUDGET", "DELETE", "INSERT", "REFERENCES", "SELECT", "TRUNCATE", "UPDATE", "EVOLVE SCHEMA"),
}
_PLURALS: Final = {"ICEBERG TABLES": Domain.ICEBERG_TABLE, "SCHEMAS": Domain.SCHEMA}


def read_privileges(cursor: Cursor) -> list[str]:
    """Up to ON: names, with commas between; ALL [PRIVILEGES] is one."""
    found = []
    while True:
        words = [cursor.word()]
        while cursor.next.sort is Sort.WORD and not cursor.at("ON"):
            words.append(cursor.word())
        found.append(" ".join(words))
        if not cursor.take_sign(","):
            return ["ALL" if each == "ALL PRIVILEGES" else each for each in found]


def meant(privileges: list[str], domain: Domain) -> list[str]:
    """Raises SqlError where such a thing has no such privilege."""
    if privileges == ["ALL"]:
        return list(PRIVILEGES[domain])
    for each in privileges:
        if each not in (*PRIVILEGES[domain], OWNERSHIP):
            raise syntax(f"Invalid object type '{domain.shown}' for privilege '{each}'")
    return privileges


def read_domain(cursor: Cursor) -> Domain:
    """The type before a name: ICEBERG TABLE and TABLE are the same."""
    for domain in Domain:
        if cursor.take(*domain.value.split()):
            return domain
    if cursor.take("TABLE"):
        return Domain.ICEBERG_TABLE
    raise _unknown(cursor, _SCHEMA_OBJECTS.split(","))


def read_plural(cursor: Cursor) -> Domain:
    for words, domain in _PLURALS.items():
        if cursor.take(*words.split()):
            return domain
    raise _unknown(cursor, [f"{each}S" for each in _SCHEMA_OBJECTS.split(",")])


def _unknown(cursor: Cursor, others: list[str]) -> SqlError:
    for each in others:
        if cursor.at(*each.split()):
            return not_simulated(f"grants on {each}")
    return cursor.unexpected()
