"""Resolves a topic's Avro schema: looks up named types, makes unions with null nullable, and recognises logical types.

The names of union branches, and the refusal of recursive types and of null as the only type, follow Confluent's public
AvroToLogicalTypeConverter (repository confluentinc/schema-registry), which says more than Tableflow's table of types.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import fastavro

_PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
_LOGICAL: Final = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
    ),
    "string": ("uuid",),
}
_NANOS: Final = ("timestamp-nanos", "local-timestamp-nanos")
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_PRECISION: Final = 38


class SchemaError(Exception):
    """A schema that can't become a table. The message says which part, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """`kind` is the logical type, or the Avro primitive if there is none."""

    kind: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    size: int
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Enum:
    symbols: tuple[str, ...]
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    items: Node
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    values: Node
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    node: Node
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]
    nullable: bool = False

    def __getitem__(self, name: str) -> Node:
        return next(each.node for each in self.fields if each.name == name)


@dataclass(frozen=True, slots=True)
class Union:
    """A union of several types besides null; a value is the pair of a branch's Avro name and the bare value."""

    branches: tuple[Branch, ...]
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """`column` names the branch in the table, `avro_name` in Avro's JSON encoding and in fastavro."""

    column: str
    avro_name: str
    node: Node


Node = Scalar | Fixed | Decimal | Enum | Array | Map | Struct | Union


def resolve(schema: Mapping[str, Any]) -> Struct:
    """Resolve the schema. Raises SchemaError, which names the field, if it isn't valid Avro or can't become a table."""
    try:
        # fastavro modifies its argument
        parsed = fastavro.parse_schema(copy.deepcopy(dict(schema)), _write_hint=False)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError, ValueError) as error:
        raise SchemaError(f"not a valid Avro schema: {type(error).__name__} {error}") from error
    root = _Resolver().node(parsed, ())
    if not isinstance(root, Struct):
        raise SchemaError("a topic's value must be a record at the top, so that its fields can be columns")
    return root


class _Resolver:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def node(self, schema: Any, path: tuple[str, ...]) -> Node:
        if isinstance(schema, list):
            return self._union(schema, path)
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        if not isinstance(schema["type"], str):
            return self.node(schema["type"], path)
        if "name" in schema:
            self._named[schema["name"]] = schema
        return self._nested(schema, path) or _plain(schema, path)

    def _nested(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Node | None:
        match schema["type"]:
            case "record" | "error":
                return self._record(schema, path)
            case "array":
                return Array(self.node(schema["items"], (*path, "[]")))
            case "map":
                return Map(self.node(schema["values"], (*path, "{}")))
        return None

    def _record(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Struct:
        name = schema["name"]
        if name in self._open:
            raise _refused(path, f"record {name} contains itself, and a table has no recursive types. Flatten it first")
        self._open.append(name)
        fields = tuple(self._field(each, path) for each in schema["fields"])
        self._open.pop()
        names = [each.name for each in fields]
        if not fields or len(set(names)) < len(names):
            raise _refused(path, f"record {name} has no fields, or two of one name, and a table can have neither")
        return Struct(fields)

    def _field(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Field:
        path = (*path, schema["name"])
        if not _AVRO_NAME.fullmatch(schema["name"]):
            raise _refused(path, "Avro takes letters, digits and '_' in a name, and no digit at its start")
        return Field(schema["name"], self.node(schema["type"], path), schema.get("default"), "default" in schema)

    def _union(self, schemas: list[Any], path: tuple[str, ...]) -> Node:
        wanted = [each for each in schemas if _name_of(each) != "null"]
        nullable = len(wanted) < len(schemas)
        if not wanted:
            raise _refused(path, "the type is null alone, which no column can hold")
        nodes = [self.node(each, path) for each in wanted]
        if len(nodes) == 1:
            return replace(nodes[0], nullable=nullable)
        names = [_name_of(each) for each in wanted]
        short = [name.rpartition(".")[2] for name in names]
        columns = [one if short.count(one) == 1 else name for name, one in zip(names, short, strict=True)]
        return Union(tuple(map(Branch, columns, names, nodes)), nullable)


def _name_of(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or _name_of(schema["type"]))


def _plain(schema: Mapping[str, Any], path: tuple[str, ...]) -> Node:
    kind, logical = schema["type"], schema.get("logicalType")
    match kind:
        case "enum":
            return Enum(tuple(schema["symbols"]))
        case "bytes" | "fixed" if logical == "decimal":
            return _decimal(schema.get("precision"), schema.get("scale", 0), path)
        case "fixed":
            return Fixed(schema["size"])
    if kind not in _PRIMITIVES:
        raise _refused(path, f"the type is {kind!r}, which no column can hold")
    if logical in _NANOS:
        raise _refused(path, f"{logical} needs Iceberg format 3, and Tableflow writes format 2. Use microseconds")
    # The Avro specification: a logical type that is unknown or doesn't fit its type is ignored.
    return Scalar(logical if logical in _LOGICAL.get(kind, ()) else kind)


def _decimal(precision: Any, scale: Any, path: tuple[str, ...]) -> Decimal:
    if precision not in range(1, _MAX_PRECISION + 1) or scale not in range(precision + 1):
        limits = f"which takes a precision of 1 to {_MAX_PRECISION} and a scale up to it"
        raise _refused(path, f"Iceberg has no decimal({precision}, {scale}), {limits}")
    return Decimal(precision, scale)


def _refused(path: tuple[str, ...], problem: str) -> SchemaError:
    return SchemaError(f"field {'.'.join(path) or '(top)'}: {problem}")
