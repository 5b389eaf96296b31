"""Rows as executors get them, without a Spark session."""

from __future__ import annotations

from collections import namedtuple

import pyarrow as pa

from glue_jobs import outcomes


def batch(*texts: bytes, partition: int = 0) -> pa.RecordBatch:
    """Return a batch of kept events, each with a line of one text and its length."""
    size = len(texts)
    numbers = {
        outcomes.OUTCOME: outcomes.KEPT,
        outcomes.LINE_STATE: outcomes.DELIVERED,
        outcomes.PARTITION: partition,
    }
    arrays = {
        "a": pa.array(texts, pa.binary()).view(pa.string()),
        "n": pa.array(map(len, texts), pa.int64()),
        **{name: pa.array([value] * size, pa.int32()) for name, value in numbers.items()},
        outcomes.OFFSET_MIN: pa.array(range(size), pa.int64()),
    }
    return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


class Frame:
    """Rows of several partitions, which are computed and returned in the wrong order, as Spark may do it."""

    def __init__(self, *partitions: list[pa.RecordBatch]) -> None:
        self._partitions = partitions

    def mapInArrow(self, function, schema):
        self._function = function
        self._row = namedtuple("Row", [part.split()[0] for part in schema.split(",")])
        return self

    def collect(self):
        rows = []
        for index, batches in enumerate(self._partitions):
            (answer,) = self._function(batches)
            (values,) = answer.to_pylist()
            rows.append(self._row(**values | {"partition": index}))
        return rows[::-1]
