"""What commands print about a run: its windows in order, and the number of events and lines that did not
become rows.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import attrs
import pytest

from glue_jobs.runs import RunRecord
from lakeferry.local import demo, results
from tests.support import samples

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def record(*windows):
    return RunRecord("run", "weekly_sales", NOON, NOON, NOON + timedelta(hours=1), windows=list(windows))


def window(rows, label="2026-W46"):
    return {"window": label, "state": "published", "rows": rows, "headline": []}


def test_windows_are_shown_in_order_of_time_whatever_order_they_were_published_in():
    rows = results.summarize(
        record(*(window(samples.counts(1), label) for label in ("2026-W46", "2026-W44", "2026-W45")))
    )
    assert [row[1] for row in rows] == ["2026-W44", "2026-W45", "2026-W46"]


def test_every_reason_for_missing_rows_is_counted():
    rows = samples.counts(
        20, duplicates=1_061, filtered=23, invalid_event_time=2, null_key=1, outside_window=500
    )
    rows |= {
        "lines": rows["lines"] | {"filtered": 4, "suppressed": 38},
        "groups": {"shown": 5, "suppressed": 2},
    }
    assert results.describe_left_out(record(window(rows), window(samples.counts(3), "2026-W45"))) == [
        "weekly_sales 2026-W46 left out: duplicates 1,061 · filtered events 23 · events without a valid "
        "time 2 · events without a key 1 · filtered lines 4 · lines of groups too small to be shown 38"
    ]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (samples.counts(0, outside_window=500), "events of other windows 500"),
        (
            samples.counts(0) | {"events": None, "lines": None, "withheld": "…"},
            "the only group, which is too small to be shown",
        ),
    ],
)
def test_an_empty_file_has_a_reason(rows, why):
    assert results.describe_left_out(record(window(rows))) == [f"weekly_sales 2026-W46 left out: {why}"]


def test_a_window_that_failed_has_no_counts():
    failed = {"window": "2026-W46", "state": "failed", "reason": "x", "exit_code": 1}
    assert results.describe_left_out(record(failed)) == []


@pytest.mark.parametrize(
    ("zone", "first_event", "begins", "expected"),
    [
        ("Europe/Paris", datetime(2026, 9, 30, 22, 15, tzinfo=UTC), date(2026, 1, 1), date(2026, 10, 1)),
        ("America/New_York", datetime(2026, 10, 1, 2, tzinfo=UTC), date(2026, 1, 1), date(2026, 9, 30)),
        ("Europe/Paris", datetime(2026, 9, 1, tzinfo=UTC), date(2026, 10, 1), date(2026, 10, 1)),
    ],
)
def test_a_demos_first_window_has_the_first_event_and_is_not_before_the_contracts(
    zone, first_event, begins, expected
):
    contract = samples.contract(samples.TRADES)
    contract = attrs.evolve(contract, window=attrs.evolve(contract.window, zone=zone, first=begins))
    source = demo.Source(topic=None, records=[], first=first_event, last=first_event)
    assert demo.find_first_day(contract, source) == expected
