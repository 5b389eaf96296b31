"""Each step from events to rows by itself, on a few rows: what it computes, and what it leaves alone."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import attrs
import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read
from pyspark.sql import types as t

from config.exports.contract import Column, Deduplicate, Personal
from glue_jobs import columns, errors, outcomes, session
from glue_jobs.aggregate import duplicate_rows_for_counts, group_rows, suppress_small_groups
from glue_jobs.event_lines import POSITION, has_null_key, to_lines, with_latest_flag
from glue_jobs.rows import _flag_conditions
from tests.support import samples
from tests.support.lake import KEY
from tests.support.oracles import pseudonym

pytestmark = pytest.mark.slow
#: Kafka's metadata of an event: offset, timestamp and partition.
KAFKA = "`$kafka_offset`: bigint, `$kafka_timestamp`: bigint, `$kafka_partition`: int"


@pytest.fixture(scope="module")
def rows(spark):
    """Return a function that makes rows of these columns."""
    active = session.activate(spark)
    return lambda schema, *cells: active.createDataFrame(list(cells), schema)


def column(type_: str = "text", **more) -> Column:
    return Column(name="c", type=type_, title="C", description="C.", **more)


def treated(treatment: str, type_: str = "text", **more) -> Column:
    return column(type_, personal=Personal(treatment=treatment, **more))


def code(compute):
    """Return the code of the error that stops a query, and the column that it names."""
    with pytest.raises(Exception) as stopped:  # noqa: PT011 - PySpark raises many classes
        compute()
    error = errors.translate(stopped.value)
    return error.code, error.what.partition("(")[2].removesuffix(")")


TEXTS = ["Ada King", "Ada", "Ad", "A", " Ada ", "", None]
#: What is exported of each of these texts.
OF_TEXTS = [
    (column(), TEXTS),
    (treated("keep"), TEXTS),
    (treated("mask"), [*["***"] * 6, None]),
    (treated("mask", visible=0), [*["***"] * 6, None]),
    (treated("mask", visible=1), ["***g", "***a", "***d", "***", "*** ", "***", None]),
    (treated("mask", visible=2), ["***ng", "***da", "***", "***", "***a ", "***", None]),
    (treated("generalise", to="prefix"), ["A", "A", "A", "A", "A", "", None]),
    (treated("generalise", to="prefix", size=3), ["Ada", "Ada", "Ad", "A", "Ada", "", None]),
    (treated("hash"), [pseudonym(text, "text") for text in TEXTS]),
    (treated("hash", kind="id"), [pseudonym(text, "id") for text in TEXTS]),
]


def test_a_text_is_exported_as_its_column_says(rows):
    made = rows("x string", *[(text,) for text in TEXTS])
    values = [
        columns.treat_value(column, F.col("x"), t.StringType(), KEY, F.lit(True)).alias(f"c{place}")
        for place, (column, _) in enumerate(OF_TEXTS)
    ]
    found = made.select(*values).collect()
    for place, (_, expected) in enumerate(OF_TEXTS):
        assert [row[place] for row in found] == expected, OF_TEXTS[place][0].personal


def test_dates_and_numbers_are_generalised(rows):
    cells = [
        (date(1999, 12, 31), 29, Decimal("-0.01")),
        (date(2000, 1, 1), -1, Decimal("29.99")),
        (None,) * 3,
    ]
    made = rows("day date, n int, amount decimal(9,2)", *cells)
    cases = [
        ("day", treated("generalise", "integer", to="year"), [1999, 2000, None]),
        ("day", treated("generalise", to="month"), ["1999-12", "2000-01", None]),
        ("n", treated("generalise", "integer", to="bucket", size=10), [20, -10, None]),
        ("n", treated("generalise", "integer", to="bucket"), [29, -1, None]),
        ("amount", treated("generalise", "integer", to="bucket", size=10), [-10, 20, None]),
        ("n", treated("keep", "decimal(4,1)"), [Decimal("29.0"), Decimal("-1.0"), None]),
    ]
    values = []
    for place, (name, column, _) in enumerate(cases):
        value = columns.treat_value(column, F.col(name), made.schema[name].dataType, b"", F.lit(True))
        values.append(value.alias(f"c{place}"))
    result = made.select(*values)
    types = ["bigint", "string", "bigint", "bigint", "bigint", "decimal(4,1)"]
    assert [type_ for _, type_ in result.dtypes] == types
    for place, row in enumerate(zip(*result.collect(), strict=True)):
        assert list(row) == cases[place][2]


def test_what_has_no_value_to_export_is_a_mistake(rows):
    text = t.StringType()
    for made, message in (
        (treated("drop"), "column c is dropped, and has no value to export"),
        (treated("generalise"), "generalise needs `to`"),
        (treated("hash"), "the key has 0 bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            columns.treat_value(made, F.lit("x"), text, b"", F.lit(True))


def test_the_raw_value_is_that_of_the_expression_the_measure_or_the_field(rows):
    made = rows("c int, d int", (1, 2))
    read = [column(), column(source="d"), column(expression="c + d"), column(measure="c - d")]
    assert list(made.select(*map(columns.read_raw_value, read)).first()) == [1, 2, 3, -1]


@pytest.mark.parametrize("type_", ["float", "double"])
def test_a_number_that_is_none_is_an_error_and_every_other_is_exact(rows, type_):
    one = column("decimal(15,9)")

    def read(*values):
        made = rows(f"x {type_}", *[(value,) for value in values])
        value = columns.treat_value(one, F.col("x"), made.schema["x"].dataType, b"", F.lit(True))
        return [row[0] for row in made.select(value).collect()]

    assert read(0.1, -0.1, 1e5, None) == [Decimal("0.1"), Decimal("-0.1"), Decimal(100_000), None]
    for value in (float("nan"), float("inf"), float("-inf")):
        assert code(lambda value=value: read(value)) == ("EXP-NOT-A-NUMBER", "column c")


DAY = "date_from_unix_date({})"
TIME = "timestamp_micros({})"
LAST_MICRO = 2_932_897 * 86_400_000_000 - 1
FIRST_MICRO = -719_162 * 86_400_000_000


@pytest.mark.parametrize(
    ("type_", "printable", "unprintable"),
    [
        (
            "date",
            [DAY.format(-719_162), DAY.format(2_932_896)],
            [DAY.format(-719_163), DAY.format(2_932_897)],
        ),
        (
            "timestamp",
            [TIME.format(FIRST_MICRO), TIME.format(LAST_MICRO)],
            [TIME.format(FIRST_MICRO - 1), TIME.format(LAST_MICRO + 1)],
        ),
    ],
)
def test_only_years_from_1_to_9999_are_printed_in_delivered_lines(rows, type_, printable, unprintable):
    made = rows("delivered boolean", (True,), (False,))
    spark_type = {"date": t.DateType(), "timestamp": t.TimestampType()}[type_]

    def read(text, kept):
        value = columns.make_printable(F.expr(text), column(type_), spark_type, F.col("delivered"))
        return made.filter(kept).select(value.cast("string").isNotNull()).collect()

    for text in printable:
        assert read(text, "delivered") == [(True,)]
    for text in unprintable:
        assert read(text, "not delivered") == [(True,)]
        assert code(lambda text=text: read(text, "delivered")) == ("EXP-DATE-RANGE", "column c")


def test_a_text_without_a_visible_sign_is_blank(rows):
    blank = ["", " ", "\t\n", "\x00", "\x7f", "\u00a0", "\u200b", "\u2028 \u3000"]
    seen = ["!", "~", "a", " a", "\x7fa", "\u00e4", "\u00a0x", "0"]
    made = rows("x string", *[(text,) for text in [*blank, *seen, None]])
    found = [row[0] for row in made.select(columns.is_blank(F.col("x"))).collect()]
    assert found == [*[True] * len(blank), *[False] * len(seen), None]


def kafka(offset, timestamp=0, partition=0):
    return offset, timestamp, partition


def kept(rows, rule, *cells, **more):
    """Return the names of the events that are kept, of (name, key, value, Kafka's metadata)."""
    made = rows(f"name string, id string, n int, {KAFKA}", *[(*cell[:3], *cell[3]) for cell in cells])
    flagged = with_latest_flag(made, rule, **more)
    return sorted(row["name"] for row in flagged.collect() if row["$is_latest"])


def test_the_last_event_of_a_key_in_kafkas_order_is_kept(rows):
    """The offset decides, then Kafka's time, then the partition."""
    rule = Deduplicate(key=["id"])
    events = [
        ("earlier", "a", 9, kafka(1, 9, 9)),
        ("later", "a", 1, kafka(2, 1, 1)),
        ("same offset", "b", 9, kafka(5, 1, 9)),
        ("later time", "b", 1, kafka(5, 2, 1)),
        ("same time", "c", 9, kafka(5, 2, 1)),
        ("higher partition", "c", 1, kafka(5, 2, 2)),
        ("alone", "d", None, kafka(7)),
    ]
    assert kept(rows, rule, *events) == ["alone", "higher partition", "later", "later time"]
    first = attrs.evolve(rule, keep="first")
    assert kept(rows, first, *events) == ["alone", "earlier", "same offset", "same time"]
    assert len(kept(rows, None, *events)) == len(events)


def test_an_order_comes_before_kafkas_and_prefers_events_with_a_value(rows):
    events = [
        ("null", "a", None, kafka(9)),
        ("two", "a", 2, kafka(1)),
        ("one", "a", 1, kafka(2)),
        ("null too", "a", None, kafka(0)),
    ]
    rule = Deduplicate(key=["id"], order=["n"])
    assert kept(rows, rule, *events) == ["two"]
    assert kept(rows, attrs.evolve(rule, keep="first"), *events) == ["one"]
    assert kept(rows, Deduplicate(key=["id"], order=["`$kafka_partition`", "n"]), *events) == ["two"]


def test_all_parts_of_a_key_and_columns_that_hold_whole_keys_separate_events(rows):
    events = [("x", "a", 1, kafka(1)), ("y", "a", 2, kafka(2)), ("z", "a", 2, kafka(3))]
    assert kept(rows, Deduplicate(key=["id", "n"]), *events) == ["x", "z"]
    assert kept(rows, Deduplicate(key=["id"]), *events, within=("n",)) == ["x", "z"]


def test_an_event_has_no_key_if_a_part_of_it_is_null_or_blank(rows):
    made = rows("a string, b int", ("x", 1), (None, 1), ("x", None), (" ", 1), (None, None))

    def found(*key):
        condition = has_null_key(Deduplicate(key=list(key)) if key else None)
        return [row[0] for row in made.select(condition).collect()]

    assert found("a", "b") == [False, True, True, True, True]
    assert found("b") == [False, False, True, False, True]
    assert found() == [False] * 5


FILTERED = """
[[filter]]
where = "n > 0"
reason = "R."
[[filter]]
where = "n < 9"
reason = "R."
"""
EXPLODED = """
[explode]
array = "items"
as = "item"
[[filter]]
where = "coalesce(item, 0) <> 5"
reason = "R."
on = "lines"
[[filter]]
where = "item is null or item > 3"
reason = "R."
on = "lines"
"""
LATEST = "`$is_latest` boolean"


def to_dicts(frame, *names):
    return [tuple(row[name] for name in names) for row in frame.collect()]


def test_each_event_has_one_outcome(rows):
    contract = samples.things(("id", "text"), more=FILTERED)
    events = [
        ("duplicate", 1, True, False),
        ("outside", 1, False, True),
        ("unknown", 1, None, True),
        ("small", 0, True, True),
        ("null", None, True, True),
        ("large", 9, True, True),
        ("kept", 8, True, True),
    ]
    schema = f"id string, n int, inside boolean, {LATEST}, {KAFKA}"
    made = rows(schema, *[(*event, 7, 0, 3) for event in events])
    lines = to_lines(made, contract, F.col("inside"))
    assert {"$is_latest", outcomes.ITEMS}.isdisjoint(lines.columns)
    names = (outcomes.OUTCOME, outcomes.LINE_STATE, outcomes.PARTITION, outcomes.OFFSET_MIN)
    assert to_dicts(lines, "id", *names) == [
        ("duplicate", outcomes.DUPLICATE, None, 3, 7),
        ("outside", outcomes.OUTSIDE, None, 3, 7),
        ("unknown", outcomes.OUTSIDE, None, 3, 7),
        ("small", outcomes.FILTERED, None, 3, 7),
        ("null", outcomes.FILTERED, None, 3, 7),
        ("large", outcomes.FILTERED, None, 3, 7),
        ("kept", outcomes.KEPT, outcomes.DELIVERED, 3, 7),
    ]


def test_an_event_with_an_array_has_a_line_for_each_item_and_is_counted_once(rows):
    contract = samples.things(("id", "text"), more=FILTERED + EXPLODED)
    events = [
        ("four", 1, [4, 5, None, 3], True),
        ("one", 1, [4], True),
        ("none", 1, [], True),
        ("null", 1, None, True),
        ("filtered", 0, [4, 4], True),
        ("duplicate", 1, [4, 4], False),
    ]
    schema = f"id string, n int, items array<int>, {LATEST}, {KAFKA}"
    lines = to_lines(rows(schema, *[(*event, 7, 0, 3) for event in events]), contract, F.lit(True))
    assert "$is_latest" not in lines.columns
    assert dict(lines.dtypes)[outcomes.ITEMS] == "bigint"
    names = ("item", POSITION, outcomes.OUTCOME, outcomes.ITEMS, outcomes.LINE_STATE)
    delivered, left_out = outcomes.DELIVERED, outcomes.FILTERED_LINE
    assert to_dicts(lines, "id", *names) == [
        ("four", 4, 0, outcomes.KEPT, 4, delivered),
        ("four", 5, 1, None, None, left_out),
        ("four", None, 2, None, None, delivered),
        ("four", 3, 3, None, None, left_out),
        ("one", 4, 0, outcomes.KEPT, 1, delivered),
        ("none", None, None, outcomes.KEPT, 0, None),
        ("null", None, None, outcomes.KEPT, 0, None),
        ("filtered", None, None, outcomes.FILTERED, 0, None),
        ("duplicate", None, None, outcomes.DUPLICATE, 0, None),
    ]
    assert {row[outcomes.OFFSET_MIN] for row in lines.collect()} == {7}


COUNTED = "`$outcome` int, `$partition` int, `$offset_min` bigint, `$line_state` int"


def test_a_row_that_counts_an_event_becomes_one_for_its_line_and_one_for_the_event(rows):
    cells = [
        ("kept", outcomes.KEPT, 3, 7, outcomes.DELIVERED),
        ("filtered", outcomes.FILTERED, 3, 8, None),
        ("second line", None, 3, 7, outcomes.FILTERED_LINE),
    ]
    names = ("id", outcomes.OUTCOME, outcomes.PARTITION, outcomes.ITEMS, outcomes.LINE_STATE)
    expected = [
        ("kept", None, None, None, outcomes.DELIVERED),
        ("kept", outcomes.KEPT, 3, 1, None),
        ("filtered", outcomes.FILTERED, 3, 0, None),
        ("second line", None, None, None, outcomes.FILTERED_LINE),
    ]
    assert to_dicts(duplicate_rows_for_counts(rows(f"id string, {COUNTED}", *cells)), *names) == expected
    with_items = rows(f"id string, {COUNTED}, `$items` bigint", *[(*cell, 5) for cell in cells])
    items = [(row[0], row[3]) for row in to_dicts(duplicate_rows_for_counts(with_items), *names)]
    assert items == [("kept", None), ("kept", 5), ("filtered", 5), ("second line", None)]


def aggregated(person="who", size=2, kind=None):
    """Return a contract that groups by region, and counts people if a person is named."""
    rule = f'person_id = "{person}"\nmin_group_size = {size}' if person else 'no_persons_because = "N."'
    columns = [("region", "text"), ("n", "integer", 'measure = "sum(n)"')]
    if kind:
        by_kind = 'personal = {{ treatment = "hash", kind = "{}" }}'.format
        columns.insert(1, ("other", "text", 'from = "alias"', by_kind("phone")))
        columns.insert(2, ("hashed", "text", f'from = "{person}"', by_kind(kind)))
    return samples.things(*columns, more=f"[aggregate]\n{rule}\n")


def grouped(rows, contract, *cells):
    """Return the groups of (region, who, n, offset, outcome, state of the line)."""
    made = rows(
        "region string, who string, n int, `$offset_min` bigint, `$outcome` int, `$line_state` int, "
        "`$partition` int",
        *[(*cell, 3) for cell in cells],
    )
    measures = {"n": F.sum("n")}
    return group_rows(duplicate_rows_for_counts(made), contract, {"region": F.col("region")}, measures)


def delivered(region, who, n=1, offset=7):
    return region, who, n, offset, outcomes.KEPT, outcomes.DELIVERED


def test_lines_events_and_people_of_a_group_are_counted(rows):
    cells = [
        delivered("north", "ada", 1, 7),
        delivered("north", "ADA ", 2, 9),
        delivered("north", "bob", 4, 8),
        delivered("north", None, 8, 6),
        ("north", "eve", 99, 5, outcomes.KEPT, outcomes.FILTERED_LINE),
        ("north", "joe", 99, 4, outcomes.FILTERED, None),
    ]
    found = grouped(rows, aggregated(), *cells)
    names = (
        "$line_state",
        "$outcome",
        "$events",
        "$lines",
        "$items",
        "$offset_min",
        "$offset_max",
        "$persons",
    )
    lines = to_dicts(found.orderBy("$line_state", "$outcome"), "region", *names, "n")
    assert lines == [
        ("north", None, outcomes.KEPT, 5, 0, 5, 5, 9, 0, None),
        ("north", None, outcomes.FILTERED, 1, 0, 0, 4, 4, 0, None),
        ("north", outcomes.DELIVERED, None, 0, 4, None, None, None, 2, 15),
        ("north", outcomes.FILTERED_LINE, None, 0, 1, None, None, None, 0, None),
    ]


@pytest.mark.parametrize(("kind", "people"), [(None, 2), ("text", 2), ("phone", 1), ("id", 2)])
def test_people_are_counted_by_the_spelling_of_the_column_that_hashes_them(rows, kind, people):
    cells = [delivered("north", who) for who in ("+49 (30) 1", "+4930-1")]
    groups = grouped(rows, aggregated(kind=kind), *cells)
    assert groups.filter("`$line_state` = 0").select("$persons").collect() == [(people,)]
    assert grouped(rows, aggregated(person=None), *cells).agg(F.max("$persons")).collect() == [(0,)]


def states(rows, people, size=3, outcome=None):
    """Return the state of each group after suppression, by its name, of (name, people)."""
    made = rows(
        "region string, `$persons` bigint, `$line_state` int",
        *[(region, count, outcomes.DELIVERED) for region, count in people],
        ("left out", 0, outcomes.FILTERED_LINE),
        ("event", 0, None),
    )
    rule = aggregated(size=size).aggregate
    found = suppress_small_groups(made, rule, ["region"])
    assert found.columns == ["region", "$line_state"]
    states = dict(tuple(row) for row in found.collect())
    assert (states.pop("left out"), states.pop("event")) == (outcomes.FILTERED_LINE, None)
    return sorted((region or "" for region, state in states.items() if state == outcomes.SUPPRESSED))


def test_small_groups_are_suppressed_and_one_alone_with_the_next_smallest(rows):
    assert states(rows, [("a", 3), ("b", 4)]) == []
    assert states(rows, [("a", 2), ("b", 0), ("c", 3)]) == ["a", "b"]
    assert states(rows, [("a", 2), ("b", 5), ("c", 4), ("d", 4)]) == ["a", "c"]
    assert states(rows, [("a", 2), (None, 4), ("d", 4)]) == ["", "a"]
    assert states(rows, [("a", 2)]) == ["a"]


def test_groups_that_are_not_about_people_are_all_shown(rows):
    made = rows("region string, `$persons` bigint, `$line_state` int", ("a", 0, outcomes.DELIVERED))
    found = suppress_small_groups(made, aggregated(person=None).aggregate, ["region"])
    assert [tuple(row) for row in found.collect()] == [("a", outcomes.DELIVERED)]
    assert found.columns == ["region", "$line_state"]


def test_each_check_of_a_row_has_a_bit_that_is_set_if_it_fails(rows):
    made = rows("n int", (0,), (1,), (59,), (60,), (61,), (None,))
    found = _flag_conditions([F.col("n") == number for number in range(62)])
    assert list(found) == ["$flags_0", "$flags_1"]
    flags = made.select(*[value.alias(name) for name, value in found.items()])
    assert flags.dtypes == [("$flags_0", "bigint"), ("$flags_1", "bigint")]
    assert [tuple(row) for row in flags.collect()] == [
        (1, 0),
        (2, 0),
        (1 << 59, 0),
        (0, 1),
        (0, 2),
        (0, 0),
    ]
    assert _flag_conditions([]) == {}
    assert list(_flag_conditions([F.lit(True)] * 60)) == ["$flags_0"]
