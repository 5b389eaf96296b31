"""Reads a topic's Avro schema as the types that Tableflow's table has: named types, unions, logical types and
tags.

What becomes a decimal, a map or a branch of a union, the names of branches, and the refusal of recursive
types and of null as the only type follow Confluent's public AvroToLogicalTypeConverter (repository
confluentinc/schema-registry). What makes a schema valid follows the Avro specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs
from fastavro.schema import SchemaParseException, parse_schema

_RECORDS: Final = frozenset(("record", "error"))
_TYPES: Final = _RECORDS | frozenset(
    "null boolean int long float double bytes string enum array map fixed".split()
)
_TIMES: Final = frozenset(
    "time-micros timestamp-millis timestamp-micros timestamp-nanos local-timestamp-millis "
    "local-timestamp-micros local-timestamp-nanos".split()
)
#: The logical types of each Avro type. Avro ignores any other, so that the values are those of the plain
#: type.
_LOGICAL: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset(("date", "time-millis")),
    "long": _TIMES,
    "string": frozenset(("uuid",)),
    "bytes": frozenset(("decimal",)),
    "fixed": frozenset(("decimal",)),
    "array": frozenset(("map",)),
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: The largest number of digits of a decimal in Iceberg and Spark, and the number if the schema has none.
_MAX_PRECISION = 38
_DEFAULT_PRECISION = 10
_MAP_ENTRY: Final = "io.confluent.connect.avro.MapEntry"


class BadSchema(Exception):
    """A schema file that can't be used, with the reason in one sentence."""


@attrs.frozen
class Type:
    """The type of a field.

    `kind` is the Avro type, or the logical type where Avro has one; a union of several types besides null is
    a `union`. `fields` are those of a record or the branches of a union, `items` the items of an array or the
    values of a map, and `key` the keys of a map if they aren't text. `tagged` says whether the type itself
    has the tag PII, and `record` is the full name of a record.
    """

    kind: str
    tagged: bool = False
    nullable: bool = False
    #: Precision and scale of a decimal.
    size: tuple[int, int] | None = None
    fields: tuple[Field, ...] = ()
    items: Type | None = None
    key: Type | None = None
    record: str = ""


@attrs.frozen
class Field:
    name: str
    type: Type
    #: Whether the field has the tag PII.
    tagged: bool = False


