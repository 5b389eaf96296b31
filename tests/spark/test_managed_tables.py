"""Exports of a table in Confluent's storage, which is in no catalog of the customer: read through Tableflow's
Iceberg REST catalog with credentials that end and a key that rotates.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest

from glue_jobs.errors import BadInput, SourceProblem, StorageProblem
from simulators.confluent.server import ConfluentCloud
from simulators.confluent.tableflow_lake import Lake as VendorLake
from simulators.core import control
from tests.support.confluent_kit import LONG
from tests.support.lake import ROOT, column, contract
from tests.support.managed_storage import START, ManagedStorage

DAYS = ("2024-03-04", "2024-03-05", "2024-03-06")
AS_OF = datetime(2024, 3, 7, 6, tzinfo=UTC)


def build_trades(*order_by):
    """Return a contract. `number` is computed, so no file is looked into before Spark reads it."""
    return contract(
        column("partition", "integer", **{"from": "kafka_partition"}),
        column("offset", "integer", **{"from": "kafka_offset"}),
        column("symbol"),
        column("quantity", "integer"),
        column("number", "integer", expression="kafka_offset + 1"),
        name="trades",
        source={"topic": "stock_trades", "event_time": "kafka_timestamp"},
        window={"every": "day", "zone": "UTC", "from": datetime(2024, 3, 4, tzinfo=UTC).date()},
        deduplicate={"key": ["kafka_partition", "kafka_offset"]},
        delivery={"order_by": list(order_by)},
    )


TRADES = build_trades("partition", "offset")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def storage(aws):
    vendor = VendorLake(aws.server.url, aws.server.region, "test", "test")
    with ConfluentCloud(seed=23, start=START, region=aws.server.region, lake=vendor) as cloud:
        yield ManagedStorage(cloud, aws, days=4)


@pytest.fixture
def key(storage):
    return storage.create_key()


@pytest.fixture
def secret(storage, key):
    return storage.store_key(f"tableflow-{next(_numbers)}", key)


def run(lake, storage, secret, **around):
    words = ["--tableflow-secret", secret, "--database", storage.id]
    return lake.export(TRADES, *words, as_of=AS_OF, **around)


@pytest.fixture(scope="module")
def expected(storage):
    """Return (partition, offset, quantity) of the events of each day."""
    days = defaultdict(list)
    for event in storage.read_events():
        values = (event["$$partition"], event["$$offset"], event["quantity"])
        days[f"{event['$$timestamp']:%Y-%m-%d}"].append(tuple(map(str, values)))
    return days


def exported(result, day):
    return [(row["partition"], row["offset"], row["quantity"]) for row in result.cells(day)]


def assert_published(result, expected):
    for day in DAYS:
        assert len(expected[day]) > 100
        assert exported(result, day) == expected[day]


def during(window, phase, action):
    """Return a hook of the run that calls `action` once, when this phase of the window begins."""
    left = [action]

    def hook(label, name):
        if (label, name) == (window, phase) and left:
            left.pop()()

    return hook


def test_each_window_has_the_events_of_the_topic(lake, storage, secret, expected):
    result = run(lake, storage, secret)
    assert sorted(window["window"] for window in result.record.windows) == list(DAYS)
    assert_published(result, expected)


@pytest.mark.slow
def test_nothing_is_asked_of_glue(lake, storage, secret):
    run(lake, storage, secret)
    assert storage.id not in {
        database["Name"] for database in boto3.client("glue").get_databases()["DatabaseList"]
    }


@pytest.mark.parametrize("phase", [pytest.param("look for changes", marks=pytest.mark.slow), "compute"])
def test_a_window_is_tried_again_with_new_credentials(lake, storage, secret, expected, phase):
    ended = []
    hook = during(DAYS[0], phase, lambda: ended.append(storage.end_credentials()))
    result = run(lake, storage, secret, on_phase=hook)
    assert ended > [0]
    assert_published(result, expected)


@pytest.mark.slow
def test_a_window_that_takes_longer_than_its_credentials_fails_alone(lake, storage, secret, expected):
    def hook(label, phase):
        if label == DAYS[0] and phase == "compute":
            storage.end_credentials()

    result = run(lake, storage, secret, on_phase=hook)
    failed = result.window(DAYS[0])
    assert (failed["state"], failed["code"]) == ("failed", "EXP-CREDENTIALS-ENDED")
    assert "smaller windows" in failed["remedy"]
    for day in DAYS[1:]:
        assert exported(result, day) == expected[day]
    assert DAYS[0] not in lake.published("trades")
    assert_published(run(lake, storage, secret), expected)


@pytest.mark.slow
def test_a_key_that_rotates_is_replaced_during_the_run(lake, storage, key, secret, expected):
    def rotate():
        storage.store_key(secret, storage.create_key())
        storage.delete_key(key[0])

    result = run(lake, storage, secret, on_phase=during(DAYS[1], "publish", rotate))
    assert_published(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("order_by", ["partition", "number"])
def test_s3_that_denies_the_catalogs_credentials_is_no_missing_right_of_the_job(
    lake, storage, secret, order_by
):
    """As if a policy of a VPC endpoint let the job reach buckets of its own account only."""
    s3 = storage.aws.client("s3")
    (bucket,) = [row["Name"] for row in s3.list_buckets()["Buckets"] if "confluent" in row["Name"]]
    denied = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/*.parquet",
    }

    def deny():
        policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
        s3.put_bucket_policy(Bucket=bucket, Policy=policy)

    try:
        words = ["--tableflow-secret", secret, "--database", storage.id]
        hook = during(DAYS[0], "compute", deny)
        result = lake.export(build_trades(order_by), *words, as_of=AS_OF, on_phase=hook)
    finally:
        s3.delete_bucket_policy(Bucket=bucket)
    failed = result.window(DAYS[0])
    assert (failed["state"], failed["code"]) == ("failed", "EXP-CREDENTIALS-DENIED")
    assert "the job's role don't help" in failed["remedy"]


@pytest.mark.slow
def test_a_session_that_ended_is_opened_again(lake, storage, secret, expected):
    expire = during(DAYS[1], "publish", lambda: storage.cloud.advance(2 * LONG))
    assert_published(run(lake, storage, secret, on_phase=expire), expected)


@pytest.mark.slow
def test_a_revoked_key_is_an_error_of_the_windows_that_are_left(lake, storage, key, secret, expected):
    revoke = during(DAYS[1], "publish", lambda: storage.delete_key(key[0]))
    result = run(lake, storage, secret, on_phase=revoke)
    failed = [window for window in result.record.windows if window["state"] == "failed"]
    assert {window["code"] for window in failed} == {"EXP-TABLEFLOW-KEY"}
    assert secret in failed[0]["reason"]


def test_a_key_that_never_worked_is_named(lake, storage):
    secret = storage.store_key(f"tableflow-{next(_numbers)}", ("NOBODY", "cflt-unknown"))
    with pytest.raises(SourceProblem, match=r"EXP-TABLEFLOW-KEY.*refuses the key") as caught:
        run(lake, storage, secret)
    assert "cflt-unknown" not in str(caught.value)


def test_a_topic_that_the_key_may_not_read_is_no_missing_table(lake, storage):
    secret = storage.store_key(
        f"tableflow-{next(_numbers)}", storage.create_key(storage.org.account("nobody"))
    )
    with pytest.raises(SourceProblem, match=r"EXP-TABLE-MISSING.*may not read.*DeveloperRead"):
        run(lake, storage, secret)


@pytest.mark.parametrize(
    ("content", "lacking"),
    [
        ("no JSON", "apiKey, apiSecret, catalog.uri"),
        ("[]", "apiKey, apiSecret, catalog.uri"),
        ("{}", "apiKey, apiSecret, catalog.uri"),
        (json.dumps({"apiKey": "a", "apiSecret": "b"}), "catalog.uri"),
        (json.dumps({"apiKey": "a", "apiSecret": "", "catalog.uri": "c"}), "apiSecret"),
    ],
)
def test_what_a_secret_lacks_is_named(lake, storage, content, lacking):
    name = f"tableflow-{next(_numbers)}"
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=content)
    with pytest.raises(BadInput, match=rf"EXP-TABLEFLOW-SECRET.*{name}.*lacks {lacking}\."):
        run(lake, storage, name)


@pytest.fixture
def ip_filter(storage):
    """Return a function that lets the organization refuse the job's address."""
    yield lambda: control.call(storage.cloud.url, "PUT", "/ip-filter", {"planes": ["CATALOG"]})
    control.call(storage.cloud.url, "PUT", "/ip-filter", {"planes": []})


