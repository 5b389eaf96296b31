"""Writes records over Kafka's REST API, as a program of the deployment's users would."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

import fastavro

from lakeferry.deployment.context import MANAGERS_KAFKA_KEY
from lakeferry.rehearsal.harness import Harness
from lambdas.confluent.rest_client import build_path, require_text

#: The first byte of a value whose schema is in Schema Registry, before the schema's id.
_MAGIC: Final = 0


def write_to_each_partition(harness: Harness, topic: str, value: Mapping[str, Any]) -> None:
    """Write the same record to each partition of a topic.

    A key's hash chooses the partition of a record, so a few keys may leave partitions without any. A run
    can't tell whether such a partition is idle before the table is an hour old, and the commits of a
    rehearsal are of the same minutes.
    """
    ctx = harness.ctx
    vendor = ctx.confluent()
    environment = harness.output("confluent", "EnvironmentId")
    cluster = harness.output("confluent", "KafkaClusterId")
    registry_key = ctx.secrets.read_key(ctx.confluent_secret("schema_registry"))
    registry = vendor.registry(environment, registry_key)
    kafka_key = ctx.secrets.read_key(ctx.confluent_secret(MANAGERS_KAFKA_KEY))
    kafka = vendor.kafka(environment, cluster, kafka_key)
    registered = registry.get(build_path("subjects", f"{topic}-value", "versions", "latest"))
    data = _encode_value(registered, value)
    route = build_path("kafka", "v3", "clusters", cluster, "topics", topic)
    for partition in range(int(require_text(kafka.get(route), "partitions_count"))):
        body = {"partition_id": partition, "value": {"type": "BINARY", "data": data}}
        kafka.post(f"{route}/records", body)


def _encode_value(registered: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """Return the value in Base64, in Avro with the schema's id before it."""
    encoded = io.BytesIO()
    encoded.write(struct.pack(">bI", _MAGIC, int(registered["id"])))
    fastavro.schemaless_writer(encoded, fastavro.parse_schema(json.loads(registered["schema"])), dict(value))
    return base64.b64encode(encoded.getvalue()).decode()
