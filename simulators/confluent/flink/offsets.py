"""The offsets at which a running query stands."""

from __future__ import annotations

from collections.abc import Mapping

from simulators.confluent.kafka_log import KafkaTopic


def read_offsets(
    sources: Mapping[str, KafkaTopic], positions: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    """Return the offset of the next record of each partition; 0 where nothing was read."""
    return {
        name: {partition: positions.get(name, {}).get(partition, 0) for partition in range(topic.partitions)}
        for name, topic in sources.items()
    }


def find_ends(topic: KafkaTopic) -> dict[int, int]:
    """Return the offset after the last record of each partition that has one."""
    ends: dict[int, int] = {}
    for message in topic.messages:
        ends[message.partition] = max(ends.get(message.partition, 0), message.offset + 1)
    return ends
