"""Converts JSON values to values of an Avro type, and reports every mistake with the path of its field.

In addition to Avro's JSON encoding, it accepts ISO 8601 text for a date, a time or a timestamp (an instant
needs Z or an offset; digits beyond the field's precision are truncated, as by Avro's serializers), and text
or a number for a decimal. Numbers with a fraction must be decimal.Decimal, so that no digit is lost. A
nullable field takes its value directly, or in Avro's encoding, which names the type: {"string": "x"}; a value
that fits both counts as given directly. In a union of several types the branch is always named.

A text for a decimal is a number if it looks like one, and Avro's bytes if it has characters that can't be
printed or aren't ASCII. Inside {"bytes": …} of a nullable field, which only Avro's encoding has, it is a
number only if it has a decimal point.
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
Plain = Scalar | Enum | Decimal | Fixed

_INTEGERS: Final = {"int": 31, "long": 63}
#: Wide enough for any decimal of Iceberg, so that quantizing never rounds silently.
_WIDE: Final = decimal.Context(prec=100, traps=[decimal.InvalidOperation])
_SHOWN: Final = 40
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"millis": timedelta(milliseconds=1), "micros": timedelta(microseconds=1)}
_DAY: Final = timedelta(days=1)
_TIME_KINDS: Final = frozenset(
    ("date", *(f"{kind}-{unit}" for kind in ("time", "timestamp", "local-timestamp") for unit in _UNITS))
)


class _Invalid(Exception):
    """The message says what is wrong with a value."""


def decoder(node: Node, ignore_unknown: bool = False) -> Decoder:
    """Return a function that converts a JSON value, given its path and a Report. Ignore its result if it
    reported a mistake.

    With `ignore_unknown`, fields that a record's schema doesn't have are left out instead of reported.
    """
    decode = _decoder(node, partial(decoder, ignore_unknown=ignore_unknown), ignore_unknown)
    return _NullableDecoder(node, decode) if node.nullable else partial(_not_null, decode)


def _default_decoder(node: Node) -> Decoder:
    """Return a decoder of Avro's defaults: a union's is a value of its first branch, and a decimal's are
    bytes.
    """
    match node:
        case Union(branches):
            decode: Decoder = partial(
                _first_branch, branches[0].avro_name, _default_decoder(branches[0].node)
            )
        case Decimal():
            decode = partial(_plain, partial(_decimal_bytes, node))
        case _:
            decode = _decoder(node, _default_decoder)
    return lambda value, path, report: None if value is None else decode(value, path, report)


def _decoder(node: Node, decoder_of: Callable[[Node], Decoder], ignore_unknown: bool = False) -> Decoder:
    """Return the decoder of a value that isn't null. `decoder_of` makes those of the values inside it."""
    match node:
        case Struct():
            return _RecordDecoder(node, decoder_of, ignore_unknown)
        case Array(items):
            return partial(_array, decoder_of(items))
        case Map(values):
            return (
                partial(_array, decoder_of(node.entry)) if node.entry else partial(_map, decoder_of(values))
            )
        case Union():
            return _UnionDecoder(node, decoder_of)
        case _:
            return partial(_plain, _reader(node))


