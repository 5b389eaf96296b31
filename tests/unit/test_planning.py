"""Which windows a run works on: what was missed, oldest first and within a limit, and what late events may still change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import attrs
from hypothesis import given
from hypothesis import strategies as st

from exports.contract import WindowRule
from exports.windows import closed_windows
from glue_jobs.planning import plan

RULE = WindowRule(every="day", zone="UTC", first=date(2026, 11, 1), restate_for_days=2, catch_up=3)
#: Ten days are over.
AS_OF = datetime(2026, 11, 11, 6, tzinfo=UTC)
DAYS = [f"2026-11-{day:02}" for day in range(1, 11)]


def planned(rule: WindowRule = RULE, *, published=(), skipped=(), as_of: datetime = AS_OF) -> tuple[list[str], int]:
    found = plan(rule, as_of, published=set(published), skipped=set(skipped))
    return [window.label for window in found.windows], found.left


def test_a_first_run_takes_the_oldest_windows_up_to_its_limit():
    assert planned() == (DAYS[:3], 7)
    assert planned(attrs.evolve(RULE, catch_up=500)) == (DAYS, 0)


def test_missed_windows_come_before_newer_ones():
    assert planned(published=[DAYS[0], *DAYS[2:4]]) == ([DAYS[1], DAYS[4], DAYS[5]], 4)


def test_windows_that_may_still_change_are_made_again_beside_the_limit():
    assert planned(published=DAYS) == (DAYS[8:], 0)
    assert planned(published=DAYS[4:]) == ([*DAYS[:3], *DAYS[8:]], 1)
    assert planned(attrs.evolve(RULE, restate_for_days=0), published=DAYS) == ([], 0)


def test_a_window_may_change_until_its_time_is_over_to_the_second():
    end = datetime(2026, 11, 11, tzinfo=UTC)
    weekly = attrs.evolve(RULE, restate_for_days=3)
    assert DAYS[9] in planned(weekly, published=DAYS, as_of=end + timedelta(days=3, seconds=-1))[0]
    assert DAYS[9] not in planned(weekly, published=[*DAYS, "2026-11-11"], as_of=end + timedelta(days=3))[0]


def test_windows_that_were_empty_are_not_missing_but_may_fill():
    assert planned(skipped=DAYS) == (DAYS[8:], 0)
    assert planned(published=DAYS[:5], skipped=DAYS[5:8]) == (DAYS[8:], 0)


def test_nothing_is_planned_before_the_first_window_is_over():
    assert planned(as_of=datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)) == ([], 0)
    assert planned(as_of=datetime(2026, 11, 2, tzinfo=UTC)) == (DAYS[:1], 0)
    assert planned(as_of=datetime(2020, 1, 1, tzinfo=UTC)) == ([], 0)


def test_what_is_published_outside_the_rule_changes_nothing():
    assert planned(published=["2025-01-01", "2026-W46", *DAYS]) == (DAYS[8:], 0)


@given(
    st.sampled_from(["day", "iso_week", "month"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia"]),
    st.integers(1, 20),
    st.integers(0, 40),
    st.data(),
)
def test_any_plan_is_in_order_complete_and_within_its_limit(every, zone, catch_up, restate, data):
    rule = WindowRule(every=every, zone=zone, first=date(2026, 9, 10), restate_for_days=restate, catch_up=catch_up)
    closed = [window.label for window in closed_windows(rule, AS_OF)]
    state = {label: data.draw(st.sampled_from(["missing", "published", "skipped"])) for label in closed}
    by = {kind: {label for label in closed if state[label] == kind} for kind in ("missing", "published", "skipped")}
    windows = plan(rule, AS_OF, published=by["published"], skipped=by["skipped"])
    labels = [window.label for window in windows.windows]
    assert labels == sorted(set(labels))
    missing = sorted(by["missing"])
    assert [label for label in labels if label in by["missing"]] == missing[:catch_up]
    assert windows.left == len(missing[catch_up:])
    again = {one.label for one in windows.windows} - by["missing"]
    young = {one.label for one in closed_windows(rule, AS_OF) if one.end > AS_OF - timedelta(days=restate)}
    assert again == young - by["missing"]
