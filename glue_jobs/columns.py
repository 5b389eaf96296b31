"""The contract's columns as expressions: where each value comes from, its type, and how personal data is
treated.
"""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from config.exports.contract import Column, Generalisation, Personal, decimal_type
from glue_jobs.delivery import csv
from glue_jobs.pseudonyms import pseudonym

_NESTED = (StructType, ArrayType, MapType)
_WORDS: dict[type[DataType], str] = {
    StructType: "a record or a union",
    ArrayType: "an array",
    MapType: "a map",
    StringType: "text",
    IntegralType: "integer",
    DoubleType: "a double",
    FloatType: "a float",
    BinaryType: "bytes",
    NullType: "always null",
    TimestampNTZType: "a timestamp without a zone",
}
#: What each way to generalise a value needs: in words, and as Spark's types.
_GENERALISED: dict[Generalisation, tuple[str, tuple[type[DataType], ...]]] = {
    "year": ("a date or a timestamp", (DateType, TimestampType)),
    "month": ("a date or a timestamp", (DateType, TimestampType)),
    "prefix": ("text", (StringType,)),
    "bucket": ("an integer or a decimal", (IntegralType, DecimalType)),
}
#: Spark's names of the contract's types.
_SQL_TYPES = {"text": "string", "integer": "bigint"}


def read_raw_value(column: Column) -> Expression:
    """Return the value as the source or the author's expression gives it."""
    if text := column.expression or column.measure:
        return F.expr(text)
    return F.col(column.field or column.name)


def explain_misfit(column: Column, spark_type: DataType) -> str | None:
    """Return why a value of this type can't be the column's, and what to do; None if it can.

    The type is that of `read_raw_value`.
    """
    if not column.delivered or _can_be(column, spark_type):
        return None
    origin = "its expression gives" if column.expression or column.measure else "the field is"
    source_type = f"{origin} {describe_type(spark_type)}"
    if isinstance(spark_type, _NESTED):
        return f"{source_type}; name a field inside it, or explode an array with [explode]"
    if column.personal and column.personal.to:
        wanted, _ = _GENERALISED[column.personal.to]
        return f"{source_type}, and {column.personal.to} needs {wanted}"
    if column.personal and column.personal.treatment != "keep":
        return f"{source_type}, and {column.personal.treatment} needs text. Cast it"
    if isinstance(spark_type, DoubleType | FloatType) and column.measure:
        return "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate"
    sql_type = _SQL_TYPES.get(column.type, column.type)
    if column.field:
        advice = f"Change the type, or give an expression such as cast({column.field} as {sql_type})"
    else:
        advice = f"Cast it, cast(… as {sql_type}), or change the type"
    return f"{source_type}, and the column's type is {column.type}. {advice}"


def _can_be(column: Column, spark_type: DataType) -> bool:
    personal = column.personal
    if personal and personal.treatment in ("hash", "mask"):
        return isinstance(spark_type, StringType)
    if personal and personal.to:
        _, types = _GENERALISED[personal.to]
        return isinstance(spark_type, types)
    return not isinstance(spark_type, _NESTED) and _is_fitting(column, spark_type)


def describe_type(spark_type: DataType) -> str:
    """Return Spark's type in the words of contracts."""
    for class_, words in _WORDS.items():
        if isinstance(spark_type, class_):
            return words
    return spark_type.simpleString()


