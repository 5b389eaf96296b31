"""Distribute rows over partitions so that one shuffle is enough to deduplicate and to sort them.

Each partition gets a range of the first ordering column. To choose the ranges, the job estimates the number
of events and the distribution of the column. Spark's own range partitioning computes every row twice for the
distribution; this module uses the table's manifests and a few range requests for its data files. A bad
estimate makes partitions uneven, but the result is still correct: the file's bytes don't depend on the
ranges.
"""

from __future__ import annotations

import io
import math
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.delivery import csv
from glue_jobs.files import DataFile
from glue_jobs.store import Gone, ObjectBody, translate_aws_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

BUCKET = "$bucket"
_ROWS_PER_PARTITION = 1_000_000
_ROWS_WORTH_A_TASK = 100_000
#: Each partition may return up to 10 MiB to the driver (see `multipart`). In total, that is less than
#: spark.driver.maxResultSize, which is 1 GiB.
MOST_PARTITIONS = 100


@attrs.frozen
class Layout:
    """`cuts` are the lower bounds of all ranges but the first; there are `partitions` ranges."""

    partitions: int
    cuts: tuple[Any, ...]

    def spread(self, frame: DataFrame, by: Column) -> DataFrame:
        """Add `$bucket`, and put the ranges of `by` into consecutive partitions.

        Nulls come first, as in a sort.
        """
        salts = _find_salts(self.partitions)
        bucket = F.lit(salts[-1])
        for cut, salt in reversed(list(zip(self.cuts, salts, strict=False))):
            bucket = F.when(by < F.lit(cut), F.lit(salt)).otherwise(bucket)
        bucket = F.when(by.isNull(), F.lit(salts[0])).otherwise(bucket)
        return frame.withColumn(BUCKET, bucket).repartition(self.partitions, BUCKET)


