"""The watch's measurements at each hop: a table by Tableflow, its catalog, and both vendors' simulators."""

from __future__ import annotations

import base64
import io
import json
import time
from types import SimpleNamespace

import pytest
from pyiceberg.catalog import load_catalog

from lambdas import contract
from lambdas.confluent import telemetry
from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient
from lambdas.monitoring import checks
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.checks import Check, run_checks
from lambdas.monitoring.measurements import (
    ROUTE,
    Connection,
    GlueTables,
    KafkaTopics,
    SnowflakeTables,
    TableflowTables,
)
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.log import open_log
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import reveal_fields
from lambdas.snowflake.client import Login, Snowflake
from simulators.confluent.simulation import REGION
from simulators.snowflake.model import Domain
from tests.support import confluent_lives, snowflake_lives
from tests.support.confluent_environment import Organization
from tests.support.lake_environment import NAMESPACE, Lakeside
from tests.support.snowflake_environment import deployer_key
from tests.support.vendor_environment import STEADY

#: The tables and their readers at both vendors take long to create.
pytestmark = pytest.mark.slow

HOUR = 3600.0
READER_GRANTS = [
    grant for grant in contract.SNOWFLAKE_GRANTS if grant.role == "reader" and grant.on != "WAREHOUSE"
]


@pytest.fixture(scope="module")
def side():
    """A table in Glue and in Snowflake, and a user who may read it there."""
    made = Lakeside()
    made.make("snowflake_iceberg_table", "Table", **snowflake_lives._table(made))
    role = made.make("snowflake_role", "Reader")["name"]
    places = {"DATABASE": "LAKE", "SCHEMA": "LAKE.RAW", "ICEBERG TABLES IN SCHEMA": "LAKE.RAW"}
    for number, grant in enumerate(READER_GRANTS):
        made.make(
            "snowflake_grant",
            f"G{number}",
            privilege=grant.privilege,
            on=grant.on,
            name=places[grant.on],
            to_role=role,
        )
    made.reader = Login(made.account.identifier, _reader(made, role), role)
    yield made
    made.close()


def _reader(made, role):
    held = snowflake_lives.secret_fields.build_fields(
        deployer_key(), snowflake_lives.Connection(made.account.identifier, "LAKE_READER", "127.0.0.1")
    )
    made.secrets.values["reader-key"] = json.dumps(reveal_fields(held))
    properties = {"name": "LAKE_READER", "secret": "reader-key", "role": role, "namespace": "LAKE.RAW"}
    user = made.make("snowflake_user", "User", **properties)["name"]
    made.make("snowflake_grant", "Membership", on="ROLE", name=role, to_user=user)
    return user


def snowflake(side):
    session = Session(Deadline(side.clock, side.clock.time() + 60), retry=STEADY, adapter=side.wire)
    return Snowflake(session, side.clock, side.reader, deployer_key(), side.url)


def lake(side, ahead=0.0, **changed):
    now = time.time() + ahead * HOUR
    return GlueTables(side.aws.glue, side.aws.s3, changed.get("database", NAMESPACE), lambda: now)


def commit(side, table="things"):
    """Commit another snapshot."""
    keys = {
        "client.access-key-id": "test",
        "client.secret-access-key": "test",
        "client.region": side._server.region,
    }
    endpoints = {
        "glue.endpoint": side._server.url,
        "s3.endpoint": side._server.url,
        "glue.skip-name-validation": "true",
    }
    opened = load_catalog("lake", type="glue", **endpoints, **keys).load_table((NAMESPACE, table))
    opened.append(opened.scan().to_arrow())


def pointer(side, table="things"):
    return side.aws.glue.get_table(DatabaseName=NAMESPACE, Name=table)["Table"]


def test_iceberg_and_glue_report_the_age_of_their_snapshot(side):
    assert lake(side, ahead=5).glue_age("things") == pytest.approx(5, abs=0.1)
    assert lake(side, ahead=5).iceberg_age("things") == pytest.approx(5, abs=0.1)


def test_outdated_metadata_in_glue_is_found_although_the_lake_is_fresh(side):
    """A broken catalog integration looks like this: Glue points at older metadata."""
    before = pointer(side, "others")["Parameters"]["metadata_location"]
    commit(side, "others")
    after = pointer(side, "others")
    parameters = {**after["Parameters"], "metadata_location": before}
    kept = {name: after[name] for name in ("Name", "TableType", "StorageDescriptor") if name in after}
    side.aws.glue.update_table(DatabaseName=NAMESPACE, TableInput={**kept, "Parameters": parameters})
    watch = lake(side, ahead=5)
    bucket, key = watch._find_metadata("others")
    assert f"s3://{bucket}/{key}" == before
    newest = after["Parameters"]["metadata_location"].split(f"{bucket}/", 1)[1]
    assert watch._find_newest(bucket, key) == newest
    assert watch.iceberg_age("others") < watch.glue_age("others")


