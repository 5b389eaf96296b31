"""Converts JSON values to values of an Avro type, and reports every mistake with the path of its field.

In addition to Avro's JSON encoding, it accepts ISO 8601 text for a date, a time or a timestamp (an instant needs Z or an
offset; digits beyond the field's precision are truncated, as by Avro's serializers), and text or a number for a decimal.
Numbers with a fraction must be decimal.Decimal, so that no digit is lost. A nullable field takes its value directly; in a
union of several types the branch is named: {"string": "x"}.
"""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final

from simulators.tableflow.avro import Array, Branch, Decimal, Enum, Fixed, Map, Node, Scalar, Struct, Union

#: Is called with the path of the field and the problem.
Report = Callable[[str, str], None]
Decoder = Callable[[Any, str, Report], Any]

_INTEGERS: Final = {"int": 31, "long": 63}
#: Wide enough for any decimal of Iceberg, so that quantizing never rounds silently.
_WIDE: Final = decimal.Context(prec=100, traps=[decimal.InvalidOperation])
_SHOWN: Final = 40
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"millis": timedelta(milliseconds=1), "micros": timedelta(microseconds=1)}
_DAY: Final = timedelta(days=1)
_TIME_KINDS: Final = frozenset(
    ("date", *(f"{what}-{unit}" for what in ("time", "timestamp", "local-timestamp") for unit in _UNITS))
)


class _Invalid(Exception):
    """The message says what is wrong with a value."""


def decoder(node: Node) -> Decoder:
    """Return a function that converts a JSON value, given its path and a Report. Ignore its result if it reported a mistake."""
    match node:
        case Struct():
            decode: Decoder = _RecordDecoder(node)
        case Array(items):
            decode = partial(_array, decoder(items))
        case Map(values):
            decode = partial(_map, decoder(values))
        case Union():
            decode = _UnionDecoder(node)
        case _:
            decode = partial(_plain, _reader(node))
    return partial(_not_null, decode, node.nullable)


def shown(value: Any) -> str:
    """Return a value for a message: shortened, and in ASCII, because it may have characters that can't be printed."""
    text = str(value) if isinstance(value, decimal.Decimal) else ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _not_null(decode: Decoder, nullable: bool, value: Any, path: str, report: Report) -> Any:
    if value is not None:
        return decode(value, path, report)
    if not nullable:
        report(path, "is null, and the schema requires a value")
    return None


class _RecordDecoder:
    def __init__(self, node: Struct) -> None:
        self._fields = {each.name: (decoder(each.node), each) for each in node.fields}
        self._first_branch = {each.name: each.node.branches[0] for each in node.fields if isinstance(each.node, Union)}

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if not isinstance(value, Mapping):
            return report(path, f"expected an object, found {shown(value)}")
        prefix = f"{path}." if path else ""
        if not value.keys() <= self._fields.keys():
            for unknown in (name for name in value if name not in self._fields):
                report(prefix + ascii(unknown)[1:-1], f"is not in the schema, which has {', '.join(self._fields)} here")
        return {name: self._field(name, value, prefix, report) for name in self._fields}

    def _field(self, name: str, value: Mapping[str, Any], prefix: str, report: Report) -> Any:
        decode, field = self._fields[name]
        if name in value:
            return decode(value[name], prefix + name, report)
        if not field.has_default:
            return report(prefix + name, "is missing, and the schema has no default for it")
        default = field.default
        if name in self._first_branch and default is not None:
            default = {self._first_branch[name].avro_name: default}
        return decode(default, prefix + name, report)


def _array(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, list):
        return report(path, f"expected an array, found {shown(value)}")
    return [decode(each, f"{path}[{number}]", report) for number, each in enumerate(value)]


def _map(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, Mapping):
        return report(path, f"expected an object, found {shown(value)}")
    return {key: decode(each, f"{path}{{{shown(key)}}}", report) for key, each in value.items()}


class _UnionDecoder:
    def __init__(self, node: Union) -> None:
        self._branches: dict[str, tuple[Branch, Decoder]] = {}
        for each in node.branches:
            self._branches |= {name: (each, decoder(each.node)) for name in (each.avro_name, each.column)}

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= self._branches.keys():
            names = ", ".join(branch.avro_name for branch, _ in dict.fromkeys(self._branches.values()))
            return report(
                path, f'expected an object that names one of {names}, as in {{"{names.split(",")[0]}": …}}, found {shown(value)}'
            )
        ((name, inner),) = value.items()
        branch, decode = self._branches[name]
        return branch.avro_name, decode(inner, path, report)


def _plain(read: Callable[[Any], Any], value: Any, path: str, report: Report) -> Any:
    try:
        return read(value)
    except _Invalid as wrong:
        return report(path, str(wrong))


