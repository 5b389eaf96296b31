"""Lines become S3 objects: many partitions upload at once, with part sizes that S3 accepts and checksums that
it compares.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import attrs
import botocore.exceptions
import pyarrow as pa
import pytest

from config.exports.contract import Personal
from config.exports.file_model import Delivery
from glue_jobs import outcomes, ranges
from glue_jobs.delivery import csv
from glue_jobs.delivery.counts import PartitionReport, count
from glue_jobs.delivery.multipart import (
    LEAST_PART,
    CsvFormat,
    PartitionSink,
    Upload,
    begin,
    complete,
    encoder,
    fill_gaps,
    upload_part,
)
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import verify_file
from glue_jobs.errors import DataProblem, Inconsistent, translate
from tests.support import samples

FORM = CsvFormat(samples.contract(samples.TRADES).columns, Delivery(order_by=["hour"], dialect="machine"))
#: Sizes of partitions around every limit.
BORDERS = [0, 1, LEAST_PART - 1, LEAST_PART, 2 * LEAST_PART - 1, 2 * LEAST_PART]


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(min(size, 1 << 16)).ljust(size, bytes([seed % 251]))


def start_upload(bucket, key: str, partitions: int) -> Upload:
    return begin(bucket.s3, bucket.name, bucket.key(key), "text/csv", partitions)


def stored(bucket, key: str) -> bytes:
    return bucket.s3.get_object(Bucket=bucket.name, Key=key)["Body"].read()


def uploaded(bucket, target: Upload) -> list[dict]:
    return bucket.s3.list_parts(Bucket=target.bucket, Key=target.key, UploadId=target.upload_id).get(
        "Parts", []
    )


def shared(bucket, pieces: list[list[bytes]], form: CsvFormat = FORM) -> tuple[bytes, list[Part]]:
    """Return the object that partitions with these pieces become together, and its parts."""
    target = start_upload(bucket, "file.csv", len(pieces))
    results = []
    for index, ones in enumerate(pieces):
        with ThreadPoolExecutor(1) as pool:
            sink = PartitionSink(target, index, pool)
            for piece in ones:
                sink.add(piece)
            head = sink.close()
        results.append((index, PartitionReport(parts=sink.parts), head))
    parts = fill_gaps(bucket.s3, target, form.stored_header, results, len(pieces))
    complete(bucket.s3, target, parts)
    return stored(bucket, target.key), parts


@pytest.mark.parametrize(
    ("size", "piece"),
    [*((size, 1 << 30) for size in BORDERS), (2 * LEAST_PART, 3 << 20), ((16 << 20) + LEAST_PART, 3 << 20)],
)
def test_a_partition_of_any_size_between_small_ones(bucket, size, piece):
    middle = noise(size, 7)
    cut = [middle[start : start + piece] for start in range(0, size, piece)]
    data, parts = shared(bucket, [[b"first\r\n"], [], cut, [], [b"last\r\n"]])
    assert data == FORM.header + b"first\r\n" + middle + b"last\r\n"
    assert all(part.size >= LEAST_PART for part in parts[:-1])
    assert sum(part.size for part in parts) == len(data)


def test_partitions_of_all_sizes_side_by_side(bucket):
    pieces = [
        [noise(size, number)]
        for number, size in enumerate([LEAST_PART, 0, 3, 11 << 20, 1, 2 * LEAST_PART, LEAST_PART - 1])
    ]
    data, parts = shared(bucket, pieces)
    assert data == FORM.header + b"".join(b"".join(ones) for ones in pieces)
    numbers = [part.number for part in parts]
    assert numbers == sorted(set(numbers))
    assert [part.sha256 for part in parts] == [
        hashlib.sha256(piece).hexdigest() for piece in _cut(data, parts)
    ]


def _cut(data: bytes, parts: list[Part]) -> list[bytes]:
    stream = io.BytesIO(data)
    return [stream.read(part.size) for part in parts]


@pytest.mark.parametrize("rows", [0, 99_999, 40_000_000, 10_000_000_000])
def test_results_of_all_partitions_fit_into_the_driver(rows):
    """spark.driver.maxResultSize is 1 GiB.

    A partition returns at most its first two parts of minimum size.
    """
    partitions = ranges.count_partitions(rows, parallelism=800)
    assert partitions >= 1
    assert partitions * 2 * LEAST_PART < 1 << 30


def test_no_rows_are_a_header(bucket):
    assert shared(bucket, [[]])[0] == FORM.header
    packed = attrs.evolve(FORM, delivery=attrs.evolve(FORM.delivery, gzip=True))
    assert gzip.decompress(shared(bucket, [[], []], packed)[0]) == FORM.header


def test_a_partition_buffers_little_even_with_large_pieces(bucket):
    target = start_upload(bucket, "file.csv", 1)
    with ThreadPoolExecutor(1) as pool:
        PartitionSink(target, 0, pool).add(noise(32 << 20, 1))
    head = LEAST_PART
    assert (32 << 20) - sum(part["Size"] for part in uploaded(bucket, target)) - head == LEAST_PART


def test_a_part_is_uploaded_while_the_next_one_is_encoded(bucket):
    target = start_upload(bucket, "file.csv", 1)
    held = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(held.wait, 60)
        sink = PartitionSink(target, 0, pool)
        sink.add(noise(32 << 20, 1))
        sink.add(b"more")
        assert uploaded(bucket, target) == []
        held.set()
        head = sink.close()
    assert len(head) + sum(part.size for part in sink.parts) == (32 << 20) + len(b"more")
    assert [(part.number, part.etag) for part in sink.parts] == [
        (upload["PartNumber"], upload["ETag"]) for upload in uploaded(bucket, target)
    ]


def test_a_part_that_cannot_be_uploaded_fails_its_task(bucket):
    target = start_upload(bucket, "file.csv", 1)
    bucket.abort("file.csv", target.upload_id)
    with ThreadPoolExecutor(1) as pool:
        sink = PartitionSink(target, 0, pool)
        sink.add(noise(32 << 20, 1))
        with pytest.raises(botocore.exceptions.ClientError, match="NoSuchUpload"):
            sink.close()


def test_too_many_parts_are_reported_and_overwrite_no_other_partition(bucket):
    target = attrs.evolve(start_upload(bucket, "file.csv", 1), stride=2)
    with ThreadPoolExecutor(1) as pool:
        sink = PartitionSink(target, 3, pool)
        sink.add(noise(22 << 20, 1))
        with pytest.raises(OverflowError) as raised:
            sink.add(noise(80 << 20, 2))
    assert [part["PartNumber"] for part in uploaded(bucket, target)] == [8]
    error = translate(raised.value)
    assert (error.code, isinstance(error, DataProblem)) == ("EXP-FILE-TOO-LARGE", True), (
        "other windows may be small enough"
    )


@pytest.mark.slow
def test_parts_grow_so_that_few_numbers_hold_a_large_partition(bucket):
    """With the most partitions, each has 98 part numbers of its own. Here it has 11."""
    target = attrs.evolve(start_upload(bucket, "file.csv", 1), stride=12)
    piece = noise(8 << 20, 1)
    written = 0
    with ThreadPoolExecutor(1) as pool:
        sink = PartitionSink(target, 0, pool)
        while len(sink.parts) < 7:
            sink.add(piece)
            written += len(piece)
        head = sink.close()
    assert [round(part.size / (16 << 20)) for part in sink.parts[:7]] == [1, 1, 1, 2, 2, 2, 4]
    assert len(head) + sum(part.size for part in sink.parts) == written


def test_a_part_that_changed_in_transit_is_found_when_the_object_is_read_back(bucket):
    target = start_upload(bucket, "file.csv", 1)
    contract = attrs.evolve(samples.contract(samples.TRADES), delivery=FORM.delivery)
    written = samples.csv_bytes(contract, samples.trade_rows())

    def change(params, **_):
        params["body"] = written.replace(b"1", b"2")

    bucket.s3.meta.events.register("before-call.s3.UploadPart", change)
    try:
        part = upload_part(bucket.s3, target, 1, written)
    finally:
        bucket.s3.meta.events.unregister("before-call.s3.UploadPart", change)
    complete(bucket.s3, target, [part])
    with pytest.raises(Inconsistent, match="part 1 of the file was changed"):
        verify_file(
            target.key,
            io.BytesIO(stored(bucket, target.key)),
            [part],
            contract,
            csv.build_header(contract.columns, contract.delivery),
        )


def test_parts_with_gaps_between_their_numbers_have_no_checksum_of_s3(bucket):
    """With one, S3 refuses them (API reference, CompletedPart).

    Newer versions of botocore add one by default.
    """
    target = start_upload(bucket, "file.csv", 1)
    complete(bucket.s3, target, [upload_part(bucket.s3, target, 7, b"first and last")])
    head = bucket.s3.head_object(Bucket=bucket.name, Key=target.key, ChecksumMode="ENABLED")
    assert [name for name in head if name.startswith("Checksum")] == []


# --- batches of rows on executors

TYPES = {
    "hour": pa.timestamp("us", "UTC"),
    "side": pa.string(),
    "amount": pa.decimal128(12, 4),
    "settled": pa.bool_(),
}
HOUR = datetime(2026, 11, 9, 13, tzinfo=UTC)


def batch(lines: list[tuple]) -> pa.RecordBatch:
    """Return a batch of lines (outcome, line state, side, amount in units).

    Each is an event whose offset is its index.
    """
    fate, state, side, amount = zip(*lines, strict=True)
    size = len(lines)
    values = {
        "hour": [HOUR] * size,
        "side": side,
        "amount": amount,
        "settled": [True] * size,
        outcomes.OUTCOME: fate,
        outcomes.PARTITION: [3] * size,
        outcomes.OFFSET_MIN: list(range(100, 100 + size)),
        outcomes.LINE_STATE: state,
        f"{outcomes.FLAGS}0": [0 if value is None else int(value == "SELL") * 2 for value in side],
    }
    outcome_types = {name: pa.int32() for name in (outcomes.OUTCOME, outcomes.PARTITION, outcomes.LINE_STATE)}
    types = TYPES | outcome_types | {outcomes.OFFSET_MIN: pa.int64(), f"{outcomes.FLAGS}0": pa.int64()}
    return pa.RecordBatch.from_arrays([pa.array(values[name], types[name]) for name in values], list(values))


BATCHES = [
    [
        (outcomes.KEPT, outcomes.DELIVERED, "BUY", 1),
        (outcomes.DUPLICATE, None, "SELL", 2),
        (outcomes.KEPT, outcomes.DELIVERED, "SELL", 3),
    ],
    [(outcomes.OUTSIDE, None, None, None), (outcomes.FILTERED, None, None, None)],
    [(outcomes.KEPT, outcomes.FILTERED_LINE, "BUY", 4), (outcomes.KEPT, outcomes.DELIVERED, "=x", 5)],
]


def encoded(target: Upload, form: CsvFormat, batches: list[list[tuple]]) -> tuple[PartitionReport, bytes]:
    (answer,) = encoder(target, form)([batch(lines) for lines in batches])
    row = answer.to_pylist()[0]
    assert row["partition"] == 0
    assert json.loads(row["report"])
    return PartitionReport.from_json(row["report"]), row["head"]


def text_of(batches: list[list[tuple]]) -> bytes:
    lines = [line for lines in batches for line in lines if line[1] == outcomes.DELIVERED]
    return b"".join(
        f"2026-11-09T13:00:00.000000Z,{csv.guarded(side)},{amount}.0000,true\r\n".encode()
        for _, _, side, amount in lines
    )


def test_only_delivered_lines_are_written_and_everything_is_counted(bucket):
    report, head = encoded(start_upload(bucket, "file.csv", 1), FORM, BATCHES)
    assert head == text_of(BATCHES)
    assert report.written == 3
    assert report.events == {
        "kept": 4,
        "duplicates": 1,
        "outside_window": 1,
        "filtered": 1,
    }
    assert report.lines == report.rows == {"delivered": 3, "filtered": 1}
    assert (report.items, report.offsets) == (4, {"3": [100, 102]})
    assert report.flagged == {"1": 2}


def test_texts_that_excel_cannot_hold_are_counted(bucket):
    form = attrs.evolve(FORM, delivery=attrs.evolve(FORM.delivery, dialect="excel"))
    long = [
        [(outcomes.KEPT, outcomes.DELIVERED, "x" * 32_768, 1), (outcomes.KEPT, outcomes.DELIVERED, "BUY", 2)]
    ] * 2
    report, _ = encoded(start_upload(bucket, "file.csv", 1), form, long)
    assert (report.written, report.cut) == (4, 2)


def test_without_a_key_nothing_that_is_to_be_hashed_is_written(bucket):
    with pytest.raises(ValueError, match="the key has 0 bytes"):
        encoded(start_upload(bucket, "file.csv", 1), hashing(b""), BATCHES)


def test_a_value_is_hashed_before_it_is_written(bucket):
    _, head = encoded(start_upload(bucket, "file.csv", 1), hashing(b"k" * 32), BATCHES)
    assert [len(line.split(b",")[1]) for line in head.splitlines()] == [64] * 3


def hashing(key: bytes) -> CsvFormat:
    """Return a format in which `side` is hashed with the key."""
    personal = Personal(treatment="hash", kind="text")
    columns = [
        attrs.evolve(column, personal=personal) if column.name == "side" else column
        for column in FORM.columns
    ]
    return attrs.evolve(FORM, columns=columns, hashed=frozenset({"side"}), key=key)


def test_a_partition_without_rows_returns_a_report(bucket):
    report, head = encoded(start_upload(bucket, "file.csv", 1), FORM, [])
    assert (report, head) == (PartitionReport(), b"")


def test_compressed_lines_are_the_same_bytes_each_time_and_the_same_lines(bucket):
    form = attrs.evolve(FORM, delivery=attrs.evolve(FORM.delivery, gzip=True))
    target = start_upload(bucket, "file.csv.gz", 1)
    (_, first), (_, second) = (encoded(target, form, BATCHES * 50) for _ in range(2))
    assert first == second
    assert gzip.decompress(form.stored_header + first) == form.header + text_of(BATCHES * 50)
    assert first[4:8] == b"\0\0\0\0", "a time of writing would make each run another file"


def test_reports_add_up():
    one = PartitionReport(
        written=1, events={"0": 2}, offsets={"1": [5, 9]}, lines={"0": 1}, flagged={"3": 1}, items=1
    )
    total = PartitionReport()
    for report in (
        one,
        one,
        PartitionReport(events={"1": 7}, offsets={"1": [2, 6], "2": [0, 0]}, cut=4, replaced=5),
    ):
        total.add(report)
    assert total == PartitionReport(
        written=2,
        cut=4,
        replaced=5,
        events={"0": 4, "1": 7},
        offsets={"1": [2, 9], "2": [0, 0]},
        items=2,
        lines={"0": 2},
        flagged={"3": 2},
    )


def test_rows_of_groups_count_their_events_and_lines():
    """A row of a group represents many events with an outcome, or many lines."""
    table = pa.table(
        {
            outcomes.OUTCOME: pa.array([outcomes.KEPT, outcomes.DUPLICATE, None, None], pa.int32()),
            outcomes.PARTITION: pa.array([0, 1, None, None], pa.int32()),
            outcomes.OFFSET_MIN: pa.array([10, 4, None, None], pa.int64()),
            outcomes.OFFSET_MAX: pa.array([90, 8, None, None], pa.int64()),
            outcomes.EVENTS: pa.array([40, 3, 0, 0], pa.int64()),
            outcomes.ITEMS: pa.array([55, None, None, None], pa.int64()),
            outcomes.LINE_STATE: pa.array([None, None, outcomes.DELIVERED, outcomes.SUPPRESSED], pa.int32()),
            outcomes.LINES: pa.array([0, 0, 50, 5], pa.int64()),
        }
    )
    report = count(table)
    assert report.events == {"kept": 40, "duplicates": 3}
    assert report.offsets == {"0": [10, 90], "1": [4, 8]}
    assert report.items == 55
    assert report.rows == {"delivered": 1, "suppressed": 1}
    assert report.lines == {"delivered": 50, "suppressed": 5}
