"""Every event and every line is counted exactly once.

If two counts of the same thing differ, nothing is published.
"""

from __future__ import annotations

import attrs
import pytest

from glue_jobs.delivery.counts import PartitionReport, ReadCounts, reconcile, require_valid
from glue_jobs.delivery.verify import FileStats
from glue_jobs.errors import Blocked, Inconsistent

#: 1,000 events in the table. 12 files with 200 events were opened, and 100 of these events are in the window.
READ = ReadCounts(
    in_table=1_000, inside=100, invalid_time=3, invalid_time_received=1, null_key=2, whole_table=False
)


def report(**changes) -> PartitionReport:
    """Return 98 events with an outcome: 60 kept, with 150 items, of which 140 are delivered."""
    known = PartitionReport(
        written=140,
        events={"kept": 60, "duplicates": 25, "filtered": 13},
        items=150,
        lines={"delivered": 140, "filtered": 10},
        rows={"delivered": 140, "filtered": 10},
    )
    return attrs.evolve(known, **changes)


def groups(**changes) -> PartitionReport:
    """Return the same lines in 9 groups, of which 2, with 15 lines, are suppressed."""
    states = {"delivered": 125, "suppressed": 15, "filtered": 10}
    rows = {"delivered": 7, "suppressed": 2, "filtered": 1}
    return attrs.evolve(report(written=7, lines=states, rows=rows), **changes)


def stats(rows: int) -> FileStats:
    return FileStats(rows=rows)


def test_counts_of_lines():
    assert reconcile(READ, report(), stats(140), aggregated=False) == {
        "events": {
            "in_table": 1_000,
            "duplicates": 25,
            "outside_window": 897,
            "filtered": 13,
            "kept": 60,
            "invalid_event_time": 3,
            "null_key": 2,
        },
        "lines": {"of_kept_events": 150, "filtered": 10, "suppressed": 0, "delivered": 140},
        "groups": None,
        "rows": 140,
        "withheld": None,
    }


def test_counts_of_groups():
    found = reconcile(READ, groups(), stats(7), aggregated=True)
    assert found["lines"] == {"of_kept_events": 150, "filtered": 10, "suppressed": 15, "delivered": 125}
    assert found["groups"] == {"shown": 7, "suppressed": 2}
    assert found["rows"] == 7
    assert found["withheld"] is None


def test_counts_of_a_whole_table():
    """With the window after the deduplication, every event is read, and those outside are counted one by
    one.
    """
    read = ReadCounts(
        in_table=103, inside=100, invalid_time=3, invalid_time_received=3, null_key=2, whole_table=True
    )
    counted = report(events={"kept": 60, "duplicates": 25, "outside_window": 13})
    found = reconcile(read, counted, stats(140), aggregated=False)["events"]
    assert (found["outside_window"], found["filtered"]) == (13, 0)
    assert sum(found[name] for name in found if name != "in_table") == found["in_table"] == 103


def test_counts_of_an_empty_table_agree():
    found = reconcile(ReadCounts(0, 0, 0, 0, 0, False), PartitionReport(), stats(0), aggregated=False)
    assert set(found["events"].values()) | set(found["lines"].values()) == {0}


def refusal(read: ReadCounts, counted: PartitionReport, rows: int, *, aggregated: bool = False) -> str:
    with pytest.raises(Inconsistent) as wrong:
        reconcile(read, counted, stats(rows), aggregated=aggregated)
    assert wrong.value.code == "EXP-COUNTS"
    assert wrong.value.remedy.startswith("Nothing was published")
    return wrong.value.what


@pytest.mark.parametrize(
    ("read", "counted", "rows", "what"),
    [
        (
            attrs.evolve(READ, inside=101),
            report(),
            140,
            "events read and events with an outcome differ: 99 and 98",
        ),
        (
            attrs.evolve(READ, null_key=1),
            report(),
            140,
            "events read and events with an outcome differ: 99 and 98",
        ),
        (
            READ,
            report(events={"kept": 59, "duplicates": 25, "filtered": 13}),
            140,
            "events read and events with an outcome differ: 98 and 97",
        ),
        (READ, report(items=151), 140, "items of the kept events and lines differ: 151 and 150"),
        (
            READ,
            report(lines={"delivered": 140, "filtered": 9}),
            140,
            "items of the kept events and lines differ: 150 and 149",
        ),
        (READ, report(), 139, "rows written and rows in the finished file differ: 140 and 139"),
        (
            READ,
            report(rows={"delivered": 141}),
            140,
            "delivered lines and rows written differ: 141 and 140",
        ),
        (
            attrs.evolve(READ, in_table=102),
            report(),
            140,
            "the table says it has 102 events, but more were read",
        ),
        (
            attrs.evolve(READ, whole_table=True),
            report(),
            140,
            "events in the table and events with an outcome differ: 1000 and 103",
        ),
    ],
)
def test_each_equation_that_does_not_hold_stops_the_run(read, counted, rows, what):
    assert refusal(read, counted, rows) == what


