"""A table that changes between runs and during a run: deletes, compaction, appends, expiry, and wrong
counts.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from glue_jobs.source import pin
from glue_jobs.store import connect
from tests.support.lake import AS_OF, MONDAY, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
AT_COMPUTE = "compute"
AT_VERIFY = "verify"


def thing(id_, n, at=MONDAY):
    return {"id": id_, "at": at, "n": n}


def meanwhile(phase, act):
    """Return a function that calls `act` once, when a run reaches a phase.

    The snapshot is pinned before the first phase.
    """
    done = []

    def tell(_window, name):
        if name == phase and not done:
            done.append(name)
            act()

    return tell


def numbers(run):
    return {row["id"]: int(row["n"]) for row in run.cells()}


@pytest.mark.slow
def test_deleted_rows_are_absent_and_not_counted(lake):
    """Equality deletes of an upsert table, also by a tombstone, then position deletes, then deletion
    vectors.
    """
    lake.commit(THINGS, thing("a", 1), thing("b", 1), thing("c", 1), thing("d", 1), mode="upsert")
    lake.commit(THINGS, thing("a", 2), None, at=MONDAY + timedelta(hours=1), keys=[b"a", b"b"], mode="upsert")
    run = lake.export(contract(*LINES))
    assert numbers(run) == {"a": 2, "c": 1, "d": 1}
    assert run.manifest()["rows"]["events"]["in_table"] == 3
    table = f"lake.`{lake.target.database}`.things"
    for number, (version, gone) in enumerate(((2, "c"), (3, "d"))):
        properties = f"'format-version'='{version}', 'write.delete.mode'='merge-on-read'"
        lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})")
        lake.spark.sql(f"DELETE FROM {table} WHERE id = '{gone}'")
        run = lake.export(contract(*LINES))
        assert gone not in numbers(run)
        assert run.manifest()["rows"]["events"]["in_table"] == 2 - number
    summary = lake.flow.catalog.load_table((lake.target.database, "things")).current_snapshot().summary
    assert int(summary["total-equality-deletes"]) == 2
    assert int(summary["total-position-deletes"]) == 2


@pytest.mark.slow
def test_compaction_and_expiry_publish_nothing_new(lake):
    for n in range(3):
        lake.commit(THINGS, thing("a", n), thing(f"b{n}", n), at=MONDAY + timedelta(hours=n))
    lake.commit(THINGS, thing("next week", 0, AS_OF), at=AS_OF)
    first = lake.export(contract(*LINES))
    before = lake.keys("exports/things/data/")
    manifest = first.manifest()
    again = lake.export(contract(*LINES))
    assert (again.state(), again.manifest(), "compute" in again.record.phases) == (
        "unchanged",
        manifest,
        False,
    )
    lake.flow.compact("things", files=2)
    lake.flow.expire("things", keep=1)
    compacted = lake.export(contract(*LINES))
    assert (compacted.state(), compacted.manifest(), "compute" in compacted.record.phases) == (
        "unchanged",
        manifest,
        True,
    )
    assert lake.keys("exports/things/data/") == before


def test_a_compaction_after_the_window_does_not_make_it_complete(lake):
    """Both commits are of today. Only the second is after the window, and it adds no event."""
    lake.commit(THINGS, thing("a", 1))
    appended = lake.flow.catalog.load_table((lake.target.database, "things")).current_snapshot().timestamp_ms
    lake.flow.compact("things")
    compacted = lake.flow.catalog.load_table((lake.target.database, "things")).current_snapshot().timestamp_ms
    assert (pinned(lake).appended_at, pinned(lake).committed_at) == (instant(appended), instant(compacted))
    lake.commit(THINGS, thing("b", 1))
    assert pinned(lake).appended_at == pinned(lake).committed_at > instant(compacted)


def forget_appends(lake):
    """Leave only a snapshot that brought no events."""
    lake.flow.compact("things")
    lake.flow.expire("things", keep=1)


@pytest.mark.slow
def test_kafkas_newest_time_counts_once_no_snapshot_tells_when_events_came_in(lake):
    """A source may have stopped days ago, and its table is still compacted."""
    lake.target = attrs.evolve(lake.target, complete_until=None)
    lake.commit(THINGS, thing("a", 1), at=AS_OF - timedelta(hours=7))
    forget_appends(lake)
    run = lake.export(contract(*LINES))
    assert (run.state(), lake.published()) == ("incomplete", [])
    assert (
        run.window()["reason"]
        == "the table's last new data is of 2024-03-10 23:00 UTC, before the window's end"
    )
    shown = lake.export(contract(*LINES, window={"on_incomplete_source": "publish"}))
    assert b"data until Sunday 10 March 2024, 23:00 (UTC)" in shown.files("report")[0]
    lake.commit(THINGS, thing("b", 1), at=AS_OF - timedelta(hours=5, minutes=30))
    forget_appends(lake)
    assert "the table has no events that Kafka partitions" in lake.export(contract(*LINES)).window()["reason"]
    lake.commit(THINGS, thing("c", 1), at=AS_OF - timedelta(hours=4))
    forget_appends(lake)
    assert "No snapshot of an hour earlier shows" in lake.export(contract(*LINES)).window()["reason"]


@pytest.mark.slow
def test_a_table_without_events_and_without_a_snapshot_that_brought_some_is_not_complete(lake):
    lake.target = attrs.evolve(lake.target, complete_until=None)
    lake.commit(THINGS, thing("a", 1))
    expire_rows(lake, "a")
    expire = "older_than => TIMESTAMP '2100-01-01', retain_last => 1"
    lake.spark.sql(f"CALL lake.system.expire_snapshots(table => '`{lake.target.database}`.things', {expire})")
    assert lake.export(contract(*LINES)).state() == "incomplete"


def pinned(lake):
    return pin(connect(), lake.target.database, "things")


def instant(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def expire_rows(lake, *ids):
    """Remove rows as Tableflow's retention does. The table remains append-only."""
    listed = ", ".join(f"'{id_}'" for id_ in ids)
    lake.spark.sql(f"DELETE FROM lake.`{lake.target.database}`.things WHERE id IN ({listed})")


