"""Which events count: duplicates, order, keys, dates, and on which side of the deduplication the window stands."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from lake import AS_OF, MONDAY, column, contract, topic_of

from glue_jobs import layout

THINGS = topic_of(("n", "int"))
SUNDAY = MONDAY + timedelta(days=6, hours=23)
LINES = [column("id", nullable=True), column("n", "integer")]
#: Both weeks that the events of some tests lie in are over.
LATER = AS_OF + timedelta(days=7)


def thing(id_, n, at=MONDAY):
    return {"id": id_, "at": at, "n": n}


def pairs(run, label=None):
    return [(row["id"], int(row["n"])) for row in run.cells(label)]


@pytest.fixture(scope="module")
def mixed(lakes):
    """Duplicates over files and snapshots, keys that name nothing, dates that date nothing, and the neighbours' events."""
    lake = lakes()
    ahead = datetime.now(UTC) + timedelta(days=3)
    lake.commit(THINGS, thing("a", 1), thing("b", 10), thing("b", 10), files=3)
    lake.commit(THINGS, thing("a", 3), thing("c", 5), at=MONDAY + timedelta(hours=2))
    lake.commit(THINGS, thing("a", 2), at=MONDAY + timedelta(hours=1))
    lake.commit(THINGS, thing("tie", 1), at=SUNDAY, keys=[b"same"])
    lake.commit(THINGS, thing("tie", 2), at=SUNDAY, keys=[b"same"])
    lake.commit(THINGS, thing(None, 1), thing("", 2), thing(" ", 3))
    undatable = (None, datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), ahead, datetime(9999, 12, 31, tzinfo=UTC))
    lake.commit(THINGS, *(thing(f"undated{n}", n, at) for n, at in enumerate(undatable)))
    outside = (MONDAY - timedelta(microseconds=1), MONDAY + timedelta(days=7))
    lake.commit(THINGS, *(thing(f"outside{n}", n, at) for n, at in enumerate(outside)))
    return lake


@pytest.mark.parametrize("applies", ["before_deduplication", "after_deduplication"])
def test_each_event_meets_one_fate_and_the_latest_of_a_key_counts(mixed, applies):
    run = mixed.export(contract(*LINES, name=applies, window={"applies": applies}))
    assert pairs(run) == [("a", 3), ("b", 10), ("c", 5), ("tie", 2)]
    assert run.manifest()["rows"]["events"] == {
        "in_table": 18,
        "duplicates": 4,
        "outside_window": 2,
        "filtered": 0,
        "kept": 4,
        "undated": 5,
        "unkeyed": 3,
    }


def test_order_and_keep_decide_which_event_counts(mixed):
    chosen = {"key": ["id"], "order": ["n"], "keep": "first"}
    assert pairs(mixed.export(contract(*LINES, name="chosen", deduplicate=chosen))) == [("a", 1), ("b", 10), ("c", 5), ("tie", 1)]


def test_without_deduplication_no_event_is_unkeyed_and_none_a_duplicate(mixed):
    run = mixed.export(contract(*LINES, name="all", deduplicate=None))
    assert [int(n) for n in run.column("n")] == [1, 2, 3, 1, 2, 3, 10, 10, 5, 1, 2]
    assert run.column("id")[:3] == ["", "", " "]
    assert run.manifest()["rows"]["events"]["unkeyed"] == 0


def test_a_duplicate_that_arrives_a_week_later_counts_in_the_week_of_its_event_time(lake):
    lake.commit(THINGS, thing("a", 1, SUNDAY), at=SUNDAY)
    lake.commit(THINGS, thing("a", 1, SUNDAY), thing("b", 2, LATER - timedelta(days=6)), at=LATER - timedelta(days=6))
    run = lake.export(contract(*LINES), as_of=LATER)
    assert (pairs(run, "2024-W10"), pairs(run, "2024-W11")) == ([("a", 1)], [("b", 2)])


def test_a_key_whose_event_time_moves_counts_once_where_its_latest_event_lies(lake):
    moved = SUNDAY + timedelta(days=2)
    lake.commit(THINGS, thing("a", 1, SUNDAY), thing("b", 7, SUNDAY))
    lake.commit(THINGS, thing("a", 2, moved), at=moved)
    after = lake.export(contract(*LINES, window={"applies": "after_deduplication"}), as_of=LATER)
    assert (pairs(after, "2024-W10"), pairs(after, "2024-W11")) == ([("b", 7)], [("a", 2)])
    assert after.manifest("2024-W10")["rows"]["events"]["duplicates"] == 1


def test_neither_order_nor_files_nor_commits_change_a_byte(lakes):
    things = [thing(f"k{n % 40}", n, MONDAY + timedelta(minutes=n)) for n in range(200)]
    shuffled = random.Random(5).sample(things, len(things))
    one, many = lakes(), lakes()
    one.commit(THINGS, *things, files=1)
    for start in range(0, 200, 50):
        many.commit(THINGS, *shuffled[start : start + 50], files=5)
    made = [lake.export(contract(*LINES, deduplicate={"order": ["n"]})).csv() for lake in (one, many)]
    assert made[0] == made[1]
    assert made[0].count(b"\r\n") == 41


def test_many_keys_and_one_that_has_most_rows_over_several_partitions(lake):
    """Enough rows for two partitions, in an order that has nothing to do with the file's; nine in ten have one key."""
    lake.commit(THINGS, thing("seed", -1, MONDAY - timedelta(days=1)))
    table = lake.flow.catalog.load_table((lake.world.database, "things"))
    seed = table.scan().to_arrow()
    count = 220_000
    numbers = [n * 7919 % count for n in range(count)]
    columns = {
        "id": pa.array([f"k{n:06}" if n % 10 == 0 else "most" for n in numbers]),
        "n": pa.array(numbers, pa.int32()),
        "at": pa.array([MONDAY] * count, seed.schema.field("at").type),
        "$$offset": pa.array(numbers, pa.int64()),
        "$$partition": pa.array([0] * count, pa.int32()),
    }
    filled = [columns.get(field.name, pa.nulls(count, field.type)) for field in seed.schema]
    table.append(pa.Table.from_arrays([a.cast(f.type) for a, f in zip(filled, seed.schema, strict=True)], schema=seed.schema))
    assert layout.wanted(count, lake.spark.sparkContext.defaultParallelism) == 2
    run = lake.export(contract(*LINES))
    expected = [(f"k{n:06}", n) for n in range(0, count, 10)] + [("most", count - 1)]
    assert pairs(run) == expected
    assert run.manifest()["rows"]["events"]["duplicates"] == count - len(expected)
