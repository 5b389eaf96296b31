"""Every event and every line is accounted for; wherever two counts of one thing differ, nothing is published."""

from __future__ import annotations

import attrs
import pytest

from glue_jobs import outcomes
from glue_jobs.delivery.counts import Read, books, require_valid
from glue_jobs.delivery.multipart import PartitionReport
from glue_jobs.delivery.verify import Inspection
from glue_jobs.errors import Blocked, Inconsistent

#: 1,000 events in the table, of which 12 files with 200 events were opened: 100 of them in the window.
READ = Read(in_table=1_000, inside=100, undated=3, undated_received=1, unkeyed=2, whole_table=False)


def report(**changes) -> PartitionReport:
    """98 events that met a fate: 60 kept with 150 items, of which 140 are delivered."""
    known = PartitionReport(
        records=140,
        events={str(outcomes.KEPT): 60, str(outcomes.DUPLICATE): 25, str(outcomes.FILTERED): 13},
        items=150,
        lines={str(outcomes.DELIVERED): 140, str(outcomes.FILTERED_LINE): 10},
        rows={str(outcomes.DELIVERED): 140, str(outcomes.FILTERED_LINE): 10},
    )
    return attrs.evolve(known, **changes)


def groups(**changes) -> PartitionReport:
    """The same lines in 9 groups, of which 2 are suppressed with 15 lines."""
    states = {str(outcomes.DELIVERED): 125, str(outcomes.SUPPRESSED): 15, str(outcomes.FILTERED_LINE): 10}
    rows = {str(outcomes.DELIVERED): 7, str(outcomes.SUPPRESSED): 2, str(outcomes.FILTERED_LINE): 1}
    return attrs.evolve(report(records=7, lines=states, rows=rows), **changes)


def inspection(rows: int) -> Inspection:
    return Inspection(rows=rows)


def test_books_of_lines():
    assert books(READ, report(), inspection(140), aggregated=False) == {
        "events": {
            "in_table": 1_000,
            "duplicates": 25,
            "outside_window": 897,
            "filtered": 13,
            "kept": 60,
            "undated": 3,
            "unkeyed": 2,
        },
        "lines": {"of_kept_events": 150, "filtered": 10, "suppressed": 0, "delivered": 140},
        "groups": None,
        "rows": 140,
        "withheld": None,
    }


def test_books_of_groups():
    found = books(READ, groups(), inspection(7), aggregated=True)
    assert found["lines"] == {"of_kept_events": 150, "filtered": 10, "suppressed": 15, "delivered": 125}
    assert found["groups"] == {"shown": 7, "suppressed": 2}
    assert found["rows"] == 7
    assert found["withheld"] is None


def test_books_of_a_whole_table():
    """Where the window comes after deduplication, every event was read, and those outside met that fate one by one."""
    read = Read(in_table=103, inside=100, undated=3, undated_received=3, unkeyed=2, whole_table=True)
    counted = report(events={str(outcomes.KEPT): 60, str(outcomes.DUPLICATE): 25, str(outcomes.OUTSIDE): 13})
    found = books(read, counted, inspection(140), aggregated=False)["events"]
    assert (found["outside_window"], found["filtered"]) == (13, 0)
    assert sum(found[name] for name in found if name != "in_table") == found["in_table"] == 103


def test_an_empty_table_has_empty_books():
    found = books(Read(0, 0, 0, 0, 0, False), PartitionReport(), inspection(0), aggregated=False)
    assert set(found["events"].values()) | set(found["lines"].values()) == {0}


def told(read: Read, counted: PartitionReport, rows: int, *, aggregated: bool = False) -> str:
    with pytest.raises(Inconsistent) as wrong:
        books(read, counted, inspection(rows), aggregated=aggregated)
    assert wrong.value.code == "EXP-BOOKS"
    assert wrong.value.remedy.startswith("Nothing was published")
    return wrong.value.what