@pytest.mark.slow
def test_a_window_is_not_published_again_without_events_that_its_retention_removed(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 1), thing("c", 1))
    first = lake.export(contract(*LINES)).manifest()
    lake.commit(THINGS, thing("d", 1), thing("e", 1), at=MONDAY + timedelta(hours=1))
    expire_rows(lake, "a")
    for words in (("--dry-run", "true"), ()):
        run = lake.export(contract(*LINES), *words)
        assert (run.state(), run.window()["code"], run.window()["exit_code"]) == (
            "blocked",
            "EXP-EVENTS-LOST",
            7,
        )
    assert "--accept-fewer-events" in run.window()["remedy"]
    assert run.manifest() == first
    accepted = lake.export(contract(*LINES), "--accept-fewer-events", "true")
    assert (accepted.state(), numbers(accepted)) == ("published", {"b": 1, "c": 1, "d": 1, "e": 1})


@pytest.mark.slow
def test_a_window_whose_events_are_all_gone_is_not_published_again_as_empty(lake):
    lake.commit(THINGS, thing("a", 1))
    lake.commit(THINGS, thing("b", 1, MONDAY - timedelta(days=7)))
    first = lake.export(contract(*LINES)).manifest()
    expire_rows(lake, "a")
    assert lake.export(contract(*LINES)).window()["code"] == "EXP-EVENTS-LOST"
    assert lake.export(contract(*LINES)).manifest() == first


@pytest.mark.slow
def test_a_row_that_an_upsert_table_replaced_is_no_lost_event(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 1), mode="upsert")
    assert numbers(lake.export(contract(*LINES))) == {"a": 1, "b": 1}
    next_week = MONDAY + timedelta(days=7)
    lake.commit(THINGS, thing("a", 2, next_week), at=next_week, mode="upsert")
    again = lake.export(contract(*LINES))
    assert (again.state(), numbers(again)) == ("published", {"b": 1})


