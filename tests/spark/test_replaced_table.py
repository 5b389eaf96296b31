"""A table that is another one than that of earlier windows: a window is published from it only if it is proved
to begin early enough.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import attrs
import pytest

from simulators.confluent.server import ConfluentCloud
from simulators.confluent.tableflow_lake import Lake as VendorLake
from simulators.tableflow.kafka import partition_of
from tests.support.lake import MONDAY, TRADES, column, contract, topic_of
from tests.support.managed_storage import START, ManagedStorage

THINGS = topic_of(("n", "int"))
KEYS = {partition_of(key, 3): key for key in (b"%d" % n for n in range(20))}
ALL = (0, 1, 2)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
DAYS = [f"2024-03-{day:02}" for day in range(4, 9)]


def add(lake, received, *partitions, mode="append", topic=THINGS):
    """Commit an event in each of these partitions. It happened when Kafka received it."""
    events = [{"id": f"{partition}-{received:%d%H}", "at": received, "n": 1} for partition in partitions]
    lake.commit(topic, *events, at=received, keys=[KEYS[partition] for partition in partitions], mode=mode)


def export(lake, days, *words, **changes):
    """Export the days that have passed `days` days after Monday."""
    daily = {"every": "day", "zone": "UTC", "from": MONDAY.date()} | changes.pop("window", {})
    text = contract(column("id"), deduplicate=None, window=daily, **changes)
    return lake.export(text, *words, as_of=MONDAY + days * DAY + 6 * HOUR)


def replace_table(lake, *partitions, begins, mode="append"):
    """Delete the table, and write a new one that begins then in these partitions."""
    lake.flow.catalog.drop_table((lake.target.database, "things"))
    add(lake, begins, *partitions, mode=mode)


def move_commits(lake, moment):
    """Give all snapshots of the table this time, as if they had been committed then."""
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    key = table.metadata_location.removeprefix(f"s3://{lake.target.bucket}/")
    metadata = json.loads(lake.read(key))
    for entry in [*metadata["snapshots"], *metadata["snapshot-log"], *metadata["metadata-log"]]:
        entry["timestamp-ms"] = int(moment.timestamp() * 1000)
    lake.s3.put_object(Bucket=lake.target.bucket, Key=key, Body=json.dumps(metadata).encode())


@pytest.fixture
def lake(lakes):
    """A lake in which nobody has stated that tables are complete. Monday is published from its table."""
    lake = lakes()
    lake.target = attrs.evolve(lake.target, complete_until=None)
    add(lake, MONDAY + HOUR, *ALL)
    add(lake, MONDAY + DAY + HOUR, *ALL)
    assert export(lake, 1).state() == "published"
    return lake


def assert_refused(run, label, partitions):
    window = run.window(label)
    assert (window["state"], window["code"]) == ("failed", "EXP-TABLE-REPLACED")
    assert window["reason"].endswith(f"in Kafka partitions {partitions}")
    assert "first_day" in window["remedy"]


def test_a_window_that_a_new_table_may_lack_events_of_is_not_published(lake):
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    add(lake, MONDAY + 2 * DAY, *ALL)
    run = export(lake, 2)
    assert_refused(run, DAYS[1], "0, 1, 2")
    assert lake.published() == [DAYS[0]]
    assert (run.record.state, run.record.windows_left) == ("failed", 0)


def test_a_window_is_not_published_again_from_the_table_of_another_topic_that_begins_later(lake):
    """The next version of a Flink statement writes another topic, and the contract's source changes to it."""
    before = export(lake, 1).manifest(DAYS[0])
    second = topic_of(("n", "int"), name="things_v2")
    for received in (DAY + 12 * HOUR, 2 * DAY + HOUR, 3 * DAY + HOUR, 4 * DAY + HOUR):
        add(lake, MONDAY + received, *ALL, topic=second)
    switched = {"source": {"topic": "things_v2"}, "window": {"restate_for_days": 30}}
    run = export(lake, 4, **switched)
    assert_refused(run, DAYS[0], "0, 1, 2")
    assert_refused(run, DAYS[1], "0, 1, 2")
    assert run.manifest(DAYS[0]) == before
    assert run.manifest(DAYS[3])["status"] == "complete"
    from_then = {**switched, "window": {**switched["window"], "from": date(2024, 3, 6)}}
    assert export(lake, 4, **from_then).window(DAYS[2])["code"] == "EXP-WINDOW-CHANGED"
    accepted = export(lake, 4, "--accept-window-change", "true", **from_then)
    assert accepted.record.state == "done"
    assert lake.published() == [DAYS[0], *DAYS[2:4]]


