"""A topic: its configuration, and its records as bytes."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import attrs

from simulators.tableflow.kafka import partition_of

_LONGEST: Final = "9223372036854775807"
_BY_TOPIC: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
#: The editable settings of the vendor's Terraform provider (editableTopicSettings), and compression.type,
#: which is read-only.
DEFAULTS: Final = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "confluent.key.schema.validation": "false",
    "confluent.key.subject.name.strategy": _BY_TOPIC,
    "confluent.topic.type": "standard",
    "confluent.value.schema.validation": "false",
    "confluent.value.subject.name.strategy": _BY_TOPIC,
    "delete.retention.ms": "86400000",
    "max.compaction.lag.ms": _LONGEST,
    "max.message.bytes": "2097164",
    "message.timestamp.after.max.ms": _LONGEST,
    "message.timestamp.before.max.ms": _LONGEST,
    "message.timestamp.difference.max.ms": _LONGEST,
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "104857600",
    "segment.ms": "604800000",
}
READ_ONLY: Final = ("compression.type",)
#: Confluent's wire format: a magic byte 0, and the schema's id in four bytes.
_MAGIC: Final = struct.Struct(">bI")


class Message(NamedTuple):
    """A record as it is stored in the topic. `timestamp` is in milliseconds since 1970 UTC."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@attrs.define
class KafkaTopic:
    """`settings` are those that were set.

    Calls find the topic from `visible` on. Times are in seconds since 1970 UTC.
    """

    name: str
    partitions: int
    settings: dict[str, str]
    created: float
    visible: float
    deleting: bool = False
    messages: list[Message] = attrs.Factory(list)
    _next: dict[int, int] = attrs.Factory(dict)
    _keyless: int = 0

    def get_setting(self, name: str) -> str:
        return self.settings.get(name, DEFAULTS.get(name, ""))

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
        partition: int | None = None,
    ) -> Message:
        if partition is None and key is not None:
            partition = partition_of(key, self.partitions)
        elif partition is None:
            partition = self._keyless % self.partitions
            self._keyless += 1
        offset = self._next.get(partition, 0)
        self._next[partition] = offset + 1
        self.messages.append(Message(partition, offset, timestamp, key, value, headers))
        return self.messages[-1]


def frame_value(schema_id: int, encoded: bytes) -> bytes:
    return _MAGIC.pack(0, schema_id) + encoded


def unframe_value(value: bytes) -> tuple[int, bytes] | None:
    """Return the schema's id and the encoded value; None for bytes that aren't in Confluent's wire format."""
    if len(value) < _MAGIC.size or value[0] != 0:
        return None
    return _MAGIC.unpack_from(value)[1], value[_MAGIC.size :]
