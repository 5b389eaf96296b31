"""What exists before a deployment, with ids of the caller's choice, and records with times of their own."""

import base64
import io
import json
import random
import urllib.error
from decimal import Decimal

import fastavro
import pytest

from simulators.core import control
from simulators.data.schema_values import SchemaValues
from tests.support.confluent_kit import LONG, Client

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
WANTED = {
    "environment_id": "env-abc123",
    "environment_name": "acme",
    "cluster_id": "lkc-abc123",
    "topics": [{"name": "Sales", "partitions": 3, "settings": {"retention.ms": "9000000"}, "schema": SCHEMA}],
}


def encode(number):
    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, SCHEMA, {"a": number})
    return base64.b64encode(encoded.getvalue()).decode()


@pytest.fixture
def keys(cloud, org):
    return control.call(cloud.url, "POST", "/existing", WANTED)


def test_the_objects_have_the_ids_that_were_given(cloud, keys):
    deployer = Client(cloud.url, *keys["deployer"].split(":", 1))
    cluster = deployer.get("/cmk/v2/clusters/lkc-abc123", environment="env-abc123")
    assert cluster["spec"]["environment"]["id"] == "env-abc123"
    assert deployer.get("/org/v2/environments/env-abc123")["display_name"] == "acme"
    kafka = Client(cluster["spec"]["http_endpoint"], *keys["kafka"].split(":", 1))
    topic = kafka.get("/kafka/v3/clusters/lkc-abc123/topics/Sales")
    assert topic["partitions_count"] == 3
    assert set(keys) == {"deployer", "kafka", "schema_registry", "tableflow", "flink", "reader"}


def test_an_environment_alone_has_a_deployer(cloud, org):
    wanted = {"environment_id": "env-xyz", "environment_name": "acme"}
    assert set(control.call(cloud.url, "POST", "/existing", wanted)) == {"deployer"}


def test_an_unknown_key_is_refused(cloud, org):
    with pytest.raises(urllib.error.HTTPError) as refused:
        control.call(cloud.url, "POST", "/existing", {**WANTED, "color": "red"})
    assert refused.value.code == 400


def test_records_are_read_as_they_were_produced(cloud, keys):
    records = [
        {"value": encode(7), "timestamp": 1_700_000_000_000, "partition": 2},
        {"value": encode(8), "key": base64.b64encode(b"k").decode()},
    ]
    assert control.call(cloud.url, "POST", "/produce", {"topic": "Sales", "records": records}) == {
        "written": 2
    }
    answer = control.call(cloud.url, "POST", "/records", {"topic": "Sales"})
    first, second = answer["records"]
    assert (first["partition"], first["timestamp"], first["value"]) == (2, 1_700_000_000_000, {"a": 7})
    assert (second["avro"], base64.b64decode(second["key"])) == (encode(8), b"k")
    assert json.loads(answer["schema"]) == SCHEMA


def test_a_managed_table_can_be_read_with_the_reader_s_key_only_there(cloud, org):
    wanted = {**WANTED, "topics": [{**WANTED["topics"][0], "managed": True}]}
    keys = control.call(cloud.url, "POST", "/existing", wanted)
    cloud.advance(LONG)
    tableflow = Client(cloud.url, *keys["tableflow"].split(":", 1))
    query = {"environment": "env-abc123", "spec__kafka_cluster": "lkc-abc123"}
    topic = tableflow.get("/tableflow/v1/tableflow-topics/Sales", **query)
    assert topic["spec"]["storage"]["kind"] == "Managed"
    assert topic["status"]["phase"] == "RUNNING"


LOGICAL = {
    "type": "record",
    "name": "Logical",
    "fields": [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 4}},
        {"name": "whole", "type": {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "note", "type": ["null", "string"]},
    ],
}


def test_values_are_of_the_logical_types():
    parsed = fastavro.parse_schema(LOGICAL)
    values = SchemaValues(LOGICAL, random.Random(1))
    read = []
    for _ in range(300):
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, parsed, values.next())
        encoded.seek(0)
        read.append(fastavro.schemaless_reader(encoded, parsed, None))
    assert all(Decimal(0) <= value["price"] <= 1 for value in read)
    assert all(1 <= value["whole"] <= 9 for value in read)
    assert {value["day"].year for value in read} == {value["at"].year for value in read} == {2026}
    assert len({value["id"] for value in read}) == 300
    nulls = sum(value["note"] is None for value in read)
    assert 0 < nulls < 60
