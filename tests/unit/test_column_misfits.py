"""Which types of a table or an expression fit a column of the contract, and what is said about the others."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from config.exports.contract import Column, Personal
from glue_jobs.columns import describe_type, explain_misfit, may_fail

#: A type of each kind that a table or an expression may have.
TYPES = {
    "text": t.StringType(),
    "short": t.ShortType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "local": t.TimestampNTZType(),
    "boolean": t.BooleanType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "decimal(9,2)": t.DecimalType(9, 2),
    "decimal(9,3)": t.DecimalType(9, 3),
    "bytes": t.BinaryType(),
    "null": t.NullType(),
    "record": t.StructType([t.StructField("a", t.StringType())]),
    "array": t.ArrayType(t.StringType()),
    "map": t.MapType(t.StringType(), t.StringType()),
}
WHOLE = ["short", "int", "long"]
REAL = ["float", "double"]


def column(type_: str = "text", **more) -> Column:
    return Column(name="c", type=type_, title="C", description="C.", **more)


def personal(treatment: str, **more) -> dict:
    return {"personal": Personal(treatment=treatment, **more)}


def accepted(made: Column) -> list[str]:
    return [name for name, spark_type in TYPES.items() if explain_misfit(made, spark_type) is None]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (column("text"), ["text"]),
        (column("integer"), WHOLE),
        (column("date"), ["date"]),
        (column("timestamp"), ["timestamp"]),
        (column("boolean"), ["boolean"]),
        (column("decimal(12,2)"), [*WHOLE, *REAL, "decimal(9,2)"]),
        (column("decimal(12,2)", source="field"), [*WHOLE, *REAL, "decimal(9,2)"]),
        (column("decimal(12,2)", expression="x"), [*WHOLE, *REAL, "decimal(9,2)", "decimal(9,3)"]),
        (column("decimal(12,2)", measure="x"), [*WHOLE, "decimal(9,2)", "decimal(9,3)"]),
        (column("text", **personal("keep")), ["text"]),
        (column("integer", **personal("keep")), WHOLE),
        (column("text", **personal("hash")), ["text"]),
        (column("text", **personal("mask")), ["text"]),
        (column("integer", **personal("generalise", to="year")), ["date", "timestamp"]),
        (column("text", **personal("generalise", to="month")), ["date", "timestamp"]),
        (column("text", **personal("generalise", to="prefix")), ["text"]),
        (column("integer", **personal("generalise", to="bucket")), [*WHOLE, "decimal(9,2)", "decimal(9,3)"]),
        (column("text", **personal("drop")), list(TYPES)),
    ],
)
def test_a_column_takes_the_types_whose_values_it_can_have(made, expected):
    assert accepted(made) == expected


@pytest.mark.parametrize(
    ("made", "type_", "message"),
    [
        (
            column("integer"),
            "text",
            "the field is text, and the column's type is integer. Change the type, or give an expression "
            "such as cast(c as bigint)",
        ),
        (
            column("text", source="a.b"),
            "long",
            "the field is integer, and the column's type is text. Change the type, or give an expression "
            "such as cast(a.b as string)",
        ),
        (
            column("decimal(12,2)"),
            "decimal(9,3)",
            "the field is decimal(9,3), and the column's type is decimal(12,2). Change the type, or give an "
            "expression such as cast(c as decimal(12,2))",
        ),
        (
            column("date", expression="x"),
            "local",
            "its expression gives a timestamp without a zone, and the column's type is date. Cast it, "
            "cast(… as date), or change the type",
        ),
        (
            column("integer", measure="x"),
            "bytes",
            "its expression gives bytes, and the column's type is integer. Cast it, cast(… as bigint), or "
            "change the type",
        ),
        (
            column("decimal(12,2)", measure="x"),
            "double",
            "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate",
        ),
        (
            column("decimal(12,2)", measure="x"),
            "float",
            "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate",
        ),
        (
            column("integer", expression="x"),
            "double",
            "its expression gives a double, and the column's type is integer. Cast it, cast(… as bigint), or "
            "change the type",
        ),
        (
            column("text", measure="x"),
            "array",
            "its expression gives an array; name a field inside it, or explode an array with [explode]",
        ),
        (
            column("text", **personal("keep")),
            "int",
            "the field is integer, and the column's type is text. Change the type, or give an expression "
            "such as cast(c as string)",
        ),
        (column("text", **personal("hash")), "int", "the field is integer, and hash needs text. Cast it"),
        (
            column("text", expression="x", **personal("mask")),
            "date",
            "its expression gives date, and mask needs text. Cast it",
        ),
        (
            column("integer", **personal("generalise", to="year")),
            "text",
            "the field is text, and year needs a date or a timestamp",
        ),
        (
            column("text", **personal("generalise", to="month")),
            "int",
            "the field is integer, and month needs a date or a timestamp",
        ),
        (
            column("text", **personal("generalise", to="prefix")),
            "int",
            "the field is integer, and prefix needs text",
        ),
        (
            column("integer", **personal("generalise", to="bucket")),
            "double",
            "the field is a double, and bucket needs an integer or a decimal",
        ),
        (
            column("text", **personal("hash")),
            "record",
            "the field is a record or a union; name a field inside it, or explode an array with [explode]",
        ),
        (
            column("text", **personal("generalise", to="prefix")),
            "map",
            "the field is a map; name a field inside it, or explode an array with [explode]",
        ),
    ],
)
def test_a_type_that_does_not_fit_is_named_with_what_to_do(made, type_, message):
    assert explain_misfit(made, TYPES[type_]) == message


def test_types_have_the_words_of_contracts():
    assert {name: describe_type(spark_type) for name, spark_type in TYPES.items()} == {
        "text": "text",
        "short": "integer",
        "int": "integer",
        "long": "integer",
        "date": "date",
        "timestamp": "timestamp",
        "local": "a timestamp without a zone",
        "boolean": "boolean",
        "float": "a float",
        "double": "a double",
        "decimal(9,2)": "decimal(9,2)",
        "decimal(9,3)": "decimal(9,3)",
        "bytes": "bytes",
        "null": "always null",
        "record": "a record or a union",
        "array": "an array",
        "map": "a map",
    }


@pytest.mark.parametrize(
    ("made", "type_", "expected"),
    [
        (column("text"), "text", False),
        (column("integer"), "int", False),
        (column("integer", source="a"), "long", False),
        (column("decimal(9,2)"), "decimal(9,2)", False),
        (column("decimal(9,3)"), "decimal(9,2)", True),
        (column("decimal(9,2)"), "double", True),
        (column("decimal(9,2)"), "long", True),
        (column("text", expression="x"), "text", True),
        (column("decimal(9,2)", expression="x"), "decimal(9,2)", True),
    ],
)
def test_an_expression_and_a_number_of_another_type_may_fail_on_a_value(made, type_, expected):
    assert may_fail(made, TYPES[type_]) is expected
