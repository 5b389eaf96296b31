"""A window is published once the table is known to have all its events: whatever Tableflow has loaded, and in
which order.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import attrs
import pytest

from simulators.core.faults import FaultClient
from simulators.tableflow.kafka import partition_of
from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
AFTER = AS_OF + timedelta(hours=1)
KEYS = {partition_of(key, 3): key for key in (b"%d" % n for n in range(20))}
PARTITIONS = ("--partitions", "3")
HOUR = timedelta(hours=1)


@pytest.fixture
def loading(lakes):
    """A lake in which nobody has stated that tables are complete, as in a deployment."""
    lake = lakes()
    lake.target = attrs.evolve(lake.target, complete_until=None)
    return lake


def add(lake, received, *partitions, mode="append", files=None, numbers=range(1)):
    """Commit events that Kafka received then in these partitions. Each event also happened then."""
    numbered = [(partition, number) for partition in partitions for number in numbers]
    events = [
        {"id": f"{partition}-{received:%d%H}-{number}", "at": received, "n": number}
        for partition, number in numbered
    ]
    lake.commit(
        THINGS,
        *events,
        at=received,
        keys=[KEYS[partition] for partition, _ in numbered],
        mode=mode,
        files=files,
    )


def remove(lake, received, partition):
    """Commit a tombstone of the partition's key."""
    lake.commit(THINGS, None, at=received, keys=[KEYS[partition]], mode="upsert")


def age(lake, by):
    """Make all snapshots older, as if their commits had been earlier."""
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    key = table.metadata_location.removeprefix(f"s3://{lake.target.bucket}/")
    metadata = json.loads(lake.read(key))
    for entry in [*metadata["snapshots"], *metadata["snapshot-log"], *metadata["metadata-log"]]:
        entry["timestamp-ms"] -= by // timedelta(milliseconds=1)
    lake.s3.put_object(Bucket=lake.target.bucket, Key=key, Body=json.dumps(metadata).encode())


def settle(lake, received):
    """Make all snapshots older, so that the last commit was soon after Kafka received its events, then."""
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    committed_at = datetime.fromtimestamp(table.current_snapshot().timestamp_ms / 1000, UTC)
    age(lake, committed_at - received - timedelta(minutes=5))


def export(lake, *words, **changes):
    return lake.export(contract(*LINES, deduplicate=None, **changes), *words)


def assert_waits_for(run, *partitions):
    assert (run.state(), run.record.state, run.lake.published()) == ("incomplete", "done", [])
    assert (
        f"no events that Kafka partitions {', '.join(map(str, partitions))} received after"
        in run.window()["reason"]
    )


def half_of_each(lake):
    add(lake, MONDAY, 0, 1, 2, numbers=range(5))


def one_ahead(lake):
    half_of_each(lake)
    add(lake, AFTER, 0)


def one_not_begun(lake):
    add(lake, MONDAY, 0, 1)
    add(lake, AFTER, 0, 1)


def in_many_commits(lake):
    for hours in range(4):
        add(lake, MONDAY + hours * HOUR, 0, 1, 2)
    add(lake, AFTER, 1)


def compacted_between(lake):
    one_ahead(lake)
    lake.flow.compact("things")
    add(lake, MONDAY + HOUR, 1)


def in_mixed_files(lake):
    add(lake, MONDAY, 0, 1, 2, files=1)
    add(lake, AFTER, 0, 1, files=1)


def replaced_by_key(lake):
    add(lake, MONDAY, 0, 1, 2, mode="upsert")
    add(lake, AFTER, 0, 1, mode="upsert")
    add(lake, AFTER + HOUR, 0, mode="upsert")


def deleted_by_key(lake):
    """Partition 2 had an event after the window, and the table doesn't have it any more."""
    add(lake, MONDAY, 0, 1, 2, mode="upsert")
    add(lake, AFTER, 0, 1, 2, mode="upsert")
    remove(lake, AFTER + HOUR, 2)
    add(lake, AFTER + 2 * HOUR, 0, mode="upsert")