def read(schema: Any, topic: str) -> Type:
    """Return the type of a topic's values, which is a record. Raises BadSchema."""
    if not isinstance(schema, dict) or schema.get("type") not in _RECORDS:
        raise BadSchema(f"the schema of {topic} is not an Avro record, and Tableflow needs one")
    try:
        parse_schema(_adapt_for_parser(schema))
        return _Reader().read_type(schema, "", "")
    except RecursionError:
        raise BadSchema(f"the schema of {topic} is nested too deep") from None
    except (SchemaParseException, KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadSchema(
            f"the schema of {topic} is not valid Avro ({type(error).__name__}: {error})"
        ) from error


def _adapt_for_parser(schema: Any) -> Any:
    """Return the schema in a form that fastavro accepts.

    Java also accepts types and names inside `{"type": …}`, and ignores logical types that don't fit their
    type.
    """
    if isinstance(schema, list):
        return [_adapt_for_parser(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema["type"]
    if _is_wrapper(schema):
        return _adapt_for_parser(kind)
    plain = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    plain |= {key: _adapt_for_parser(schema[key]) for key in ("items", "values") if key in schema}
    if kind in _RECORDS:
        plain["fields"] = [field | {"type": _adapt_for_parser(field["type"])} for field in schema["fields"]]
    return plain


def _is_wrapper(schema: Mapping[str, Any]) -> bool:
    """Return whether the object only names another type."""
    return not isinstance(schema["type"], str) or schema["type"] not in _TYPES


class _Reader:
    def __init__(self) -> None:
        #: The named types so far, each with the namespace for names inside it.
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._open: list[str] = []

    def read_type(self, schema: Any, path: str, namespace: str) -> Type:
        if isinstance(schema, list):
            return self._read_union(schema, path, namespace)
        if isinstance(schema, str) and schema not in _TYPES:
            definition, own_namespace = self._find_definition(schema, namespace)
            nested = self._read_nested_type(definition, path, own_namespace)
            return nested or _read_plain_type(definition, path)
        if isinstance(schema, str):
            schema = {"type": schema}
        if _is_wrapper(schema):
            inner = self.read_type(schema["type"], path, namespace)
            return attrs.evolve(inner, tagged=inner.tagged or is_tagged(schema))
        if "name" in schema:
            namespace = self._define(schema, path, namespace)
        return self._read_nested_type(schema, path, namespace) or _read_plain_type(schema, path)

    def _define(self, schema: dict[str, Any], path: str, namespace: str) -> str:
        """Remember the named type, and return the namespace for names inside it."""
        name = _build_full_name(schema, namespace)
        if not all(map(_NAME.fullmatch, name.split("."))):
            raise _build_error(
                path, f"{name} is no name of a type: letters, digits and _, and no digit at its start"
            )
        own_namespace = name.rpartition(".")[0]
        self._named[name] = (schema, own_namespace)
        return own_namespace

    def _find_definition(self, name: str, namespace: str) -> tuple[dict[str, Any], str]:
        inside = name if "." in name or not namespace else f"{namespace}.{name}"
        return self._named.get(inside) or self._named[name]

    def _read_nested_type(self, schema: dict[str, Any], path: str, namespace: str) -> Type | None:
        kind = schema["type"]
        if kind in _RECORDS:
            return self._read_record(schema, path, namespace)
        if kind == "map":
            values = self.read_type(schema["values"], f"{path}{{}}", namespace)
            return Type("map", is_tagged(schema), items=values)
        if kind != "array":
            return None
        is_map = self._encodes_map(schema, namespace)
        path_of_items = f"{path}{{}}" if is_map else f"{path}[]"
        items = self.read_type(schema["items"], path_of_items, namespace)
        if is_map:
            return _build_map(items, path, is_tagged(schema))
        return Type("array", is_tagged(schema), items=items)

    def _read_record(self, schema: dict[str, Any], path: str, namespace: str) -> Type:
        name = _build_full_name(schema, namespace)
        if name in self._open:
            raise _build_error(
                path, f"record {name} contains itself, and a table has no recursive types. Flatten it first"
            )
        self._open.append(name)
        fields = []
        for field in schema["fields"]:
            inner = f"{path}.{field['name']}" if path else field["name"]
            if not _NAME.fullmatch(field["name"]):
                raise _build_error(inner, "a name has letters, digits and _, and no digit at its start")
            type_ = self.read_type(field["type"], inner, namespace)
            fields.append(Field(field["name"], type_, is_tagged(field)))
        self._open.pop()
        if len({field.name for field in fields}) < max(len(fields), 1):
            raise _build_error(
                path, f"record {name} has no fields, or two of one name, and a table can have neither"
            )
        return Type("record", is_tagged(schema), fields=tuple(fields), record=name)

    def _read_union(self, schemas: list[Any], path: str, namespace: str) -> Type:
        names = [self._name_branch(branch, namespace) for branch in schemas]
        if len(set(names)) < len(names) or "union" in names:
            raise _build_error(path, "a union can't have another union in it, or two branches of one type")
        branches = {name: branch for name, branch in zip(names, schemas, strict=True) if name != "null"}
        if not branches:
            raise _build_error(path, "the type is null alone, which no column can hold")
        nullable = "null" in names
        if len(branches) == 1:
            (branch,) = branches.values()
            return attrs.evolve(self.read_type(branch, path, namespace), nullable=nullable)
        columns = name_branch_columns(list(branches))
        if len(set(columns)) < len(columns):
            raise _build_error(
                path, "two branches of the union get the same column name, and a table can't have both"
            )
        fields = []
        for column, branch in zip(columns, branches.values(), strict=True):
            type_ = self.read_type(branch, f"{path}.{column}", namespace)
            fields.append(Field(column, attrs.evolve(type_, nullable=True)))
        return Type("union", nullable=nullable, fields=tuple(fields))

    def _name_branch(self, schema: Any, namespace: str) -> str:
        """Return Avro's name of a branch: the full name of a named type, otherwise the Avro type."""
        if isinstance(schema, list):
            return "union"
        if isinstance(schema, str):
            definition = None if schema in _TYPES else self._find_definition(schema, namespace)
            return _build_full_name(*definition) if definition else schema
        if _is_wrapper(schema):
            return self._name_branch(schema["type"], namespace)
        return _build_full_name(schema, namespace) if "name" in schema else str(schema["type"])

    def _encodes_map(self, array: dict[str, Any], namespace: str) -> bool:
        """Return whether the array is a map in Kafka Connect's encoding for keys that aren't text."""
        items = array["items"]
        while isinstance(items, dict) and _is_wrapper(items):
            items = items["type"]
        if isinstance(items, str) and items not in _TYPES:
            items, namespace = self._find_definition(items, namespace)
        if not isinstance(items, dict) or items["type"] not in _RECORDS:
            return False
        marked = items.get("connect.internal.type") == "MapEntry" or _read_logical_type(array) == "map"
        return marked or _build_full_name(items, namespace) == _MAP_ENTRY


def name_branch_columns(names: list[str]) -> list[str]:
    """Return the columns of a union's branches, by the branches' full names.

    A branch has its short name; if several have the same one, they have their full names, with `_` in the
    place of dots.
    """
    short_names = [name.rpartition(".")[2] for name in names]
    columns = []
    for name, short_name in zip(names, short_names, strict=True):
        is_unique = short_names.count(short_name) == 1
        columns.append(short_name if is_unique else name.replace(".", "_"))
    return columns


def is_tagged(schema: Any) -> bool:
    return isinstance(schema, dict) and "PII" in schema.get("confluent:tags", [])


def _build_full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name = str(schema["name"])
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _read_logical_type(schema: Mapping[str, Any]) -> str | None:
    """Return the logical type if it fits the Avro type."""
    logical = str(schema.get("logicalType")).lower()
    return logical if logical in _LOGICAL.get(schema["type"], ()) else None


def _read_plain_type(schema: dict[str, Any], path: str) -> Type:
    kind = schema["type"]
    logical = _read_logical_type(schema)
    if kind == "null":
        raise _build_error(path, "the type is null alone, which no column can hold")
    if logical and logical.endswith("-nanos"):
        raise _build_error(path, f"Tableflow's tables can't hold {logical}. Use microseconds")
    if kind == "fixed" and (not _is_whole(schema["size"]) or schema["size"] < 1):
        raise _build_error(path, f"a fixed type of {schema['size']!r} bytes can't hold anything")
    size = _read_digits(schema, path) if logical == "decimal" else None
    return Type(logical or kind, is_tagged(schema), size=size)


def _read_digits(schema: dict[str, Any], path: str) -> tuple[int, int]:
    precision: Any = schema.get("precision")
    if precision is None:
        precision = _DEFAULT_PRECISION
    scale: int = schema["scale"] if _is_whole(schema.get("scale")) else 0
    if not _is_whole(precision) or not 1 <= precision <= _MAX_PRECISION or not 0 <= scale <= precision:
        limits = f"it needs a precision of 1 to {_MAX_PRECISION} and a scale from 0 to the precision"
        raise _build_error(path, f"a table can't hold decimal({precision}, {scale}): {limits}")
    if schema["type"] == "fixed" and 10**precision > 2 ** (8 * schema["size"] - 1):
        raise _build_error(
            path, f"{schema['size']} bytes can't hold the digits of decimal({precision}, {scale})"
        )
    return precision, scale


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _build_map(entry: Type, path: str, tagged: bool) -> Type:
    types = {
        field.name: attrs.evolve(field.type, tagged=field.type.tagged or field.tagged)
        for field in entry.fields
    }
    if types.keys() != {"key", "value"}:
        raise _build_error(
            path, "the array encodes a map, and its items are not records of the fields key and value"
        )
    return Type("map", tagged or entry.tagged, items=types["value"], key=types["key"])


def _build_error(path: str, problem: str) -> BadSchema:
    return BadSchema(f"field {path or '(top)'}: {problem}")
