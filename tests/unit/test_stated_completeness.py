"""What is known about a window's events without a look at the table's partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from glue_jobs.completeness import Completeness, Verdict
from glue_jobs.rows import ExportQuery
from glue_jobs.source import NEVER
from tests.support.run_kit import DAY, THINGS, pinned_table, window_of

WINDOW = window_of(DAY)
TICK = timedelta(microseconds=1)


def new_completeness(appended_at=WINDOW.end, stated=None) -> Completeness:
    table = attrs.evolve(pinned_table(), appended_at=appended_at)
    query = ExportQuery(None, THINGS, table, [WINDOW], b"", None)
    return Completeness(query, stated_until=stated)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [(None, False), (WINDOW.end - TICK, False), (WINDOW.end, True), (WINDOW.end + TICK, True)],
)
def test_a_window_is_stated_to_be_complete_if_it_ends_until_then(stated, expected):
    assert new_completeness(stated=stated).is_stated(WINDOW) is expected


def test_what_is_stated_needs_no_events():
    stated = datetime(2026, 11, 12, 7, 5, 9, 123, tzinfo=UTC)
    evidence = "Stated with --complete-until 2026-11-12T07:05:09Z."
    assert new_completeness(NEVER, stated).of(WINDOW) == Verdict(True, evidence)


@pytest.mark.parametrize(
    ("appended_at", "evidence"),
    [
        (NEVER, "the table has no events"),
        (
            WINDOW.end - TICK,
            "the table's last new data is of 2026-11-09 23:59 UTC, before the window's end",
        ),
    ],
)
def test_a_window_that_ended_after_the_last_new_data_is_not_complete(appended_at, evidence):
    assert new_completeness(appended_at).of(WINDOW) == Verdict(False, evidence)
