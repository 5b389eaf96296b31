"""Write an Avro schema for the columns of a table.

It is one of the schemas for which Tableflow makes this table: the table doesn't say whether a text was an
enum in the topic, or in which unit a time was. A contract is checked against the table's types, so this is
enough.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from config.exports.allowed_functions import RECORD_KEY
from config.exports.topic_schema import TAGS, UNKNOWN_TAGS
from glue_jobs.table_fields import metadata_columns

_PLAIN: Final[Mapping[str, Any]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "uuid": {"type": "string", "logicalType": "uuid"},
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


class UnknownType(Exception):
    """A column has a type that Tableflow writes for no Avro type. The message is a sentence."""


def build_schema(table_schema: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """Return the Avro schema of a topic's values for an Iceberg schema in JSON. Raises UnknownType.

    Its tags are not known: a table has none.
    """
    names = (f"{to_avro_name(topic)}_{number}" for number in itertools.count(1))
    columns = table_schema["fields"]
    metadata = metadata_columns(column["name"] for column in columns)
    fields = [
        _build_field(column, names)
        for column in columns
        if column["name"] not in metadata and not _is_record_key(column)
    ]
    return {"type": "record", "name": to_avro_name(topic), TAGS: UNKNOWN_TAGS, "fields": fields}


def to_avro_name(topic: str) -> str:
    """Return a name that Avro allows: letters, digits and underscores, no digit first."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return f"_{name}" if name[0].isdigit() else name


def _is_record_key(column: Mapping[str, Any]) -> bool:
    return bool(column["name"] == RECORD_KEY and column["type"] == "binary")


def _build_field(column: Mapping[str, Any], names: Iterator[str], record: str = "") -> dict[str, Any]:
    """`record` is the path of the record that has the field, "" for a column of the table."""
    path = f"{record}.{column['name']}" if record else column["name"]
    avro_type = _build_type(column["type"], path, names)
    if column["required"]:
        return {"name": column["name"], "type": avro_type}
    return {"name": column["name"], "type": ["null", avro_type], "default": None}


def _build_type(iceberg_type: Any, path: str, names: Iterator[str]) -> Any:
    """`names` yields names for records and fixed types, which Avro wants to be unique."""
    if isinstance(iceberg_type, str):
        return _build_plain_type(iceberg_type, path, names)
    kind: str = iceberg_type["type"]
    build = _NESTED.get(kind)
    if build is None:
        raise UnknownType(f"column {path} has type {kind}, which Tableflow doesn't write")
    return build(iceberg_type, path, names)


def _build_plain_type(iceberg_type: str, path: str, names: Iterator[str]) -> Any:
    if iceberg_type in _PLAIN:
        return _PLAIN[iceberg_type]
    if decimal := _DECIMAL.fullmatch(iceberg_type):
        precision, scale = map(int, decimal.groups())
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if fixed := _FIXED.fullmatch(iceberg_type):
        return {"type": "fixed", "name": next(names), "size": int(fixed[1])}
    raise UnknownType(f"column {path} has type {iceberg_type}, which Tableflow doesn't write")


def _build_record(struct: Mapping[str, Any], path: str, names: Iterator[str]) -> dict[str, Any]:
    name = next(names)
    fields = [_build_field(field, names, path) for field in struct["fields"]]
    return {"type": "record", "name": name, "fields": fields}


def _build_array(list_type: Mapping[str, Any], path: str, names: Iterator[str]) -> dict[str, Any]:
    items = _build_type(list_type["element"], f"{path}[]", names)
    return {"type": "array", "items": items if list_type["element-required"] else ["null", items]}


def _build_map(map_type: Mapping[str, Any], path: str, names: Iterator[str]) -> dict[str, Any]:
    """Return a map, or for keys that aren't text the array of entries with which Kafka Connect writes one."""
    values = _build_type(map_type["value"], f"{path}{{}}", names)
    if not map_type["value-required"]:
        values = ["null", values]
    if map_type["key"] == "string":
        return {"type": "map", "values": values}
    keys = _build_type(map_type["key"], f"{path}{{key}}", names)
    entry = {
        "type": "record",
        "name": next(names),
        "connect.internal.type": "MapEntry",
        "fields": [{"name": "key", "type": keys}, {"name": "value", "type": values}],
    }
    return {"type": "array", "items": entry}


_NESTED: Final[Mapping[str, Callable[[Mapping[str, Any], str, Iterator[str]], Any]]] = {
    "struct": _build_record,
    "list": _build_array,
    "map": _build_map,
}
