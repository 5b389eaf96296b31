"""Decimals of all shapes: each result equals that of Python's Decimal, or is refused, or is an error.

None has fewer digits.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.functions import expr
from pyspark.sql.types import DecimalType, StructField, StructType

from config.exports import contracts
from config.exports.contract import Column
from glue_jobs import columns, errors, session
from glue_jobs.analyse import analyse, require_sound
from glue_jobs.decimals import explain_inexact
from glue_jobs.expression_guard import list_nodes
from tests.support.lake import MONDAY, column, contract, topic_of

#: Enough digits for each result of two decimals. Spark has 38.
EXACT = Context(prec=120)
DIGITS = 38
#: Each example is a query of Spark. `--hypothesis-profile=search` tries twenty times as many.
FEW = settings(max_examples=settings.default.max_examples // 20)


@attrs.frozen
class Number:
    precision: int
    scale: int
    value: Decimal


@st.composite
def numbers(draw, most=DIGITS):
    precision = draw(st.integers(1, most))
    scale = draw(st.integers(0, precision))
    digits = draw(st.one_of(st.integers(-9, 9), st.integers(1 - 10**precision, 10**precision - 1)))
    digits = max(min(digits, 10**precision - 1), 1 - 10**precision)
    return Number(precision, scale, EXACT.create_decimal(digits).scaleb(-scale, EXACT))


def number(text, precision, scale):
    return Number(precision, scale, Decimal(text))


def rounded(value, places):
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=EXACT)


def added(values):
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


def fits(value, places):
    return abs(rounded(value, places)) < Decimal(10) ** (DIGITS - places)


@pytest.fixture(scope="module")
def spark_of_job(spark):
    return session.activate(spark)


@pytest.fixture(scope="module")
def compute(spark_of_job, tmp_path_factory):
    """Return a function that computes an expression over rows of decimals as a column: its value, or the code
    of the error.
    """
    file = tmp_path_factory.mktemp("decimals") / "things.toml"
    file.write_text(contract(column("x", "decimal(38,0)")), encoding="utf-8")
    plain = contracts.load(str(file))

    def computed(text, *rows, measure=False, places=0):
        types = [DecimalType(cell.precision, cell.scale) for cell in rows[0]]
        schema = StructType([StructField("ab"[place], type_) for place, type_ in enumerate(types)])
        frame = spark_of_job.createDataFrame([tuple(cell.value for cell in row) for row in rows], schema)
        key = "measure" if measure else "expression"
        shown = Column(name="x", type=f"decimal(38,{places})", title="", description="", **{key: text})
        try:
            judged = attrs.evolve(plain, column=[shown])
            require_sound(analyse(judged, frame)[0], judged, "things")
            result = (
                frame.agg(columns.read_raw_value(shown))
                if measure
                else frame.select(columns.read_raw_value(shown))
            )
            return result.collect()[0][0]
        except Exception as error:
            return errors.translate(error).code

    return computed


@pytest.mark.slow
@FEW
@given(numbers(), numbers(), st.sampled_from("+-"))
@example(number("1e-18", 38, 18), number("0", 1, 0), "+")
@example(number("9" * 38, 38, 0), number("1", 1, 0), "+")
def test_sums_and_differences_are_exact(compute, left, right, operator):
    exact = EXACT.add(left.value, right.value if operator == "+" else -right.value)
    expected = exact if fits(exact, max(left.scale, right.scale)) else "EXP-OVERFLOW"
    assert compute(f"a {operator} b", [left, right]) == expected


@FEW
@given(numbers(), numbers())
@example(number("1e-18", 38, 18), number("100", 3, 0))
@example(number("2.000000123456789012", 38, 18), number("3.000000000000000001", 38, 18))
@example(number("150", 38, 18), number("2.5", 38, 18))
def test_products_are_exact(compute, left, right):
    exact = EXACT.multiply(left.value, right.value)
    places = left.scale + right.scale
    expected = "EXP-EXPRESSION-TYPE" if places > DIGITS else exact if fits(exact, places) else "EXP-OVERFLOW"
    assert compute("a * b", [left, right]) == expected


@FEW
@given(numbers(), numbers(), st.sampled_from([0, 2, 6, 12]))
@example(number("1", 38, 0), number("3", 1, 0), 2)
@example(number("1", 18, 2), number("3", 18, 2), 12)
def test_quotients_are_rounded_half_up_to_the_places_of_the_column_or_more(compute, left, right, places):
    result = compute("a / b", [left, right], places=places)
    if right.value == 0:
        assert result in ("EXP-DIVISION", "EXP-EXPRESSION-TYPE")
    elif isinstance(result, Decimal):
        kept = -result.as_tuple().exponent
        assert kept >= max(places, 6)
        assert result == rounded(EXACT.divide(left.value, right.value), kept)
    else:
        assert result in ("EXP-EXPRESSION-TYPE", "EXP-OVERFLOW")


@pytest.mark.parametrize(
    ("digits", "divisor", "places"),
    [(38, "100", 2), (38, "10.0", 1), (37, "4", 2), (36, "cast(1000 as bigint)", 3), (38, "0.5", 1)],
)
def test_a_quotient_by_a_constant_that_ends_is_exact(compute, digits, divisor, places):
    left = number("1234567890123456789", digits, 0)
    constant = Decimal(re.sub(r"[^0-9.]", "", divisor.removeprefix("cast(").partition(" ")[0]))
    assert compute(f"a / {divisor}", [left], places=places) == EXACT.divide(left.value, constant)


@pytest.mark.slow
@FEW
@given(numbers(), numbers())
@example(number("9" * 38, 38, 0), number("7e-18", 38, 18))
def test_remainders_are_exact(compute, left, right):
    expected = EXACT.remainder(left.value, right.value) if right.value else "EXP-DIVISION"
    assert compute("a % b", [left, right]) in (expected, "EXP-OVERFLOW")


@pytest.mark.slow
@FEW
@given(numbers(), numbers())
@example(number("99999999999999999999", 20, 0), number("1", 1, 0))
def test_an_integral_quotient_is_exact_or_refused(compute, left, right):
    expected = int(EXACT.divide_int(left.value, right.value)) if right.value else "EXP-DIVISION"
    assert compute("a div b", [left, right]) in (expected, "EXP-EXPRESSION-TYPE", "EXP-OVERFLOW")


@pytest.mark.slow
@FEW
@given(
    numbers(),
    numbers(),
    st.sampled_from(["coalesce({}, {})", "if(a is not null, {}, {})", "array({}, {})[0]"]),
)
@example(number("9" * 38, 38, 0), number("1e-18", 38, 18), "coalesce({}, {})")
def test_a_common_type_keeps_all_digits(compute, left, right, text):
    result = compute(text.format("a", "b"), [left, right])
    expected = left.value if fits(left.value, max(left.scale, right.scale)) else "EXP-OVERFLOW"
    assert result in (expected, "EXP-OVERFLOW")
    if (
        max(left.precision - left.scale, right.precision - right.scale) + max(left.scale, right.scale)
        <= DIGITS
    ):
        assert result == expected


@pytest.mark.slow
@FEW
@given(st.lists(numbers(30), min_size=1, max_size=5), st.integers(0, 8))
def test_sums_and_averages_of_rows_are_exact_or_rounded_once(compute, values, factor):
    """All values of a column have one type, which is the first one's."""
    first = values[0]
    rows = [rounded(value.value, first.scale) for value in values]
    rows = [
        value if abs(value) < Decimal(10) ** (first.precision - first.scale) else Decimal(0) for value in rows
    ]
    table = [[attrs.evolve(first, value=value), number(factor, 1, 0)] for value in rows]
    total = added(rows)
    assert compute("sum(a)", *table, measure=True) == total
    assert compute("sum(a * b)", *table, measure=True) == EXACT.multiply(total, Decimal(factor))
    average = compute("avg(a)", *table, measure=True)
    places = first.scale + 4
    if places >= 6:
        assert average == rounded(EXACT.divide(total, Decimal(len(rows))), places)
    else:
        assert average == "EXP-EXPRESSION-TYPE"


