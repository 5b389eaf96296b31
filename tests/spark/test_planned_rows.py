"""The rows of a window as they are planned: their columns, partitions and order, and the events as read."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest
from pyspark.sql import functions as F  # noqa: N812

from config.exports import contracts
from config.exports.windows import parse_label
from glue_jobs import session
from glue_jobs.catalogs import GlueCatalog
from glue_jobs.ranges import Layout
from glue_jobs.rows import ExportQuery
from glue_jobs.source import pin
from glue_jobs.store import connect
from tests.support.lake import KEY, MONDAY, WEEK, column, contract, topic_of

pytestmark = pytest.mark.slow
MILLISECOND = timedelta(milliseconds=1)
END = MONDAY + timedelta(days=7)
THINGS = topic_of(("n", "int"), ("items", {"type": "array", "items": "int"}))
LINES = column("id"), column("n", "integer")
COUNTED = ["$outcome", "$partition", "$offset_min", "$line_state"]
NUMBERS = {"no_persons_because": "Numbers."}


def thing(id_, n=0, at=MONDAY):
    return {"id": id_, "at": at, "n": n, "items": [n, n + 1]}


def planned(lake, text, *, times=1, events=1):
    """Return the query of a week. The listing says that files have so many times the rows; without a number
    of events, the table doesn't tell it.
    """
    services = connect()
    made = contracts.load(lake.write_contract(text))
    table = pin(services, lake.target.database, "things")
    table = attrs.evolve(table, events=events and table.events)
    catalog = GlueCatalog(services, lambda: lake.spark)
    window = parse_label(WEEK, made.window)
    query = ExportQuery(session.activate(lake.spark), made, table, [window], KEY, catalog)
    listed = query.files
    files = [attrs.evolve(file, rows=file.rows * times) for file in listed.data]
    vars(query)["files"] = attrs.evolve(listed, data=files)
    return query, query.window(window)


@pytest.fixture(scope="module")
def read(lakes):
    """Events without a time or a key, of the week and of others, by their own time and by Kafka's."""
    lake = lakes()
    for received in (MONDAY - MILLISECOND, MONDAY, END - MILLISECOND, END):
        lake.commit(THINGS, thing("no time", 0, None), at=received)
    valid = [thing("a"), thing(None), thing("late", 1, END), thing(None, 1, END)]
    lake.commit(THINGS, *valid, at=MONDAY)
    return lake


def test_events_are_counted_as_they_are_read(read):
    invalid = {"invalid_time": 4, "invalid_time_received": 2}
    query, window = planned(read, contract(*LINES))
    assert window.count_read() == {"inside": 2, "null_key": 1} | invalid
    assert query.event_count == 8
    after = contract(*LINES, window={"filter_stage": "after_deduplication"})
    query, window = planned(read, after, events=None)
    in_window = {"in_window": 2, "null_key_in_window": 1}
    assert window.count_read() == {"inside": 4, "null_key": 2} | invalid | in_window
    assert query.event_count == 8
    _, window = planned(read, contract(*LINES, deduplicate=None))
    assert window.count_read() == {"inside": 2, "null_key": 0} | invalid


@pytest.fixture(scope="module")
def many(lakes):
    """Twelve things in three files, each of them twice."""
    lake = lakes()
    for start in (8, 0, 4):
        lake.commit(THINGS, *[thing(f"k{n:02}", n % 5) for n in range(start, start + 4)] * 2)
    return lake


HASHED = column("who", **{"from": "id"}, personal={"treatment": "hash", "kind": "id"})
CHECKS = [
    {"id": f"c{number}", "severity": "warn", "message": "M.", "each_row": f"n <> {number}"}
    for number in range(2)
]


def test_the_columns_of_a_file_come_before_those_that_are_counted(many):
    _, window = planned(many, contract(*LINES, HASHED, check=CHECKS))
    made = window.rows()
    assert made.frame.columns == ["id", "n", "who", *COUNTED, "$flags_0"]
    assert (made.hashed_on_write, made.groups) == (frozenset({"who"}), None)
    found = {(row["id"], row["n"], row["who"], row["$flags_0"]) for row in made.frame.collect() if row["id"]}
    kept = {(f"k{n:02}", n % 5, f"k{n:02}", {0: 1, 1: 2}.get(n % 5, 0)) for n in range(12)}
    assert {row for row in found if row[3] is not None} == kept, "hashed only as they are written"
    exploded = contract(*LINES, column("item", "integer"), explode={"array": "items", "as": "item"})
    _, window = planned(many, exploded)
    assert set(window.rows().frame.columns) == {"id", "n", "item", *COUNTED, "$items"}


def delivered(made, *names):
    return [tuple(row[name] for name in names) for row in made.frame.collect() if row["$line_state"] == 0]


@pytest.mark.parametrize(
    "order_by",
    [["id"], ["n", "id"]],
    ids=["the key", "another column"],
)
def test_many_rows_are_in_several_partitions_and_in_order(many, order_by):
    _, window = planned(many, contract(*LINES, delivery={"order_by": order_by}), times=10**6)
    made = window.rows()
    assert made.partitions > 1
    assert made.frame.rdd.getNumPartitions() <= made.partitions
    things = [(f"k{n:02}", n % 5) for n in range(12)]
    expected = sorted(things, key=lambda row: row if order_by == ["id"] else row[::-1])
    assert delivered(made, "id", "n") == expected
    _, few = planned(many, contract(*LINES, delivery={"order_by": order_by}))
    assert (few.rows().partitions, delivered(few.rows(), "id", "n")) == (1, expected)


def test_few_groups_are_in_one_partition_however_many_rows_are_read(many):
    text = contract(
        column("n", "integer"), column("things", "integer", measure="count(*)"), aggregate=NUMBERS
    )
    query, window = planned(many, text, times=10**6)
    made = window.rows()
    try:
        assert (made.partitions, made.frame.rdd.getNumPartitions()) == (1, 1)
        assert int(query.spark.conf.get("spark.sql.shuffle.partitions")) > 1
        assert delivered(made, "n", "things") == [(0, 3), (1, 3), (2, 2), (3, 2), (4, 2)]
        counted = [*COUNTED, "$events", "$offset_max", "$items", "$lines"]
        assert made.frame.columns == ["n", "things", *counted]
        assert made.groups.filter("`$line_state` = 0").count() == 5
        assert (made.hashed_on_write, made.groups.is_cached) == (frozenset(), False)
    finally:
        query.spark.catalog.clearCache()


def test_ranges_of_values_are_in_consecutive_partitions_with_nulls_first(spark):
    values = [(number,) for number in (25, None, 4, 20, 10, 9, 19)]
    frame = session.activate(spark).createDataFrame(values, "number int")
    divided = Layout(3, (10, 20)).spread(frame, F.col("number"))
    rows = divided.select(F.spark_partition_id(), "number").collect()
    assert {tuple(row) for row in rows} == {(0, None), (0, 4), (0, 9), (1, 10), (1, 19), (2, 20), (2, 25)}
