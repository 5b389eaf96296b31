"""Runs that are asked for certain windows: which ones they publish, and that they touch no other one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from glue_jobs.errors import BadInput
from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
WEEK_LENGTH = timedelta(days=7)
FIRST = MONDAY.date() - 3 * WEEK_LENGTH
WEEKS = contract(*LINES, window={"from": FIRST, "restate_for_days": 0})


def thing(id_, n, week):
    return {"id": id_, "at": MONDAY + week * WEEK_LENGTH, "n": n}


def states(run):
    return [(window["window"], window["state"]) for window in run.record.windows]


def generations(lake):
    below = f"{lake.target.prefix}/things/manifests/"
    return {label: lake.read(f"{below}{label}.json") for label in lake.published()}


def test_missing_windows_of_a_range_are_published_oldest_first_and_no_other_one(lake):
    lake.commit(THINGS, *(thing(f"w{n}", n, n) for n in (-3, -2, -1, 0)))
    lake.export(WEEKS, "--windows", "2024-W08")
    before = generations(lake)
    assert [*before] == ["2024-W08"]
    run = lake.export(WEEKS, "--windows", "2024-W07..W09", "--only", "missing")
    assert states(run) == [("2024-W07", "published"), ("2024-W09", "published")]
    assert run.record.asked == {"windows": "2024-W07..W09", "only": "missing"}
    assert (run.record.windows_left, lake.published()) == (0, ["2024-W07", "2024-W08", "2024-W09"])
    assert generations(lake)["2024-W08"] == before["2024-W08"]
    assert states(lake.export(WEEKS, "--windows", "2024-W07..W09", "--only", "missing")) == []


@pytest.mark.slow
def test_a_published_window_is_computed_again_after_its_time_and_only_if_its_rows_changed(lake):
    lake.commit(THINGS, *(thing(f"w{n}", n, n) for n in (-3, -2, 0)))
    lake.export(WEEKS, "--windows", "2024-W07..W08")
    lake.commit(THINGS, thing("late", 9, -3), thing("later", 9, 0))
    later = AS_OF + timedelta(days=1)
    before = generations(lake)
    assert states(lake.export(WEEKS, as_of=later)) == [("2024-W09", "published"), (WEEK, "published")]
    run = lake.export(WEEKS, "--windows", "2024-W07..W08", "--only", "published", as_of=later)
    assert states(run) == [("2024-W07", "published"), ("2024-W08", "unchanged")]
    assert (run.manifest("2024-W07")["generation"], run.column("id", "2024-W07")) == (2, ["late", "w-3"])
    assert generations(lake)["2024-W08"] == before["2024-W08"]
    again = lake.export(WEEKS, "--windows", "2024-W07", as_of=later)
    assert states(again) == [("2024-W07", "unchanged")]


@pytest.mark.parametrize(
    ("windows", "first", "said"),
    [
        ("2024-W06..W08", "", "2024-W06 is before 2024-W07"),
        ("2024-W07", "2024-02-19", "2024-W07 is before 2024-W08"),
        ("2024-W11", "", "2024-W11 is not over"),
        ("2024-02", "", "'2024-02' is not a window of this export"),
    ],
)
def test_a_wrong_window_is_refused_before_the_run_begins(lake, windows, first, said):
    with pytest.raises(BadInput) as bad:
        lake.export(WEEKS, "--windows", windows, "--first-day", first)
    assert (bad.value.code, bad.value.exit_code) == ("EXP-WINDOWS", 2)
    assert said in bad.value.what
    assert lake.keys() == []


def test_a_run_of_every_window_says_that_it_was_not_asked_for_certain_ones(lake):
    lake.commit(THINGS, thing("a", 1, 0))
    assert lake.export(contract(*LINES)).record.asked is None