WIDE = topic_of(
    *(
        (name, {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18})
        for name in ("amount", "fee")
    ),
    ("rate", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 30}),
)


@pytest.fixture(scope="module")
def wide(lakes):
    lake = lakes()
    rows = {
        "tiny": ("0.000000000000000001", "0.000000000000000001", "0.000000000000000000000000000001"),
        "some": ("2.000000123456789012", "3.000000000000000001", "0.5"),
        "many": ("150", "2.5", "1"),
    }
    for id_, values in rows.items():
        lake.commit(
            WIDE,
            {"id": id_, "at": MONDAY}
            | dict(zip(("amount", "fee", "rate"), map(Decimal, values), strict=True)),
        )
    return lake


SUMMED = {"no_persons_because": "Numbers only."}


def only(id_):
    return [{"where": f"id = '{id_}'", "reason": "the case at hand"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "type_", "id_", "expected"),
    [
        ("fee * 100", "decimal(38,18)", "tiny", "0.000000000000000100"),
        ("fee * 1.0", "decimal(38,19)", "tiny", "0.0000000000000000010"),
        ("fee + 0", "decimal(38,18)", "tiny", "0.000000000000000001"),
        ("amount * fee", "decimal(38,36)", "some", "6.000000370370367038000000123456789012"),
        ("amount * fee", "decimal(38,18)", "some", "6.000000370370367038"),
        ("cast(amount as decimal(20,6)) * cast(fee as decimal(12,4))", "decimal(18,2)", "many", "375.00"),
        ("amount / cast(fee as decimal(12,4))", "decimal(18,4)", "many", "60.0000"),
    ],
)
def test_an_expression_of_long_decimals_keeps_its_digits(wide, text, type_, id_, expected):
    run = wide.export(
        contract(column("id"), column("x", type_, expression=text), name="exact", filter=only(id_))
    )
    assert run.column("x") == [expected]


