"""What Snowflake makes of Iceberg's types."""

from __future__ import annotations

from typing import Final

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
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from simulators.snowflake.model import TableColumn

_PLAIN: Final[dict[type[IcebergType], str]] = {
    BooleanType: "BOOLEAN",
    IntegerType: "NUMBER(10,0)",
    LongType: "NUMBER(19,0)",
    FloatType: "FLOAT",
    DoubleType: "FLOAT",
    DateType: "DATE",
    TimeType: "TIME(6)",
    TimestampType: "TIMESTAMP_NTZ(6)",
    TimestamptzType: "TIMESTAMP_LTZ(6)",
    StringType: "VARCHAR(134217728)",
    UUIDType: "BINARY(16)",
    BinaryType: "BINARY(67108864)",
}


def columns(schema: Schema) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(each.name, _sql_type(each.field_type)) for each in schema.fields)


def _sql_type(kind: IcebergType) -> str:
    match kind:
        case DecimalType():
            return f"NUMBER({kind.precision},{kind.scale})"
        case FixedType():
            return f"BINARY({len(kind)})"
        case ListType():
            return f"ARRAY({_sql_type(kind.element_type)})"
        case MapType():
            return f"MAP({_sql_type(kind.key_type)}, {_sql_type(kind.value_type)})"
        case StructType():
            return f"OBJECT({', '.join(f'{each.name} {_sql_type(each.field_type)}' for each in kind.fields)})"
    return _PLAIN.get(type(kind), "VARIANT")
