"""Reads JSON values of Avro's types without parts: numbers, text, bytes, times."""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import product
from typing import Any, Final

from simulators.tableflow.avro import Decimal, Enum, Fixed, Scalar

Plain = Scalar | Enum | Decimal | Fixed
_INTEGERS: Final = {"int": 31, "long": 63}
#: Wide enough for any decimal of Iceberg, so that quantizing never rounds silently.
_WIDE: Final = decimal.Context(prec=100, traps=[decimal.InvalidOperation])
_SHOWN: Final = 40
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"millis": timedelta(milliseconds=1), "micros": timedelta(microseconds=1)}
_DAY: Final = timedelta(days=1)
_TIME_TYPES: Final = ("time", "timestamp", "local-timestamp")
_TIME_KINDS: Final = frozenset(("date", *(f"{kind}-{unit}" for kind, unit in product(_TIME_TYPES, _UNITS))))


class Invalid(Exception):
    """The message says what is wrong with a value."""


def show_value(value: Any) -> str:
    """Return a value for a message: shortened, and in ASCII, because it may have characters that can't be
    printed.
    """
    text = str(value) if isinstance(value, decimal.Decimal) else ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def find_reader(node: Plain) -> Callable[[Any], Any]:
    match node:
        case Enum(symbols):
            return partial(_read_symbol, frozenset(symbols), ", ".join(symbols))
        case Decimal():
            return partial(_read_decimal, node)
        case Fixed(size):
            return partial(_read_bytes, size)
    if node.kind in _TIME_KINDS:
        return partial(_read_time_or_explain, node.kind)
    if node.kind in _INTEGERS:
        return partial(_read_integer, node.kind)
    return _OTHERS.get(node.kind, _read_text)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid(f"expected a string, found {show_value(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            position = error.start + 1
            raise Invalid(
                f"character {position} is a lone surrogate, which is no valid text: {show_value(value)}"
            ) from error
    return value


def _read_symbol(symbols: frozenset[str], symbol_list: str, value: Any) -> str:
    if not isinstance(value, str) or value not in symbols:
        raise Invalid(f"expected one of {symbol_list}, found {show_value(value)}")
    return value


def _read_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"expected true or false, found {show_value(value)}")
    return value


