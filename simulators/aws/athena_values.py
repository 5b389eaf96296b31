"""Columns and values of query results, as Athena describes and writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final, NamedTuple

#: By DuckDB type: the type name and precision in GetQueryResults.
_TYPES: Final = {
    "BOOLEAN": ("boolean", 0), "TINYINT": ("tinyint", 3), "SMALLINT": ("smallint", 5),
    "INTEGER": ("integer", 10), "BIGINT": ("bigint", 19), "HUGEINT": ("bigint", 19), "FLOAT": ("float", 17),
    "DOUBLE": ("double", 17), "DATE": ("date", 0), "TIME": ("time", 3), "TIMESTAMP": ("timestamp", 3),
    "TIMESTAMP WITH TIME ZONE": ("timestamp with time zone", 3), "BLOB": ("varbinary", 1073741824),
}  # fmt: skip


class Column(NamedTuple):
    """A column as GetQueryResults describes it."""

    name: str
    type: str
    precision: int = 0
    scale: int = 0


def describe_column(name: str, kind: str) -> Column:
    if match := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        return Column(name, "decimal", int(match[1]), int(match[2]))
    if kind.endswith("]"):
        return Column(name, "array")
    if kind.startswith(("MAP(", "STRUCT(")):
        athena_type = "map" if kind.startswith("MAP(") else "row"
        return Column(name, athena_type)
    return Column(name, *_TYPES.get(kind, ("varchar", 2147483647)))


def format_value(value: Any, digits: int = 6) -> str:  # noqa: PLR0911  (one line for each kind of value)
    """Return a value as Athena writes it, with `digits` digits for fractions of a second."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _format_java_number(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime | time):
        moment = value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
        pattern = "%H:%M:%S.%f" if isinstance(moment, time) else "%Y-%m-%d %H:%M:%S.%f"
        moment_text = moment.strftime(pattern)
        zone = " UTC" if value.tzinfo else ""
        return moment_text[: len(moment_text) - 6 + digits] + zone
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex(" ")
    if isinstance(value, dict):
        entries = [f"{format_value(key, digits)}={format_value(item, digits)}" for key, item in value.items()]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list):
        items = [format_value(item, digits) for item in value]
        return f"[{', '.join(items)}]"
    return str(value)


def _format_java_number(value: float) -> str:
    """Return a number as Java writes it: 1.0, 1.0E10, NaN."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    if "." not in digits:
        digits = f"{digits}.0"
    return f"{digits}E{int(exponent)}"
