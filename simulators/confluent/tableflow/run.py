"""Runs a Tableflow topic: creates its table, commits new records at intervals, and syncs the table to
Glue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from simulators.confluent import kafka
from simulators.confluent.errors import bad_request
from simulators.confluent.model import TableflowTopic
from simulators.confluent.organization import Organization
from simulators.confluent.record_reader import BadRecord, Reader
from simulators.confluent.tableflow import glue_sync, probe
from simulators.confluent.tableflow_lake import Lake, LakeRefused
from simulators.core.aws_access import Access
from simulators.tableflow.arrow import RecordError
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.kafka import DEFAULT_PARTITIONS, Record
from simulators.tableflow.topic import Topic
from simulators.tableflow.writer import Tableflow, TableLocation, WriteMode

_SCHEMALESS: Final = "Schemaless topics are not supported. Please specify a value schema"


def build_table_topic(org: Organization, topic: TableflowTopic) -> Topic:
    """Return the topic with its latest value schema.

    Raises ApiError if there is no Avro schema, and SchemaError if a table can't have it.
    """
    registry = org.find_registry(topic.environment)
    latest = registry.schemas.latest(f"{topic.id}-value") if registry else None
    if latest is None:
        raise bad_request(f"{_SCHEMALESS} for topic {topic.id}")
    if latest.kind != "AVRO":
        raise bad_request(f"{latest.kind} schemas are not simulated")
    return Topic(topic.id, json.loads(latest.text))


def begin(org: Organization, topic: TableflowTopic) -> None:
    """Create the table and move the topic from PENDING to RUNNING, or to FAILED with the reason."""
    if org.tableflow_topics.get(topic.key) is not topic or topic.phase != "PENDING":
        return
    try:
        if org.lake:
            _create_table(org, topic, org.lake)
        elif not topic.table_path:
            location = _build_location(org, topic, "no-aws-attached")
            topic.table_path = location.build_table_path(org.create_uuid())
    except LakeRefused as error:
        topic.phase = "FAILED"
        topic.message = str(error)
        return
    topic.phase = "RUNNING"
    topic.message = ""
    _commit_records(org, topic)


def _build_location(org: Organization, topic: TableflowTopic, bucket: str) -> TableLocation:
    naming = topic.config["metadata_column_naming_scheme"]
    return TableLocation(
        topic.bucket or bucket, topic.cluster, topic.environment, org.organization_id, naming
    )


def _get_access(org: Organization, topic: TableflowTopic, lake: Lake) -> Access:
    if not topic.integration:
        return lake.root
    integration = org.provider_integrations[topic.integration]
    return lake.assume(
        integration.vendor_role_arn,
        integration.role_arn,
        integration.external_id,
        org.clusters[topic.cluster].region,
    )


def _build_writer(org: Organization, topic: TableflowTopic, lake: Lake) -> Tableflow:
    """Return a writer with new credentials, for which the table is created if necessary."""
    lake.catalog.act_as(_get_access(org, topic, lake).build_properties())
    bucket = "" if topic.integration else lake.get_managed_bucket()
    writer = Tableflow(lake.catalog, _build_location(org, topic, bucket))
    mode: WriteMode = "upsert" if topic.write_mode == "UPSERT" else "append"
    writer.create_table(Topic(topic.id, topic.schema), mode)
    return writer


def _create_table(org: Organization, topic: TableflowTopic, lake: Lake) -> None:
    access = _get_access(org, topic, lake)
    if topic.integration:
        probe.probe_bucket(access, topic.bucket, access.region, is_known=topic.bucket in lake.used_buckets)
        lake.used_buckets.add(topic.bucket)
    try:
        topic.table_path = _build_writer(org, topic, lake).catalog.load_table(topic.key).location()
    except OSError as error:
        raise LakeRefused(f"The table can't be written: {error}") from None
    if topic.integration:
        probe.probe_tagging(access, lake.catalog.pointers[topic.key])


def _commit_records(org: Organization, topic: TableflowTopic) -> None:
    """Commit and schedule the next tick, until the topic is deleted, fails or is suspended."""
    if (
        org.tableflow_topics.get(topic.key) is not topic
        or topic.phase != "RUNNING"
        or topic.suspended
        or topic.deleting
    ):
        return
    org.clock.catch_up()
    if org.lake:
        try:
            _commit(org, topic, org.lake)
        except (LakeRefused, OSError) as error:
            topic.phase = "FAILED"
            topic.message = str(error)
            topic.suspended = True
            return
        except (SchemaError, RecordError) as error:
            topic.message = str(error)
            topic.suspended = True
            return
    glue_sync.sync(org, topic)
    org.clock.call_later(org.delays.tableflow_commit, lambda: _commit_records(org, topic))


def _commit(org: Organization, topic: TableflowTopic, lake: Lake) -> None:
    """Commit the records since the last commit.

    Raises SchemaError or RecordError for what suspends the topic, and LakeRefused or OSError if AWS refuses.
    """
    kafka_topic = org.clusters[topic.cluster].topics[topic.id]
    new_messages = kafka_topic.messages[topic.position :]
    if not new_messages:
        return
    writer = _build_writer(org, topic, lake)
    new_topic = build_table_topic(org, topic)
    if new_topic.schema != topic.schema:
        writer.evolve(new_topic)
        topic.schema = dict(new_topic.schema)
    registry = org.find_registry(topic.environment)
    assert registry is not None, "a topic without a registry has no schema"
    reader = Reader(registry.schemas, topic.schema, upserts=topic.write_mode == "UPSERT")
    writer.append(topic.id, _accept_records(org, topic, reader.read(topic.id, new_messages)))
    writer.expire(topic.id)
    topic.position += len(new_messages)


def _accept_records(
    org: Organization, topic: TableflowTopic, records_and_mistakes: Iterable[Record | BadRecord]
) -> list[Record]:
    """Return the good records, and handle bad ones as the topic's error_handling says.

    Raises RecordError if it is SUSPEND.
    """
    handling = topic.config["error_handling"]
    records = []
    for record in records_and_mistakes:
        if isinstance(record, Record):
            records.append(record)
        elif handling["mode"] == "SUSPEND":
            position = f"partition {record.message.partition}, offset {record.message.offset}"
            raise RecordError(f"topic {topic.id}, {position}: {record.problem}")
        elif handling["mode"] == "LOG":
            _log(org, topic, record, handling["target"])
        else:
            topic.skipped.append(org.clock.now())
    return records


def _log(org: Organization, topic: TableflowTopic, bad: BadRecord, target: str) -> None:
    """Append the bad record to the target topic, which is created if it doesn't exist, and is never
    deleted.
    """
    cluster = org.clusters[topic.cluster]
    log = cluster.topics.get(target) or kafka.create_topic(org, cluster, target, DEFAULT_PARTITIONS, {})
    headers = (*bad.message.headers, ("error", bad.problem.encode()), ("source.topic", topic.id.encode()))
    log.append(bad.message.timestamp, bad.message.key, bad.message.value, headers)
