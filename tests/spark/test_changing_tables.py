"""A table that changes between runs and while a run reads it: deletes, compaction, appends, expiry; and counts that lie."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from lake import MONDAY, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
AT_COMPUTE, AT_VERIFY = "compute", "verify"


def thing(id_, n, at=MONDAY):
    return {"id": id_, "at": at, "n": n}


def meanwhile(phase, act):
    """Does something once, when a run reaches a phase: the snapshot is pinned before the first."""
    done = []

    def tell(_window, name):
        if name == phase and not done:
            done.append(name)
            act()

    return tell


def numbers(run):
    return {row["id"]: int(row["n"]) for row in run.cells()}


def test_rows_that_were_deleted_are_absent_and_not_counted(lake):
    """Equality deletes of an upsert table, also by a tombstone; then position deletes, then deletion vectors."""
    lake.commit(THINGS, thing("a", 1), thing("b", 1), thing("c", 1), thing("d", 1), mode="upsert")
    lake.commit(THINGS, thing("a", 2), None, at=MONDAY + timedelta(hours=1), keys=[b"a", b"b"], mode="upsert")
    run = lake.export(contract(*LINES))
    assert numbers(run) == {"a": 2, "c": 1, "d": 1}
    assert run.manifest()["rows"]["events"]["in_table"] == 3
    table = f"lake.`{lake.world.database}`.things"
    for number, (version, gone) in enumerate(((2, "c"), (3, "d"))):
        properties = f"'format-version'='{version}', 'write.delete.mode'='merge-on-read'"
        lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})")
        lake.spark.sql(f"DELETE FROM {table} WHERE id = '{gone}'")
        run = lake.export(contract(*LINES))
        assert gone not in numbers(run)
        assert run.manifest()["rows"]["events"]["in_table"] == 2 - number
    summary = lake.flow.catalog.load_table((lake.world.database, "things")).current_snapshot().summary
    assert int(summary["total-equality-deletes"]) == 2
    assert int(summary["total-position-deletes"]) == 2


def test_without_news_or_after_compaction_and_expiry_nothing_new_is_published(lake):
    for n in range(3):
        lake.commit(THINGS, thing("a", n), thing(f"b{n}", n), at=MONDAY + timedelta(hours=n))
    first = lake.export(contract(*LINES))
    before, manifest = lake.keys("exports/things/data/"), first.manifest()
    again = lake.export(contract(*LINES))
    assert (again.state(), again.manifest(), "compute" in again.record.phases) == ("unchanged", manifest, False)
    lake.flow.compact("things", files=2)
    lake.flow.expire("things", keep=1)
    compacted = lake.export(contract(*LINES))
    assert (compacted.state(), compacted.manifest(), "compute" in compacted.record.phases) == ("unchanged", manifest, True)
    assert lake.keys("exports/things/data/") == before


def test_what_is_committed_during_a_run_counts_in_the_next_one(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 1))
    lake.commit(THINGS, thing("a", 2), at=MONDAY + timedelta(hours=1))

    def change():
        lake.flow.compact("things")
        lake.commit(THINGS, thing("a", 3), thing("c", 3), at=MONDAY + timedelta(hours=2))

    run = lake.export(contract(*LINES), tell=meanwhile(AT_COMPUTE, change))
    assert numbers(run) == {"a": 2, "b": 1}
    assert numbers(lake.export(contract(*LINES))) == {"a": 3, "b": 1, "c": 3}


def test_a_snapshot_that_expires_during_a_run_stops_it_and_the_next_run_succeeds(lake):
    lake.commit(THINGS, thing("a", 1))

    def expire():
        lake.commit(THINGS, thing("b", 1))
        lake.flow.compact("things")
        lake.flow.expire("things", keep=1)

    run = lake.export(contract(*LINES), tell=meanwhile(AT_COMPUTE, expire))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-SNAPSHOT-EXPIRED")
    assert lake.published() == lake.keys("exports/things/data/") == []
    assert numbers(lake.export(contract(*LINES))) == {"a": 1, "b": 1}


def test_an_event_more_in_the_table_than_was_read_stops_the_run(lake):
    """The snapshot's own count is one too high, as if a file had not been read."""
    lake.commit(THINGS, thing("a", 1), thing("b", 1))
    table = lake.flow.catalog.load_table((lake.world.database, "things"))
    key = table.metadata_location.removeprefix(f"s3://{lake.world.bucket}/")
    metadata = json.loads(lake.read(key))
    metadata["snapshots"][-1]["summary"]["total-records"] = "3"
    lake.s3.put_object(Bucket=lake.world.bucket, Key=key, Body=json.dumps(metadata).encode())
    rule = {"applies": "after_deduplication"}
    run = lake.export(contract(*LINES, window=rule))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-BOOKS")
    assert run.window()["reason"] == "events in the table and events that met a fate differ: 3 and 2"
    assert lake.published() == lake.keys("exports/things/data/") == []


@pytest.mark.parametrize(
    ("damaged", "code"),
    [(lambda data: data.replace(b"a,1", b"a,2"), "EXP-CHECKSUM"), (lambda data: data + b"c,1\r\n", "EXP-CHECKSUM")],
    ids=["another digit", "another row"],
)
def test_a_file_that_is_not_what_was_written_stops_the_run(lake, damaged, code):
    lake.commit(THINGS, thing("a", 1), thing("b", 1))

    def damage():
        (key,) = lake.keys("exports/things/data/")
        lake.s3.put_object(Bucket=lake.world.bucket, Key=key, Body=damaged(lake.read(key)))

    run = lake.export(contract(*LINES), tell=meanwhile(AT_VERIFY, damage))
    assert (run.state(), run.window()["code"]) == ("failed", code)
    assert lake.published() == lake.keys("exports/things/data/") == []