#: What Tableflow has loaded of a topic's history, with commits of today, and the partitions that are behind.
HISTORIES = {
    "half of each partition": (half_of_each, [0, 1, 2]),
    "one partition ahead": (one_ahead, [1, 2]),
    "one partition not begun": (one_not_begun, [2]),
    "many commits": (in_many_commits, [0, 2]),
    "a compaction between": (compacted_between, [1, 2]),
    "files of several partitions": (in_mixed_files, [2]),
    "rows replaced by key": (replaced_by_key, [2]),
    "rows deleted by key": (deleted_by_key, [2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("history", HISTORIES)
def test_no_part_of_a_history_that_is_still_loaded_is_published(loading, history):
    load, behind = HISTORIES[history]
    load(loading)
    assert_waits_for(export(loading, *PARTITIONS), *behind)
    mode = "upsert" if "by key" in history else "append"
    add(loading, MONDAY + 5 * HOUR, *behind, mode=mode)
    assert_waits_for(export(loading, *PARTITIONS), *behind)
    add(loading, AFTER + 3 * HOUR, *behind, mode=mode)
    run = export(loading, *PARTITIONS)
    assert run.manifest()["completeness"].startswith("Each Kafka partition")
    replaced = mode == "upsert"  # by the last event of its key, which is of the next week
    expected = set() if replaced else {f"{partition}-0405-0" for partition in behind}
    assert (run.state(), expected <= set(run.column("id"))) == ("published", True)
    assert run.manifest()["status"] == ("empty" if replaced else "complete")


def test_the_statistics_of_files_show_that_many_old_windows_wait(loading, lake_aws):
    """No window needs a read of the table's data, and files are listed at most twice."""
    add(loading, MONDAY - timedelta(days=21), 0, 1, 2)
    for week in range(3):
        add(loading, MONDAY - week * timedelta(days=7), 0, 1)
    faults = FaultClient(lake_aws.url)
    faults.clear()
    run = export(loading, *PARTITIONS, window={"from": MONDAY.date() - timedelta(days=21)})
    calls = [call["call"] for call in faults.state()["trace"]]
    assert [call for call in calls if call.endswith(".parquet")] == []
    assert {window["window"]: window["state"] for window in run.record.windows} == dict.fromkeys(
        WEEKS, "incomplete"
    )
    behind = {
        window["window"]: window["reason"].partition("partitions ")[2][:7] for window in run.record.windows
    }
    assert behind == dict.fromkeys(WEEKS[:-1], "2 recei") | {WEEK: "0, 1, 2"}


WEEKS = ["2024-W07", "2024-W08", "2024-W09", WEEK]


def test_a_partition_is_idle_if_the_table_has_received_none_of_its_events_for_an_hour(loading):
    add(loading, MONDAY, 0, 1, 2)
    add(loading, AFTER, 0, 1)
    unknown = export(loading, *PARTITIONS)
    assert_waits_for(unknown, 2)
    assert "No snapshot of an hour earlier" in unknown.window()["reason"]
    age(loading, 2 * HOUR)
    add(loading, AFTER + HOUR, 0)
    settle(loading, AFTER + HOUR)
    run = export(loading, *PARTITIONS)
    assert (run.state(), run.column("id")) == ("published", ["0-0400-0", "1-0400-0", "2-0400-0"])


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["files of one partition", "compacted", "upsert"])
def test_a_partition_whose_events_came_within_the_hour_is_not_idle(loading, layout):
    mode = "upsert" if layout == "upsert" else "append"
    add(loading, MONDAY, 0, 1, 2, mode=mode)
    age(loading, 2 * HOUR)
    add(loading, MONDAY + HOUR, 2, mode=mode)
    add(loading, AFTER, 0, 1, mode=mode)
    if layout == "compacted":
        loading.flow.compact("things")
    run = export(loading, *PARTITIONS)
    assert_waits_for(run, 2)
    assert "events of Kafka partitions 2 changed" in run.window()["reason"]
    age(loading, 2 * HOUR)
    add(loading, AFTER + HOUR, 1, mode=mode)
    settle(loading, AFTER + HOUR)
    assert export(loading, *PARTITIONS).state() == "published"


@pytest.mark.slow
def test_a_partition_stays_idle_after_a_compaction(loading):
    """Statistics tell the offsets in the earlier files. The later file is of several partitions, so that a
    query tells them.
    """
    add(loading, MONDAY, 0, 1, 2, numbers=range(3))
    age(loading, 2 * HOUR)
    loading.flow.compact("things")
    add(loading, AFTER, 0, 1)
    settle(loading, AFTER)
    assert export(loading, *PARTITIONS).state() == "published"


@pytest.mark.slow
def test_a_partition_without_events_counts_as_soon_as_the_number_of_partitions_is_known(loading):
    add(loading, MONDAY, 0, 1)
    age(loading, 2 * HOUR)
    add(loading, AFTER + HOUR, 0)
    settle(loading, AFTER + HOUR)
    assert export(loading, *PARTITIONS).state() == "published", "partitions 1 and 2 are idle"


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["files of one partition", "files of several partitions", "upsert"])
def test_no_partition_is_idle_while_the_table_still_loads_a_history(loading, layout):
    """Tableflow loads one partition after the other, and for each it takes hours."""
    mode = "upsert" if layout == "upsert" else "append"
    files = 1 if "several" in layout else None
    add(loading, MONDAY, 0, 1, 2, mode=mode, files=files)
    age(loading, 2 * HOUR)
    add(loading, AFTER, 0, mode=mode)
    run = export(loading, *PARTITIONS)
    assert_waits_for(run, 1, 2)
    assert "may still load older ones" in run.window()["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("files", [None, 1], ids=["files of one partition", "files of several partitions"])
def test_the_time_of_a_clock_that_is_years_ahead_proves_nothing(loading, files):
    half_of_each(loading)
    add(loading, datetime(2124, 3, 4, tzinfo=UTC), 0, 1, 2, files=files)
    assert_waits_for(export(loading, *PARTITIONS), 0, 1, 2)
    add(loading, AFTER, 0, 1, 2, files=files)
    assert export(loading, *PARTITIONS).state() == "published"


@pytest.mark.slow
def test_somebody_can_state_that_the_table_is_complete(loading):
    half_of_each(loading)
    end = MONDAY + timedelta(days=7)
    early = export(loading, "--complete-until", (end - timedelta(seconds=1)).isoformat())
    assert_waits_for(early, 0, 1, 2)
    run = export(loading, "--complete-until", end.isoformat())
    assert (run.state(), run.manifest()["status"]) == ("published", "complete")
    evidence = "Stated with --complete-until 2024-03-11T00:00:00Z."
    assert (run.manifest()["completeness"], run.window()["completeness"]) == (evidence, evidence)


def test_what_was_known_when_a_window_was_published_stays_known(loading):
    """A late event changes the window although nothing shows any more that partition 2 was idle."""
    add(loading, MONDAY, 0, 1, 2)
    age(loading, 2 * HOUR)
    add(loading, AFTER + HOUR, 0, 1)
    settle(loading, AFTER + HOUR)
    assert export(loading, *PARTITIONS).state() == "published"
    late = {"id": "late", "at": MONDAY, "n": 1}
    loading.commit(THINGS, late, at=AFTER + HOUR, keys=[KEYS[0]])
    loading.flow.expire("things", keep=1)
    run = export(loading, *PARTITIONS)
    assert (run.state(), run.manifest()["status"], run.manifest()["generation"]) == (
        "published",
        "complete",
        2,
    )
    assert "late" in run.column("id")


@pytest.mark.slow
def test_an_incomplete_window_is_computed_again_only_when_that_can_change_something(loading):
    half_of_each(loading)
    rule = {"on_incomplete_source": "publish"}
    first = export(loading, *PARTITIONS, window=rule)
    assert (first.manifest()["status"], first.manifest()["generation"]) == ("incomplete", 1)
    assert "Kafka partitions 0, 1, 2" in first.manifest()["completeness"]
    add(loading, AFTER, 0)
    second = export(loading, *PARTITIONS, window=rule)
    assert (second.state(), "compute" in second.record.phases) == ("unchanged", False)
    add(loading, AFTER, 1, 2)
    third = export(loading, *PARTITIONS, window=rule)
    assert (third.state(), third.manifest()["status"], third.manifest()["generation"]) == (
        "published",
        "complete",
        2,
    )


def test_a_window_that_waits_can_be_a_failure_which_says_what_to_do(loading):
    half_of_each(loading)
    window = export(loading, window={"on_incomplete_source": "fail"}).window()
    assert (window["code"], "--complete-until" in window["remedy"]) == ("EXP-SOURCE-INCOMPLETE", True)


def test_a_table_that_was_rolled_back_is_not_complete_any_more(loading):
    add(loading, MONDAY, 0, 1, 2)
    add(loading, AFTER, 0, 1, 2)
    table = loading.flow.catalog.load_table((loading.target.database, "things"))
    assert export(loading, *PARTITIONS).state() == "published"
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    rule = {"from": date(2024, 3, 4)}
    run = export(loading, *PARTITIONS, window=rule, title="Another title.")
    assert run.state() == "incomplete"
