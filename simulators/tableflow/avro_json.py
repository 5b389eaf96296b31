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

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from simulators.tableflow.avro import Array, Branch, Decimal, Map, Node, Struct, Union
from simulators.tableflow.avro_scalars import (
    Invalid,
    find_reader,
    read_decimal_bytes,
    read_encoded_decimal,
    show_value,
)

#: Is called with the path of the field and the problem.
Report = Callable[[str, str], None]
Decoder = Callable[[Any, str, Report], Any]


def build_decoder(node: Node, ignore_unknown: bool = False) -> Decoder:
    """Return a function that converts a JSON value, given its path and a Report. Ignore its result if it
    reported a mistake.

    With `ignore_unknown`, fields that a record's schema doesn't have are left out instead of reported.
    """
    decode = _build_value_decoder(node, partial(build_decoder, ignore_unknown=ignore_unknown), ignore_unknown)
    return _NullableDecoder(node, decode) if node.nullable else partial(_decode_required, decode)


def _build_default_decoder(node: Node) -> Decoder:
    """Return a decoder of Avro's defaults: a union's is a value of its first branch, and a decimal's are
    bytes.
    """
    match node:
        case Union(branches):
            decode: Decoder = partial(
                _decode_first_branch, branches[0].avro_name, _build_default_decoder(branches[0].node)
            )
        case Decimal():
            decode = partial(_decode_scalar, partial(read_decimal_bytes, node))
        case _:
            decode = _build_value_decoder(node, _build_default_decoder)
    return lambda value, path, report: None if value is None else decode(value, path, report)


def _build_value_decoder(
    node: Node, decoder_of: Callable[[Node], Decoder], ignore_unknown: bool = False
) -> Decoder:
    """Return the decoder of a value that isn't null. `decoder_of` makes those of the values inside it."""
    match node:
        case Struct():
            return _RecordDecoder(node, decoder_of, ignore_unknown)
        case Array(items):
            return partial(_decode_array, decoder_of(items))
        case Map(values):
            if node.entry:
                return partial(_decode_array, decoder_of(node.entry))
            return partial(_decode_map, decoder_of(values))
        case Union():
            return _UnionDecoder(node, decoder_of)
        case _:
            return partial(_decode_scalar, find_reader(node))


def _decode_required(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if value is None:
        return report(path, "is null, and the schema requires a value")
    return decode(value, path, report)


class _NullableDecoder:
    """Takes null, the value itself, or Avro's encoding: an object that names the value's type."""

    def __init__(self, node: Node, decode: Decoder) -> None:
        self._decode = decode
        self._decode_encoded = decode
        if isinstance(node, Decimal):
            self._decode_encoded = partial(_decode_scalar, partial(read_encoded_decimal, node))
        #: Avro's name of the type. A named type may also be called by its name without the namespace.
        self._names = {node.branch, node.branch.rpartition(".")[2]} - {""}
        if isinstance(node, Struct):
            self._names -= {field.name for field in node.fields}
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


def _decode_first_branch(name: str, decode: Decoder, value: Any, path: str, report: Report) -> Any:
    return name, decode(value, path, report)


class _RecordDecoder:
    def __init__(self, node: Struct, decoder_of: Callable[[Node], Decoder], ignore_unknown: bool) -> None:
        self._fields = {field.name: (decoder_of(field.node), field) for field in node.fields}
        self._ignore_unknown = ignore_unknown

    def __call__(self, value: Any, path: str, report: Report) -> Any:
        if not isinstance(value, Mapping):
            return report(path, f"expected an object, found {show_value(value)}")
        prefix = f"{path}." if path else ""
        if not self._ignore_unknown and not value.keys() <= self._fields.keys():
            for unknown in (name for name in value if name not in self._fields):
                report(
                    prefix + ascii(unknown)[1:-1],
                    f"is not in the schema, which has {', '.join(self._fields)} here",
                )
        return {name: self._decode_field(name, value, prefix, report) for name in self._fields}

    def _decode_field(self, name: str, value: Mapping[str, Any], prefix: str, report: Report) -> Any:
        decode, field = self._fields[name]
        if name in value:
            return decode(value[name], prefix + name, report)
        if not field.has_default:
            return report(prefix + name, "is missing, and the schema has no default for it")
        return _build_default_decoder(field.node)(field.default, prefix + name, report)


def _decode_array(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, list):
        return report(path, f"expected an array, found {show_value(value)}")
    return [decode(item, f"{path}[{number}]", report) for number, item in enumerate(value)]


def _decode_map(decode: Decoder, value: Any, path: str, report: Report) -> Any:
    if not isinstance(value, Mapping):
        return report(path, f"expected an object, found {show_value(value)}")
    return {key: decode(item, f"{path}{{{show_value(key)}}}", report) for key, item in value.items()}


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
                f"found {show_value(value)}",
            )
        ((name, inner),) = value.items()
        branch, decode = self._branches[name]
        return branch.avro_name, decode(inner, path, report)


def _decode_scalar(read_scalar: Callable[[Any], Any], value: Any, path: str, report: Report) -> Any:
    try:
        return read_scalar(value)
    except Invalid as mistake:
        return report(path, str(mistake))
