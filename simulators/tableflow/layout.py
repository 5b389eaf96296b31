"""The columns of a topic's table in Tableflow: Iceberg types for the Avro types, and Tableflow's own columns
around them.

The first column, `key`, is the record's raw key, as in the table of the StockTrade topic on Confluent's page
about schemas in Tableflow. Nine metadata columns come last. Where that page's table of types was not
available, the types follow Confluent's public AvroToLogicalTypeConverter (repository
confluentinc/schema-registry): enum and uuid become string, fixed(n) stays fixed, timestamp-* becomes
timestamptz, local-timestamp-* becomes timestamp, and a union of several types becomes a struct with an
optional field for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, Literal

from pyiceberg import types
from pyiceberg.schema import Schema

from simulators.tableflow.avro import Array, Decimal, Enum, Fixed, Map, Node, Scalar, Struct, Union
from simulators.tableflow.topic import Topic

Naming = Literal["DEFAULT", "PORTABLE"]

KEY_COLUMN: Final = "key"
METADATA: Final = (
    "topic",
    "partition",
    "headers",
    "leader-epoch",
    "offset",
    "timestamp",
    "timestamp-type",
    "raw-key",
    "raw-value",
)

_SCALARS: Final[dict[str, Callable[[], types.IcebergType]]] = {
    "boolean": types.BooleanType,
    "int": types.IntegerType,
    "long": types.LongType,
    "float": types.FloatType,
    "double": types.DoubleType,
    "bytes": types.BinaryType,
    "string": types.StringType,
    "uuid": types.StringType,
    "date": types.DateType,
    "time-millis": types.TimeType,
    "time-micros": types.TimeType,
    "timestamp-millis": types.TimestamptzType,
    "timestamp-micros": types.TimestamptzType,
    "local-timestamp-millis": types.TimestampType,
    "local-timestamp-micros": types.TimestampType,
}


def name_metadata_column(name: str, naming: Naming) -> str:
    """Return the column name of an entry of METADATA.

    In Parquet, `$` and `-` of the DEFAULT names become _x24 and _x2D.
    """
    return f"$${name}" if naming == "DEFAULT" else f"cflt_metadata_{name.replace('-', '_')}"


def build_table_schema(topic: Topic, naming: Naming) -> Schema:
    """Return the schema. Field ids count from 1 in the order of the columns; the catalog assigns its own."""
    ids = count(1)
    columns = [_build_optional_field(ids, KEY_COLUMN, types.BinaryType())] if has_key_column(topic) else []
    columns += _build_fields(topic.root, ids)
    columns += [
        _build_optional_field(ids, name_metadata_column(name, naming), _get_metadata_type(name, ids))
        for name in METADATA
    ]
    return Schema(*columns)


def has_key_column(topic: Topic) -> bool:
    """Return whether the record's key is a column.

    Per Tableflow's documentation, a value field named `key` takes its place.
    """
    return KEY_COLUMN not in {field.name for field in topic.root.fields}


def to_iceberg_type(node: Node, ids: Iterator[int]) -> types.IcebergType:
    match node:
        case Array(items):
            return types.ListType(next(ids), to_iceberg_type(items, ids), element_required=not items.nullable)
        case Map(values):
            key = next(ids)
            value = next(ids)
            key_type = to_iceberg_type(node.entry["key"], ids) if node.entry else types.StringType()
            return types.MapType(
                key, key_type, value, to_iceberg_type(values, ids), value_required=not values.nullable
            )
        case Struct():
            return types.StructType(*_build_fields(node, ids))
        case Union(branches):
            fields = []
            for branch in branches:
                branch_type = to_iceberg_type(branch.node, ids)
                fields.append(_build_optional_field(ids, branch.column, branch_type))
            return types.StructType(*fields)
    return _to_plain_type(node)


def _to_plain_type(node: Scalar | Enum | Decimal | Fixed) -> types.IcebergType:
    match node:
        case Enum():
            return types.StringType()
        case Decimal(precision, scale):
            return types.DecimalType(precision, scale)
        case Fixed(size):
            return types.FixedType(size)
    return _SCALARS[node.kind]()


def _build_fields(struct: Struct, ids: Iterator[int]) -> list[types.NestedField]:
    return [
        types.NestedField(
            next(ids), field.name, to_iceberg_type(field.node, ids), required=not field.node.nullable
        )
        for field in struct.fields
    ]


def _get_metadata_type(name: str, ids: Iterator[int]) -> types.IcebergType:
    match name:
        case "partition" | "leader-epoch":
            return types.IntegerType()
        case "offset":
            return types.LongType()
        case "timestamp":
            return types.TimestamptzType()
        case "headers":
            return types.MapType(
                next(ids), types.StringType(), next(ids), types.BinaryType(), value_required=False
            )
        case "raw-key" | "raw-value":
            return types.BinaryType()
    return types.StringType()


def _build_optional_field(ids: Iterator[int], name: str, kind: types.IcebergType) -> types.NestedField:
    return types.NestedField(next(ids), name, kind, required=False)
