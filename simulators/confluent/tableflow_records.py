"""Messages of a topic as records of its table, and what becomes of those that can't be one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro

from simulators.confluent.kafka_log import Message, unframed
from simulators.confluent.kinds import topics
from simulators.confluent.schemas import Schemas
from simulators.tableflow.arrow import RecordError
from simulators.tableflow.kafka import Record

if TYPE_CHECKING:
    from simulators.confluent.kinds.tableflow_topics import TableflowTopic
    from simulators.confluent.world import World


class Bad(NamedTuple):
    """A message that can't become a row."""

    message: Message
    problem: str


class Reader:
    """Reads each message with the schema that it was written with, into `schema`."""

    def __init__(self, schemas: Schemas, schema: dict[str, Any], *, upserts: bool) -> None:
        self._schemas, self._upserts = schemas, upserts
        self._reader = fastavro.parse_schema(schema)
        self._writers: dict[int, Any] = {}

    def read(self, topic: str, messages: Iterable[Message]) -> Iterator[Record | Bad]:
        for each in messages:
            try:
                value = self._value(each)
            except (ValueError, LookupError, EOFError, TypeError) as error:
                yield Bad(each, str(error) or type(error).__name__)
            else:
                yield Record(topic, each.partition, each.offset, each.timestamp, each.key, value, each.headers)

    def _value(self, message: Message) -> dict[str, Any] | None:
        """Raises ValueError and others for what isn't a row."""
        if message.value is None:
            if not self._upserts:
                raise ValueError("a tombstone, which an append table can't hold")
            return None
        if self._upserts and message.key is None:
            raise ValueError("no key, and an upsert table is keyed")
        found = unframed(message.value)
        if found is None:
            raise ValueError("Unknown data format. Magic number does not match")
        value: Any = fastavro.schemaless_reader(io.BytesIO(found[1]), self._writer(found[0]), self._reader)
        return dict(value)

    def _writer(self, schema_id: int) -> Any:
        if schema_id not in self._writers:
            self._writers[schema_id] = fastavro.parse_schema(json.loads(self._schemas.by_id[schema_id].text))
        return self._writers[schema_id]


def handled(world: World, topic: TableflowTopic, found: Iterable[Record | Bad]) -> list[Record]:
    """The records; bad ones as the topic's error handling says. Raises RecordError where that is SUSPEND."""
    handling, records = topic.config["error_handling"], []
    for each in found:
        if isinstance(each, Record):
            records.append(each)
        elif handling["mode"] == "SUSPEND":
            where = f"partition {each.message.partition}, offset {each.message.offset}"
            raise RecordError(f"topic {topic.id}, {where}: {each.problem}")
        elif handling["mode"] == "LOG":
            _log(world, topic, each, handling["target"])
        else:
            topic.skipped.append(world.clock.now())
    return records


def _log(world: World, topic: TableflowTopic, bad: Bad, target: str) -> None:
    """Into the target topic, which is made where it isn't there, and stays."""
    cluster = world.clusters[topic.cluster]
    log = cluster.topics.get(target) or topics.make(world, cluster, target, 6, {})
    headers = (*bad.message.headers, ("error", bad.problem.encode()), ("source.topic", topic.id.encode()))
    log.append(bad.message.timestamp, bad.message.key, bad.message.value, headers)
