"""A run takes its windows one after another, also if some of them fail, as long as it has time for them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from pyspark.sql import DataFrame

from config.exports.windows import list_closed_windows
from glue_jobs import errors, export
from glue_jobs.errors import BadInput, Blocked, DataProblem, ExportError, SourceProblem, StorageProblem
from glue_jobs.run_context import RunContext
from glue_jobs.runs import RunRecord
from glue_jobs.source import PinnedTable
from glue_jobs.table_fields import Field
from tests.support import samples
from tests.support.run_kit import new_context

T0 = datetime(2026, 11, 4, 6, tzinfo=UTC)
CONTRACT = samples.things(("id", "text"))
ONE, TWO, THREE = (f"2026-11-0{day}" for day in (1, 2, 3))
FIRST_PHASE = "look for changes"
DATA = DataProblem("EXP-CAST", "a text is no number")
CHECK = Blocked("EXP-CHECK-BLOCKED", "a check failed")
BUSY = StorageProblem("EXP-AWS-FAILED", "S3 failed")
GONE = SourceProblem("EXP-SCHEMA-CHANGED", "a field is gone")


class Catalog:
    """A catalog whose credentials last."""

    credentials_end = False

    def read_events(self, table: PinnedTable) -> DataFrame:
        raise AssertionError("the table's metadata say when events were added")

    def translate(self, error: Exception) -> ExportError:
        return errors.translate(error)


class Clock:
    """A clock that goes on each time somebody looks at it."""

    def __init__(self, tick: timedelta = timedelta()) -> None:
        self.now = T0
        self.tick = tick

    def __call__(self) -> datetime:
        self.now += self.tick
        return self.now


def context(bucket, on_phase: Callable[[str, str], None], **changes) -> RunContext:
    """Return a run of three windows that has an hour."""
    record = RunRecord("r", "things", T0, T0, T0 + timedelta(hours=1))
    windows = list(list_closed_windows(CONTRACT.window, T0))
    table = samples.pinned(windows[0], "things")
    fields = {"id": Field(1, "id", "string"), "at": Field(2, "at", "timestamptz")}
    usual = {
        "spark": object,
        "catalog": Catalog(),
        "contract": CONTRACT,
        "table": attrs.evolve(table, fields=fields),
        "record": record,
        "windows": windows,
        "first_day": CONTRACT.window.first,
        "clock": Clock(),
        "on_phase": on_phase,
    }
    return new_context(bucket, **usual | changes)


class Failing:
    """Lets the windows of a run fail in their first phase: each with the next of its errors, or its last."""

    def __init__(self, *of_each: Exception, **of_windows: list[Exception]) -> None:
        self.tries: list[str] = []
        self._errors = {label: list(of_each) for label in (ONE, TWO, THREE)} | of_windows

    def __call__(self, window: str, phase: str) -> None:
        assert phase == FIRST_PHASE
        self.tries.append(window)
        thrown = self._errors[window]
        raise thrown.pop(0) if len(thrown) > 1 else thrown[0]


def outcomes(record: RunRecord) -> list[tuple[str, str, str]]:
    return [(window["window"], window["state"], window["code"]) for window in record.windows]


def test_windows_that_fail_delay_no_others(bucket):
    failing = Failing(DATA, **{TWO: [CHECK]})
    run = context(bucket, failing)
    export._export_windows(run, {})
    assert failing.tries == [ONE, TWO, THREE]
    assert outcomes(run.record) == [
        (ONE, "failed", "EXP-CAST"),
        (TWO, "blocked", "EXP-CHECK-BLOCKED"),
        (THREE, "failed", "EXP-CAST"),
    ]
    assert (run.record.windows_left, run.record.working_on) == (0, None)


def test_the_record_says_on_which_window_a_run_works_and_how_many_are_left(bucket):
    seen = []

    def look(window: str, _phase: str) -> None:
        stored, _ = bucket.read_json("things/runs/r.json")
        seen.append((window, stored["working_on"], stored["windows_left"], len(stored["windows"])))
        raise DATA

    export._export_windows(context(bucket, look), {})
    assert seen == [(ONE, ONE, 3, 0), (TWO, TWO, 2, 1), (THREE, THREE, 1, 2)]


def test_a_window_has_the_seconds_that_it_took_to_the_millisecond(bucket):
    """The clock is read at its beginning, before it is computed and at its end."""
    run = context(bucket, Failing(DATA), clock=Clock(timedelta(microseconds=617_283)))
    export._export_windows(run, {})
    assert [window["seconds"] for window in run.record.windows] == [1.235] * 3


@pytest.mark.parametrize("error", [GONE, BadInput("EXP-CONTRACT", "it is wrong")])
def test_an_error_of_all_windows_ends_the_run(bucket, error):
    failing = Failing(DATA, **{TWO: [error]})
    run = context(bucket, failing)
    export._export_windows(run, {})
    assert outcomes(run.record) == [(ONE, "failed", "EXP-CAST"), (TWO, "failed", error.code)]
    assert failing.tries == [ONE, TWO]
    assert (run.record.windows_left, run.record.working_on) == (1, None)


@pytest.mark.parametrize(
    "code", ["EXP-AWS-FAILED", "EXP-AWS-UNREACHABLE", "EXP-CATALOG-UNREACHABLE", "EXP-CREDENTIALS-ENDED"]
)
def test_a_window_is_tried_twice_if_the_error_may_not_come_again(bucket, caplog, code):
    caplog.set_level(logging.INFO)
    failing = Failing(StorageProblem(code, "it failed"), DATA)
    run = context(bucket, failing)
    export._export_windows(run, {})
    assert failing.tries == [ONE, ONE, TWO, TWO, THREE, THREE]
    assert {window["code"] for window in run.record.windows} == {"EXP-CAST"}
    said = [f"{label}: it failed; trying again" for label in (ONE, TWO, THREE)]
    assert [entry.getMessage() for entry in caplog.records] == said
    assert {entry.name for entry in caplog.records} == {"lakeferry.export"}


def test_a_window_that_fails_twice_with_such_an_error_has_failed(bucket):
    failing = Failing(BUSY)
    run = context(bucket, failing)
    export._export_windows(run, {})
    assert failing.tries == [ONE, ONE, TWO, TWO, THREE, THREE]
    assert outcomes(run.record) == [(label, "failed", "EXP-AWS-FAILED") for label in (ONE, TWO, THREE)]


def test_the_cause_of_an_error_that_nobody_expects_is_logged(bucket, caplog):
    run = context(bucket, Failing(KeyError("secret"), **{TWO: [DATA], THREE: [DATA]}))
    export._export_windows(run, {})
    assert [window["code"] for window in run.record.windows] == ["EXP-UNEXPECTED", "EXP-CAST", "EXP-CAST"]
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


#: The seconds that earlier runs took, and the windows that a run with an hour begins.
ENOUGH = 3_600.0


@pytest.mark.parametrize(
    ("durations", "begun"),
    [
        ({}, [ONE, TWO, THREE]),
        ({TWO: ENOUGH}, [ONE, TWO, THREE]),
        ({TWO: ENOUGH + 0.001}, [ONE]),
        ({TWO: ENOUGH + 0.001, THREE: 1.0}, [ONE, THREE]),
        ({TWO: 1.0, "2026-10-01": ENOUGH + 0.001}, [ONE, TWO]),
        ({ONE: 2 * ENOUGH, TWO: 1.0, THREE: 1.0}, [ONE, TWO, THREE]),
    ],
)
def test_a_window_begins_if_it_takes_no_longer_than_the_time_that_is_left(bucket, durations, begun):
    """One that was never published is expected to take as long as the longest."""
    failing = Failing(DATA)
    run = context(bucket, failing)
    export._export_windows(run, durations)
    assert failing.tries == begun
    assert run.record.windows_left == 3 - len(begun)


def test_a_run_without_windows_reads_no_expressions(bucket):
    run = context(bucket, Failing(DATA), windows=[], spark=pytest.fail)
    export._export_windows(run, {})
    assert (run.record.windows, run.record.windows_left) == ([], 0)
    assert list(bucket.keys("")) == []


def test_what_the_contract_reads_is_looked_up_before_the_first_window(bucket):
    listed = samples.things(("id", "text"), more='[[personal_pattern]]\nname = "staff"\npattern = "S"\n')
    unreadable = [attrs.evolve(pattern, pattern="(") for pattern in listed.personal_pattern]
    failing = Failing(DATA)
    run = context(bucket, failing, contract=attrs.evolve(listed, personal_pattern=unreadable))
    with pytest.raises(BadInput, match="staff"):
        export._export_windows(run, {})
    assert (failing.tries, run.record.windows_left) == ([], 3)
