"""What can be granted on what, in the words of GRANT and in those of SHOW GRANTS, which differ.

Objects are single ones, roles, or all of a sort in a schema or database. Those of a sort in a schema are granted on what is
there and on what comes later; in a database, on what is there: Snowflake wants MANAGE GRANTS for what comes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lambdas.snowflake import sql
from lambdas.snowflake.client import Row
from lambdas.snowflake.sql import Sql

ROLE: Final = "ROLE"
USAGE: Final = "USAGE"
SELECT: Final = "SELECT"
ROTATE: Final = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"
TABLES_IN_SCHEMA: Final = "ICEBERG TABLES IN SCHEMA"
TABLES_IN_DATABASE: Final = "ICEBERG TABLES IN DATABASE"
SCHEMAS_IN_DATABASE: Final = "SCHEMAS IN DATABASE"
#: What may be granted on each.
ON: Final[Mapping[str, tuple[str, ...]]] = {
    "WAREHOUSE": (USAGE, "OPERATE", "MONITOR"),
    "DATABASE": (USAGE, "MONITOR"),
    "SCHEMA": (USAGE, "MONITOR"),
    "EXTERNAL VOLUME": (USAGE,),
    "INTEGRATION": (USAGE,),
    "ICEBERG TABLE": (SELECT,),
    "USER": (ROTATE,),
    ROLE: (USAGE,),
    TABLES_IN_SCHEMA: (SELECT,),
    TABLES_IN_DATABASE: (SELECT,),
    SCHEMAS_IN_DATABASE: (USAGE,),
}
PRIVILEGES: Final = tuple(dict.fromkeys(privilege for privileges in ON.values() for privilege in privileges))
#: How many names a name in full has; one where nothing is said.
PARTS: Final[Mapping[str, int]] = {"SCHEMA": 2, TABLES_IN_SCHEMA: 2, "ICEBERG TABLE": 3}
#: What SHOW GRANTS calls an object, where that isn't the name of GRANT.
_SHOWN_AS: Final[Mapping[str, tuple[str, ...]]] = {
    "EXTERNAL VOLUME": ("EXTERNAL VOLUME", "VOLUME"),
    "ICEBERG TABLE": ("ICEBERG TABLE", "TABLE"),
}
_MEMBERS: Final[Mapping[str, tuple[str, str]]] = {
    TABLES_IN_SCHEMA: ("ICEBERG TABLE", "SHOW ICEBERG TABLES IN SCHEMA {path}"),
    TABLES_IN_DATABASE: ("ICEBERG TABLE", "SHOW ICEBERG TABLES IN DATABASE {path}"),
    SCHEMAS_IN_DATABASE: ("SCHEMA", "SHOW SCHEMAS IN DATABASE {path}"),
}
#: Schemas that Snowflake itself keeps in each database, and lets nobody grant.
_OWN_SCHEMAS: Final = frozenset({"INFORMATION_SCHEMA"})


def is_group(on: str) -> bool:
    return on in _MEMBERS


def single(privilege: str, on: str, path: Sql) -> Sql:
    return sql.statement(
        "{privilege} ON {on} {path}", privilege=sql.word(privilege, of=PRIVILEGES), on=sql.word(on, of=ON), path=path
    )


def group(privilege: str, which: str, on: str, path: Sql) -> Sql:
    """`which` is ALL or FUTURE."""
    return sql.statement(
        "{privilege} ON {which} {on} {path}",
        privilege=sql.word(privilege, of=PRIVILEGES),
        which=sql.word(which, of=("ALL", "FUTURE")),
        on=sql.word(on, of=_MEMBERS),
        path=path,
    )


def show_members(on: str, path: Sql) -> Sql:
    return sql.statement(_MEMBERS[on][1], path=path)


def members(on: str, database: str, rows: list[Row]) -> list[tuple[str, ...]]:
    """Names in full of what SHOW lists of a group. `database` is what it was asked for."""
    if _MEMBERS[on][0] == "SCHEMA":
        return [(database, row.get("name", "")) for row in rows if row.get("name") not in _OWN_SCHEMAS]
    return [(row.get("database_name", ""), row.get("schema_name", ""), row.get("name", "")) for row in rows]


def member_kind(on: str) -> str:
    return _MEMBERS[on][0]


def is_granted(rows: list[Row], privilege: str, on: str, names: tuple[str, ...]) -> bool:
    """Whether rows of SHOW GRANTS TO ROLE hold the privilege."""
    return any(
        row.get("privilege") == privilege
        and row.get("granted_on", "").replace("_", " ") in _SHOWN_AS.get(on, (on,))
        and (sql.split(row.get("name", "")) == names or names == (row.get("name"),))
        for row in rows
    )


def is_granted_in_future(rows: list[Row], privilege: str, on: str, names: tuple[str, ...]) -> bool:
    """Whether rows of SHOW FUTURE GRANTS TO ROLE hold it: their names end in `.<ICEBERG_TABLE>`."""
    return any(
        row.get("privilege") == privilege
        and row.get("grant_on", "").replace("_", " ") in _SHOWN_AS.get(member_kind(on), ())
        and sql.split(row.get("name", "").rpartition(".<")[0]) == names
        for row in rows
    )
