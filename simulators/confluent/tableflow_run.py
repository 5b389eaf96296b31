"""What Tableflow does by itself: it makes the table, commits what came into the topic, and puts the table into Glue."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final

from simulators.confluent import glue_sync, tableflow_probe
from simulators.confluent.kinds.schema_registries import of_environment
from simulators.confluent.refusals import Refusal
from simulators.confluent.tableflow_lake import Lake, LakeRefused
from simulators.confluent.tableflow_records import Reader, handled
from simulators.core.aws_access import Access
from simulators.tableflow.arrow import RecordError
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.topic import Topic
from simulators.tableflow.writer import Place, Tableflow

if TYPE_CHECKING:
    from simulators.confluent.kinds.tableflow_topics import TableflowTopic
    from simulators.confluent.world import World

_SCHEMALESS: Final = "Schemaless topics are not supported. Please specify a value schema"


def table_topic(world: World, topic: TableflowTopic) -> Topic:
    """The topic with its newest value schema. Raises Refusal without one, SchemaError where it can't be a table."""
    registry = of_environment(world, topic.environment)
    latest = registry.schemas.latest(f"{topic.id}-value") if registry else None
    if latest is None:
        raise Refusal(400, f"{_SCHEMALESS} for topic {topic.id}", code="bad_request")
    if latest.kind != "AVRO":
        raise Refusal(400, f"{latest.kind} schemas are not simulated", code="bad_request")
    return Topic(topic.id, json.loads(latest.text))


def begin(world: World, topic: TableflowTopic) -> None:
    """From PENDING to RUNNING, or to FAILED with the reason."""
    if world.tableflow_topics.get(topic.key) is not topic or topic.phase != "PENDING":
        return
    try:
        if world.lake:
            _make_table(world, topic, world.lake)
        else:
            topic.table_path = topic.table_path or _place(world, topic, "no-aws-attached").table_path(_made_up(world))
    except LakeRefused as refused:
        topic.phase, topic.message = "FAILED", str(refused)
        return
    topic.phase, topic.message = "RUNNING", ""
    _tick(world, topic)


def _made_up(world: World) -> uuid.UUID:
    return uuid.UUID(int=world.random.getrandbits(128), version=4)


def _place(world: World, topic: TableflowTopic, bucket: str) -> Place:
    naming = topic.config["metadata_column_naming_scheme"]
    return Place(topic.bucket or bucket, topic.cluster, topic.environment, world.organization_id, naming)


def _access(world: World, topic: TableflowTopic, lake: Lake) -> Access:
    if not topic.integration:
        return lake.root
    found = world.provider_integrations[topic.integration]
    return lake.assume(found.vendor_role_arn, found.role_arn, found.external_id, world.clusters[topic.cluster].region)


def _writer(world: World, topic: TableflowTopic, lake: Lake) -> Tableflow:
    """One that acts with fresh credentials, and knows the table with the schema that it has now."""
    lake.catalog.act_as(_access(world, topic, lake).properties())
    writer = Tableflow(lake.catalog, _place(world, topic, "" if topic.integration else lake.managed_bucket()))
    writer.create_table(Topic(topic.id, topic.schema), "upsert" if topic.write_mode == "UPSERT" else "append")
    return writer


def _make_table(world: World, topic: TableflowTopic, lake: Lake) -> None:
    access = _access(world, topic, lake)
    if topic.integration:
        tableflow_probe.bucket(access, topic.bucket, access.region, known=topic.bucket in lake.used_buckets)
        lake.used_buckets.add(topic.bucket)
    try:
        topic.table_path = _writer(world, topic, lake).catalog.load_table(topic.key).location()
    except OSError as error:
        raise LakeRefused(f"The table can't be written: {error}") from None
    if topic.integration:
        tableflow_probe.tagging(access, lake.catalog.pointers[topic.key])


def _tick(world: World, topic: TableflowTopic) -> None:
    """Again and again until it is deleted, fails or is suspended."""
    if world.tableflow_topics.get(topic.key) is not topic or topic.phase != "RUNNING" or topic.suspended or topic.deleting:
        return
    world.clock.catch_up()
    if world.lake:
        try:
            _commit(world, topic, world.lake)
        except (LakeRefused, OSError) as refused:
            topic.phase, topic.message, topic.suspended = "FAILED", str(refused), True
            return
        except (SchemaError, RecordError) as refused:
            topic.message, topic.suspended = str(refused), True
            return
    glue_sync.table(world, topic)
    world.clock.after(world.delays.tableflow_commit, lambda: _tick(world, topic))


def _commit(world: World, topic: TableflowTopic, lake: Lake) -> None:
    """One commit of what came since the last. Raises RecordError for a record that suspends the topic."""
    kafka_topic = world.clusters[topic.cluster].topics[topic.id]
    waiting = kafka_topic.messages[topic.taken :]
    if not waiting:
        return
    writer, newest = _writer(world, topic, lake), table_topic(world, topic)
    if newest.schema != topic.schema:
        writer.evolve(newest)
        topic.schema = dict(newest.schema)
    registry = of_environment(world, topic.environment)
    assert registry is not None, "a topic without a registry has no schema"
    reader = Reader(registry.schemas, topic.schema, upserts=topic.write_mode == "UPSERT")
    records = handled(world, topic, reader.read(topic.id, waiting))
    writer.append(topic.id, records)
    writer.expire(topic.id)
    topic.taken += len(waiting)
