"""Arrow values as the SQL API sends them: all of them text."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from simulators.snowflake.results import Column, Row

#: The first that fits decides: type in rowType, precision, scale.
_TYPES: Final[tuple[tuple[Callable[[Any], bool], str, int | None, int | None], ...]] = (
    (pa.types.is_boolean, "boolean", None, None),
    (pa.types.is_integer, "fixed", 38, 0),
    (pa.types.is_floating, "real", None, None),
    (pa.types.is_date, "date", None, None),
    (pa.types.is_time, "time", 0, 9),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz, "timestamp_ltz", 0, 9),
    (pa.types.is_timestamp, "timestamp_ntz", 0, 9),
    (lambda kind: "binary" in str(kind), "binary", None, None),
    (pa.types.is_list, "array", None, None),
    (pa.types.is_nested, "object", None, None),
)


def column(field: Any) -> Column:
    """The name, and the type as rowType has it."""
    if pa.types.is_decimal(field.type):
        return Column(field.name, "fixed", field.type.precision, field.type.scale)
    for fits, name, precision, scale in _TYPES:
        if fits(field.type):
            return Column(field.name, name, precision, scale)
    return Column(field.name)


def rows(table: Any) -> list[Row]:
    return [[_text(value) for value in row] for row in zip(*(each.to_pylist() for each in table.columns), strict=True)]


def _text(value: Any) -> str | None:  # noqa: PLR0911  (one line a type)
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime():
            return _seconds(value)
        case date():
            return str((value - date(1970, 1, 1)).days)
        case time():
            return f"{value.hour * 3600 + value.minute * 60 + value.second}.{value.microsecond * 1000:09}"
        case bytes():
            return value.hex().upper()
        case list() | dict():
            return json.dumps(_plain(value))
        case Decimal():
            return f"{value:f}"
    return str(value)


def _seconds(moment: datetime) -> str:
    """Seconds since 1970, with nine decimals."""
    whole = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = whole - datetime(1970, 1, 1, tzinfo=UTC)
    return f"{since.days * 86_400 + since.seconds}.{since.microseconds * 1000:09}"


def _plain(value: Any) -> Any:
    """What JSON has. A map comes as pairs, bytes go as digits."""
    match value:
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case [tuple(), *_]:
            return {str(name): _plain(each) for name, each in value}
        case list():
            return [_plain(each) for each in value]
        case bytes():
            return value.hex().upper()
        case None | bool() | int() | float() | str():
            return value
    return str(value)