@pytest.mark.slow
def test_the_table_of_another_topic_that_begins_before_the_window_is_whole(lake):
    second = topic_of(("n", "int"), name="things_v2")
    for received in (MONDAY - HOUR, MONDAY + DAY + HOUR, MONDAY + 2 * DAY + HOUR):
        add(lake, received, *ALL, topic=second)
    assert export(lake, 2, source={"topic": "things_v2"}).manifest(DAYS[1])["status"] == "complete"


@pytest.mark.slow
def test_it_fails_alone(lake):
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    for days in (2, 3, 4):
        add(lake, MONDAY + days * DAY + HOUR, *ALL)
    run = export(lake, 4)
    assert_refused(run, DAYS[1], "0, 1, 2")
    assert_refused(run, DAYS[2], "0, 1, 2")
    assert run.manifest(DAYS[3])["status"] == "complete"


@pytest.mark.slow
def test_one_partition_that_begins_later_is_enough(lake):
    replace_table(lake, 0, 2, begins=MONDAY - HOUR)
    add(lake, MONDAY + DAY, *ALL)
    add(lake, MONDAY + 2 * DAY, *ALL)
    assert_refused(export(lake, 2), DAYS[1], "1")


@pytest.mark.slow
def test_a_partition_that_only_the_former_table_had_is_not_forgotten(lake):
    replace_table(lake, 0, 1, begins=MONDAY - HOUR)
    add(lake, MONDAY + 2 * DAY, 0, 1)
    assert_refused(export(lake, 2), DAYS[1], "2")


@pytest.mark.slow
def test_a_new_table_that_begins_before_the_window_is_whole(lake):
    replace_table(lake, *ALL, begins=MONDAY - HOUR)
    add(lake, MONDAY + DAY, *ALL)
    add(lake, MONDAY + 2 * DAY, *ALL)
    run = export(lake, 2)
    assert run.manifest(DAYS[1])["status"] == "complete"
    assert run.column("id", DAYS[1]) == ["0-0500", "1-0500", "2-0500"]


@pytest.mark.slow
def test_a_clock_that_is_wrong_proves_nothing(lake):
    replace_table(lake, *ALL, begins=datetime(1971, 1, 1, tzinfo=UTC))
    add(lake, MONDAY + DAY + 12 * HOUR, *ALL)
    add(lake, MONDAY + 2 * DAY, *ALL)
    assert_refused(export(lake, 2), DAYS[1], "0, 1, 2")


@pytest.mark.slow
def test_a_late_record_with_an_old_time_proves_nothing(lake):
    """Its producer held it back. The table begins with records from after the window's beginning."""
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    add(lake, MONDAY - HOUR, *ALL)
    add(lake, MONDAY + 2 * DAY, *ALL)
    assert_refused(export(lake, 2), DAYS[1], "0, 1, 2")


@pytest.mark.slow
def test_a_table_that_was_written_before_the_window_is_whole(lake):
    """Although no event of two partitions is older than the window."""
    replace_table(lake, 0, begins=MONDAY + DAY + 12 * HOUR)
    move_commits(lake, MONDAY + DAY + 13 * HOUR)
    add(lake, MONDAY + 3 * DAY + HOUR, *ALL)
    add(lake, MONDAY + 4 * DAY + HOUR, *ALL)
    run = export(lake, 4)
    assert_refused(run, DAYS[2], "0, 1, 2")
    assert run.manifest(DAYS[3])["status"] == "complete"


@pytest.mark.slow
def test_the_first_day_states_where_the_new_table_begins(lake):
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    add(lake, MONDAY + 2 * DAY + HOUR, *ALL)
    add(lake, MONDAY + 3 * DAY + HOUR, *ALL)
    run = export(lake, 3, "--first-day", date(2024, 3, 6).isoformat())
    assert (run.state(), run.window()["window"]) == ("published", DAYS[2])


@pytest.mark.slow
def test_somebody_states_that_the_new_table_is_whole_and_later_windows_go_on(lake):
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    add(lake, MONDAY + 2 * DAY + HOUR, *ALL)
    stated = export(lake, 2, "--complete-until", (MONDAY + 2 * DAY).isoformat())
    assert stated.manifest(DAYS[1])["completeness"].startswith("Stated with --complete-until")
    add(lake, MONDAY + 3 * DAY + HOUR, *ALL)
    assert export(lake, 3).manifest(DAYS[2])["status"] == "complete"