def _reader(node: Scalar | Enum | Decimal | Fixed) -> Callable[[Any], Any]:
    match node:
        case Enum(symbols):
            return partial(_symbol, frozenset(symbols), ", ".join(symbols))
        case Decimal():
            return partial(_decimal, node)
        case Fixed(size):
            return partial(_bytes, size)
    if node.kind in _TIME_KINDS:
        return partial(_time, node.kind)
    if node.kind in _INTEGERS:
        return partial(_integer, node.kind)
    return _OTHERS.get(node.kind, _text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Invalid(f"expected a string, found {shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _Invalid(f"character {error.start + 1} is a lone surrogate, which is no valid text: {shown(value)}") from error
    return value


def _symbol(symbols: frozenset[str], listed: str, value: Any) -> str:
    if not isinstance(value, str) or value not in symbols:
        raise _Invalid(f"expected one of {listed}, found {shown(value)}")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Invalid(f"expected true or false, found {shown(value)}")
    return value


def _integer(kind: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Invalid(f"expected a whole number, found {shown(value)}")
    if not -(1 << _INTEGERS[kind]) <= value < 1 << _INTEGERS[kind]:
        raise _Invalid(f"{shown(value)} does not fit {kind}, which has {_INTEGERS[kind] + 1} bits")
    return value


def _double(value: Any) -> float:
    if not isinstance(value, int | decimal.Decimal) or isinstance(value, bool):
        raise _Invalid(f"expected a number, found {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Invalid(f"{shown(value)} does not fit double")
    return number


def _float(value: Any) -> float:
    number = _double(value)
    try:
        struct.pack("<f", number)
    except OverflowError:
        raise _Invalid(f"{shown(value)} does not fit float") from None
    return number


def _decimal(node: Decimal, value: Any) -> decimal.Decimal:
    if not isinstance(value, int | str | decimal.Decimal) or isinstance(value, bool):
        raise _Invalid(f"expected a number, or a number as text, found {shown(value)}")
    try:
        number = decimal.Decimal(value)
    except (decimal.InvalidOperation, ValueError):
        raise _Invalid(f"expected a number, or a number as text, found {shown(value)}") from None
    if not number.is_finite() or (number and number.adjusted() >= node.precision - node.scale):
        raise _Invalid(f"{shown(value)} does not fit decimal({node.precision}, {node.scale})")
    exact = (number or decimal.Decimal(0)).quantize(decimal.Decimal(1).scaleb(-node.scale), context=_WIDE)
    if exact != number:
        raise _Invalid(
            f"{shown(value)} has more than the {node.scale} decimals that decimal({node.precision}, {node.scale}) keeps"
        )
    return exact


def _bytes(size: int | None, value: Any) -> bytes:
    try:
        data = _text(value).encode("latin-1")
    except UnicodeEncodeError:
        raise _Invalid(f"expected bytes as characters up to U+00FF (Avro's JSON encoding), found {shown(value)}") from None
    if size is not None and len(data) != size:
        raise _Invalid(f"expected {size} bytes, found {len(data)}")
    return data


def _uuid(value: Any) -> str:
    try:
        return str(uuid.UUID(_text(value)))
    except ValueError:
        raise _Invalid(f"expected a UUID, found {shown(value)}") from None


def _time(kind: str, value: Any) -> Any:
    try:
        return _read_time(kind, value)
    except (ValueError, OverflowError) as error:
        raise _Invalid(f"{error}, found {shown(value)}") from None


_OTHERS: Final[dict[str, Callable[[Any], Any]]] = {
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "bytes": partial(_bytes, None),
    "uuid": _uuid,
}


def _read_time(kind: str, value: Any) -> Any:
    """Read a value of `kind`, one of _TIME_KINDS. Instants are returned in UTC. Raises ValueError with what was expected."""
    if kind == "date":
        return _read(value, date.fromisoformat, _date, "expected a date such as 2026-11-02, or days since 1970")
    what, _, unit = kind.rpartition("-")
    step = _UNITS[unit]
    years = "in the years 1 to 9999"
    match what:
        case "time":
            wanted = f"expected a time such as 10:15:00, without an offset, or {unit} since midnight"
            parsed = _read(value, _clock, lambda number: _time_of_day(number * step), wanted)
        case "timestamp":
            wanted = f"expected a timestamp {years}, with Z or an offset, such as 2026-11-02T10:15:00Z, or {unit} since 1970"
            parsed = _read(value, _instant, lambda number: _EPOCH + number * step, wanted)
        case _:
            wanted = f"expected a timestamp {years}, without an offset, such as 2026-11-02T10:15:00, or {unit} since 1970"
            parsed = _read(value, _local, lambda number: (_EPOCH + number * step).replace(tzinfo=None), wanted)
    return parsed if unit == "micros" else parsed.replace(microsecond=parsed.microsecond // 1000 * 1000)


def _read(value: Any, from_text: Callable[[str], Any], from_number: Callable[[int], Any], wanted: str) -> Any:
    try:
        if isinstance(value, str):
            return from_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return from_number(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(wanted)


def _date(days: int) -> date:
    return (_EPOCH + days * _DAY).date()


def _clock(text: str) -> time:
    parsed = time.fromisoformat(text)
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed


def _time_of_day(since_midnight: timedelta) -> time:
    if not timedelta(0) <= since_midnight < _DAY:
        raise ValueError
    return (_EPOCH + since_midnight).time()


def _instant(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError
    return parsed.astimezone(UTC)


def _local(text: str) -> datetime:
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed
