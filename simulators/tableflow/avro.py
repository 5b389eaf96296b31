"""Resolves a topic's Avro schema: looks up named types, makes unions with null nullable, and recognises
logical types.

What becomes a decimal, a map or a branch of a union, the names of branches, and the refusal of recursive
types and of null as the only type follow Confluent's public AvroToLogicalTypeConverter (repository
confluentinc/schema-registry), which says more than Tableflow's table of types. What makes a schema valid
follows the Avro specification.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import fastavro

_PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
_RECORDS: Final = ("record", "error")
_NAMED: Final = (*_RECORDS, "enum", "fixed")
_TYPES: Final = ("null", *_PRIMITIVES, *_NAMED, "array", "map")
_NANOS: Final = ("timestamp-nanos", "local-timestamp-nanos")
#: The logical types of each Avro type. The Avro specification: one that is unknown, or that doesn't fit its
#: type, is ignored.
_LOGICAL: Final = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
        *_NANOS,
    ),
    "string": ("uuid",),
    "bytes": ("decimal",),
    "fixed": ("decimal",),
    "array": ("map",),
}
_AVRO_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMES: Final = "Avro takes letters, digits and '_' in a name, and no digit at its start"
_MAX_PRECISION: Final = 38
#: The precision that Confluent's converter takes if the schema has none.
_DEFAULT_PRECISION: Final = 10
#: The record with which Kafka Connect encodes a map whose keys aren't text, as an array.
_MAP_ENTRY: Final = "io.confluent.connect.avro.MapEntry"


class SchemaError(Exception):
    """A schema that can't become a table. The message says which part, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nullable:
    """`branch` is the name in Avro's JSON encoding of a type that is in a union with null only."""

    nullable: bool = False
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Scalar(_Nullable):
    """`kind` is the logical type, or the Avro primitive if there is none."""

    kind: str


@dataclass(frozen=True, slots=True)
class Fixed(_Nullable):
    size: int


@dataclass(frozen=True, slots=True)
class Decimal(_Nullable):
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Enum(_Nullable):
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Array(_Nullable):
    items: Node


@dataclass(frozen=True, slots=True)
class Map(_Nullable):
    """`entry` is the record of a key and a value if Avro has the map as an array of records; otherwise keys
    are text.
    """

    values: Node
    entry: Struct | None = None


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    node: Node
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class Struct(_Nullable):
    fields: tuple[Field, ...]

    def __getitem__(self, name: str) -> Node:
        return next(field.node for field in self.fields if field.name == name)


@dataclass(frozen=True, slots=True)
class Union(_Nullable):
    """A union of several types besides null; a value is the pair of a branch's Avro name and the bare
    value.
    """

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """`column` names the branch in the table, `avro_name` in Avro's JSON encoding and in fastavro."""

    column: str
    avro_name: str
    node: Node


Node = Scalar | Fixed | Decimal | Enum | Array | Map | Struct | Union


def resolve(schema: Mapping[str, Any]) -> Struct:
    """Resolve the schema.

    Raises SchemaError, which names the field, if it isn't valid Avro or can't become a table.
    """
    try:
        parsed = parse(schema)
    except RecursionError:
        raise SchemaError("not a valid Avro schema: it is nested too deep") from None
    except (fastavro.schema.SchemaParseException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"not a valid Avro schema: {type(error).__name__} {error}") from error
    root = _Resolver().resolve(parsed, ())
    if not isinstance(root, Struct):
        raise SchemaError("a topic's value must be a record at the top, so that its fields can be columns")
    return root


def parse(schema: Mapping[str, Any]) -> Any:
    """Return the schema as fastavro reads and writes values with it.

    Raises exceptions of fastavro, and SchemaError.
    """
    # fastavro modifies its argument
    return fastavro.parse_schema(_normalize_schema(copy.deepcopy(dict(schema))), _write_hint=False)


def _normalize_schema(schema: Any) -> Any:
    """Return the schema with plain types in the place of objects that only wrap one, and without ineffective
    logical types.
    """
    if isinstance(schema, list):
        return [_normalize_schema(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema["type"]
    if not isinstance(kind, str) or kind not in _TYPES:
        return _normalize_schema(kind)
    schema = schema | {key: _normalize_schema(schema[key]) for key in ("items", "values") if key in schema}
    if kind in _RECORDS:
        schema["fields"] = [field | {"type": _normalize_schema(field["type"])} for field in schema["fields"]]
    logical = str(schema.pop("logicalType", None)).lower()
    if logical not in _LOGICAL.get(kind, ()):
        return schema
    if logical == "decimal" and schema.get("precision") is None:
        schema["precision"] = _DEFAULT_PRECISION
    if logical == "decimal" and not _is_whole(schema.get("scale")):
        schema["scale"] = 0
    return schema | {"logicalType": logical}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Resolver:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def resolve(self, schema: Any, path: tuple[str, ...]) -> Node:
        if isinstance(schema, list):
            return self._resolve_union(schema, path)
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        if "name" in schema:
            if not all(map(_AVRO_NAME.fullmatch, schema["name"].split("."))):
                raise _build_refusal(path, f"{schema['name']} is no name of a type: {_NAMES}")
            self._named[schema["name"]] = schema
        return self._resolve_nested(schema, path) or _read_plain_type(schema, path)

    def _resolve_nested(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Node | None:
        match schema["type"]:
            case "record" | "error":
                return self._resolve_record(schema, path)
            case "array":
                items = self.resolve(schema["items"], (*path, "[]"))
                return _read_map(items, path) if self._is_map(schema) else Array(items)
            case "map":
                return Map(self.resolve(schema["values"], (*path, "{}")))
        return None

    def _is_map(self, array: Mapping[str, Any]) -> bool:
        """Return whether an array is a map whose entries are records of a key and a value."""
        items = array["items"]
        entry = self._named.get(items) if isinstance(items, str) else items
        if not isinstance(entry, dict) or entry["type"] not in _RECORDS:
            return False
        is_marked = entry.get("connect.internal.type") == "MapEntry" or array.get("logicalType") == "map"
        return is_marked or entry["name"] == _MAP_ENTRY

    def _resolve_record(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Struct:
        name = schema["name"]
        if name in self._open:
            raise _build_refusal(
                path, f"record {name} contains itself, and a table has no recursive types. Flatten it first"
            )
        self._open.append(name)
        fields = tuple(self._resolve_field(field, path) for field in schema["fields"])
        self._open.pop()
        names = [field.name for field in fields]
        if not fields or len(set(names)) < len(names):
            raise _build_refusal(
                path, f"record {name} has no fields, or two of one name, and a table can have neither"
            )
        return Struct(fields)

    def _resolve_field(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Field:
        path = (*path, schema["name"])
        if not _AVRO_NAME.fullmatch(schema["name"]):
            raise _build_refusal(path, _NAMES)
        return Field(
            schema["name"], self.resolve(schema["type"], path), schema.get("default"), "default" in schema
        )

    def _resolve_union(self, schemas: list[Any], path: tuple[str, ...]) -> Node:
        names = [_get_name(branch) for branch in schemas]
        if len(set(names)) < len(names) or any(isinstance(branch, list) for branch in schemas):
            raise _build_refusal(path, "a union can't have another union in it, or two branches of one type")
        value_schemas = [branch for branch in schemas if _get_name(branch) != "null"]
        nullable = len(value_schemas) < len(schemas)
        if not value_schemas:
            raise _build_refusal(path, "the type is null alone, which no column can hold")
        nodes = [self.resolve(branch, path) for branch in value_schemas]
        if len(nodes) == 1:
            return replace(nodes[0], nullable=nullable, branch=_get_name(value_schemas[0]))
        names = [_get_name(branch) for branch in value_schemas]
        columns = _name_branch_columns(names)
        if len(set(columns)) < len(columns):
            raise _build_refusal(
                path, "two branches of the union get the same column name, and a table can't have both"
            )
        return Union(tuple(map(Branch, columns, names, nodes)), nullable=nullable)


def _name_branch_columns(names: list[str]) -> list[str]:
    """Return the columns of a union's branches: short names; those that several have are in full, with _ for
    each dot.
    """
    short_names = [name.rpartition(".")[2] for name in names]
    columns = []
    for name, short_name in zip(names, short_names, strict=True):
        is_unique = short_names.count(short_name) == 1
        column = short_name if is_unique else name.replace(".", "_")
        columns.append(column)
    return columns


def _get_name(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema["type"])


def _read_map(entry: Node, path: tuple[str, ...]) -> Map:
    if not isinstance(entry, Struct) or sorted(field.name for field in entry.fields) != ["key", "value"]:
        raise _build_refusal(
            path, "the array encodes a map, and its items are not records of the fields key and value"
        )
    return Map(entry["value"], entry=entry)


def _read_plain_type(schema: Mapping[str, Any], path: tuple[str, ...]) -> Node:
    kind = schema["type"]
    logical = schema.get("logicalType")
    if logical in _NANOS:
        raise _build_refusal(
            path, f"{logical} needs Iceberg format 3, and Tableflow writes format 2. Use microseconds"
        )
    match kind:
        case "enum":
            return Enum(tuple(schema["symbols"]))
        case "bytes" | "fixed" if logical == "decimal":
            return _read_decimal(schema["precision"], schema["scale"], path)
        case "fixed":
            return _read_fixed(schema["size"], path)
    if kind not in _PRIMITIVES:
        raise _build_refusal(path, f"the type is {kind!r}, which no column can hold")
    return Scalar(logical or kind)


def _read_decimal(precision: Any, scale: int, path: tuple[str, ...]) -> Decimal:
    if (
        not _is_whole(precision)
        or precision not in range(1, _MAX_PRECISION + 1)
        or scale not in range(precision + 1)
    ):
        limits = f"which takes a precision of 1 to {_MAX_PRECISION} and a scale up to it"
        raise _build_refusal(path, f"Iceberg has no decimal({precision}, {scale}), {limits}")
    return Decimal(precision, scale)


def _read_fixed(size: Any, path: tuple[str, ...]) -> Fixed:
    if not _is_whole(size) or size < 1:
        raise _build_refusal(path, f"a fixed type of {size!r} bytes can't hold anything")
    return Fixed(size)


def _build_refusal(path: tuple[str, ...], problem: str) -> SchemaError:
    return SchemaError(f"field {'.'.join(path) or '(top)'}: {problem}")
