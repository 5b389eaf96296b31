"""The contract's columns as expressions: where each value comes from, its type, and how personal data is treated."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from exports.contract import Column, Personal, decimal_type
from glue_jobs.pseudonyms import pseudonym

_NESTED = (StructType, ArrayType, MapType)


def raw(column: Column) -> Expression:
    """Return the value as the source or the author's expression gives it."""
    if text := column.expression or column.measure:
        return F.expr(text)
    return F.col(column.field or column.name)


def type_mismatches(columns: list[Column], types: StructType) -> list[str]:
    """Return a message for each column whose value does not fit the contract's type. `types` are Spark's types of `raw`."""
    problems = []
    for column in columns:
        if wrong := _mismatch(column, types[column.name].dataType):
            problems.append(f"{column.name} {wrong}")
    return problems


def treated(column: Column, value: Expression, spark_type: DataType, key: bytes) -> Expression:
    """Return the value as it is exported, in the contract's type. Raises ValueError for a column to hash without a valid key.

    `value` is the column's raw value. That of an expression must be null in rows that are not delivered, because hashing
    evaluates it for every row.
    """
    value = _finite(value, column, spark_type)
    personal = column.personal
    if personal is None or personal.treatment == "keep":
        return cast_to(value, column.type)
    if personal.treatment == "hash":
        return pseudonym(value, personal.kind or "text", key)
    if personal.treatment == "mask":
        return _masked(value, personal.visible or 0)
    return cast_to(_generalised(value, personal), column.type)


def may_fail(column: Column, spark_type: DataType) -> bool:
    """Return whether `treated` may fail on a value: an expression may, and a number may not fit the column's decimal type."""
    narrows = decimal_type(column.type) is not None and spark_type.simpleString() != column.type
    return column.expression is not None or narrows


def cast_to(value: Expression, type_: str) -> Expression:
    """Cast under ANSI rules: a value that doesn't fit is an error, not a null."""
    return value.cast({"text": "string", "integer": "bigint"}.get(type_, type_))


def _finite(value: Expression, column: Column, type_: DataType) -> Expression:
    """Make NaN and infinity an error. Spark would turn them into null in a cast to a decimal."""
    if not isinstance(type_, DoubleType | FloatType):
        return value
    message = F.lit(f"column {column.name}: NaN or infinity is no number that a file can carry")
    is_bad = F.isnan(value) | (F.abs(value) == F.lit(float("inf")))
    return F.when(is_bad, F.raise_error(message).cast(type_)).otherwise(value)


def _masked(value: Expression, visible: int) -> Expression:
    if not visible:
        return F.when(value.isNotNull(), F.lit("***"))
    shown = F.concat(F.lit("***"), F.substring(value, -visible, visible))
    return F.when(F.char_length(value) > visible, shown).when(value.isNotNull(), F.lit("***"))


def _generalised(value: Expression, personal: Personal) -> Expression:
    size = personal.size or 1
    if personal.to == "year":
        return F.year(value)
    if personal.to == "month":
        return F.substring(value.cast("date").cast("string"), 1, 7)
    if personal.to == "prefix":
        return F.substring(F.btrim(value), 1, size)
    return value - F.pmod(value, F.lit(size))


def _mismatch(column: Column, spark_type: DataType) -> str | None:
    name = spark_type.simpleString()
    if isinstance(spark_type, _NESTED):
        return f"is {spark_type.typeName()} in the table; name a field inside it, or explode an array with [explode]"
    personal = column.personal
    if personal and personal.treatment in ("hash", "mask"):
        return None if isinstance(spark_type, StringType) else f"is {name} in the table; {personal.treatment} needs text: cast it"
    if personal and personal.treatment == "generalise":
        return _generalise_mismatch(personal, spark_type)
    if _fits(column, spark_type):
        return None
    if isinstance(spark_type, DoubleType) and column.measure:
        return "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate"
    return f"is {name} in the table, {column.type} in the contract"


def _generalise_mismatch(personal: Personal, spark_type: DataType) -> str | None:
    fits = {
        "year": isinstance(spark_type, DateType | TimestampType),
        "month": isinstance(spark_type, DateType | TimestampType),
        "prefix": isinstance(spark_type, StringType),
        "bucket": isinstance(spark_type, IntegralType | DecimalType),
    }
    return None if fits[personal.to or ""] else f"is {spark_type.simpleString()} in the table; {personal.to} does not apply to it"


def _fits(column: Column, spark_type: DataType) -> bool:
    size = decimal_type(column.type)
    if size is None:
        wanted = {
            "text": StringType,
            "integer": IntegralType,
            "date": DateType,
            "timestamp": TimestampType,
            "boolean": BooleanType,
        }
        return isinstance(spark_type, wanted[column.type])
    if isinstance(spark_type, DecimalType):
        # A field must not lose digits. An expression is rounded half up, which its author requests with the type.
        return spark_type.scale <= size[1] or column.field is None
    if isinstance(spark_type, DoubleType | FloatType):
        return column.measure is None
    return isinstance(spark_type, IntegralType)
