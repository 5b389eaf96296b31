"""Types of Iceberg in the words of Athena's engine, and values as Athena writes them into its results."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyiceberg import types as iceberg

from simulators.aws.athena.outcomes import NOT_SIMULATED, Column, Failed

_NAMES: Final[Mapping[type[iceberg.IcebergType], str]] = {
    iceberg.BooleanType: "boolean",
    iceberg.IntegerType: "integer",
    iceberg.LongType: "bigint",
    iceberg.FloatType: "real",
    iceberg.DoubleType: "double",
    iceberg.DateType: "date",
    iceberg.TimeType: "time(6)",
    iceberg.TimestampType: "timestamp(6)",
    iceberg.TimestamptzType: "timestamp(6) with time zone",
    iceberg.StringType: "varchar",
    iceberg.UUIDType: "uuid",
    iceberg.BinaryType: "varbinary",
    iceberg.FixedType: "varbinary",
}
#: What GetQueryResults tells of a type, by the first test that holds.
_COLUMNS: Final[Sequence[tuple[Callable[[pa.DataType], bool], tuple[str, int]]]] = (
    (pa.types.is_boolean, ("boolean", 0)),
    (pa.types.is_int8, ("tinyint", 3)),
    (pa.types.is_int16, ("smallint", 5)),
    (pa.types.is_int32, ("integer", 10)),
    (pa.types.is_integer, ("bigint", 19)),
    (pa.types.is_float32, ("float", 17)),
    (pa.types.is_float64, ("double", 17)),
    (pa.types.is_date, ("date", 0)),
    (pa.types.is_time, ("time", 0)),
    (pa.types.is_binary, ("varbinary", 1073741824)),
    (pa.types.is_large_binary, ("varbinary", 1073741824)),
    (pa.types.is_map, ("map", 0)),
    (pa.types.is_struct, ("row", 0)),
    (pa.types.is_list, ("array", 0)),
    (pa.types.is_large_list, ("array", 0)),
)
#: In results; without this Java's own way of writing numbers begins.
_PLAIN: Final = (1e-3, 1e7)


def engine_type(given: iceberg.IcebergType) -> str:
    """As the engine's DESCRIBE and its SQL name it."""
    if isinstance(given, iceberg.DecimalType):
        return f"decimal({given.precision},{given.scale})"
    if isinstance(given, iceberg.ListType):
        return f"array({engine_type(given.element_type)})"
    if isinstance(given, iceberg.MapType):
        return f"map({engine_type(given.key_type)}, {engine_type(given.value_type)})"
    if isinstance(given, iceberg.StructType):
        fields = [f'"{each.name.lower()}" {engine_type(each.field_type)}' for each in given.fields]
        return f"row({', '.join(fields)})"
    if type(given) not in _NAMES:
        raise Failed(f"{NOT_SIMULATED}: columns of type {given}")
    return _NAMES[type(given)]


def column(name: str, given: pa.DataType, engine: str) -> Column:
    """`engine` is DuckDB's own name of the type."""
    if engine == "HUGEINT":
        return Column(name, "bigint", 19)
    if pa.types.is_decimal(given):
        return Column(name, "decimal", given.precision, given.scale)
    if pa.types.is_timestamp(given):
        return Column(name, "timestamp with time zone" if given.tz else "timestamp", 3)
    for holds, (type_name, precision) in _COLUMNS:
        if holds(given):
            return Column(name, type_name, precision)
    return Column(name, "varchar", 2147483647)


def text(value: Any, given: pa.DataType, fraction: int = 6) -> str | None:
    """None for NULL. `fraction` is how many digits of seconds a time has."""
    return None if value is None else _text(value, given, fraction)


def _text(value: Any, given: pa.DataType, fraction: int) -> str:  # noqa: PLR0911  (one line for each sort of value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _java(value, single=pa.types.is_float32(given))
    if isinstance(value, Decimal):
        return str(int(value)) if given.scale == 0 else format(value, "f")
    if isinstance(value, datetime | date | time):
        return _moment(value, fraction)
    if isinstance(value, bytes):
        return value.hex(" ")
    if pa.types.is_nested(given):
        return _nested(value, given, fraction)
    return str(value)


def _nested(value: Any, given: pa.DataType, fraction: int) -> str:
    if pa.types.is_map(given):
        pairs = [f"{_text(key, given.key_type, fraction)}={_text(item, given.item_type, fraction)}" for key, item in value]
        return f"{{{', '.join(pairs)}}}"
    if pa.types.is_struct(given):
        fields = [given.field(number) for number in range(given.num_fields)]
        return f"{{{', '.join(f'{each.name}={_text(value[each.name], each.type, fraction)}' for each in fields)}}}"
    return f"[{', '.join(_text(each, given.value_type, fraction) for each in value)}]"


def _moment(value: datetime | date | time, fraction: int) -> str:
    if not isinstance(value, datetime | time):
        return value.isoformat()
    digits = f"{value.microsecond:06}"[:fraction]
    if isinstance(value, time):
        return f"{value:%H:%M:%S}.{digits}"
    zone = " UTC" if value.tzinfo else ""
    moment = value.astimezone(UTC) if value.tzinfo else value
    return f"{moment:%Y-%m-%d %H:%M:%S}.{digits}{zone}"


def _java(value: float, *, single: bool) -> str:
    """A number as Java writes it: 1.0, 1.0E10, NaN."""
    shortest = _shortest_single(value) if single else repr(value)
    number = float(shortest)
    if not math.isfinite(number):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    if number == 0 or _PLAIN[0] <= abs(number) < _PLAIN[1]:
        plain = format(Decimal(shortest), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = Decimal(shortest).as_tuple()
    left = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{left[0]}.{left[1:] or '0'}E{Decimal(shortest).adjusted()}"


def _shortest_single(value: float) -> str:
    """The fewest digits that are this number in four bytes."""
    for digits in range(1, 9):
        shown = f"{value:.{digits}g}"
        if struct.pack("f", float(shown)) == struct.pack("f", value):
            return shown
    return f"{value:.9g}"
