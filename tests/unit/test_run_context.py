"""What the windows of a run share, and what of it is looked up only when a window needs it."""

from __future__ import annotations

from datetime import date, timedelta

import attrs
import pytest

from glue_jobs.delivery.publish import WindowLocation
from glue_jobs.pseudonyms import PseudonymKey
from glue_jobs.rows import ExportQuery
from tests.support.run_kit import (
    DAY,
    NOW,
    THINGS,
    new_context,
    pinned_table,
    store_manifest,
    window_of,
)


def test_the_query_has_the_runs_key_and_the_session_is_asked_for_once(bucket):
    asked = []

    def session() -> str:
        asked.append("session")
        return "session"

    run = new_context(bucket, spark=session, key=PseudonymKey(b"secret", "version-3"))
    assert (run.key_version, asked) == ("version-3", [])
    expected = ExportQuery("session", THINGS, run.table, run.windows, b"secret", "catalog")
    assert (run.query, run.query) == (expected, expected)
    assert run.completeness.query is run.query
    assert asked == ["session"]
    again = run.reopen()
    assert (again == run, again is run, again.query is run.query) == (True, False, False)
    assert asked == ["session", "session"]


def test_a_run_that_hashes_nothing_has_no_key(bucket):
    run = new_context(bucket, spark=lambda: "session")
    assert (run.key_version, run.query.key) == (None, b"")


def test_what_is_stated_about_the_table_is_told_to_those_who_prove_it(bucket):
    store_manifest(bucket, "2026-11-07")
    until = NOW - timedelta(hours=5)
    run = new_context(bucket, spark=lambda: "session", partitions=6, complete_until=until)
    assert (run.completeness.partitions, run.completeness.stated_until) == (6, until)
    assert run.replacement.completeness is run.completeness
    assert run.replacement.first_day == date(2026, 11, 1)
    assert run.replacement.published == ["2026-11-07"]
    assert run.replacement.read("2026-11-07")["window"]["label"] == "2026-11-07"
    assert run.replacement.read("2026-11-06") is None


def test_a_manifest_is_read_once_for_all_windows(bucket):
    made = store_manifest(bucket, "2026-11-08")
    run = new_context(bucket, spark=lambda: "session")
    assert run.borders == {}
    bucket.delete(["things/manifests/2026-11-08.json"])
    assert run.replacement.read("2026-11-08") == made
    assert run.reopen().replacement.read("2026-11-08") is None


def test_a_window_has_its_place_below_its_export(bucket):
    run = new_context(bucket)
    assert run.location(window_of()) == WindowLocation(bucket, "things", DAY)


def move_to_new_york(bucket, *labels, **changes):
    """Return the context of a run of these windows, whose contract had the zone UTC until now."""
    contract = attrs.evolve(THINGS, window=attrs.evolve(THINGS.window, zone="America/New_York"))
    windows = [window_of(label, contract) for label in labels]
    return new_context(bucket, contract=contract, windows=windows, **changes)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (False, {"2026-11-08": ["2026-11-07"], DAY: ["2026-11-08"]}),
        (True, {"2026-11-08": ["2026-11-07"]}),
    ],
)
def test_borders_are_found_by_window(bucket, accept, expected):
    """A window that is refused stays as it is, so that the next one doesn't fit either."""
    store_manifest(bucket, "2026-11-07")
    store_manifest(bucket, "2026-11-08")
    run = move_to_new_york(bucket, "2026-11-08", DAY, accept_window_change=accept)
    found = {label: [border.neighbour for border in borders] for label, borders in run.borders.items()}
    assert found == expected


@pytest.mark.parametrize(
    ("type_", "neighbours"), [("timestamptz", ["2026-11-08"]), ("timestamp", []), ("date", [])]
)
def test_days_without_a_zone_fit_those_of_any_zone(bucket, type_, neighbours):
    store_manifest(bucket, "2026-11-08")
    run = move_to_new_york(bucket, DAY, table=pinned_table(type_))
    assert [border.neighbour for border in run.borders.get(DAY, [])] == neighbours


class Aggregates:
    """A table of aggregates that notes for which windows it is asked."""

    def __init__(self):
        self.asked = []

    def published_runs(self, labels):
        self.asked.append(labels)
        return {"2026-11-08": "run-1"}


def test_the_table_of_aggregates_is_asked_once_for_all_computed_windows(bucket):
    aggregates = Aggregates()
    computed = {"2026-11-08": {}, "2026-11-07": {}, DAY: {}}
    run = new_context(bucket, aggregates=aggregates, computed=computed)
    assert (run.aggregated, run.aggregated) == ({"2026-11-08": "run-1"}, {"2026-11-08": "run-1"})
    assert aggregates.asked == [["2026-11-07", "2026-11-08", DAY]]
    assert new_context(bucket, computed=computed).aggregated is None


def test_a_phase_is_told_when_it_begins_and_counted_even_if_it_fails(bucket):
    told = []
    run = new_context(bucket, on_phase=lambda window, phase: told.append((window, phase)))
    with run.phase(window_of(), "compute"):
        assert (told, run.record.phases) == ([(DAY, "compute")], {})
    with pytest.raises(ZeroDivisionError), run.phase(window_of(), "verify"):
        told[0] = 1 / 0
    assert told == [(DAY, "compute"), (DAY, "verify")]
    assert sorted(run.record.phases) == ["compute", "verify"]