def test_a_second_slash_after_the_bucket_belongs_to_the_key(side):
    """Confluent's Terraform provider has a table at s3://bucket//….

    Source: its test data, read_created_byob_aws_tt.json.
    """
    bucket, key = lake(side)._find_metadata("things")
    side.aws.s3.copy_object(Bucket=bucket, Key=f"/{key}", CopySource={"Bucket": bucket, "Key": key})
    side.aws.glue.create_table(
        DatabaseName=NAMESPACE,
        TableInput={
            "Name": "doubled",
            "Parameters": {"metadata_location": f"s3://{bucket}//{key}", "table_type": "ICEBERG"},
        },
    )
    assert lake(side, ahead=5).glue_age("doubled") == pytest.approx(5, abs=0.1)


def test_a_table_that_glue_does_not_have_is_reported(side):
    with pytest.raises(LakeferryError) as raised:
        lake(side).glue_age("nothing")
    assert raised.value.kind is monitoring_errors.NO_TABLE
    with pytest.raises(LakeferryError) as raised:
        lake(side, database="nowhere").glue_age("things")
    assert raised.value.kind is monitoring_errors.NO_TABLE


def test_a_reader_without_a_warehouse_gets_the_age_of_snowflakes_snapshot(side):
    watch = SnowflakeTables(lambda: snowflake(side), lambda: time.time() + 7 * HOUR)
    assert watch.age("LAKE.RAW.THINGS") == pytest.approx(7, abs=0.2)


def test_a_table_that_snowflake_no_longer_follows_is_reported_with_its_reason(side):
    table = side.account.find(Domain.ICEBERG_TABLE, ("LAKE", "RAW", "THINGS"))
    table.fault = "091301 Access Denied"
    try:
        with pytest.raises(LakeferryError, match="STALLED: 091301") as raised:
            SnowflakeTables(lambda: snowflake(side), time.time).age("LAKE.RAW.THINGS")
        assert raised.value.kind is monitoring_errors.NOT_REFRESHING
    finally:
        table.fault = ""


# --- topics


@pytest.fixture(scope="module")
def org():
    """A cluster with two topics, and an account that may read metrics."""
    made = Organization()
    made.where = confluent_lives.tableflow(made)
    place = {name: made.where[name] for name in ("environment_id", "cluster_id")}
    made.make("topic", "Silent", topic="silent", partitions=1, credentials="kafka-key", **place)
    viewer = confluent_lives.account(made, "Viewer")
    nobody = confluent_lives.account(made, "Nobody")
    for role in contract.ROLES:
        if role.account == "watcher":
            made.make(
                "role_binding",
                role.role,
                service_account_id=viewer,
                role=role.role,
                scope=role.scope,
                **place,
            )
    confluent_lives.key(made, "cloud", "metrics-key", viewer)
    for name, owner in (("Viewer", viewer), ("Nobody", nobody)):
        given = {"service_account_id": owner, "region": REGION, **place}
        made.make(
            "api_key", f"{name}Tables", service="tableflow", secret=made.new_secret(f"{name}-tables"), **given
        )
    made.make(
        "tableflow_topic",
        "OrdersTable",
        topic="orders",
        storage="managed",
        credentials="tableflow-key",
        **place,
    )
    made.settle()
    yield made
    made.close()


def plane(org, secret="metrics-key"):
    held = json.loads(org.secrets.values[secret])
    session = Session(Deadline(org.clock, org.clock.time() + 60), retry=STEADY, adapter=org.wire)
    return RestClient(session, org.clock, org.url, ApiKey(held["apiKey"], Secret(held["apiSecret"])))


def tables(org, secret="Viewer-tables"):
    held = json.loads(org.secrets.values[secret])
    session = Session(Deadline(org.clock, org.clock.time() + 60), retry=STEADY, adapter=org.wire)
    key = ApiKey(held["apiKey"], Secret(held["apiSecret"]))
    found = Confluent(session, org.clock, key, org.url).tableflow(key)
    return TableflowTables(lambda: Connection(found, held["environment.id"], held["kafka.cluster.id"]))


def produce(org, topic):
    cluster = org.simulation.organization.clusters[org.where["cluster_id"]]
    cluster.topics[topic].append(int(org.clock.time() * 1000), None, base64.b64decode("AAAA"), ())