@pytest.mark.parametrize(
    ("read", "counted", "rows", "what"),
    [
        (attrs.evolve(READ, inside=101), report(), 140, "events read and events that met a fate differ: 99 and 98"),
        (attrs.evolve(READ, unkeyed=1), report(), 140, "events read and events that met a fate differ: 99 and 98"),
        (
            READ,
            report(events={str(outcomes.KEPT): 59, str(outcomes.DUPLICATE): 25, str(outcomes.FILTERED): 13}),
            140,
            "events read and events that met a fate differ: 98 and 97",
        ),
        (READ, report(items=151), 140, "items of the kept events and lines differ: 151 and 150"),
        (
            READ,
            report(lines={str(outcomes.DELIVERED): 140, str(outcomes.FILTERED_LINE): 9}),
            140,
            "items of the kept events and lines differ: 150 and 149",
        ),
        (READ, report(), 139, "rows written and rows in the finished file differ: 140 and 139"),
        (
            READ,
            report(rows={str(outcomes.DELIVERED): 141}),
            140,
            "delivered lines and rows written differ: 141 and 140",
        ),
        (attrs.evolve(READ, in_table=102), report(), 140, "the table says it has 102 events, but more were read"),
        (
            attrs.evolve(READ, whole_table=True),
            report(),
            140,
            "events in the table and events that met a fate differ: 1000 and 103",
        ),
    ],
)
def test_each_equation_that_does_not_hold_stops_the_run(read, counted, rows, what):
    assert told(read, counted, rows) == what


def test_groups_must_add_up_too():
    assert told(READ, groups(rows={str(outcomes.DELIVERED): 8}), 7, aggregated=True) == (
        "delivered groups and rows written differ: 8 and 7"
    )
    lost = {str(outcomes.DELIVERED): 125, str(outcomes.SUPPRESSED): 14, str(outcomes.FILTERED_LINE): 10}
    assert told(READ, groups(lines=lost), 7, aggregated=True) == "items of the kept events and lines differ: 150 and 149"


@pytest.mark.parametrize(
    ("shown", "suppressed", "is_withheld"), [(0, 1, True), (0, 2, False), (0, 0, False), (3, 2, False), (1, 0, False)]
)
def test_counts_are_withheld_only_where_one_group_alone_is_suppressed(shown, suppressed, is_withheld):
    lines = {str(outcomes.DELIVERED): 100 * bool(shown), str(outcomes.SUPPRESSED): 50 * bool(suppressed)}
    counted = PartitionReport(
        records=shown,
        events={str(outcomes.KEPT): 98},
        items=sum(lines.values()),
        lines=lines,
        rows={str(outcomes.DELIVERED): shown, str(outcomes.SUPPRESSED): suppressed},
    )
    found = books(READ, counted, inspection(shown), aggregated=True)
    assert found["groups"] == {"shown": shown, "suppressed": suppressed}
    assert (found["events"] is None, found["lines"] is None, bool(found["withheld"])) == (is_withheld,) * 3


@pytest.mark.parametrize(
    ("counts", "limit", "kept_back"),
    [
        ({}, 1, False),
        ({"undated": 10, "undated_received": 0}, 1, False),
        ({"undated": 11, "undated_received": 0}, 1, True),  # all of the table's history, received at another time
        ({"undated": 2, "undated_received": 2}, 1, True),  # of one week among many
        ({"unkeyed": 1}, 1, False),
        ({"unkeyed": 2}, 1, True),
        ({"unkeyed": 1}, 0, True),
        ({"undated": 1_000, "undated_received": 900, "inside": 0}, 100, False),
        ({"in_table": 0, "inside": 0}, 0, False),
    ],
)
def test_too_many_events_that_can_not_be_used_keep_the_file_back(counts, limit, kept_back):
    read = attrs.evolve(attrs.evolve(READ, undated=0, undated_received=0, unkeyed=0), **counts)
    if not kept_back:
        require_valid(read, limit, "2026-W46")
        return
    with pytest.raises(Blocked) as blocked:
        require_valid(read, limit, "2026-W46")
    assert (blocked.value.code, blocked.value.exit_code) == ("EXP-INVALID-EVENTS", 7)
    assert "source.max_invalid_percent" in str(blocked.value)
