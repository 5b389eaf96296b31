"""The columns that a topic's schema gives the topic's table, as Spark reads them: the JSON form of Spark's
StructType.

Kafka's metadata has the names that it has in expressions. A field of the topic with such a name takes its
place.
"""

from __future__ import annotations

from typing import Any, Final

from config.exports.allowed_functions import KAFKA_FIELDS, RECORD_KEY
from config.exports.avro_schema import Type
from config.exports.topic_schema import TopicSchema

_SPARK: Final = {
    "int": "integer",
    "bytes": "binary",
    "fixed": "binary",
    "enum": "string",
    "uuid": "string",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    # Spark can't read a table that has a time of day, which `config.exports.check` reports.
    "time-millis": "string",
    "time-micros": "string",
}
_METADATA: Final[dict[str, Any]] = {
    **dict.fromkeys(KAFKA_FIELDS, "string"),
    "kafka_partition": "integer",
    "kafka_headers": {"type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": True},
    "kafka_leader_epoch": "integer",
    "kafka_offset": "long",
    "kafka_timestamp": "timestamp",
    "kafka_raw_key": "binary",
    "kafka_raw_value": "binary",
}


def list_spark_columns(schema: TopicSchema) -> dict[str, Any]:
    """Return the table's columns.

    The record's key is the column `key`, unless the value has a field of this name.
    """
    fields = [
        _build_column(field.name, find_spark_type(field.type), field.type.nullable)
        for field in schema.type.fields
    ]
    if RECORD_KEY not in schema.fields:
        fields.insert(0, _build_column(RECORD_KEY, "binary"))
    metadata = [_build_column(name, type_) for name, type_ in _METADATA.items() if name not in schema.fields]
    return {"type": "struct", "fields": [*fields, *metadata]}


def find_spark_type(type_: Type) -> Any:
    if type_.kind == "decimal" and type_.size:
        return "decimal({},{})".format(*type_.size)
    if type_.kind in ("record", "union"):
        return {
            "type": "struct",
            "fields": [
                _build_column(field.name, find_spark_type(field.type), field.type.nullable)
                for field in type_.fields
            ],
        }
    if type_.kind == "array" and type_.items:
        return {
            "type": "array",
            "elementType": find_spark_type(type_.items),
            "containsNull": type_.items.nullable,
        }
    if type_.kind == "map" and type_.items:
        keys = find_spark_type(type_.key) if type_.key else "string"
        return {
            "type": "map",
            "keyType": keys,
            "valueType": find_spark_type(type_.items),
            "valueContainsNull": type_.items.nullable,
        }
    return _SPARK.get(type_.kind, type_.kind)


def _build_column(name: str, type_: Any, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}
