"""Writes the type of a topic's values as an Avro schema, with the names that Confluent's Flink gives it
("Type Mappings" in Confluent Cloud's documentation of Flink).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from config.exports.avro_schema import Type

_NAMESPACE: Final = "org.apache.flink.avro.generated.record"
_LOGICAL: Final[Mapping[str, str]] = {
    "date": "int",
    "time-millis": "int",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
}


def build_document(type_: Type, topic: str) -> dict[str, Any]:
    """Return the Avro schema of a type that has only types that Flink writes."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return _build_record(type_, f"{name}_value") | {"namespace": _NAMESPACE}


def _build_record(type_: Type, name: str) -> dict[str, Any]:
    fields = []
    for field in type_.fields:
        default = {"default": None} if field.type.nullable else {}
        fields.append({"name": field.name, "type": _build_type(field.type, f"{name}_{field.name}")} | default)
    return {"type": "record", "name": name, "fields": fields}


def _build_type(type_: Type, name: str) -> Any:
    avro_type = _build_plain_type(type_, name)
    return ["null", avro_type] if type_.nullable else avro_type


def _build_plain_type(type_: Type, name: str) -> Any:
    if type_.kind == "record":
        return _build_record(type_, name)
    if type_.kind == "array" and type_.items:
        return {"type": "array", "items": _build_type(type_.items, name)}
    if type_.kind == "map" and type_.items:
        return {"type": "map", "values": _build_type(type_.items, name)}
    if type_.kind == "decimal" and type_.size:
        precision, scale = type_.size
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if type_.kind in _LOGICAL:
        return {"type": _LOGICAL[type_.kind], "logicalType": type_.kind}
    return type_.kind