def plan(rows: float, sample: list[Any], parallelism: int) -> Layout | None:
    """Return a layout for about this many rows, or None if it would need a sample and there is none.

    `sample` has values of the first ordering column.
    """
    partitions = count_partitions(rows, parallelism)
    ordered = sorted(value for value in sample if value is not None)
    if not ordered and partitions > 1:
        return None
    cuts = [ordered[len(ordered) * number // partitions] for number in range(1, partitions)]
    distinct = tuple(sorted(set(cuts)))
    return Layout(len(distinct) + 1, distinct)


def count_partitions(rows: float, parallelism: int) -> int:
    """Return the number of partitions for this many rows. Below the maximum, a number above `parallelism` is
    a multiple of it, because the last of five tasks on two cores would run alone.
    """
    rounds = math.ceil(rows / _ROWS_PER_PARTITION / parallelism)
    tasks = rounds * parallelism if rounds > 1 else min(parallelism, int(rows // _ROWS_WORTH_A_TASK))
    return min(MOST_PARTITIONS, max(1, tasks))


def _find_salts(partitions: int) -> list[int]:
    """Return for each partition a number that Spark's hash partitioning puts there.

    In Spark 3.5, rows can't name a partition.
    """
    numbers: dict[int, int] = {}
    number = 0
    while len(numbers) < partitions:
        numbers.setdefault(_murmur3(number) % partitions, number)
        number += 1
    return [numbers[index] for index in range(partitions)]


def _murmur3(value: int, seed: int = 42) -> int:
    """Return MurmurHash3_x86_32 of a four-byte integer, as a signed number, as in Spark's `hash`."""
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


_POSITIONS = 16
_VALUES = 500


def sample_values(
    s3: S3Client | None, files: list[DataFile], field_id: int, time_id: int, inside: tuple[int, int]
) -> list[Any]:
    """Return a sample of a field's values in events of the window, from a few of the files, with more values
    from large ones.

    `field_id` and `time_id` are the Iceberg ids of the field and of the event time, `inside` are the window's
    bounds (`TableFiles.bounds`). Only events of the window are used, because a file's events are not spread
    evenly over its times: most are recent and a few are late. Files that lack the field, have it inside a
    record or aren't Parquet give no values; without a client of S3, no file does.
    """
    if s3 is None:
        return []

    def sample(part: tuple[DataFile, int]) -> list[Any]:
        file, positions = part
        return _sample_file(s3, file, positions * _VALUES, (field_id, time_id), inside)

    with ThreadPoolExecutor(_POSITIONS // 2) as pool:
        return list(chain.from_iterable(pool.map(sample, _spread(files))))


def _spread(files: list[DataFile]) -> Iterator[tuple[DataFile, int]]:
    """Yield the files at a few positions at equal distances in bytes, each with the number of positions in
    it.
    """
    total = sum(file.size for file in files)
    passed = 0
    positions = 0
    for file in files:
        passed = passed + file.size
        before = positions
        positions = int(passed / total * _POSITIONS + 0.5)
        if positions > before:
            yield file, positions - before


def _sample_file(
    s3: S3Client, file: DataFile, most: int, field_ids: tuple[int, int], inside: tuple[int, int]
) -> list[Any]:
    try:
        with translate_aws_errors(f"reading {file.location}"):
            parquet = pq.ParquetFile(io.BufferedReader(_Ranges(s3, file), 1 << 16))
            name, time = (_find_leaf(parquet.schema_arrow, field) for field in field_ids)
            if name is None or not parquet.num_row_groups:
                return []
            columns = sorted({name, time or name})  # an event time inside of a record is not read
            rows = parquet.read_row_group(parquet.num_row_groups // 2, columns=columns)
    except pa.ArrowInvalid:
        return []  # ORC or Avro, which Iceberg supports too
    except Gone:
        return []  # its snapshot expired, which Spark reports when it reads the rows
    rows = rows.take(list(range(0, len(rows), len(rows) // most + 1)))
    if time is not None and _is_time(rows[time]):
        numbers = _to_numbers(rows[time])
        rows = rows.filter(pc.and_(pc.greater_equal(numbers, inside[0]), pc.less(numbers, inside[1])))
    column = rows[name]
    if _is_time(column):
        column = _convert_times(column)
    if not pa.types.is_string(column.type):
        return list(column.to_pylist())
    # A file may have bytes that are not valid UTF-8.
    texts = column.cast(pa.binary()).to_pylist()
    return [None if text is None else text.decode(errors="replace") for text in texts]


def _convert_times(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the dates or times that Python has.

    The others are refused when the rows are computed, if they are delivered.
    """
    unit = 1 if pa.types.is_date(values.type) else csv.DAY_OF_MICROSECONDS
    numbers = _to_numbers(values)
    inside = pc.and_(pc.greater_equal(numbers, csv.FIRST_DAY * unit), pc.less(numbers, csv.END_DAY * unit))
    return values.filter(pc.or_kleene(inside, pc.is_null(values)))


def _is_time(values: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_date(values.type) or pa.types.is_timestamp(values.type))


def _to_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates in days since 1970, and timestamps in microseconds since 1970."""
    if pa.types.is_date(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())


def _find_leaf(schema: pa.Schema, field_id: int) -> str | None:
    """Return the name of the top-level column with this Iceberg id.

    A file keeps the names from when it was written.
    """
    encoded_id = str(field_id).encode()
    return next(
        (field.name for field in schema if (field.metadata or {}).get(b"PARQUET:field_id") == encoded_id),
        None,
    )


class _Ranges(io.RawIOBase):
    """An S3 object as a file. Only the bytes that are read are fetched."""

    def __init__(self, s3: S3Client, file: DataFile) -> None:
        self._s3 = s3
        self._bucket, _, self._key = file.location.split("://", 1)[-1].partition("/")
        self._size = file.size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._size - self._at)
        if size <= 0:
            return 0
        data = ObjectBody(self._s3, self._bucket, self._key, start=self._at, end=self._at + size - 1).read()
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
