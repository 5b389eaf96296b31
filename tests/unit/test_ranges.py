"""The number of partitions for rows, and the ranges of the first ordering column."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from glue_jobs import ranges
from glue_jobs.files import DataFile
from glue_jobs.ranges import Layout


@pytest.mark.parametrize(
    ("rows", "parallelism", "expected"),
    [
        (0, 8, 1),
        (199_999, 8, 1),
        (200_000, 8, 2),
        (5_000_000, 4, 8),
        (8_000_000, 4, 8),
        (4_000_001, 4, 8),
        (4_000_000, 4, 4),
        (1_000_000, 4, 4),
        (1_000_001, 1, 2),
        (10_000_000_000, 8, 100),
    ],
)
def test_the_number_of_partitions_depends_on_the_rows(rows, parallelism, expected):
    assert ranges.count_partitions(rows, parallelism) == expected


def test_cuts_divide_the_sample_into_equal_parts():
    assert ranges.plan(4_000_000, [None, *reversed(range(100))], 1) == Layout(4, (25, 50, 75))


def test_a_frequent_value_is_one_cut():
    assert ranges.plan(4_000_000, [*[1] * 50, *[2] * 50], 1) == Layout(3, (1, 2))


def test_rows_without_a_sample_are_not_in_one_partition():
    assert ranges.plan(100_000_000, [], 8) is None
    assert ranges.plan(100_000_000, [None, None], 8) is None
    assert ranges.plan(5, [], 8) == Layout(1, ())
    assert ranges.plan(100_000_000, list(range(1_000)), 8).partitions == 100


@pytest.mark.parametrize(
    ("number", "expected"), [(0, 933211791), (1, -559580957), (42, 29417773), (123_456, 1905992991)]
)
def test_a_number_has_the_hash_that_spark_gives_it(number, expected):
    """The expected value is that of `SELECT hash(…)` in Spark 3.5."""
    assert ranges._murmur3(number) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
def test_each_partition_has_the_least_number_that_spark_puts_there(partitions):
    placed = [(ranges._murmur3(number) % partitions, number) for number in range(2_000)]
    least = dict(reversed(placed))
    assert ranges._find_salts(partitions) == [least[index] for index in range(partitions)]


_MONDAY = 1_700_000_000_000_000
_WEEK = (1_700_000_000_000_000, 1_700_604_800_000_000)
_TIME = pa.timestamp("us", "UTC")


def _stored(
    bucket,
    number: int,
    columns: dict[str, pa.Array],
    field_ids: dict[str, int],
    group_size: int | None = None,
) -> DataFile:
    """Write a Parquet file with Iceberg's ids of its fields. Without rows, it has no row group."""
    fields = [
        pa.field(name, a.type, metadata={"PARQUET:field_id": str(field_ids[name])})
        for name, a in columns.items()
    ]
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, pa.schema(fields)) as writer:
        if len(columns["at"]):
            table = pa.table(list(columns.values()), schema=pa.schema(fields))
            writer.write_table(table, row_group_size=group_size)
    content = buffer.getvalue()
    key = f"{number:03}.parquet"
    bucket.write(key, content, "application/octet-stream")
    location = f"s3://{bucket.name}/{bucket.key(key)}"
    return DataFile(location, len(content), len(columns["at"]), (None, None), (None, None), has_nulls=False)


def test_cuts_divide_the_events_of_the_window_although_each_file_has_many_of_other_times(bucket):
    """Each file has events of six hours and, one in ten, of two days before. Keys grow with time."""
    day = 86_400_000_000
    files = []
    keys = []
    for number in range(36):
        at = [
            _MONDAY + (number - 4) * day // 4 + n * day // 4_000 - (2 * day if n % 10 == 0 else 0)
            for n in range(1_000)
        ]
        names = [f"k{number * 1_000 + n:06}" for n in range(1_000)]
        keys += [name for name, when in zip(names, at, strict=True) if _WEEK[0] <= when < _WEEK[1]]
        columns = {"at": pa.array(at, _TIME), "id": pa.array(names)}
        files.append(_stored(bucket, number, columns, {"id": 1, "at": 2}))
    sample = ranges.sample_values(bucket.s3, files, 1, 2, _WEEK)
    assert set(sample) <= set(keys)
    (cut,) = ranges.plan(2_000_000, sample, 2).cuts
    assert sum(key < cut for key in keys) / len(keys) == pytest.approx(0.5, abs=0.05)


def test_a_file_gives_values_as_far_as_it_has_them(bucket):
    times = pa.array([_MONDAY - 1, _MONDAY, _WEEK[1] - 1, _WEEK[1], None], _TIME)
    numbers = pa.array([1, 2, 3, 4, 5])
    ids = {"at": 2, "n": 1}

    def sampled(file: DataFile, field: int = 1) -> list[Any]:
        return ranges.sample_values(bucket.s3, [file], field, 2, _WEEK)

    whole = _stored(bucket, 0, {"at": times, "n": numbers}, ids)
    assert sampled(whole) == [2, 3]
    assert sampled(whole, field=2) == [
        datetime.fromtimestamp(micros / 1e6, UTC) for micros in (_MONDAY, _WEEK[1] - 1)
    ]
    assert sampled(whole, field=9) == []
    # An event time inside of a record is not read.
    nested = pa.StructArray.from_arrays([times], ["at"])
    assert sampled(_stored(bucket, 1, {"at": nested, "n": numbers}, {"at": 7, "n": 1})) == [1, 2, 3, 4, 5]
    assert sampled(_stored(bucket, 2, {"at": numbers, "n": numbers}, ids)) == [
        1,
        2,
        3,
        4,
        5,
    ]  # no times at all
    raw = pa.array([b"a", b"b\xff", b"c", b"d", b"e"]).view(pa.string())
    assert sampled(_stored(bucket, 3, {"at": times, "n": raw}, ids)) == ["b\ufffd", "c"]
    assert sampled(_stored(bucket, 4, {"at": times[:0], "n": numbers[:0]}, ids)) == []
    bucket.write("4.orc", b"ORC, or so", "application/octet-stream")
    assert sampled(attrs.evolve(whole, location=f"s3://{bucket.name}/{bucket.key('4.orc')}", size=10)) == []
    assert sampled(attrs.evolve(whole, location=f"s3://{bucket.name}/gone")) == []