@pytest.mark.slow
def test_a_contract_may_publish_it_as_incomplete_and_never_as_complete(lake):
    window = {"on_incomplete_source": "publish"}
    replace_table(lake, *ALL, begins=MONDAY + DAY + 12 * HOUR)
    add(lake, MONDAY + 2 * DAY + HOUR, *ALL)
    run = export(lake, 2, window=window)
    manifest = run.manifest(DAYS[1])
    assert (manifest["status"], "another one" in manifest["completeness"]) == ("incomplete", True)
    add(lake, MONDAY + 3 * DAY + HOUR, *ALL)
    again = export(lake, 3, window=window)
    assert {again.manifest(day)["status"] for day in DAYS[1:3]} == {"incomplete"}


@pytest.mark.slow
def test_a_published_window_with_as_many_events_is_published_again_and_names_both_tables(lake):
    former = lake.flow.catalog.load_table((lake.target.database, "things")).metadata.table_uuid
    window = {"restate_for_days": 30}
    lake.flow.catalog.drop_table((lake.target.database, "things"))
    lake._logs.clear()  # the topic's records are the same
    add(lake, MONDAY + HOUR, *ALL)
    add(lake, MONDAY + HOUR + HOUR, *ALL)
    add(lake, MONDAY + DAY + HOUR, *ALL)
    manifest = export(lake, 1, window=window).manifest(DAYS[0])
    tables = [generation["table_uuid"] for generation in manifest["generations"]]
    assert tables == [str(former), manifest["source"]["table_uuid"]]
    assert tables[0] != tables[1]
    add(lake, MONDAY + 2 * DAY + HOUR, *ALL)
    assert_refused(export(lake, 2), DAYS[1], "0, 1, 2")


@pytest.mark.slow
def test_a_published_window_whose_events_cant_be_compared_stays(lake):
    before = export(lake, 1).manifest(DAYS[0])
    replace_table(lake, *ALL, begins=MONDAY + 12 * HOUR, mode="upsert")
    add(lake, MONDAY + DAY, *ALL, mode="upsert")
    add(lake, MONDAY + DAY + HOUR, *ALL, mode="upsert")
    run = export(lake, 1, window={"restate_for_days": 30})
    assert_refused(run, DAYS[0], "0, 1, 2")
    assert run.manifest(DAYS[0]) == before


@pytest.mark.slow
def test_nor_does_a_table_in_confluents_storage_continue_one_in_a_bucket(lakes, aws):
    lake = lakes()
    lake.target = attrs.evolve(lake.target, complete_until=None)
    trades = contract(
        column("offset", "integer", **{"from": "kafka_offset"}),
        column("symbol"),
        name="trades",
        source={"topic": "stock_trades", "event_time": "kafka_timestamp"},
        window={"every": "day", "zone": "UTC", "from": MONDAY.date()},
        deduplicate={"key": ["kafka_partition", "kafka_offset"]},
        delivery={"order_by": ["offset"]},
    )
    trade = {"side": "BUY", "symbol": "ZVV", "quantity": 5, "price": 1, "account": "A", "userid": "U"}
    for received in (MONDAY + HOUR, MONDAY + DAY + HOUR):
        lake.commit(TRADES, trade, at=received, keys=[b"ZVV"])
    lake.export(trades, "--complete-until", (MONDAY + DAY).isoformat(), as_of=MONDAY + DAY + 6 * HOUR)
    assert lake.published("trades") == [DAYS[0]]
    vendor = VendorLake(aws.server.url, aws.server.region, "test", "test")
    with ConfluentCloud(seed=29, start=START, region=aws.server.region, lake=vendor) as cloud:
        storage = ManagedStorage(cloud, aws, days=4, partitions=1)
        secret = storage.store_key("tableflow-after-a-switch", storage.create_key())
        words = ["--tableflow-secret", secret, "--database", storage.id]
        run = lake.export(trades, *words, as_of=MONDAY + 3 * DAY + 6 * HOUR)
    assert run.window(DAYS[1])["code"] == "EXP-TABLE-REPLACED"
    assert run.manifest(DAYS[2])["status"] == "complete"
