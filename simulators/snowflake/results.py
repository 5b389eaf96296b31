"""What a statement answers: columns, and rows of text as the SQL API sends them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

Row = list[str | None]

_TEXT_LENGTH: Final = 16_777_216


@attrs.frozen
class Column:
    """`type` is Snowflake's name for it in rowType."""

    name: str
    type: str = "text"
    precision: int | None = None
    scale: int | None = None

    def document(self) -> dict[str, Any]:
        length = _TEXT_LENGTH if self.type == "text" else None
        return {
            "name": self.name,
            "database": "",
            "schema": "",
            "table": "",
            "nullable": True,
            "type": self.type,
            "length": length,
            "byteLength": length,
            "precision": self.precision,
            "scale": self.scale,
            "collation": None,
        }


@attrs.frozen
class Result:
    columns: tuple[Column, ...]
    rows: list[Row]


#: Columns that hold a time, in whatever SHOW or DESC.
_TIMES: Final = frozenset("created_on resumed_on updated_on last_success_login expires_at_time locked_until_time".split())


def status(text: str = "Statement executed successfully.") -> Result:
    return Result((Column("status"),), [[text]])


def table(names: str, rows: Iterable[Sequence[Any]]) -> Result:
    """Columns by their names, times among them known by name; values as SHOW prints them."""
    columns = tuple(Column(name.replace("~", " "), "timestamp_ltz" if name in _TIMES else "text") for name in names.split())
    return Result(columns, [[printed(value) for value in row] for row in rows])


def records(names: str, found: Iterable[dict[str, Any]]) -> Result:
    """Rows that know only some of the columns: the others are empty."""
    wanted = [name.replace("~", " ") for name in names.split()]
    return table(names, ([each.get(name, "") for name in wanted] for each in found))


def printed(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.9f}"
    return str(value)


def clock_time(moment: float) -> str:
    """As a value of DESC has it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{int(moment * 1000) % 1000:03}"