def test_a_file_whose_event_time_is_a_date_gives_values_of_the_windows_days(bucket):
    """A window of dates is in days since 1970. Those of the first and the last day are outside."""
    days = pa.array([19_785, 19_786, None, 19_792, 19_793], pa.date32())
    file = _stored(bucket, 0, {"at": days, "n": pa.array([1, 2, 3, 4, 5])}, {"at": 2, "n": 1})
    week = (19_786, 19_793)
    assert ranges.sample_values(bucket.s3, [file], 1, 2, week) == [2, 4]
    assert ranges.sample_values(bucket.s3, [file], 2, 2, week) == [date(2024, 3, 4), date(2024, 3, 10)]


@pytest.mark.parametrize(
    ("rows", "step", "amount"),
    [(1, 1, 1), (7_999, 1, 7_999), (8_000, 2, 4_000), (15_999, 2, 8_000), (16_000, 3, 5_334)],
)
def test_at_most_eight_thousand_values_are_of_one_file(bucket, rows, step, amount):
    columns = {"at": pa.array([_MONDAY] * rows, _TIME), "n": pa.array(range(rows))}
    file = _stored(bucket, 0, columns, {"at": 2, "n": 1})
    sample = ranges.sample_values(bucket.s3, [file], 1, 2, _WEEK)
    assert sample == list(range(0, rows, step))
    assert len(sample) == amount


@pytest.mark.parametrize(("groups", "middle"), [(1, 0), (2, 1), (4, 2), (5, 2)])
def test_of_a_large_file_the_group_of_rows_in_the_middle_is_read(bucket, groups, middle):
    columns = {"at": pa.array([_MONDAY] * groups, _TIME), "n": pa.array(range(groups))}
    file = _stored(bucket, 0, columns, {"at": 2, "n": 1}, group_size=1)
    assert ranges.sample_values(bucket.s3, [file], 1, 2, _WEEK) == [middle]


def test_files_that_only_spark_may_read_give_no_values():
    assert (
        ranges.sample_values(None, [DataFile("s3://lake/a", 1, 1, (0, 1), (0, 1), False)], 1, 2, _WEEK) == []
    )


def test_an_object_is_read_like_a_file(bucket):
    bucket.write("abc", b"0123456789", "text/plain")
    location = f"s3a://{bucket.name}/{bucket.key('abc')}"
    file = ranges._Ranges(bucket.s3, DataFile(location, 10, 1, (None, None), (None, None), has_nulls=False))
    assert (file.readable(), file.seekable(), file.tell()) == (True, True, 0)
    assert (file.read(3), file.tell()) == (b"012", 3)
    assert (file.seek(2, io.SEEK_CUR), file.read(1), file.tell()) == (5, b"5", 6)
    assert (file.seek(-2, io.SEEK_END), file.read(5), file.tell()) == (8, b"89", 10)
    assert (file.seek(12), file.read(1)) == (12, b"")
    assert (file.seek(1), file.read()) == (1, b"123456789")


@pytest.mark.parametrize(("type_", "unit"), [(pa.date32(), 1), (_TIME, 86_400_000_000)])
def test_dates_and_times_that_python_lacks_give_no_values(bucket, type_, unit):
    """Python has the years 1 to 9999. A missing value is a value like any other."""
    first, end = -719_162 * unit, 2_932_897 * unit
    stored = pa.array([first - 1, first, None, end - 1, end], pa.int32() if unit == 1 else pa.int64())
    times = pa.array([_MONDAY] * 5, _TIME)
    file = _stored(bucket, 0, {"at": times, "due": stored.cast(type_)}, {"at": 2, "due": 1})
    early, missing, late = ranges.sample_values(bucket.s3, [file], 1, 2, _WEEK)
    assert (str(early)[:10], missing, str(late)[:10]) == ("0001-01-01", None, "9999-12-31")


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1] * 16, dict.fromkeys(range(16), 1)),
        ([1] * 160, dict.fromkeys(range(4, 160, 10), 1)),
        ([3, 1], {0: 12, 1: 4}),
        ([1000, 1, 1], {0: 16}),
        ([1, 1000, 1], {1: 16}),
        ([7], {0: 16}),
        ([], {}),
    ],
)
def test_more_values_are_of_large_files(sizes, expected):
    """One file that was compacted weighs as much as the many that it replaced."""
    files = [
        DataFile(str(n), size, 1, (None, None), (None, None), has_nulls=False) for n, size in enumerate(sizes)
    ]
    assert {int(file.location): positions for file, positions in ranges._spread(files)} == expected
