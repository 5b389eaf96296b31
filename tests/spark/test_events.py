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
#: However many events have no valid time or no key.
ANY = {"max_invalid_percent": 100}
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
    undatable = (
        None,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, tzinfo=UTC),
        ahead,
        datetime(9999, 12, 31, tzinfo=UTC),
    )
    lake.commit(THINGS, *(thing(f"undated{n}", n, at) for n, at in enumerate(undatable)))
    outside = (MONDAY - timedelta(microseconds=1), MONDAY + timedelta(days=7))
    lake.commit(THINGS, *(thing(f"outside{n}", n, at) for n, at in enumerate(outside)))
    return lake


@pytest.mark.parametrize("applies", ["before_deduplication", "after_deduplication"])
def test_each_event_meets_one_fate_and_the_latest_of_a_key_counts(mixed, applies):
    run = mixed.export(contract(*LINES, name=applies, window={"applies": applies}, source=ANY))
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
    assert pairs(mixed.export(contract(*LINES, name="chosen", deduplicate=chosen, source=ANY))) == [
        ("a", 1),
        ("b", 10),
        ("c", 5),
        ("tie", 1),
    ]


def test_without_deduplication_no_event_is_unkeyed_and_none_a_duplicate(mixed):
    run = mixed.export(contract(*LINES, name="all", deduplicate=None, source=ANY))
    assert [int(n) for n in run.column("n")] == [1, 2, 3, 1, 2, 3, 10, 10, 5, 1, 2]
    assert run.column("id")[:3] == ["", "", " "]
    assert run.manifest()["rows"]["events"]["unkeyed"] == 0


@pytest.mark.parametrize("applies", ["before_deduplication", "after_deduplication"])
def test_too_many_events_without_a_time_or_a_key_keep_the_file_back(mixed, applies):
    run = mixed.export(contract(*LINES, name=f"strict_{applies[0]}", window={"applies": applies}))
    assert (run.state(), run.window()["code"], run.window()["exit_code"]) == ("blocked", "EXP-INVALID-EVENTS", 7)
    assert "5 events of the table have no valid time (5 of them were received during the window), and 3" in run.window()["reason"]
    assert mixed.published(f"strict_{applies[0]}") == mixed.keys(f"exports/strict_{applies[0]}/data/") == []


def test_a_week_without_times_is_noticed_in_a_long_history(lake):
    """Three events in a thousand are a third of those received during the week."""
    lake.commit(THINGS, *(thing(f"old{n}", n, MONDAY - timedelta(days=30)) for n in range(900)), at=MONDAY - timedelta(days=30))
    lake.commit(THINGS, *(thing(f"new{n}", n) for n in range(6)), *(thing(f"bad{n}", n, None) for n in range(3)))
    assert lake.export(contract(*LINES)).window()["code"] == "EXP-INVALID-EVENTS"
    lenient = lake.export(contract(*LINES, name="lenient", source={"max_invalid_percent": 34}))
    assert (lenient.state(), lenient.manifest()["rows"]["events"]["undated"]) == ("published", 3)


def test_events_of_the_last_century_have_a_time(lake):
    then = datetime(1996, 7, 8, tzinfo=UTC)
    lake.commit(THINGS, thing("a", 1, then))
    run = lake.export(contract(*LINES, window={"from": then.date()}), as_of=then + timedelta(days=7))
    assert (run.window()["window"], pairs(run)) == ("1996-W28", [("a", 1)])


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
