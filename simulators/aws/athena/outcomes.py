"""How a query ends, and what is asked for one."""

from __future__ import annotations

from typing import Final

import attrs

#: Athena says what is wrong with a table, a column or a permission in the words of its engine, after a code.
TABLE_NOT_FOUND: Final = "TABLE_NOT_FOUND"
SCHEMA_NOT_FOUND: Final = "SCHEMA_NOT_FOUND"
COLUMN_NOT_FOUND: Final = "COLUMN_NOT_FOUND"
PERMISSION_DENIED: Final = "PERMISSION_DENIED"
#: What Athena may do and this engine doesn't. The sentence says so, so that nobody takes it for Athena's.
NOT_SIMULATED: Final = "NOT_SUPPORTED: not simulated"


class Malformed(Exception):
    """Athena would not take the statement: nothing is executed."""


class Failed(Exception):
    """Why the execution failed, as Athena says it."""


class Cancelled(Exception):
    """Why Athena ended it."""


@attrs.frozen
class Asked:
    """`output` is the result's place without its ending; `put` are the arguments of PutObject that encrypt it."""

    sql: str
    database: str
    catalog: str
    output: str
    cutoff: int | None = None
    put: dict[str, str] = attrs.Factory(dict)


@attrs.frozen
class Column:
    """As GetQueryResults describes it."""

    name: str
    type: str
    precision: int = 0
    scale: int = 0


@attrs.frozen
class Rows:
    """Values as text; None is NULL. `header` is whether the column's names are a row too."""

    columns: list[Column]
    rows: list[list[str | None]]
    scanned: int = 0
    header: bool = True
