"""How a topic's records are cut: into commits, and a commit's rows into files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

import pyarrow as pa
import pyarrow.compute as pc

from simulators.tableflow.kafka import Record


def slices(rows: pa.Table, files: int) -> Iterator[pa.Table]:
    length = max(1, -(-len(rows) // files))
    yield from (rows.slice(start, length) for start in range(0, len(rows), length))


def by_partition(rows: pa.Table, records: Sequence[Record]) -> Iterator[pa.Table]:
    partitions = pa.array([each.partition for each in records], pa.int32())
    for each in sorted(set(partitions.to_pylist())):
        yield rows.filter(pc.equal(partitions, each))


def spans(records: Sequence[Record], count: int) -> Iterator[list[Record]]:
    """`records` cut by time of arrival, which for a record that is late is that of the records before it."""
    if not records:
        return
    arrivals = list(accumulate((each.timestamp for each in records), max))
    first, length = arrivals[0], arrivals[-1] - arrivals[0] + 1
    numbers = [(each - first) * count // length for each in arrivals]
    for _, chosen in groupby(zip(numbers, records, strict=True), key=lambda pair: pair[0]):
        yield [record for _, record in chosen]
