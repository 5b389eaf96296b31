"""Converts types and values between Avro, Flink and JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

_TO_FLINK: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BYTES",
    "string": "STRING",
    "enum": "STRING",
    "uuid": "STRING",
    "date": "DATE",
    "time-millis": "TIME(3)",
    "time-micros": "BIGINT",
    "timestamp-millis": "TIMESTAMP_LTZ(3)",
    "timestamp-micros": "TIMESTAMP_LTZ(6)",
    "local-timestamp-millis": "TIMESTAMP(3)",
    "local-timestamp-micros": "TIMESTAMP(6)",
}
_TO_AVRO: Final[dict[str, Any]] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "CHAR": "string",
    "VARBINARY": "bytes",
    "BINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME_WITHOUT_TIME_ZONE": {"type": "int", "logicalType": "time-millis"},
}
_TIMES: Final = {
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "timestamp",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "local-timestamp",
}


class UnknownType(Exception):
    """The type has no equivalent in the other system."""


def list_columns(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, Flink type) of each field of a topic's value schema. Raises UnknownType."""
    return [(field["name"], to_flink_type(field["type"])) for field in schema["fields"]]


def to_flink_type(avro: Any) -> str:
    """Return the Flink type of an Avro type.

    Raises UnknownType, also for a union of several types besides null.
    """
    if isinstance(avro, list):
        inner = [branch for branch in avro if branch != "null"]
        if len(inner) != 1:
            raise UnknownType(f"a union of {len(inner)} types")
        return (
            to_flink_type(inner[0]).removesuffix(" NOT NULL") if "null" in avro else to_flink_type(inner[0])
        )
    if isinstance(avro, str):
        avro = {"type": avro}
    if not isinstance(avro["type"], str):
        return to_flink_type(avro["type"])
    return f"{_to_nested_flink_type(avro)} NOT NULL"


def _to_nested_flink_type(avro: Mapping[str, Any]) -> str:
    match avro["type"]:
        case "record":
            return f"ROW<{', '.join(f'`{name}` {kind}' for name, kind in list_columns(avro))}>"
        case "array":
            return f"ARRAY<{to_flink_type(avro['items'])}>"
        case "map":
            return f"MAP<STRING NOT NULL, {to_flink_type(avro['values'])}>"
    if avro.get("logicalType") == "decimal":
        return f"DECIMAL({avro['precision']}, {avro.get('scale', 0)})"
    flink = _TO_FLINK.get(avro.get("logicalType", "")) or _TO_FLINK.get(avro["type"])
    if flink is None:
        raise UnknownType(f"the type {avro['type']}")
    return flink


def build_avro_schema(name: str, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the value schema of a new table, with the names that Confluent's Flink gives it. Raises
    UnknownType.

    `columns` are those in the worker's answer.
    """
    return _build_record_schema(f"{name.replace('-', '_').replace('.', '_')}_value", columns, "type") | {
        "namespace": "org.apache.flink.avro.generated.record"
    }


def _build_record_schema(name: str, columns: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    fields = []
    for field in columns:
        avro = _to_avro(field[kind], f"{name}_{field['name']}")
        nullable = {"default": None} if isinstance(avro, list) else {}
        fields.append({"name": field["name"], "type": avro} | nullable)
    return {"type": "record", "name": name, "fields": fields}


def _to_avro(tree: Mapping[str, Any], name: str) -> Any:
    match tree["type"]:
        case "ROW":
            avro: Any = _build_record_schema(name, tree["fields"], "field_type")
        case "ARRAY":
            avro = {"type": "array", "items": _to_avro(tree["element_type"], name)}
        case "MAP":
            avro = {"type": "map", "values": _to_avro(tree["value_type"], name)}
        case "DECIMAL":
            avro = {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": tree["precision"],
                "scale": tree["scale"],
            }
        case known if known in _TIMES:
            unit = "millis" if tree["precision"] <= 3 else "micros"
            avro = {"type": "long", "logicalType": f"{_TIMES[known]}-{unit}"}
        case other:
            if other not in _TO_AVRO:
                raise UnknownType(f"the type {other}")
            avro = _TO_AVRO[other]
    return ["null", avro] if tree["nullable"] else avro


def to_json(value: Any) -> str:
    """Return a decoded Avro value as the JSON text that Flink's JSON format reads."""
    return json.dumps(value, default=_to_text)


def _to_text(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} in a record")


def from_json(value: Any, avro: Any) -> Any:
    """Return the value for fastavro that Flink wrote as JSON. `avro` is its type."""
    if isinstance(avro, list):
        if value is None:
            return None
        return from_json(value, next(branch for branch in avro if branch != "null"))
    kind = avro if isinstance(avro, str) else avro["type"]
    logical = None if isinstance(avro, str) else avro.get("logicalType")
    if not isinstance(kind, str):
        return from_json(value, kind)
    if read_logical := _READ.get(f"{kind} {logical}") or _READ.get(kind):
        return read_logical(value)
    return _convert_nested(value, kind, avro)


def _convert_nested(value: Any, kind: str, avro: Any) -> Any:
    match kind:
        case "record":
            return {
                field["name"]: from_json(value.get(field["name"]), field["type"]) for field in avro["fields"]
            }
        case "array":
            return [from_json(item, avro["items"]) for item in value]
        case "map":
            return {name: from_json(item, avro["values"]) for name, item in value.items()}
    return value


#: By type, or type and logical type: reads a scalar. Values of other scalar types are the same in JSON and
#: in Avro.
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes decimal": lambda value: Decimal(str(value)),
    "bytes": base64.b64decode,
    "int date": date.fromisoformat,
    "int time-millis": time.fromisoformat,
    "long timestamp-millis": datetime.fromisoformat,
    "long timestamp-micros": datetime.fromisoformat,
    "long local-timestamp-millis": datetime.fromisoformat,
    "long local-timestamp-micros": datetime.fromisoformat,
}
