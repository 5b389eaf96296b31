"""A topic's table as Tableflow lays it out: Avro types as Iceberg types, and Tableflow's own columns around them.

The record's raw key comes first, as column `key`: so Confluent's page on schemas with Tableflow shows the table of the
StockTrade topic. Nine metadata columns come last. Where the page's table of types could not be had, Confluent's public
AvroToLogicalTypeConverter (repository confluentinc/schema-registry) was followed: enum and uuid become string, fixed(n)
stays fixed, timestamp-* is an instant and local-timestamp-* is none, and a union of several types becomes a struct with
an optional field for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, Literal

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

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

_SCALARS: Final[dict[str, Callable[[], IcebergType]]] = {
    "boolean": BooleanType,
    "int": IntegerType,
    "long": LongType,
    "float": FloatType,
    "double": DoubleType,
    "bytes": BinaryType,
    "string": StringType,
    "uuid": StringType,
    "date": DateType,
    "time-millis": TimeType,
    "time-micros": TimeType,
    "timestamp-millis": TimestamptzType,
    "timestamp-micros": TimestamptzType,
    "local-timestamp-millis": TimestampType,
    "local-timestamp-micros": TimestampType,
}


def metadata_column(name: str, naming: Naming) -> str:
    """`name` is one of METADATA. In Parquet, `$` and `-` of the DEFAULT names become _x24 and _x2D."""
    return f"$${name}" if naming == "DEFAULT" else f"cflt_metadata_{name.replace('-', '_')}"


def table_schema(topic: Topic, naming: Naming) -> Schema:
    """Ids count from 1 in the order of the columns; the catalog gives its own on creation."""
    ids = count(1)
    columns = [_optional(ids, KEY_COLUMN, BinaryType())] if has_key_column(topic) else []
    columns += _fields(topic.root, ids)
    columns += [_optional(ids, metadata_column(name, naming), _metadata_type(name, ids)) for name in METADATA]
    return Schema(*columns)


def has_key_column(topic: Topic) -> bool:
    """False where the value has a field of that name itself: then the value wins, as Tableflow's docs say."""
    return KEY_COLUMN not in {each.name for each in topic.root.fields}


def iceberg_type(node: Node, ids: Iterator[int]) -> IcebergType:
    match node:
        case Array(items):
            return ListType(next(ids), iceberg_type(items, ids), element_required=not items.nullable)
        case Map(values):
            key, value = next(ids), next(ids)
            return MapType(key, StringType(), value, iceberg_type(values, ids), value_required=not values.nullable)
        case Struct():
            return StructType(*_fields(node, ids))
        case Union(branches):
            return StructType(*(_optional(ids, each.column, iceberg_type(each.node, ids)) for each in branches))
    return _plain_type(node)


def _plain_type(node: Scalar | Enum | Decimal | Fixed) -> IcebergType:
    match node:
        case Enum():
            return StringType()
        case Decimal(precision, scale):
            return DecimalType(precision, scale)
        case Fixed(size):
            return FixedType(size)
    return _SCALARS[node.kind]()


def _fields(struct: Struct, ids: Iterator[int]) -> list[NestedField]:
    return [
        NestedField(next(ids), each.name, iceberg_type(each.node, ids), required=not each.node.nullable) for each in struct.fields
    ]


def _metadata_type(name: str, ids: Iterator[int]) -> IcebergType:
    match name:
        case "partition" | "leader-epoch":
            return IntegerType()
        case "offset":
            return LongType()
        case "timestamp":
            return TimestamptzType()
        case "headers":
            return MapType(next(ids), StringType(), next(ids), BinaryType(), value_required=False)
        case "raw-key" | "raw-value":
            return BinaryType()
    return StringType()


def _optional(ids: Iterator[int], name: str, kind: IcebergType) -> NestedField:
    return NestedField(next(ids), name, kind, required=False)
