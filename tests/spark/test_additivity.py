"""An average has no total, and no headline or chart adds up averages."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from config.exports.contracts import parse
from glue_jobs import additivity
from glue_jobs.errors import BadInput
from tests.support.lake import MONDAY, column, contract, topic_of

DEGREES = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
THINGS = topic_of(("name", "string"), ("pieces", "int"), ("degrees", DEGREES))
SUMS = """
sum(pieces)
SUM(ALL pieces)
try_sum(pieces)
count(*)
count(name)
count_if(pieces > 1)
sum(pieces) FILTER (WHERE pieces > 1)
sum(pieces) + count(*) - count_if(pieces > 1)
-sum(pieces)
sum(pieces) / 100
sum(cast(pieces as decimal(18,0)) * degrees) / 100
try_divide(sum(pieces), 100)
2 * sum(pieces)
sum(pieces) * (1 - 0.19)
cast(round(sum(degrees), 1) as decimal(12,2))
try_cast(cast(sum(degrees) as string) as decimal(12,2))
coalesce(sum(pieces), 0)
nvl(sum(degrees), 0.00)
""".strip().splitlines()
NO_SUMS = """
avg(pieces)
mean(degrees)
try_avg(degrees)
min(pieces)
max(pieces)
count(DISTINCT name)
sum(DISTINCT pieces)
bit_and(pieces)
bit_or(pieces)
bit_xor(pieces)
sum(degrees) / count(*)
try_divide(sum(degrees), sum(pieces))
100 / sum(pieces)
sum(pieces) + max(pieces)
sum(pieces) + 1
sum(pieces) * count(*)
round(avg(degrees), 2)
cast(avg(degrees) as decimal(12,2))
cast(cast(sum(pieces) as boolean) as int)
coalesce(sum(pieces), 1)
coalesce(sum(pieces), max(pieces))
greatest(sum(pieces), 0)
CASE WHEN count(*) > 5 THEN sum(pieces) END
if(count(*) > 5, sum(pieces), 0)
abs(sum(pieces))
sum(pieces) % 7
sum(pieces) div 100
length(max(name))
power(sum(pieces), 2)
""".strip().splitlines()
AMOUNTS = """
pieces * degrees * (1 - degrees)
pieces / 100
degrees * (pieces / 7)
pieces * (degrees / pieces)
coalesce(pieces, 0)
if(hour(at) < 12, pieces, 0)
CASE WHEN year(at) = 2024 AND degrees / pieces > 1 THEN pieces END
length(name)
transform(array(pieces), x -> x / 100)[0]
""".strip().splitlines()
NO_AMOUNTS = """
degrees / pieces
degrees * (1.0 / pieces)
degrees * try_divide(100, pieces)
transform(array(degrees), x -> x / pieces)[0]
transform(array(pieces), x -> degrees / x)[0]
cast(date_format(at, 'HH') as int)
degrees / pieces * 100
round(try_divide(degrees, pieces), 2)
hour(at)
extract(YEAR FROM at)
coalesce(month(at), 0)
greatest(dayofweek(at), 1)
CASE WHEN pieces > 1 THEN minute(at) ELSE 0 END
pieces % 7
pieces div 7 + 1
unix_seconds(at)
position('a' IN name)
""".strip().splitlines()
NO_PERSONS = {"no_persons_because": "Things."}


def measured(*measures):
    return [column(f"m{index}", "decimal(38,2)", measure=measure) for index, measure in enumerate(measures)]


def refused(spark, text):
    return dict(additivity.find_problems(spark, parse(text, name="things")))


def totals_of(spark, text):
    decided = additivity.decide_additivity(spark, parse(text, name="things"))
    return {column.name: column.totals for column in decided.columns}


def test_only_sums_and_counts_may_be_a_headline_or_the_height_of_a_chart(spark):
    columns = measured(*SUMS, *NO_SUMS)
    names = [made["name"] for made in columns]
    charts = [{"title": name, "x": "name", "y": name} for name in names]
    report = {"headline": names, "chart": charts}
    text = contract(column("name"), *columns, aggregate=NO_PERSONS, report=report)
    found = refused(spark, text)
    wrong = range(len(SUMS), len(names))
    assert set(found) == {f"report.headline[{n}]" for n in wrong} | {f"report.chart[{n}].y" for n in wrong}
    because = "does not add up: its measure is not a sum or a count"
    assert all(found[f"report.headline[{n}]"].startswith(f"m{n} {because}") for n in wrong)


def test_ratios_and_parts_of_dates_add_up_only_if_the_contract_says_so(spark):
    expressions = enumerate([*AMOUNTS, *NO_AMOUNTS])
    columns = [column(f"c{index}", "decimal(38,2)", expression=text) for index, text in expressions]
    names = [made["name"] for made in columns]
    found = refused(spark, contract(column("name"), *columns, report={"headline": names}))
    assert set(found) == {f"report.headline[{n}]" for n in range(len(AMOUNTS), len(names))}
    assert all("write adds_up = true" in message for message in found.values())
    said = [made | {"adds_up": True} for made in columns]
    assert refused(spark, contract(column("name"), *said, report={"headline": names})) == {}


@pytest.mark.parametrize("key", ["expression", "measure"])
@pytest.mark.parametrize("text", ["try_divide(sum(pieces))", "try_multiply(1)", "coalesce()", "round()"])
def test_a_function_that_lacks_arguments_is_left_to_spark(spark, key, text):
    """The analyser says that the number of arguments is wrong."""
    aggregate = NO_PERSONS if key == "measure" else None
    refused(spark, contract(column("name"), column("x", "decimal(12,2)", **{key: text}), aggregate=aggregate))


def test_a_contract_can_not_declare_that_an_average_adds_up(spark):
    columns = column("name"), column("mean", "decimal(12,2)", measure="avg(degrees)", adds_up=True)
    found = refused(spark, contract(*columns, aggregate=NO_PERSONS))
    assert list(found) == ["column[1].adds_up"]
    assert "mean does not add up" in found["column[1].adds_up"]
    assert "Remove adds_up" in found["column[1].adds_up"]


def test_columns_that_do_not_add_up_have_a_least_and_a_greatest_value_but_no_sum(spark):
    columns = [
        column("pieces", "integer"),
        column("price", "decimal(9,2)", expression="degrees", adds_up=False),
        column("hour", "integer", expression="hour(at)"),
        column("since", "integer", **{"from": "at"}, personal={"treatment": "generalise", "to": "year"}),
        column("name"),
    ]
    without = ("min", "max")
    all_three = ("sum", "min", "max")
    expected = {"pieces": all_three, "price": without, "hour": without, "since": without, "name": ()}
    assert totals_of(spark, contract(*columns)) == expected


def test_a_number_by_which_rows_are_grouped_does_not_add_up(spark):
    columns = column("pieces", "integer"), column("things", "integer", measure="count(*)")
    assert totals_of(spark, contract(*columns, aggregate=NO_PERSONS)) == {
        "pieces": ("min", "max"),
        "things": ("sum", "min", "max"),
    }


def test_a_check_that_sums_what_does_not_add_up_is_refused_by_name(spark):
    columns = column("name"), *measured("avg(degrees)", "sum(degrees)")
    checks = [
        {"id": "a", "severity": "warn", "message": "m", "overall": "sum_m0 > 0 AND max_m0 < 9 AND rows > 0"},
        {"id": "b", "severity": "warn", "message": "m", "overall": "sum_m1 > 0"},
    ]
    found = refused(spark, contract(*columns, aggregate=NO_PERSONS, check=checks))
    assert list(found) == ["check[0].overall"]
    assert found["check[0].overall"].startswith("sum_m0 is unknown, because m0 does not add up")
    assert "Use min_m0 or max_m0" in found["check[0].overall"]


def test_a_check_that_sums_several_units_is_refused_by_name(spark):
    columns = column("name"), column("pieces", "integer", per="name", unit="unit of the name")
    checks = [
        {"id": "a", "severity": "warn", "message": "m", "overall": "sum_pieces > 0 AND min_pieces >= 0"}
    ]
    found = refused(spark, contract(*columns, check=checks))
    assert list(found) == ["check[0].overall"]
    assert found["check[0].overall"].startswith(
        "sum_pieces is unknown, because the unit of pieces varies by name"
    )


def test_expressions_that_spark_can_not_parse_are_left_to_their_own_check(spark):
    columns = column("name"), *measured("sum(degrees"), column("other", "integer", measure="avg(")
    report = {"headline": ["m0", "other"]}
    assert refused(spark, contract(*columns, aggregate=NO_PERSONS, report=report)) == {}


EVENTS = [
    {"id": "1", "at": MONDAY, "name": "a", "pieces": 2, "degrees": Decimal(20)},
    {"id": "2", "at": MONDAY, "name": "a", "pieces": 4, "degrees": Decimal(21)},
    {"id": "3", "at": MONDAY, "name": "b", "pieces": 6, "degrees": Decimal(22)},
]
AVERAGES = (
    column("name"),
    column("mean", "decimal(9,2)", measure="avg(degrees)"),
    column("pieces", "integer", measure="sum(pieces)"),
)


def test_the_job_refuses_a_headline_and_a_chart_of_averages_and_publishes_nothing(lake):
    lake.commit(THINGS, *EVENTS)
    report = {"headline": ["pieces", "mean"], "chart": [{"title": "t", "x": "name", "y": "mean"}]}
    with pytest.raises(BadInput) as stopped:
        lake.export(contract(*AVERAGES, aggregate=NO_PERSONS, report=report))
    assert stopped.value.code == "EXP-NOT-ADDITIVE"
    assert "report.headline[1]: mean does not add up" in stopped.value.what
    assert "report.chart[0].y: mean does not add up" in stopped.value.what
    assert "headline[0]" not in stopped.value.what
    assert lake.published() == []


@pytest.mark.slow
def test_the_published_totals_have_no_sum_of_averages(lake):
    lake.commit(THINGS, *EVENTS)
    holds = "max_mean < 30 AND sum_pieces = 12"
    checks = [{"id": "warm", "severity": "block", "message": "m", "overall": holds}]
    report = {"headline": ["pieces"]}
    run = lake.export(contract(*AVERAGES, aggregate=NO_PERSONS, report=report, check=checks))
    manifest = run.manifest()
    assert manifest["totals"]["mean"] == {"min": "20.50", "max": "22.00"}
    assert manifest["totals"]["pieces"] == {"sum": "12", "min": "6", "max": "6"}
    assert [number["total"] for number in manifest["headline"]] == ["12"]
    (package,) = run.files("datapackage")
    fields = json.loads(package)["resources"][0]["schema"]["fields"]
    added = {field["name"]: field.get("adds_up") for field in fields}
    assert added == {"name": None, "mean": False, "pieces": True}
    (page,) = run.files("report")
    assert "sums have no meaning" in page.decode()


@pytest.mark.slow
def test_the_next_window_is_compared_without_sums_of_averages(lake):
    lake.commit(THINGS, *EVENTS)
    text = contract(*AVERAGES, aggregate=NO_PERSONS, report={"headline": ["pieces"]}, window={"every": "day"})
    lake.commit(THINGS, *(event | {"id": f"{event['id']}b", "at": MONDAY.replace(day=5)} for event in EVENTS))
    run = lake.export(text, as_of=MONDAY.replace(day=6))
    assert run.manifest("2024-03-05")["previous_window"]["totals"] == {"pieces": "12"}


@pytest.mark.slow
def test_a_window_with_more_units_than_totals_can_be_listed_for_is_not_published(lake):
    events = [EVENTS[0] | {"id": f"{number}", "name": f"unit {number}"} for number in range(201)]
    lake.commit(THINGS, *events)
    columns = column("id"), column("pieces", "integer", per="name"), column("name")
    run = lake.export(contract(*columns))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-TOO-MANY-UNITS")
    assert "name has more than 200 different values" in run.window()["reason"]
    assert lake.published() == []
    assert run.record.state == "failed"