def treat_value(
    column: Column, value: Expression, spark_type: DataType, key: bytes, delivered: Expression
) -> Expression:
    """Return the value as it is exported, in the contract's type. Raises ValueError for a column to hash
    without a valid key.

    `value` is the column's raw value. That of an expression must be null in rows that are not delivered,
    because hashing evaluates it for every row. `delivered` tells these rows apart.
    """
    value = make_printable(_require_finite(value, column, spark_type), column, spark_type, delivered)
    if isinstance(spark_type, FloatType):
        # Spark casts a double by its shortest text, but a float by its value as a double: 0.1 would be
        # 0.10000000149011612.
        value = value.cast("string")
    personal = column.personal
    if personal is None or personal.treatment == "keep":
        return cast_to(value, column.type)
    match personal.treatment:
        case "hash":
            return pseudonym(value, personal.kind or "text", key)
        case "mask":
            return _mask_value(value, personal.visible or 0)
        case "generalise":
            return cast_to(_generalise_value(value, personal), column.type)
        case "drop":
            raise ValueError(f"column {column.name} is dropped, and has no value to export")
    assert_never(personal.treatment)


def may_fail(column: Column, spark_type: DataType) -> bool:
    """Return whether `treat_value` may fail on a value: an expression may, and a number may not fit the
    column's decimal type.
    """
    narrows = decimal_type(column.type) is not None and spark_type.simpleString() != column.type
    return column.expression is not None or narrows


def cast_to(value: Expression, type_: str) -> Expression:
    """Cast under ANSI rules: a value that doesn't fit is an error, not a null."""
    return value.cast(_SQL_TYPES.get(type_, type_))


def _require_finite(value: Expression, column: Column, type_: DataType) -> Expression:
    """Make NaN and infinity an error. Spark would turn them into null in a cast to a decimal."""
    if not isinstance(type_, DoubleType | FloatType):
        return value
    message = F.lit(f"column {column.name}: NaN or infinity is no number that a file can carry")
    is_bad = F.isnan(value) | (F.abs(value) == F.lit(float("inf")))
    return F.when(is_bad, F.raise_error(message).cast(type_)).otherwise(value)


def make_printable(value: Expression, column: Column, type_: DataType, delivered: Expression) -> Expression:
    """Make a date or time outside of the years 1 to 9999 an error in delivered lines.

    Nobody's calendar has a text for it.
    """
    if not isinstance(type_, DateType | TimestampType):
        return value
    unit = "date_from_unix_date({})" if isinstance(type_, DateType) else "timestamp_seconds({} * 86400L)"
    first, end = (F.expr(unit.format(day)) for day in (csv.FIRST_DAY, csv.END_DAY))
    message = F.lit(f"column {column.name}: {csv.UNPRINTABLE}")
    is_beyond = delivered & ((value < first) | (value >= end))
    return F.when(is_beyond, F.raise_error(message).cast(type_)).otherwise(value)


def is_blank(text: Expression) -> Expression:
    """Return whether a text consists of white space, control and format characters; null for null."""
    begins_visibly = (text >= "!") & (
        text < "\x7f"
    )  # most texts do, and a comparison of bytes is faster than a pattern
    return ~(begins_visibly | text.rlike(r"[^\p{Z}\p{Cc}\p{Cf}]"))


def _mask_value(value: Expression, visible: int) -> Expression:
    if not visible:
        return F.when(value.isNotNull(), F.lit("***"))
    masked = F.concat(F.lit("***"), F.substring(value, -visible, visible))
    return F.when(F.char_length(value) > visible, masked).when(value.isNotNull(), F.lit("***"))


def _generalise_value(value: Expression, personal: Personal) -> Expression:
    size = personal.size or 1
    match personal.to:
        case "year":
            return F.year(value)
        case "month":
            return F.substring(value.cast("date").cast("string"), 1, 7)
        case "prefix":
            return F.substring(F.btrim(value), 1, size)
        case "bucket":
            return value - F.pmod(value, F.lit(size))
        case None:
            raise ValueError("generalise needs `to`")
    assert_never(personal.to)


def _is_fitting(column: Column, spark_type: DataType) -> bool:
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
        # A field must not lose digits. An expression is rounded half up, which its author requests with the
        # type.
        return spark_type.scale <= size[1] or column.field is None
    if isinstance(spark_type, DoubleType | FloatType):
        return column.measure is None
    return isinstance(spark_type, IntegralType)
