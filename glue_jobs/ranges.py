"""How rows are spread over partitions so that one shuffle both deduplicates and orders them.

Rows are cut into ranges of the first ordering column, from a sample (`sampling`). A bad sample costs balance, never
correctness: the file's bytes don't depend on where the cuts are.
"""

from __future__ import annotations

from typing import Any

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

BUCKET = "$bucket"
_ROWS_PER_PARTITION = 1_000_000
_ROWS_WORTH_A_TASK = 100_000
#: Each partition may hand the driver up to 10 MiB (see `sinks`); together that stays below spark.driver.maxResultSize, 1 GiB.
MOST_PARTITIONS = 100


@attrs.frozen
class Layout:
    """`cuts` are the lower bounds of all ranges but the first; there are `partitions` ranges."""

    partitions: int
    cuts: tuple[Any, ...]

    def spread(self, frame: DataFrame, by: Column) -> DataFrame:
        """Adds `$bucket` and puts each range of `by` into the partition of its rank. Nulls come first, as in a sort."""
        salts = _salts(self.partitions)
        bucket = F.lit(salts[-1])
        for cut, salt in reversed(list(zip(self.cuts, salts, strict=False))):
            bucket = F.when(by < F.lit(cut), F.lit(salt)).otherwise(bucket)
        bucket = F.when(by.isNull(), F.lit(salts[0])).otherwise(bucket)
        return frame.withColumn(BUCKET, bucket).repartition(self.partitions, BUCKET)


def plan(rows: float, sample: list[Any], parallelism: int) -> Layout | None:
    """A layout for about so many rows, from values of the first ordering column; None where there are none to go by."""
    partitions = wanted(rows, parallelism)
    known = sorted(value for value in sample if value is not None)
    if not known and partitions > 1:
        return None
    cuts = [known[len(known) * number // partitions] for number in range(1, partitions)]
    distinct = tuple(sorted(set(cuts)))
    return Layout(len(distinct) + 1, distinct)


def wanted(rows: float, parallelism: int) -> int:
    """How many partitions so many rows are worth."""
    return min(MOST_PARTITIONS, max(1, -int(-rows // _ROWS_PER_PARTITION), min(parallelism, int(rows // _ROWS_WORTH_A_TASK))))


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