def test_an_ip_filter_is_among_the_causes_of_a_login_that_fails(lake, storage, secret, ip_filter):
    ip_filter()
    with pytest.raises(StorageProblem, match=r"EXP-CATALOG-UNREACHABLE.*denies the login.*IP filters"):
        run(lake, storage, secret)


@pytest.mark.slow
def test_an_ip_filter_of_a_session_that_is_open_is_no_missing_table(lake, storage, secret, ip_filter):
    result = run(lake, storage, secret, on_phase=during(DAYS[1], "publish", ip_filter))
    failed = [window for window in result.record.windows if window["state"] == "failed"]
    assert {window["code"] for window in failed} == {"EXP-TABLEFLOW-KEY"}
    assert "denies access" in failed[0]["reason"]


def test_a_secret_that_does_not_exist_is_named(lake, storage):
    with pytest.raises(StorageProblem, match=r"EXP-TABLEFLOW-KEY.*tableflow-nowhere"):
        run(lake, storage, "tableflow-nowhere")


def test_a_catalog_that_does_not_answer_can_be_tried_again(lake, storage, key):
    secret = storage.store_key(f"tableflow-{next(_numbers)}", key)
    fields = {"apiKey": key[0], "apiSecret": key[1], "catalog.uri": "http://127.0.0.1:9/iceberg"}
    boto3.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=json.dumps(fields))
    with pytest.raises(StorageProblem, match=r"EXP-CATALOG-UNREACHABLE"):
        run(lake, storage, secret)


@pytest.mark.slow
def test_the_key_is_in_nothing_that_spark_shows_or_writes(lake, storage, key, secret, tmp_path):
    """Plans, event log, pages of the UI and its REST interface show the catalog's other settings."""
    words = ["--export", lake.write_contract(TRADES), "--as-of", AS_OF.isoformat(), *lake.target.arguments()]
    words += ["--tableflow-secret", secret, "--database", storage.id]
    probe = Path(__file__).with_name("leak_probe.py")
    done = subprocess.run(
        [sys.executable, str(probe), str(tmp_path), b"mark".hex(), *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (tmp_path / "output.txt").write_text(done.stdout + done.stderr)
    shown = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert [name for name, content in shown.items() if key[1].encode() in content] == []
    assert any(b"spark.sql.catalog.tableflow_1.uri" in content for content in shown.values())
