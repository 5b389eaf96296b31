"""How rows are spread over partitions so that one shuffle both deduplicates and orders them.

Rows are cut into ranges of the first ordering column. Spark's own range partitioning samples by reading every column of
the source a second time; here a few thin slices of the window, one column wide, are enough. A bad estimate costs
balance, never correctness: the file's bytes don't depend on where the cuts are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from exports.windows import Window

BUCKET = "_bucket"
_SLICES = 8
#: All slices together cover one part in this many of the window.
_THINNING = 100
_ROWS_PER_PARTITION = 1_000_000
_ROWS_WORTH_A_TASK = 100_000


@attrs.frozen
class Layout:
    """`cuts` are the lower bounds of all ranges but the first; there are `partitions` ranges."""

    partitions: int
    cuts: tuple[Any, ...]

    def spread(self, frame: DataFrame, by: Column) -> DataFrame:
        """Adds `_bucket` and puts each range of `by` into the partition of its rank. Nulls come first, as in a sort."""
        salts = _salts(self.partitions)
        bucket = F.lit(salts[-1])
        for cut, salt in reversed(list(zip(self.cuts, salts, strict=False))):
            bucket = F.when(by < F.lit(cut), F.lit(salt)).otherwise(bucket)
        bucket = F.when(by.isNull(), F.lit(salts[0])).otherwise(bucket)
        return frame.withColumn(BUCKET, bucket).repartition(self.partitions, BUCKET)


def slices(window: Window) -> list[tuple[Any, Any]]:
    """Thin slices of the window, spread evenly, each (start, end)."""
    length = window.end - window.start
    thin = max(length / (_SLICES * _THINNING), timedelta(microseconds=1))
    starts = [window.start + length * (2 * number + 1) / (2 * _SLICES) for number in range(_SLICES)]
    return [(start, start + thin) for start in starts]


def plan(sample: list[Any], parallelism: int) -> Layout:
    """A layout from the values of the first ordering column that the slices held."""
    estimated = len(sample) * _THINNING
    partitions = max(1, -(-estimated // _ROWS_PER_PARTITION), min(parallelism, estimated // _ROWS_WORTH_A_TASK))
    known = sorted(value for value in sample if value is not None)
    wanted = [known[len(known) * number // partitions] for number in range(1, partitions)] if known else []
    cuts = tuple(sorted(set(wanted)))
    return Layout(len(cuts) + 1, cuts)


def _salts(partitions: int) -> list[int]:
    """For each partition a number that Spark's hash partitioning puts there: Spark 3.5 can't be told the partition."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(_murmur3(number) % partitions, number)
        number += 1
    return [found[index] for index in range(partitions)]


def _murmur3(value: int, seed: int = 42) -> int:
    """MurmurHash3_x86_32 of a four-byte integer, as a signed number, as in Spark's `hash`."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) * 0x1B873593 & mask
    h = seed ^ k
    h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h
