"""The result of a statement: columns, and rows of text in the SQL API's encoding."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import attrs
import pyarrow as pa

Row = list[str | None]

_TEXT_LENGTH: Final = 16_777_216
#: Columns of SHOW and DESC that hold a time.
_TIMES: Final = frozenset(
    "created_on resumed_on updated_on last_success_login expires_at_time locked_until_time".split()
)
#: Test of an Arrow type; type in rowType, precision, scale. The first test that passes decides.
_ARROW_TYPES: Final[tuple[tuple[Callable[[Any], bool], str, int | None, int | None], ...]] = (
    (pa.types.is_boolean, "boolean", None, None),
    (pa.types.is_integer, "fixed", 38, 0),
    (pa.types.is_floating, "real", None, None),
    (pa.types.is_date, "date", None, None),
    (pa.types.is_time, "time", 0, 9),
    (lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz, "timestamp_ltz", 0, 9),
    (pa.types.is_timestamp, "timestamp_ntz", 0, 9),
    (lambda arrow: "binary" in str(arrow), "binary", None, None),
    (pa.types.is_list, "array", None, None),
    (pa.types.is_nested, "object", None, None),
)


@attrs.frozen
class Column:
    """`type` is the name of the type in the SQL API's rowType."""

    name: str
    type: str = "text"
    precision: int | None = None
    scale: int | None = None

    def build_document(self) -> dict[str, Any]:
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


def build_status(text: str = "Statement executed successfully.") -> Result:
    return Result((Column("status"),), [[text]])


def build_table(names: str, rows: Iterable[Sequence[Any]]) -> Result:
    """Return a result of SHOW or DESC.

    `names` are the columns, separated by spaces; ~ stands for a space in a name.
    """
    columns = []
    for name in names.split():
        kind = "timestamp_ltz" if name in _TIMES else "text"
        columns.append(Column(name.replace("~", " "), kind))
    cells = []
    for row in rows:
        cells.append([_format_cell(value) for value in row])
    return Result(tuple(columns), cells)


def build_table_of_records(names: str, rows: Iterable[dict[str, Any]]) -> Result:
    """Return a result whose rows may have values for some of the columns only.

    The others are empty strings.
    """
    values = []
    for row in rows:
        values.append([row.get(name, "") for name in names.split()])
    return build_table(names, values)


def _format_cell(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.9f}"
    return str(value)


def format_time(moment: float) -> str:
    """Return the time in the format of DESC, in UTC, with milliseconds."""
    return (
        datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{int(moment * 1000) % 1000:03}"
    )


def from_arrow(answer: Any) -> Result:
    """Convert an Arrow table to a result."""
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    columns = tuple(_describe_column(field) for field in answer.schema)
    cells = []
    for row in rows:
        cells.append([_format_text(value) for value in row])
    return Result(columns, cells)


def _describe_column(field: Any) -> Column:
    if pa.types.is_decimal(field.type):
        return Column(field.name, "fixed", field.type.precision, field.type.scale)
    for matches, name, precision, scale in _ARROW_TYPES:
        if matches(field.type):
            return Column(field.name, name, precision, scale)
    return Column(field.name)


def _format_text(value: Any) -> str | None:  # noqa: PLR0911  (one line per type)
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime():
            return _format_seconds(value)
        case date():
            return str((value - date(1970, 1, 1)).days)
        case time():
            return f"{value.hour * 3600 + value.minute * 60 + value.second}.{value.microsecond * 1000:09}"
        case bytes():
            return value.hex().upper()
        case list() | dict():
            return json.dumps(_to_json_value(value))
        case Decimal():
            return f"{value:f}"
    return str(value)


def _format_seconds(moment: datetime) -> str:
    """Return seconds since 1970 UTC, with nine decimals. A time without a zone is taken as UTC."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return f"{since.days * 86_400 + since.seconds}.{since.microseconds * 1000:09}"


def _to_json_value(value: Any) -> Any:
    """Convert the value to JSON types. Arrow returns a map as a list of pairs."""
    match value:
        case dict():
            return {str(name): _to_json_value(item) for name, item in value.items()}
        case [tuple(), *_]:
            return {str(name): _to_json_value(item) for name, item in value}
        case list():
            return [_to_json_value(item) for item in value]
        case bytes():
            return value.hex().upper()
        case None | bool() | int() | float() | str():
            return value
    return str(value)
