"""Kafka records, and the partitions that a producer's default partitioner assigns to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

#: Confluent Cloud's default number of partitions.
DEFAULT_PARTITIONS: Final = 6

_WORD: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


class Sent(NamedTuple):
    """A record as a producer sends it.

    `timestamp` counts milliseconds since 1970 UTC; a null value is a tombstone.
    """

    timestamp: int
    key: bytes | None
    value: dict[str, Any] | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Record(NamedTuple):
    """A record as a consumer sees it. `timestamp` counts milliseconds since 1970 UTC."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: dict[str, Any] | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_type: str = "CreateTime"
    leader_epoch: int = 0


class Log:
    """The partitions of a topic. Each record gets the next offset of its key's partition."""

    def __init__(self, topic: str, partitions: int = DEFAULT_PARTITIONS) -> None:
        if partitions < 1:
            raise ValueError(f"topic {topic}: {partitions} partitions asked for, but it needs at least 1")
        self._topic = topic
        self._partitions = partitions
        self._next: Counter[int] = Counter()
        self._keyless = 0

    def append(self, sent: Iterable[Sent]) -> list[Record]:
        records = []
        for message in sent:
            partition = self._partition(message.key)
            offset = self._next[partition]
            self._next[partition] = offset + 1
            records.append(Record(self._topic, partition, offset, *message))
        return records

    def _partition(self, key: bytes | None) -> int:
        if key is not None:
            return partition_of(key, self._partitions)
        # A producer assigns records without a key to random partitions. Round-robin is as even, and
        # repeatable.
        self._keyless += 1
        return (self._keyless - 1) % self._partitions


@lru_cache(maxsize=1 << 16)
def partition_of(key: bytes, partitions: int) -> int:
    return (hash_murmur2(key) & 0x7FFFFFFF) % partitions


def hash_murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of Kafka's Java client, as a signed number."""
    state = (_SEED ^ len(data)) & _WORD
    full_words_end = len(data) & ~3
    for start in range(0, full_words_end, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _WORD
        word = (word ^ word >> 24) * _MULTIPLIER & _WORD
        state = (state * _MULTIPLIER & _WORD) ^ word
    if tail := data[full_words_end:]:
        state = (state ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _WORD
    state = (state ^ state >> 13) * _MULTIPLIER & _WORD
    state ^= state >> 15
    return state - (1 << 32) if state >> 31 else state