def _read_integer(kind: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid(f"expected a whole number, found {show_value(value)}")
    if not -(1 << _INTEGERS[kind]) <= value < 1 << _INTEGERS[kind]:
        raise Invalid(f"{show_value(value)} does not fit {kind}, which has {_INTEGERS[kind] + 1} bits")
    return value


def _read_double(value: Any) -> float:
    if not isinstance(value, int | decimal.Decimal) or isinstance(value, bool):
        raise Invalid(f"expected a number, found {show_value(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Invalid(f"{show_value(value)} does not fit double")
    return number


def _read_float(value: Any) -> float:
    number = _read_double(value)
    try:
        struct.pack("<f", number)
    except OverflowError:
        raise Invalid(f"{show_value(value)} does not fit float") from None
    return number


def _read_decimal(node: Decimal, value: Any) -> decimal.Decimal:
    if not isinstance(value, int | str | decimal.Decimal) or isinstance(value, bool):
        raise Invalid(f"expected a number, or a number as text, found {show_value(value)}")
    try:
        number = decimal.Decimal(value)
    except (decimal.InvalidOperation, ValueError):
        if not isinstance(value, str) or (value.isprintable() and value.isascii()):
            raise Invalid(f"expected a number, or a number as text, found {show_value(value)}") from None
        return read_decimal_bytes(node, value)
    return _fit_decimal(node, number, value)


def read_encoded_decimal(node: Decimal, value: Any) -> decimal.Decimal:
    if isinstance(value, str) and "." not in value:
        return read_decimal_bytes(node, value)
    return _read_decimal(node, value)


def read_decimal_bytes(node: Decimal, value: Any) -> decimal.Decimal:
    """Read the bytes of a decimal's digits, the most significant one first, in two's complement."""
    unscaled = int.from_bytes(_read_bytes(None, value), "big", signed=True)
    return _fit_decimal(node, decimal.Decimal(unscaled).scaleb(-node.scale, context=_WIDE), value)


def _fit_decimal(node: Decimal, number: decimal.Decimal, value: Any) -> decimal.Decimal:
    if not number.is_finite() or (number and number.adjusted() >= node.precision - node.scale):
        raise Invalid(f"{show_value(value)} does not fit decimal({node.precision}, {node.scale})")
    exact = (number or decimal.Decimal(0)).quantize(decimal.Decimal(1).scaleb(-node.scale), context=_WIDE)
    if exact != number:
        raise Invalid(
            f"{show_value(value)} has more than the {node.scale} decimals that decimal({node.precision}, "
            f"{node.scale}) keeps"
        )
    return exact


def _read_bytes(size: int | None, value: Any) -> bytes:
    try:
        data = _read_text(value).encode("latin-1")
    except UnicodeEncodeError:
        raise Invalid(
            f"expected bytes as characters up to U+00FF (Avro's JSON encoding), found {show_value(value)}"
        ) from None
    if size is not None and len(data) != size:
        raise Invalid(f"expected {size} bytes, found {len(data)}")
    return data


def _read_uuid(value: Any) -> str:
    """Return the text as it was sent: the column is text, and nothing rewrites it."""
    text = _read_text(value)
    try:
        uuid.UUID(text)
    except ValueError:
        raise Invalid(f"expected a UUID, found {show_value(value)}") from None
    return text


def _read_time_or_explain(kind: str, value: Any) -> Any:
    try:
        return _read_time(kind, value)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"{error}, found {show_value(value)}") from None


_OTHERS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _read_boolean,
    "float": _read_float,
    "double": _read_double,
    "bytes": partial(_read_bytes, None),
    "uuid": _read_uuid,
}


def _read_time(kind: str, value: Any) -> Any:
    """Read a value of `kind`, one of _TIME_KINDS.

    Instants are returned in UTC. Raises ValueError with what was expected.
    """
    if kind == "date":
        return _read_text_or_number(
            value, date.fromisoformat, _read_days, "expected a date such as 2026-11-02, or days since 1970"
        )
    time_type, _, unit = kind.rpartition("-")
    step = _UNITS[unit]
    years = "in the years 1 to 9999"
    match time_type:
        case "time":
            expectation = f"expected a time such as 10:15:00, without an offset, or {unit} since midnight"
            parsed = _read_text_or_number(
                value, _parse_clock_time, lambda number: _to_time_of_day(number * step), expectation
            )
        case "timestamp":
            expectation = (
                f"expected a timestamp {years}, with Z or an offset, such as 2026-11-02T10:15:00Z, or "
                f"{unit} since 1970"
            )
            parsed = _read_text_or_number(
                value, _parse_instant, lambda number: _EPOCH + number * step, expectation
            )
        case _:
            expectation = (
                f"expected a timestamp {years}, without an offset, such as 2026-11-02T10:15:00, or {unit} "
                "since 1970"
            )
            parsed = _read_text_or_number(
                value,
                _parse_local_time,
                lambda number: (_EPOCH + number * step).replace(tzinfo=None),
                expectation,
            )
    return parsed if unit == "micros" else parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)


def _read_text_or_number(
    value: Any, from_text: Callable[[str], Any], from_number: Callable[[int], Any], expectation: str
) -> Any:
    try:
        if isinstance(value, str):
            return from_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return from_number(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(expectation)


def _read_days(days: int) -> date:
    return (_EPOCH + days * _DAY).date()


def _parse_clock_time(text: str) -> time:
    parsed = time.fromisoformat(text)
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed


def _to_time_of_day(since_midnight: timedelta) -> time:
    if not timedelta(0) <= since_midnight < _DAY:
        raise ValueError
    return (_EPOCH + since_midnight).time()


def _parse_instant(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError
    return parsed.astimezone(UTC)


def _parse_local_time(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed
