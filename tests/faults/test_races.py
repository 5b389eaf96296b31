"""Concurrent runs: of the same window, of another snapshot of the source, of the same aggregate table."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tests.support.job_process import await_held
from tests.support.lake import AS_OF, MONDAY, WEEK
from tests.support.things import LINES, TOPIC, counts, ended, events, files_of, uploads_of
from tests.support.waiting import PATIENCE

A_WEEK = timedelta(days=7)


def held(method, path):
    return {"fault": "hang", "method": method, "path": path}


@contextmanager
def stopped_at(faults, call, lake, *args, **named):
    """Run an export in another thread, with AWS clients of its own.

    It stops at `call`, and continues at the end of the block.
    """
    faults.rule(call)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lake.export, *args, **named)
        try:
            await_held(faults, ended(running))
            yield running
        finally:
            faults.release()
            running.exception(PATIENCE)


def visible(lake):
    return json.loads(lake.read(f"exports/things/manifests/{WEEK}.json"))


def assert_only_visible_files(lake):
    manifest = visible(lake)
    runs = {generation["run_id"] for generation in manifest["generations"]}
    assert {key.split("/")[4] for key in files_of(lake, "exports/things")} == runs
    assert files_of(lake, "exports/things") >= {file["key"] for file in manifest["files"]}
    assert uploads_of(lake, "") == set()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("call", [("POST", "*/data/*.csv"), ("PUT", "*/report.html")])
def test_of_two_runs_of_the_same_window_one_publishes(lake, faults, call):
    lake.commit(TOPIC, *events(30), at=AS_OF)
    with stopped_at(faults, held(*call), lake, LINES) as slow:
        fast = lake.export(LINES)
    assert (fast.state(), slow.result(PATIENCE).state()) == ("published", "unchanged")
    assert (visible(lake)["run_id"], visible(lake)["generation"]) == (fast.record.id, 1)
    assert_only_visible_files(lake)


@pytest.mark.slow
def test_of_many_runs_at_once_one_publishes(lake):
    lake.commit(TOPIC, *events(30), at=AS_OF)
    with ThreadPoolExecutor(4) as pool:
        done = [running.result(PATIENCE) for running in [pool.submit(lake.export, LINES) for _ in range(4)]]
    assert sorted(run.state() for run in done) == ["published", "unchanged", "unchanged", "unchanged"]
    assert visible(lake)["generation"] == 1
    assert_only_visible_files(lake)


@pytest.mark.slow
def test_an_older_run_never_replaces_a_newer_restatement(lake, faults):
    lake.commit(TOPIC, *events(30), at=AS_OF)
    lake.export(LINES)
    lake.commit(TOPIC, *events(2, first=30), at=AS_OF + timedelta(hours=1))
    with stopped_at(faults, held("PUT", "*/report.html"), lake, LINES, as_of=AS_OF) as older:
        lake.commit(TOPIC, *events(3, first=32), at=AS_OF + timedelta(hours=2))
        newer = lake.export(LINES)
    assert (newer.state(), older.result(PATIENCE).state()) == ("published", "superseded")
    assert (visible(lake)["run_id"], visible(lake)["generation"]) == (newer.record.id, 2)
    assert len(newer.cells()) == 35
    assert_only_visible_files(lake)


@pytest.mark.slow
def test_two_writers_of_an_aggregate_lose_nothing(lake, faults):
    """Two windows are written to one table.

    The slow commit is refused, and made again on top of the fast one.
    """
    lake.commit(TOPIC, *events(30), *events(30, first=24 * 7), at=AS_OF + A_WEEK)
    second = ("--first-day", (MONDAY + A_WEEK).date().isoformat())
    with stopped_at(faults, held("PUT", "*/counts/metadata/*-m0.avro"), lake, counts()) as slow:
        fast = lake.export(counts(), *second, as_of=AS_OF + A_WEEK)
    assert (slow.result(PATIENCE).state(), fast.state()) == ("published", "published")
    table = lake.spark.table(f"lake.{lake.target.aggregates_database}.counts").select(
        "window", "kind", "things"
    )
    both = [(week, kind, 15) for week in (WEEK, "2024-W11") for kind in "ab"]
    assert sorted(tuple(row) for row in table.collect()) == both


@pytest.mark.slow
def test_the_first_write_of_a_kept_table_does_not_undo_a_later_one(lake, faults):
    """The slow run started when the table had no snapshot to compare with."""
    lake.commit(TOPIC, *events(30), at=AS_OF)
    with stopped_at(faults, held("PUT", "*/counts/metadata/*-m0.avro"), lake, counts()) as slow:
        lake.commit(TOPIC, *events(2, first=30), at=AS_OF + timedelta(hours=1))
        fast = lake.export(counts())
    assert (slow.result().state(), fast.state()) == ("published", "published")
    table = lake.spark.table(f"lake.{lake.target.aggregates_database}.counts").select(
        "kind", "things", "run_id"
    )
    assert sorted(tuple(row) for row in table.collect()) == [
        ("a", 16, fast.record.id),
        ("b", 16, fast.record.id),
    ]