def test_groups_must_add_up_too():
    assert refusal(READ, groups(rows={"delivered": 8}), 7, aggregated=True) == (
        "delivered groups and rows written differ: 8 and 7"
    )
    lost = {"delivered": 125, "suppressed": 14, "filtered": 10}
    assert (
        refusal(READ, groups(lines=lost), 7, aggregated=True)
        == "items of the kept events and lines differ: 150 and 149"
    )


@pytest.mark.parametrize(
    ("shown", "suppressed", "is_withheld"),
    [(0, 1, True), (0, 2, False), (0, 0, False), (3, 2, False), (1, 0, False)],
)
def test_counts_are_withheld_only_if_a_single_group_is_suppressed(shown, suppressed, is_withheld):
    lines = {"delivered": 100 * bool(shown), "suppressed": 50 * bool(suppressed)}
    counted = PartitionReport(
        written=shown,
        events={"kept": 98},
        items=sum(lines.values()),
        lines=lines,
        rows={"delivered": shown, "suppressed": suppressed},
    )
    found = reconcile(READ, counted, stats(shown), aggregated=True)
    assert found["groups"] == {"shown": shown, "suppressed": suppressed}
    assert (found["events"] is None, found["lines"] is None, bool(found["withheld"])) == (is_withheld,) * 3


@pytest.mark.parametrize(
    ("counts", "limit", "kept_back"),
    [
        ({}, 1, False),
        ({"invalid_time": 10, "invalid_time_received": 0}, 1, False),
        (
            {"invalid_time": 11, "invalid_time_received": 0},
            1,
            False,
        ),  # all of the table's history, received at another time
        ({"invalid_time": 2, "invalid_time_received": 2, "in_window": 50, "null_key_in_window": 0}, 1, True),
        ({"null_key": 90, "in_window": 50, "null_key_in_window": 0}, 1, False),  # of other windows
        ({"null_key": 2, "in_window": 50, "null_key_in_window": 2}, 1, True),
        ({"invalid_time": 2, "invalid_time_received": 2}, 1, True),  # of one week among many
        ({"null_key": 1}, 1, False),
        ({"null_key": 2}, 1, True),
        ({"null_key": 1}, 0, True),
        ({"invalid_time": 1_000, "invalid_time_received": 900, "inside": 0}, 100, False),
        ({"in_table": 0, "inside": 0}, 0, False),
    ],
)
def test_too_many_unusable_events_block_the_file(counts, limit, kept_back):
    read = attrs.evolve(attrs.evolve(READ, invalid_time=0, invalid_time_received=0, null_key=0), **counts)
    if not kept_back:
        require_valid(read, limit, "2026-W46")
        return
    with pytest.raises(Blocked) as blocked:
        require_valid(read, limit, "2026-W46")
    assert (blocked.value.code, blocked.value.exit_code) == ("EXP-INVALID-EVENTS", 7)
    assert "source.max_invalid_percent" in str(blocked.value)


def test_what_is_wrong_with_events_is_said_without_a_total():
    read = attrs.evolve(READ, invalid_time_received=1_200, null_key=3_400, inside=5_000)
    with pytest.raises(Blocked) as blocked:
        require_valid(read, 10, "2026-W46")
    assert blocked.value.what == (
        "window 2026-W46: 1,200 events that Kafka received during the window have no valid time, and 3,400 of "
        "its events have no key: more than 10 % (source.max_invalid_percent)"
    )


@pytest.mark.parametrize(
    ("received", "null_key", "limit", "kept_back"),
    [(0, 10, 10, False), (0, 11, 10, True), (5, 5, 9, True), (5, 5, 10, False), (100, 100, 100, False)],
)
def test_the_limit_is_of_events_of_the_window_and_of_those_without_a_time(
    received, null_key, limit, kept_back
):
    """A hundred events are in the window. Those without a time that Kafka received then are added."""
    read = attrs.evolve(READ, invalid_time_received=received, null_key=null_key, inside=100)
    if kept_back:
        with pytest.raises(Blocked):
            require_valid(read, limit, "2026-W46")
    else:
        require_valid(read, limit, "2026-W46")


def test_why_counts_are_withheld_is_said():
    alone = PartitionReport(events={"kept": 98}, items=50, lines={"suppressed": 50}, rows={"suppressed": 1})
    found = reconcile(READ, alone, stats(0), aggregated=True)
    assert found == {
        "events": None,
        "lines": None,
        "groups": {"shown": 0, "suppressed": 1},
        "rows": 0,
        "withheld": "The only group of this window is too small to be shown, and counts of events and lines "
        "would reveal its size. The counts agree, but they are withheld.",
    }


def test_a_table_with_exactly_the_events_that_were_read_has_none_outside():
    read = attrs.evolve(READ, in_table=103)
    found = reconcile(read, report(), stats(140), aggregated=False)["events"]
    assert (found["outside_window"], found["in_table"]) == (0, 103)