@pytest.mark.slow
def test_a_measure_and_a_filter_of_long_decimals_keep_their_digits(wide):
    positive = [*only("tiny"), {"where": "fee * 1 > 0", "reason": "no fee"}]
    measures = (
        column("total", "decimal(38,18)", measure="sum(fee * 1)"),
        column("mean", "decimal(38,18)", measure="avg(fee)"),
    )
    run = wide.export(contract(column("id"), *measures, name="sums", filter=positive, aggregate=SUMMED))
    assert [list(row.values()) for row in run.cells()] == [
        ["tiny", "0.000000000000000001", "0.000000000000000001"]
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("columns", "sections", "code", "reason"),
    [
        (
            [column("x", "decimal(38,18)", expression="amount * rate")],
            {},
            "EXP-EXPRESSION-TYPE",
            "column x: multiplies decimals with 18 and 30 decimal places",
        ),
        (
            [column("x", "decimal(38,18)", measure="sum(fee * rate)")],
            {"aggregate": SUMMED},
            "EXP-EXPRESSION-TYPE",
            "column x: multiplies decimals with 18 and 30 decimal places",
        ),
        (
            [column("x", "decimal(38,2)", expression="cast(amount as decimal(38,0)) / 3")],
            {},
            "EXP-EXPRESSION-TYPE",
            "column x: has a quotient that Spark rounds to 2 decimal places, and 6 are needed",
        ),
        (
            [column("x", "decimal(38,30)", measure="avg(amount)")],
            {"aggregate": SUMMED},
            "EXP-EXPRESSION-TYPE",
            "column x: has an average that Spark rounds to 22 decimal places, and 30 are needed",
        ),
        (
            [column("x", "integer", expression="amount div fee")],
            {},
            "EXP-EXPRESSION-TYPE",
            "column x: has an integral quotient (div)",
        ),
        (
            [column("x", "integer", expression="floor(cast(amount as double))")],
            {},
            "EXP-EXPRESSION-TYPE",
            "column x: rounds a double to an integer",
        ),
        (
            [],
            {"filter": [{"where": "fee * rate > 0", "reason": "r"}]},
            "EXP-EXPRESSION-TYPE",
            "filter[0].where: multiplies decimals",
        ),
        (
            [column("y", expression="id"), column("x", "decimal(38,18)", expression="amount * fee")],
            {},
            "EXP-OVERFLOW",
            "a number is too large for its type (column x)",
        ),
    ],
)
def test_an_expression_that_would_lose_digits_is_refused_by_name(wide, columns, sections, code, reason):
    run = wide.export(contract(column("id"), *columns, name="refused", **sections))
    assert run.window()["code"] == code
    assert reason in run.window()["reason"]
    assert wide.published("refused") == wide.keys("exports/refused/data/") == []


MIXED = topic_of(("big", "long"))


@pytest.mark.parametrize(
    ("expression", "becomes_double"),
    [
        ("big / 100", "a bigint"),
        ("wide + '0'", "a decimal(38,0)"),
        ("wide = '1'", "a decimal(38,0)"),
        ("big in (1.5D)", "a bigint"),
        ("coalesce(single, 0.0)", "a float"),
        ("if(small = 1, big, double)", "a bigint"),
        ("coalesce(big * 2, double)", "a bigint"),
        ("big * 1e0", "a bigint"),
        ("cast(big as decimal(18,0)) / 100", None),
        ("cast(big as double) / 100", None),
        ("small / 100", None),
        ("big * double", None),
        ("big = '1'", None),
        ("sqrt(big)", None),
        ("coalesce(double, 0)", None),
        ("wide + 0", None),
    ],
)
def test_no_exact_number_becomes_a_double_unless_the_contract_says_so(
    spark_of_job, expression, becomes_double
):
    numbers = (
        "cast(1 as bigint) big, 1 small, cast(1 as float) single, 1e0 double, cast(1 as decimal(38,0)) wide"
    )
    values = spark_of_job.sql(f"select {numbers}").select(expr(expression))
    root = values._jdf.queryExecution().analyzed().expressions().apply(0)
    reasons = [
        reason for node in list_nodes(root) if (reason := explain_inexact(spark_of_job, node, (20, 2)))
    ]
    if becomes_double:
        assert [reason.split(" into")[0] for reason in reasons] == [f"turns {becomes_double}"]
    else:
        assert reasons == []


def test_a_bigint_that_would_become_a_double_is_refused_by_name(lake):
    lake.commit(MIXED, {"id": "a", "at": MONDAY, "big": 2**53 + 1})
    text = contract(column("id"), column("x", "decimal(20,2)", expression="big / 100"))
    assert "column x: turns a bigint into a double" in lake.export(text).window()["reason"]
    kept = contract(column("id"), column("x", "decimal(20,2)", expression="cast(big as decimal(19,0)) / 100"))
    assert lake.export(kept).column("x") == ["90071992547409.93"]
