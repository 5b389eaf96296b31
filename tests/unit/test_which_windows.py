"""Which windows a run works on, and in which order, when windows are missing, published, skipped or
blocked.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from config.exports.contract import WindowRule
from config.exports.windows import list_closed_windows
from glue_jobs import runs
from glue_jobs.export import plan, plan_asked

DAY = timedelta(days=1)
FIRST = date(2026, 11, 1)
NIGHT = datetime(2026, 11, 2, 6, tzinfo=UTC)  # the first window is over


def rule(**changes) -> WindowRule:
    known = {"every": "day", "zone": "UTC", "first": FIRST, "restate_for_days": 2}
    return WindowRule(**known | changes)


def planned(rule, as_of, published=(), skipped=(), tried=None):
    found = plan(rule, as_of, published=set(published), skipped=set(skipped), tried=tried or {})
    return [int(window.label[-2:]) for window in found]


def days(*numbers):
    return [f"2026-11-{number:02}" for number in numbers]


def test_no_window_is_due_before_the_first_one_ends():
    assert planned(rule(), NIGHT - DAY) == []


def test_the_last_window_comes_first_then_missing_ones_oldest_first():
    assert planned(rule(), NIGHT + 6 * DAY, published=days(6)) == [7, 1, 2, 3, 4, 5, 6]
    assert planned(rule(), NIGHT + 6 * DAY, published=days(1, 2, 3, 7)) == [7, 4, 5, 6]


def test_the_window_before_the_last_one_comes_first_if_both_are_new_because_the_report_compares_them():
    assert planned(rule(), NIGHT + 3 * DAY) == [3, 4, 1, 2]
    assert planned(rule(), NIGHT + DAY) == [1, 2]
    assert planned(rule(), NIGHT) == [1]


def test_a_window_that_failed_or_is_published_does_not_come_before_the_last_one():
    assert planned(rule(), NIGHT + 3 * DAY, tried={"2026-11-03": "run-1"}) == [4, 1, 2, 3]
    assert planned(rule(), NIGHT + 3 * DAY, published=days(3)) == [4, 1, 2, 3]
    assert planned(rule(), NIGHT + 3 * DAY, published=days(4)) == [4, 1, 2, 3]
    assert planned(rule(), NIGHT + 3 * DAY, skipped=days(4)) == [4, 1, 2, 3]


def test_windows_that_fail_take_turns_behind_all_others():
    """Windows 1 to 20 fail in each run, and a run has time for ten windows."""
    bad = set(days(*range(1, 21)))
    published = set()
    tried = {}
    for run in range(6):
        found = plan(rule(), NIGHT + 28 * DAY, published=published, skipped=set(), tried=tried)[:10]
        labels = {window.label for window in found}
        published |= labels - bad
        tried |= dict.fromkeys(labels & bad, f"run-{run}")
    assert published == set(days(*range(21, 30)))
    assert set(tried) == bad


def test_published_and_skipped_windows_are_checked_until_they_are_too_old():
    assert planned(rule(), NIGHT + 4 * DAY, published=days(1, 2, 3, 5), skipped=days(4)) == [5, 4]
    assert planned(rule(restate_for_days=0), NIGHT + 4 * DAY, published=days(1, 2, 3, 4, 5)) == []
    assert planned(rule(restate_for_days=0), NIGHT + 4 * DAY, published=days(1, 2, 3)) == [4, 5]
    assert planned(rule(restate_for_days=0), NIGHT + 4 * DAY, skipped=days(1, 2, 3, 4)) == [5]


def test_a_window_is_published_again_until_the_moment_at_which_restate_for_days_are_over():
    over = datetime(2026, 11, 4, tzinfo=UTC)  # window 1 ended two days before
    assert planned(rule(), over - timedelta(microseconds=1), published=days(1, 2)) == [2, 1]
    assert planned(rule(), over, published=days(1, 2, 3)) == [3, 2]


def test_a_window_to_check_is_taken_however_old_it_is():
    found = plan(
        rule(restate_for_days=0),
        NIGHT + 4 * DAY,
        published=days(1, 2, 3, 4, 5),
        skipped=set(),
        tried={"2026-11-02": "run-1"},
        to_check=days(2, 9),
    )
    assert [window.label for window in found] == days(2)


def record(*windows, **more):
    return {
        "id": "r",
        "state": "failed",
        "windows": [{"window": label, **document} for label, document in windows],
        **more,
    }


COMPLETE, INCOMPLETE = ({"state": "published", "status": status} for status in ("complete", "incomplete"))
FAILED = {"state": "failed", "exit_code": 9}


@pytest.mark.parametrize(
    ("records", "keeps_table", "expected"),
    [
        ([record(("a", INCOMPLETE), ("b", COMPLETE))], False, {"a"}),
        ([record(("a", INCOMPLETE)), record(("a", COMPLETE))], False, set()),
        ([record(("a", INCOMPLETE)), record(("a", FAILED))], False, {"a"}),
        (
            [record(("a", INCOMPLETE)), record(("a", {"state": "dry_run", "status": "complete"}))],
            False,
            {"a"},
        ),
        ([record(("a", INCOMPLETE)), record(("a", {"state": "incomplete"}))], False, {"a"}),
        ([record(("a", FAILED | {"may_be_published": True}))], False, set()),
        ([record(("a", FAILED | {"may_be_published": True}))], True, {"a"}),
        ([record(("a", FAILED | {"may_be_published": True})), record(("a", FAILED))], True, {"a"}),
        ([record(("a", FAILED | {"may_be_published": True})), record(("a", COMPLETE))], True, set()),
        ([record(("a", FAILED))], True, set()),
        ([record(working_on="a")], True, {"a"}),
        ([record(working_on="a"), record(("a", COMPLETE))], True, set()),
    ],
)
def test_windows_are_to_check_until_a_run_succeeds(records, keeps_table, expected):
    assert runs.list_windows_to_check(records, keeps_table=keeps_table) == expected


def test_windows_that_failed_before_come_last():
    tried = dict(zip(days(1, 2, 4), ("run-2", "run-1", "run-3"), strict=True))
    assert planned(rule(), NIGHT + 5 * DAY, published=days(5), tried=tried) == [6, 3, 5, 2, 1, 4]


def test_the_last_window_comes_behind_the_others_once_it_has_failed():
    assert planned(rule(), NIGHT + 4 * DAY, published=days(1), tried={"2026-11-05": "run-1"}) == [2, 3, 4, 5]
    tried = dict(zip(days(5, 2), ("run-1", "run-2"), strict=True))
    assert planned(rule(), NIGHT + 4 * DAY, published=days(1), tried=tried) == [3, 4, 5, 2]


def test_a_window_that_was_published_and_fails_to_be_published_again_comes_behind_the_others():
    assert planned(rule(), NIGHT + 4 * DAY, published=days(3, 5), tried={"2026-11-05": "run-1"}) == [
        1,
        2,
        4,
        5,
    ]


@pytest.mark.parametrize("stopping", [(5,), (4,), (4, 5), (2, 5), (1, 2, 3, 4, 5)])
def test_windows_that_end_each_run_delay_no_other_window(stopping):
    """As with EXP-MEMORY, the run ends at the first such window."""
    bad = set(days(*stopping))
    published = set()
    tried = {}
    for number in range(8):
        found = plan(rule(), NIGHT + 4 * DAY, published=published, skipped=set(), tried=tried)
        for window in found:
            if window.label in bad:
                tried[window.label] = f"run-{number}"
                break
            published.add(window.label)
    assert published == set(days(1, 2, 3, 4, 5)) - bad
    assert set(tried) == bad, "each of them is tried"


def test_windows_begin_at_the_contracts_first_day_in_its_zone():
    berlin = rule(zone="Europe/Berlin", first=date(2026, 11, 3))
    assert planned(berlin, datetime(2026, 11, 3, 22, 59, tzinfo=UTC)) == []
    assert planned(berlin, datetime(2026, 11, 3, 23, tzinfo=UTC)) == [3]


def planned_asked(numbers, only="", settled=(), tried=None):
    asked = [
        window for window in list_closed_windows(rule(), NIGHT + 9 * DAY) if window.label in days(*numbers)
    ]
    found = plan_asked(asked, only, settled=set(days(*settled)), tried=tried or {})
    return [int(window.label[-2:]) for window in found]


def test_a_run_that_is_asked_for_windows_takes_these_only_oldest_first_however_old_they_are():
    assert planned_asked((2, 3, 4)) == [2, 3, 4]
    assert planned_asked((2, 3, 4), settled=(3, 9)) == [2, 3, 4]


def test_of_these_it_takes_the_missing_or_the_published_ones():
    assert planned_asked((2, 3, 4, 5), "missing", settled=(1, 3)) == [2, 4, 5]
    assert planned_asked((2, 3, 4, 5), "published", settled=(1, 3)) == [3]
    assert planned_asked((2,), "published") == []


def test_windows_that_failed_come_after_the_others_that_it_is_asked_for():
    tried = dict(zip(days(2, 4), ("run-2", "run-1"), strict=True))
    assert planned_asked((2, 3, 4, 5), tried=tried) == [3, 5, 4, 2]