def shown(value: Any) -> str:
    """Return a value for a message: shortened, and in ASCII, because it may have characters that can't be
    printed.
    """
    text = str(value) if isinstance(value, decimal.Decimal) else ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _not_null(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    return (
        report(path, "is null, and the schema requires a value")
        if value is None
        else decode(value, path, report)
    )


class _NullableDecoder:
    """Takes null, the value itself, or Avro's encoding: an object that names the value's type."""

    def __init__(self, node: Node, decode: Decoder) -> None:
        self._decode = decode
        self._decode_encoded = (
            partial(_plain, partial(_encoded_decimal, node)) if isinstance(node, Decimal) else decode
        )
        fields = [field.name for field in node.fields] if isinstance(node, Struct) else []
        #: Avro's name of the type. A named type may also be called by its name without the namespace.
        self._names = {node.branch, node.branch.rpartition(".")[2]} - {"", *fields}
        self._may_be_direct = isinstance(node, Map)

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= self._names:
            return self._decode(value, path, report)
        mistakes: list[str] = []
        if self._may_be_direct:
            direct = self._decode(value, path, lambda _path, problem: mistakes.append(problem))
            if not mistakes:
                return direct
        ((_, encoded),) = value.items()
        return self._decode_encoded(encoded, path, report)


def _first_branch(name: str, decode: Decoder, value: Any, path: str, report: Report) -> Any:
    return name, decode(value, path, report)


class _RecordDecoder:
    def __init__(self, node: Struct, decoder_of: Callable[[Node], Decoder], ignore_unknown: bool) -> None:
        self._fields = {field.name: (decoder_of(field.node), field) for field in node.fields}
        self._ignore_unknown = ignore_unknown

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if not isinstance(value, Mapping):
            return report(path, f"expected an object, found {shown(value)}")
        prefix = f"{path}." if path else ""
        if not self._ignore_unknown and not value.keys() <= self._fields.keys():
            for unknown in (name for name in value if name not in self._fields):
                report(
                    prefix + ascii(unknown)[1:-1],
                    f"is not in the schema, which has {', '.join(self._fields)} here",
                )
        return {name: self._field(name, value, prefix, report) for name in self._fields}

    def _field(self, name: str, value: Mapping[str, Any], prefix: str, report: Report) -> Any:
        decode, field = self._fields[name]
        if name in value:
            return decode(value[name], prefix + name, report)
        if not field.has_default:
            return report(prefix + name, "is missing, and the schema has no default for it")
        return _default_decoder(field.node)(field.default, prefix + name, report)


def _array(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, list):
        return report(path, f"expected an array, found {shown(value)}")
    return [decode(item, f"{path}[{number}]", report) for number, item in enumerate(value)]


def _map(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, Mapping):
        return report(path, f"expected an object, found {shown(value)}")
    return {key: decode(item, f"{path}{{{shown(key)}}}", report) for key, item in value.items()}


class _UnionDecoder:
    def __init__(self, node: Union, decoder_of: Callable[[Node], Decoder]) -> None:
        self._branches: dict[str, tuple[Branch, Decoder]] = {}
        for branch in node.branches:
            decode = decoder_of(branch.node)
            self._branches |= {name: (branch, decode) for name in (branch.avro_name, branch.column)}

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= self._branches.keys():
            names = ", ".join(branch.avro_name for branch, _ in dict.fromkeys(self._branches.values()))
            return report(
                path,
                f'expected an object that names one of {names}, as in {{"{names.split(",")[0]}": …}}, '
                f"found {shown(value)}",
            )
        ((name, inner),) = value.items()
        branch, decode = self._branches[name]
        return branch.avro_name, decode(inner, path, report)


def _plain(read: Callable[[Any], Any], value: Any, path: str, report: Report) -> Any:
    try:
        return read(value)
    except _Invalid as wrong:
        return report(path, str(wrong))


def _reader(node: Plain) -> Callable[[Any], Any]:
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
            raise _Invalid(
                f"character {error.start + 1} is a lone surrogate, which is no valid text: {shown(value)}"
            ) from error
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
        if not isinstance(value, str) or (value.isprintable() and value.isascii()):
            raise _Invalid(f"expected a number, or a number as text, found {shown(value)}") from None
        return _decimal_bytes(node, value)
    return _exact(node, number, value)


def _encoded_decimal(node: Decimal, value: Any) -> decimal.Decimal:
    return (
        _decimal(node, value) if not isinstance(value, str) or "." in value else _decimal_bytes(node, value)
    )


def _decimal_bytes(node: Decimal, value: Any) -> decimal.Decimal:
    """Read the bytes of a decimal's digits, the most significant one first, in two's complement."""
    unscaled = int.from_bytes(_bytes(None, value), "big", signed=True)
    return _exact(node, decimal.Decimal(unscaled).scaleb(-node.scale, context=_WIDE), value)


def _exact(node: Decimal, number: decimal.Decimal, value: Any) -> decimal.Decimal:
    if not number.is_finite() or (number and number.adjusted() >= node.precision - node.scale):
        raise _Invalid(f"{shown(value)} does not fit decimal({node.precision}, {node.scale})")
    exact = (number or decimal.Decimal(0)).quantize(decimal.Decimal(1).scaleb(-node.scale), context=_WIDE)
    if exact != number:
        raise _Invalid(
            f"{shown(value)} has more than the {node.scale} decimals that decimal({node.precision}, "
            f"{node.scale}) keeps"
        )
    return exact


def _bytes(size: int | None, value: Any) -> bytes:
    try:
        data = _text(value).encode("latin-1")
    except UnicodeEncodeError:
        raise _Invalid(
            f"expected bytes as characters up to U+00FF (Avro's JSON encoding), found {shown(value)}"
        ) from None
    if size is not None and len(data) != size:
        raise _Invalid(f"expected {size} bytes, found {len(data)}")
    return data


def _uuid(value: Any) -> str:
    """Return the text as it was sent: the column is text, and nothing rewrites it."""
    text = _text(value)
    try:
        uuid.UUID(text)
    except ValueError:
        raise _Invalid(f"expected a UUID, found {shown(value)}") from None
    return text


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
    """Read a value of `kind`, one of _TIME_KINDS.

    Instants are returned in UTC. Raises ValueError with what was expected.
    """
    if kind == "date":
        return _read(
            value, date.fromisoformat, _date, "expected a date such as 2026-11-02, or days since 1970"
        )
    what, _, unit = kind.rpartition("-")
    step = _UNITS[unit]
    years = "in the years 1 to 9999"
    match what:
        case "time":
            wanted = f"expected a time such as 10:15:00, without an offset, or {unit} since midnight"
            parsed = _read(value, _clock, lambda number: _time_of_day(number * step), wanted)
        case "timestamp":
            wanted = (
                f"expected a timestamp {years}, with Z or an offset, such as 2026-11-02T10:15:00Z, or "
                f"{unit} since 1970"
            )
            parsed = _read(value, _instant, lambda number: _EPOCH + number * step, wanted)
        case _:
            wanted = (
                f"expected a timestamp {years}, without an offset, such as 2026-11-02T10:15:00, or {unit} "
                "since 1970"
            )
            parsed = _read(
                value, _local, lambda number: (_EPOCH + number * step).replace(tzinfo=None), wanted
            )
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