def test_a_topic_is_as_old_as_the_last_hour_in_which_it_got_records(org):
    produce(org, "orders")
    org.clock.sleep(5 * HOUR)
    watch = KafkaTopics(lambda: plane(org), org.where["cluster_id"], org.clock.time)
    assert 4 <= watch.age("orders") <= 5
    assert watch.age("silent") == telemetry.RETENTION.total_seconds() / HOUR


def test_a_table_is_stopped_while_tableflow_has_suspended_or_failed_it(org):
    """The watch's own account, which may change nothing, can see it."""
    (table,) = org.simulation.organization.tableflow_topics.values()
    assert tables(org).stopped("orders") == 0
    for planted in ({"suspended": True}, {"phase": "FAILED", "message": "Access Denied"}):
        before = {name: getattr(table, name) for name in planted}
        for name, value in planted.items():
            setattr(table, name, value)
        assert tables(org).stopped("orders") == 1
        for name, value in before.items():
            setattr(table, name, value)
    assert tables(org).stopped("orders") == 0
    plane, environment, cluster = tables(org)._connect()
    with pytest.raises(LakeferryError):
        plane.delete(f"{ROUTE}/orders", **{"environment": environment, "spec.kafka_cluster": cluster})


def test_a_missing_or_invisible_table_is_reported(org):
    with pytest.raises(LakeferryError) as raised:
        tables(org).stopped("silent")
    assert raised.value.kind is monitoring_errors.NO_TABLEFLOW
    with pytest.raises(LakeferryError):
        tables(org, "Nobody-tables").stopped("orders")


def test_rows_that_tableflow_skips_or_logs_are_counted_for_an_hour_at_least(org):
    watch = lambda: KafkaTopics(lambda: plane(org), org.where["cluster_id"], org.clock.time)  # noqa: E731
    (table,) = org.simulation.organization.tableflow_topics.values()
    assert (watch().skipped(), watch().logged("silent")) == (0, 0)
    table.skipped += [org.clock.time(), org.clock.time()]
    produce(org, "silent")
    org.clock.sleep(HOUR - 1)
    assert (watch().skipped(), watch().logged("silent")) == (2, 1)
    org.clock.sleep(HOUR + 1)
    assert (watch().skipped(), watch().logged("silent")) == (0, 0)


def test_a_table_without_records_is_as_old_as_its_creation(org):
    """Otherwise a deployment without producers would start with alarms."""

    def nothing():
        raise LakeferryError(monitoring_errors.NO_COMMIT, "orders")

    made = tables(org).created("orders")
    clients = SimpleNamespace(now=lambda: made + 2 * HOUR, tableflow=tables(org))
    ages = [
        checks.measure_table_age(clients, "orders", measure)
        for measure in (nothing, lambda: 168.0, lambda: 3.0)
    ]
    assert ages == pytest.approx([2, 2, 3], abs=0.01)


def test_a_record_of_this_hour_makes_a_topic_new(org):
    produce(org, "orders")
    org.clock.sleep(60)
    assert KafkaTopics(lambda: plane(org), org.where["cluster_id"], org.clock.time).age("orders") == 0


def test_a_key_without_access_to_metrics_fails_for_each_topic_with_one_call(org):
    org.wire.calls.clear()
    watch = KafkaTopics(lambda: plane(org, "kafka-key"), org.where["cluster_id"], org.clock.time)
    for topic in ("orders", "silent"):
        with pytest.raises(LakeferryError):
            watch.age(topic)
    assert len([call for call in org.wire.calls if "metrics" in call.path]) == 1


@pytest.mark.parametrize(
    "fault", [{"fault": "error", "status": 503}, {"fault": "error", "status": 403}, {"fault": "cut"}]
)
def test_one_unavailable_hop_does_not_hide_others(org, side, fault):
    """Confluent fails.

    The lake, Glue and Snowflake are measured, and only Confluent's aggregate is missing.
    """
    org.disturb(**fault, times=0)
    try:
        topics = KafkaTopics(lambda: plane(org), org.where["cluster_id"], org.clock.time)
        shown = SnowflakeTables(lambda: snowflake(side), time.time)
        sights = [
            Check("TopicAgeHours", "things", lambda: topics.age("orders")),
            Check("GlueAgeHours", "things", lambda: lake(side).glue_age("things")),
            Check("IcebergAgeHours", "things", lambda: lake(side).iceberg_age("things")),
            Check("SnowflakeAgeHours", "things", lambda: shown.age("LAKE.RAW.THINGS")),
        ]
        measured = run_checks(sights, open_log(io.StringIO()))
    finally:
        org.disturb()
    assert [metric for (metric, _), value in measured.items() if value is None] == ["TopicAgeHours"]
    assert {metric for metric, _ in measured} == {
        "TopicAgeHours",
        "GlueAgeHours",
        "IcebergAgeHours",
        "SnowflakeAgeHours",
    }
