"""Which windows a run computes again after the table has changed: those whose events can have changed, and no
others.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import boto3
import pytest

from tests.support.lake import KEY, MONDAY, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
DAYS = ["2024-03-04", "2024-03-05", "2024-03-06"]
DAILY = {"every": "day"}
THURSDAY = datetime(2024, 3, 7, 6, tzinfo=UTC)


def thing(id_, day, n=1, hours=1):
    return {"id": id_, "at": MONDAY + timedelta(days=day, hours=hours), "n": n}


def days(lake, mode="append"):
    """Commit two events of each of three days, a commit and a data file for each day."""
    for day in range(3):
        two = thing(f"a{day}", day), thing(f"b{day}", day, hours=2)
        lake.commit(THINGS, *two, at=MONDAY + timedelta(days=day, hours=3), mode=mode, files=1)


def night(lake, text, *words, as_of=THURSDAY):
    """Run the export. Return the windows that it computed, and the state of each by its label."""
    computed = []

    def tell(window, phase):
        if phase == "compute":
            computed.append(window)

    run = lake.export(text, *words, as_of=as_of, on_phase=tell)
    return sorted(computed), {window["window"]: window["state"] for window in run.record.windows}


def delete(lake, condition):
    table = f"lake.`{lake.target.database}`.things"
    lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    lake.spark.sql(f"DELETE FROM {table} WHERE {condition}")


def on_tuesday(*events):
    """Commit events in one file, all received on the second day."""
    return lambda lake: lake.commit(THINGS, *events, at=MONDAY + timedelta(days=1, hours=5), files=1)


TIMELESS = {"id": "x", "at": None, "n": 1}
LONG_AGO = {"id": "x", "at": datetime(1970, 1, 2, tzinfo=UTC), "n": 1}


#: What happens between two nights, and the windows that the second one computes and publishes.
CHANGES = {
    "nothing": (lambda lake: None, [], []),
    "events of another day": (lambda lake: lake.commit(THINGS, thing("new", 7)), [], []),
    "a late event": (lambda lake: lake.commit(THINGS, thing("late", 1)), DAYS[1:2], DAYS[1:2]),
    "a file of the first and the last day": (on_tuesday(thing("x", 0), thing("y", 2)), DAYS, DAYS[::2]),
    "a repeated event": (lambda lake: lake.commit(THINGS, thing("b0", 0, hours=1)), DAYS[:1], []),
    "compaction": (lambda lake: lake.flow.compact("things"), DAYS, []),
    "a file without times": (on_tuesday(TIMELESS), DAYS, []),
    "an event without a time": (on_tuesday(TIMELESS, thing("new", 7)), DAYS[1:2], []),
    "an event with a time long ago": (on_tuesday(LONG_AGO), DAYS[1:2], []),
    "an event with a time far ahead": (on_tuesday(thing("new", 100_000)), DAYS[1:2], []),
    "the delete of a row by its position": (lambda lake: delete(lake, "id = 'b2'"), DAYS[2:], DAYS[2:]),
    "another schema": (
        lambda lake: lake.flow.evolve(topic_of(("n", "int"), ("m", ["null", "int"], None))),
        [],
        [],
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", CHANGES)
def test_only_windows_that_a_change_can_affect_are_computed_again(lake, change):
    days(lake)
    valid = {"min_event_date": date(2000, 1, 1), "max_invalid_percent": 100}
    text = contract(*LINES, window=DAILY, source=valid)
    assert night(lake, text) == (DAYS, dict.fromkeys(DAYS, "published"))
    act, computed, published = CHANGES[change]
    act(lake)
    words = ("--accept-fewer-events", "true")
    assert night(lake, text, *words) == (
        computed,
        {day: "published" if day in published else "unchanged" for day in DAYS},
    )
    assert night(lake, text) == ([], dict.fromkeys(DAYS, "unchanged"))


@pytest.mark.slow
def test_rows_that_an_upsert_table_replaces_are_noticed(lake):
    """Iceberg leaves out files in which the deleted key can't be: that with the keys a2 to b2, but not that
    with a0 to b0.
    """
    days(lake, "upsert")
    text = contract(*LINES, window=DAILY)
    night(lake, text)
    lake.commit(THINGS, thing("a1", 7), mode="upsert")
    assert night(lake, text) == (
        DAYS[:2],
        dict(zip(DAYS, ("unchanged", "published", "unchanged"), strict=True)),
    )
    assert night(lake, text)[0] == []


@pytest.mark.slow
def test_a_window_after_deduplication_depends_on_all_files(lake):
    days(lake)
    text = contract(*LINES, window=DAILY | {"filter_stage": "after_deduplication"})
    night(lake, text)
    assert night(lake, text)[0] == []
    lake.commit(THINGS, thing("a1", 7))
    assert night(lake, text) == (DAYS, dict(zip(DAYS, ("unchanged", "published", "unchanged"), strict=True)))


@pytest.mark.slow
def test_another_key_computes_all_windows_again(lake):
    days(lake)
    hashed = column("pseudonym", **{"from": "id"}, personal={"treatment": "hash", "kind": "id"})
    text = contract(*LINES, hashed, window=DAILY)
    night(lake, text)
    assert night(lake, text)[0] == []
    boto3.client("secretsmanager").put_secret_value(
        SecretId=lake.target.pseudonym_secret, SecretString=json.dumps({"key": KEY.hex()[:43] + "="})
    )
    assert night(lake, text) == (DAYS, dict.fromkeys(DAYS, "published"))


@pytest.mark.slow
def test_a_table_of_the_same_name_is_another_table(lake):
    days(lake)
    text = contract(*LINES, window=DAILY)
    night(lake, text)
    lake.flow.drop("things")
    days(lake)
    assert night(lake, text) == (DAYS, dict.fromkeys(DAYS, "unchanged"))


@pytest.mark.slow
def test_an_empty_window_that_was_skipped_is_not_computed_again(lake):
    days(lake)
    delete(lake, "id IN ('a1', 'b1')")
    text = contract(*LINES, window=DAILY | {"on_empty": "skip"})
    states = dict(zip(DAYS, ("published", "skipped", "published"), strict=True))
    assert night(lake, text) == (DAYS, states)
    assert night(lake, text) == ([], states | dict.fromkeys(DAYS[::2], "unchanged"))
    lake.commit(THINGS, thing("late", 1))
    assert night(lake, text)[1][DAYS[1]] == "published"


@pytest.mark.slow
def test_a_skipped_window_whose_mark_is_gone_is_computed_again(lake):
    days(lake)
    delete(lake, "id IN ('a1', 'b1')")
    text = contract(*LINES, window=DAILY | {"on_empty": "skip"})
    night(lake, text)
    (mark,) = lake.keys("exports/things/skipped/")
    lake.s3.delete_object(Bucket=lake.target.bucket, Key=mark)
    assert night(lake, text)[0] == DAYS[1:2]


def remove_data(lake):
    (key,) = lake.keys(f"exports/things/data/{DAYS[1]}/")[:1]
    lake.s3.delete_object(Bucket=lake.target.bucket, Key=key)


def remove_manifest(lake):
    lake.s3.delete_object(Bucket=lake.target.bucket, Key=f"exports/things/manifests/{DAYS[1]}.json")


def replace_manifest(lake):
    key = f"exports/things/manifests/{DAYS[1]}.json"
    other = json.loads(lake.read(key)) | {"run_id": "20240307T060000Z-00000000", "content_sha256": "0" * 64}
    lake.s3.put_object(Bucket=lake.target.bucket, Key=key, Body=json.dumps(other).encode())


@pytest.mark.slow
@pytest.mark.parametrize("damage", [remove_data, remove_manifest, replace_manifest])
def test_a_window_whose_files_or_manifest_changed_is_computed_again(lake, damage):
    days(lake)
    text = contract(*LINES, window=DAILY)
    night(lake, text)
    damage(lake)
    computed, states = night(lake, text)
    assert (computed, states[DAYS[1]]) == (DAYS[1:2], "published")
    assert night(lake, text)[0] == []


def test_an_incomplete_window_is_not_computed_again_before_it_can_be_complete(lake):
    far = datetime(2099, 12, 28, 6, tzinfo=UTC)
    days(lake)
    rule = DAILY | {"from": date(2099, 12, 27), "on_incomplete_source": "publish"}
    text = contract(*LINES, window=rule, source={"min_event_date": date(2000, 1, 1)})
    assert night(lake, text, as_of=far) == (["2099-12-27"], {"2099-12-27": "published"})
    lake.commit(THINGS, thing("new", 7))
    assert night(lake, text, as_of=far) == ([], {"2099-12-27": "unchanged"})


@pytest.mark.slow
def test_a_kept_aggregate_is_checked_once_for_all_windows(lake):
    days(lake)
    aggregate = {"no_persons_because": "Counts only.", "keep_as_table": True}
    text = contract(
        column("n", "integer"),
        column("things", "integer", measure="count(*)"),
        window=DAILY,
        aggregate=aggregate,
    )
    night(lake, text)
    assert night(lake, text)[0] == []
    lake.spark.sql(f"DELETE FROM lake.`{lake.target.aggregates_database}`.things WHERE window = '{DAYS[0]}'")
    assert night(lake, text) == (DAYS[:1], dict.fromkeys(DAYS, "unchanged"))
    assert night(lake, text)[0] == []