@pytest.mark.slow
def test_a_window_is_published_again_after_the_table_was_rolled_back(lake):
    """The table has the snapshot of the first commit again, which is older than the published one."""
    lake.commit(THINGS, thing("a", 1))
    first = pinned(lake).snapshot_id
    lake.commit(THINGS, thing("a", 2), at=MONDAY + timedelta(hours=1))
    assert numbers(lake.export(contract(*LINES))) == {"a": 2}
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    again = lake.export(contract(*LINES), "--accept-fewer-events", "true")
    assert (again.state(), numbers(again)) == ("published", {"a": 1})


@pytest.mark.slow
def test_a_contract_that_describes_the_same_rows_otherwise_is_published_once(lake):
    lake.commit(THINGS, thing("a", 1))
    first = lake.export(contract(*LINES))
    described = contract(column("id"), column("n", "integer", unit="pieces"), version=2)
    second = lake.export(described)
    third = lake.export(described)
    assert (second.state(), second.manifest()["generation"]) == ("published", 2)
    assert second.manifest()["contract"]["version"] == 2
    assert b"pieces" in second.files("datapackage")[0]
    assert second.csv() == first.csv()
    assert (third.state(), "compute" in third.record.phases) == ("unchanged", False)


@pytest.mark.slow
def test_a_commit_during_a_run_counts_in_the_next_run(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 1))
    lake.commit(THINGS, thing("a", 2), at=MONDAY + timedelta(hours=1))

    def change():
        lake.flow.compact("things")
        lake.commit(THINGS, thing("a", 3), thing("c", 3), at=MONDAY + timedelta(hours=2))

    run = lake.export(contract(*LINES), on_phase=meanwhile(AT_COMPUTE, change))
    assert numbers(run) == {"a": 2, "b": 1}
    assert numbers(lake.export(contract(*LINES))) == {"a": 3, "b": 1, "c": 3}


@pytest.mark.slow
def test_a_snapshot_that_expires_during_a_run_stops_it_and_the_next_run_succeeds(lake):
    lake.commit(THINGS, thing("a", 1))
    lake.commit(THINGS, thing("next week", 1, AS_OF), at=AS_OF)

    def expire():
        lake.commit(THINGS, thing("b", 1))
        lake.flow.compact("things")
        lake.flow.expire("things", keep=1)

    run = lake.export(contract(*LINES), on_phase=meanwhile(AT_COMPUTE, expire))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-SNAPSHOT-EXPIRED")
    assert lake.published() == lake.keys("exports/things/data/") == []
    assert numbers(lake.export(contract(*LINES))) == {"a": 1, "b": 1}


def test_an_event_more_in_the_table_than_was_read_stops_the_run(lake):
    """The snapshot's count is one too high, as if a file had not been read."""
    lake.commit(THINGS, thing("a", 1), thing("b", 1))
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    key = table.metadata_location.removeprefix(f"s3://{lake.target.bucket}/")
    metadata = json.loads(lake.read(key))
    metadata["snapshots"][-1]["summary"]["total-records"] = "3"
    lake.s3.put_object(Bucket=lake.target.bucket, Key=key, Body=json.dumps(metadata).encode())
    rule = {"filter_stage": "after_deduplication"}
    run = lake.export(contract(*LINES, window=rule))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-COUNTS")
    assert run.window()["reason"] == "events in the table and events with an outcome differ: 3 and 2"
    assert lake.published() == lake.keys("exports/things/data/") == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("damaged", "code"),
    [
        (lambda data: data.replace(b"a,1", b"a,2"), "EXP-CHECKSUM"),
        (lambda data: data + b"c,1\r\n", "EXP-CHECKSUM"),
    ],
    ids=["another digit", "another row"],
)
def test_a_file_that_differs_from_what_was_written_stops_the_run(lake, damaged, code):
    lake.commit(THINGS, thing("a", 1), thing("b", 1))

    def damage():
        (key,) = lake.keys("exports/things/data/")
        lake.s3.put_object(Bucket=lake.target.bucket, Key=key, Body=damaged(lake.read(key)))

    run = lake.export(contract(*LINES), on_phase=meanwhile(AT_VERIFY, damage))
    assert (run.state(), run.window()["code"]) == ("failed", code)
    assert lake.published() == lake.keys("exports/things/data/") == []
