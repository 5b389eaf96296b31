"""What is said about each operation that loses digits of numbers, and which similar ones lose none.

Expressions are only analysed here. `test_decimals` compares what they compute with Python's decimals.
"""

from __future__ import annotations

import pytest
from pyspark.sql.functions import expr

from glue_jobs import session
from glue_jobs.decimals import explain_inexact
from glue_jobs.expression_guard import list_nodes

COLUMNS = {
    "big": "bigint",
    "small": "int",
    "single": "float",
    "double": "double",
    "text": "string",
    "wide": "decimal(38,0)",
    "fee": "decimal(38,18)",
    "rate": "decimal(38,20)",
    "finer": "decimal(38,21)",
    "price": "decimal(9,2)",
    "total": "decimal(38,2)",
    "factor": "decimal(4,1)",
    "d17": "decimal(17,0)",
    "d18": "decimal(18,0)",
    "d19": "decimal(19,0)",
    "cents": "decimal(18,2)",
}
FLOOR = (
    "rounds a double to an integer, which turns NaN into 0: write floor(cast(cast(x as string) as "
    "decimal(18,6)))"
)
PRODUCT = (
    "multiplies decimals with {} and {} decimal places, and a product has at most 38: cast the factors to "
    "decimals with fewer places"
)
ROUNDED = (
    "has {} that Spark rounds to {} decimal places, and {} are needed: cast the dividend to a decimal with "
    "fewer digits before the point, or choose a column type with fewer decimal places"
)
DIV = (
    "has an integral quotient (div) of up to {} digits, and an integer has 18: cast the operands to bigint, "
    "or to decimals with fewer digits"
)
FLOAT = (
    "turns a float into a double, which has other digits (0.1 becomes 0.10000000149011612): cast it first, "
    "such as cast(cast(x as string) as decimal(18,6))"
)
DOUBLE = (
    "turns a {} into a double, which keeps 15 digits: write constants without quotes and exponents, and cast "
    "other operands to decimals, such as cast(x as decimal(18,0))"
)
BIGINT = DOUBLE.format("bigint")


def quotient(places, wanted=6):
    return ROUNDED.format("a quotient", places, wanted)


def average(places, wanted=6):
    return ROUNDED.format("an average", places, wanted)


@pytest.fixture(scope="module")
def explain(spark):
    """Return a function that explains an expression of a column with these digits and decimal places."""
    active = session.activate(spark)
    table = active.sql(f"select {', '.join(f'cast(1 as {type_}) {name}' for name, type_ in COLUMNS.items())}")

    def explained(text, size=(20, 2)):
        root = table.select(expr(text))._jdf.queryExecution().analyzed().expressions().apply(0)
        reasons = {explain_inexact(active, node, size) for node in list_nodes(root)} - {None}
        assert len(reasons) < 2
        return next(iter(reasons), None)

    return explained


def test_doubles_are_not_rounded_to_integers(explain):
    for text in ("floor(double)", "ceil(double)", "floor(single)", "floor(double * 2)"):
        assert explain(text) == FLOOR, text
    for text in ("floor(fee)", "ceil(big)", "round(double)", "abs(double)"):
        assert explain(text) is None, text


def test_a_product_has_38_decimal_places_at_most(explain):
    assert explain("fee * rate") is None
    assert explain("fee * finer") == PRODUCT.format(18, 21)
    assert explain("finer * fee") == PRODUCT.format(21, 18)
    assert explain("fee + finer") is None


def test_a_quotient_has_the_places_of_the_column_and_six_at_least(explain):
    assert explain("wide / price") == quotient(4)
    assert explain("price / 3") is None
    assert explain("price / 3", (20, 6)) is None
    assert explain("price / 3", (20, 7)) == quotient(6, 7)
    assert explain("price / small", (20, 9)) is None
    assert explain("wide / price", (15, 0)) == quotient(4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("wide / 1", None),
        ("wide / 4", None),
        ("wide / 8", quotient(2)),
        ("wide / 5", None),
        ("wide / 25", None),
        ("wide / 125", quotient(2)),
        ("wide / 1048576", quotient(3)),
        ("wide / 20", None),
        ("wide / 3", quotient(2)),
        ("wide / 12", quotient(2)),
        ("wide / 15", quotient(2)),
        ("wide / 30", quotient(2)),
        ("wide / 100", None),
        ("wide / 1000", quotient(2)),
        ("wide / 1000000", quotient(3)),
        ("wide / -4", None),
        ("wide / -3", quotient(2)),
        ("total / 10", None),
        ("total / 100", quotient(3)),
        ("total / 8", quotient(3)),
        ("total / 0.5", None),
        ("total / 0.25", None),
        ("total / 0.001", None),
        ("total / 0", quotient(3)),
        ("total / cast(null as decimal(1,0))", quotient(3)),
        ("total / factor", quotient(3)),
    ],
)
def test_a_quotient_by_a_constant_is_exact_if_it_ends_within_the_places_that_spark_keeps(
    explain, text, reason
):
    assert explain(text) == reason


def test_an_average_has_the_places_of_the_column_and_six_at_least(explain):
    assert explain("avg(wide)") == average(4)
    assert explain("avg(price)") is None
    assert explain("avg(price)", (20, 6)) is None
    assert explain("avg(price)", (20, 7)) == average(6, 7)
    assert explain("avg(fee)", (20, 22)) is None
    assert explain("avg(fee)", (30, 23)) == average(22, 23)
    for text in ("avg(double)", "sum(wide)", "max(wide)"):
        assert explain(text) is None, text


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("d18 div cast(1 as decimal(1,0))", None),
        ("d19 div cast(1 as decimal(1,0))", 19),
        ("cents div price", None),
        ("d17 div factor", None),
        ("d18 div factor", 19),
        ("price div wide", None),
        ("wide div price", 40),
        ("big div small", None),
    ],
)
def test_an_integral_quotient_has_18_digits_at_most(explain, text, digits):
    assert explain(text) == (digits and DIV.format(digits))


@pytest.mark.parametrize(
    "text",
    [
        *(f"big {operator} 1.5D" for operator in ("+", "-", "*", "/", "%", "=", "<=>", "<", "<=", ">", ">=")),
        "1.5D + big",
        "pmod(big, 1.5D)",
        "big in (1.5D)",
        "cast(text as double) + big",
        "cast('1' as double) * big",
        "coalesce(big, double)",
        "coalesce(double, big)",
        "if(small = 1, big, double)",
        "case when small = 1 then big else double end",
        "greatest(big, double)",
        "least(double, big)",
        "big / 100",
        "big / small",
        "small / big",
        "greatest(wide, double, big)",
    ],
)
def test_a_bigint_that_becomes_a_double_keeps_15_digits(explain, text):
    assert explain(text) == BIGINT


def test_decimals_and_floats_that_become_doubles_have_other_digits(explain):
    assert explain("price + '1'") == DOUBLE.format("decimal(9,2)")
    assert explain("wide * 1e0") == DOUBLE.format("decimal(38,0)")
    assert explain("least(total, price, double)") == DOUBLE.format("decimal(38,2)")
    assert explain("single + 0.5D") == FLOAT
    assert explain("single / 2", (16, 2)) == FLOAT
    assert explain("least(single, price)") == FLOAT
    assert explain("coalesce(big, single, double)") == FLOAT


@pytest.mark.parametrize(
    "text",
    [
        "big + double",
        "double < big",
        "big in (double)",
        "wide * double",
        "single + double",
        "cast(big as double) + 1",
        "cast(big as double) + 1.5D",
        "cast(text as double) + 1",
        "coalesce(cast(big as double), double)",
        "small + 1.5D",
        "small / 3",
        "small / small",
        "big / double",
        "coalesce(small, double)",
        "coalesce(double, 1)",
        "5000000000 + 1.5D",
        "double + cast(1 as bigint)",
        "array(big, double)",
        "sqrt(big)",
        "-big",
        "big + text",
        "coalesce(text, big)",
    ],
)
def test_a_computation_with_doubles_of_the_table_and_what_a_double_can_hold_lose_nothing(explain, text):
    assert explain(text) is None


def test_a_column_of_few_digits_has_those_of_a_quotient_of_integers(explain):
    for text in ("big / 100", "big / small", "single / 2"):
        assert explain(text, (15, 2)) is None, text
    assert explain("big / 100", (16, 2)) == BIGINT
    assert explain("big * 1.5D", (15, 2)) == BIGINT
    assert explain("coalesce(big, double)", (15, 2)) == BIGINT
