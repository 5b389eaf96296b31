"""One upload from many partitions: which part is whose, what the object is, and what executors counted."""

from __future__ import annotations

import gzip
import hashlib
from concurrent.futures import ThreadPoolExecutor

import attrs
import pyarrow as pa
import pytest

from config.exports.contract import Column, Personal
from config.exports.file_model import Delivery
from glue_jobs import outcomes
from glue_jobs.delivery.counts import PartitionReport, count
from glue_jobs.delivery.multipart import (
    LEAST_PART,
    CsvFormat,
    PartitionSink,
    Upload,
    begin,
    complete,
    fill_gaps,
    upload_part,
    write_file,
)
from glue_jobs.delivery.reading import Part
from glue_jobs.errors import StorageProblem
from tests.support.frames import Frame, batch

COLUMNS = [
    Column(name="a", type="text", title="A", description="A."),
    Column(name="n", type="integer", title="N", description="N."),
]
FORM = CsvFormat(COLUMNS, Delivery(order_by=["a"], dialect="machine"))
PACKED = attrs.evolve(FORM, delivery=attrs.evolve(FORM.delivery, gzip=True))


@pytest.mark.parametrize("form", [FORM, PACKED], ids=["plain", "compressed"])
def test_the_file_has_the_rows_of_all_partitions_in_order(bucket, form):
    frame = Frame([batch(b"x", b"yy"), batch(b"z")], [], [batch(b"last \xff", partition=7)])
    stored = write_file(frame, 3, bucket, "data/file.csv", form)
    answer = bucket.s3.get_object(Bucket=bucket.name, Key=bucket.key("data/file.csv"))
    content = answer["Body"].read()
    unpacked = gzip.decompress(content) if form is PACKED else content
    assert unpacked.decode() == "a,n\r\nx,1\r\nyy,2\r\nz,1\r\nlast \ufffd,6\r\n"
    assert answer["ContentType"] == ("application/gzip" if form is PACKED else "text/csv; charset=utf-8")
    assert stored.key == bucket.key("data/file.csv")
    (part,) = stored.parts
    assert (part.number, part.size) == (3 * 2_500 + 1, len(content))
    assert part.sha256 == hashlib.sha256(content).hexdigest()
    assert stored.report == PartitionReport(
        written=4,
        replaced=1,
        events={"kept": 4},
        offsets={"0": [0, 1], "7": [0, 0]},
        items=4,
        lines={"delivered": 4},
        rows={"delivered": 4},
    )


def test_an_upload_that_cannot_begin_says_where(bucket):
    elsewhere = attrs.evolve(bucket, name="no-such-bucket")
    with pytest.raises(StorageProblem) as failed:
        write_file(Frame([]), 1, elsewhere, "file.csv", FORM)
    assert failed.value.code == "EXP-AWS-NO-BUCKET"
    assert failed.value.what.startswith(
        "beginning the upload of s3://no-such-bucket/team/exports/file.csv failed"
    )


@pytest.mark.parametrize(("partitions", "stride"), [(1, 5_000), (3, 2_500), (100, 99), (101, 98)])
def test_partitions_share_the_part_numbers_of_s3_with_the_driver(bucket, partitions, stride):
    target = begin(bucket.s3, bucket.name, "file.csv", "text/csv", partitions)
    region = bucket.s3.meta.region_name
    assert target == Upload(region, bucket.name, "file.csv", target.upload_id, stride)
    assert partitions * stride + 1 <= 10_000, "the number of the driver's last part"
    assert list(attrs.evolve(bucket, prefix="").uploads("")) == [("file.csv", target.upload_id)]


def test_the_driver_writes_what_partitions_were_too_small_to_upload(bucket):
    """Before each partition with parts: the partitions before it, and its head."""
    target = begin(bucket.s3, bucket.name, "file.csv", "text/csv", 5)
    of_first = upload_part(bucket.s3, target, 2, b"first")
    of_third = upload_part(bucket.s3, target, 2 * target.stride + 2, b"third")
    results = [
        (0, PartitionReport(parts=[of_first]), b"head0 "),
        (1, PartitionReport(), b"small "),
        (2, PartitionReport(parts=[of_third]), b"head2 "),
        (3, PartitionReport(), b"end "),
        (4, PartitionReport(), b""),
    ]
    parts = fill_gaps(bucket.s3, target, b"header ", results, 5)
    written = {
        1: b"header head0 ",
        2: b"first",
        2 * target.stride + 1: b"small head2 ",
        2 * target.stride + 2: b"third",
        5 * target.stride + 1: b"end ",
    }
    assert [(part.number, part.size, part.sha256) for part in parts] == [
        (number, len(data), hashlib.sha256(data).hexdigest()) for number, data in written.items()
    ]
    listed = bucket.s3.list_parts(Bucket=target.bucket, Key=target.key, UploadId=target.upload_id)["Parts"]
    assert [(part["PartNumber"], part["ETag"]) for part in listed] == [
        (part.number, part.etag) for part in parts
    ]


def test_nothing_after_the_last_partition_needs_no_part(bucket):
    target = begin(bucket.s3, bucket.name, "file.csv", "text/csv", 1)
    part = upload_part(bucket.s3, target, 2, b"rows")
    parts = fill_gaps(bucket.s3, target, b"header", [(0, PartitionReport(parts=[part]), b"")], 1)
    assert [part.number for part in parts] == [1, 2]


def test_an_upload_is_completed_once_and_again(bucket):
    """The answer of the first attempt may have been lost."""
    target = begin(bucket.s3, bucket.name, "file.csv", "text/csv", 1)
    parts = [
        upload_part(bucket.s3, target, number, data) for number, data in ((3, b"x" * LEAST_PART), (9, b"y"))
    ]
    assert parts[1] == Part(9, parts[1].etag, 1, hashlib.sha256(b"y").hexdigest())
    for _ in range(2):
        complete(bucket.s3, target, parts)
    content = bucket.s3.get_object(Bucket=bucket.name, Key="file.csv")["Body"].read()
    assert content == b"x" * LEAST_PART + b"y"


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (2 * LEAST_PART - 1, []),
        (2 * LEAST_PART, [(14, LEAST_PART)]),
        ((21 << 20) - 1, [(14, (16 << 20) - 1)]),
        (21 << 20, [(14, 11 << 20), (15, LEAST_PART)]),
    ],
)
def test_the_parts_of_a_partition_follow_the_drivers(bucket, size, parts):
    """A part is uploaded as soon as there are 16 MiB, and enough for the last one."""
    target = attrs.evolve(begin(bucket.s3, bucket.name, "file.csv", "text/csv", 1), stride=4)
    with ThreadPoolExecutor(1) as pool:
        sink = PartitionSink(target, 3, pool)
        sink.add(b"x" * size)
        head = sink.close()
    assert [(part.number, part.size) for part in sink.parts] == parts
    assert len(head) == (LEAST_PART if parts else size)


def test_the_key_of_pseudonyms_is_never_shown():
    key = b"0123456789abcdef0123456789abcdef"
    assert "0123456789" not in repr(attrs.evolve(FORM, key=key))


def test_only_columns_that_are_named_are_hashed_each_with_its_kind():
    personal = {
        "call": Personal(treatment="hash", kind="phone"),
        "free": Personal(treatment="hash"),
        "text": Personal(treatment="hash", kind="text"),
        "done": Personal(treatment="hash", kind="phone"),
    }
    columns = [
        Column(name=name, type="text", title=name, description=name, personal=treated)
        for name, treated in personal.items()
    ]
    form = attrs.evolve(
        FORM, columns=[*columns, *COLUMNS], hashed=frozenset({"call", "free", "text"}), key=b"k" * 32
    )
    hashers = form.hashers()
    assert list(hashers) == ["call", "free", "text"]
    values = pa.array(["+49 (151) 234-5678", "+491512345678", None])
    calls, texts, free = (hashers[name](values).to_pylist() for name in ("call", "text", "free"))
    assert calls[0] == calls[1]
    assert texts[0] != texts[1]
    assert texts == free
    assert calls[2] is texts[2] is None
    assert FORM.hashers() == {}


#: Each level of compression gives another size.
SQUARES = b",".join(b"%d" % number**2 for number in range(3_000))


@pytest.mark.parametrize("data", [b"", b"rows\r\n", SQUARES], ids=["empty", "short", "long"])
def test_a_piece_is_compressed_by_itself_unless_it_is_empty(data):
    assert FORM.packed(data) == data
    packed = PACKED.packed(data)
    assert packed == (gzip.compress(data, 6, mtime=0) if data else b"")
    assert FORM.header == FORM.stored_header == b"a,n\r\n"
    assert gzip.decompress(PACKED.stored_header) == b"a,n\r\n"


def test_a_report_survives_its_text():
    report = PartitionReport(
        written=1,
        cut=2,
        replaced=3,
        parts=[Part(4, "etag", 5, "sha")],
        events={"kept": 6},
        offsets={"7": [8, 9]},
        items=10,
        lines={"delivered": 11},
        rows={"delivered": 12},
        flagged={"13": 14},
    )
    assert PartitionReport.from_json(report.to_json()) == report
    assert PartitionReport.from_json(PartitionReport().to_json()) == PartitionReport()


def counted(**columns) -> PartitionReport:
    """Return the counts of rows with these columns; others have their usual values."""
    size = len(next(iter(columns.values())))
    usual = {
        outcomes.OUTCOME: [None] * size,
        outcomes.PARTITION: [0] * size,
        outcomes.OFFSET_MIN: list(range(size)),
        outcomes.LINE_STATE: [None] * size,
    }
    arrays = {name: pa.array(values, pa.int64()) for name, values in {**usual, **columns}.items()}
    return count(pa.table(arrays))


def test_events_are_counted_by_outcome_with_the_ends_of_their_partitions():
    kept, duplicate, outside, filtered = outcomes.EVENT_NAMES
    report = counted(
        **{
            outcomes.OUTCOME: [kept, duplicate, kept, outside, None, filtered],
            outcomes.PARTITION: [1, 1, 2, 1, 1, 2],
            outcomes.OFFSET_MIN: [50, 40, 7, 60, 1, 5],
        }
    )
    assert report.events == {"kept": 2, "duplicates": 1, "outside_window": 1, "filtered": 1}
    assert report.offsets == {"1": [40, 60], "2": [5, 7]}
    assert report.items == 2, "without an array, a kept event is an item"
    assert (report.lines, report.rows, report.flagged) == ({}, {}, {})


def test_rows_of_groups_without_an_array_have_an_item_for_each_kept_event():
    report = counted(
        **{
            outcomes.OUTCOME: [outcomes.KEPT, outcomes.FILTERED],
            outcomes.OFFSET_MIN: [3, 8],
            outcomes.OFFSET_MAX: [5, 9],
            outcomes.EVENTS: [40, 2],
        }
    )
    assert (report.events, report.items) == ({"kept": 40, "filtered": 2}, 40)
    assert report.offsets == {"0": [3, 9]}


def test_items_are_those_of_all_outcomes_that_have_some():
    report = counted(**{outcomes.OUTCOME: [0, 0, 1], outcomes.ITEMS: [3, 0, None]})
    assert (report.events, report.items) == ({"kept": 2, "duplicates": 1}, 3)


def test_lines_are_counted_by_state_and_failed_checks_by_number():
    states = [outcomes.DELIVERED, outcomes.DELIVERED, outcomes.FILTERED_LINE, outcomes.SUPPRESSED, None]
    report = counted(
        **{
            outcomes.LINE_STATE: states,
            f"{outcomes.FLAGS}0": [0b101, 0b100, 0, None, 1],
            f"{outcomes.FLAGS}1": [0, 0b10, None, None, 1 << 59],
        }
    )
    assert report.rows == report.lines == {"delivered": 2, "filtered": 1, "suppressed": 1}
    assert report.flagged == {"0": 2, "2": 2, "61": 1, "119": 1}
    assert report.events == {}


def test_lines_of_groups_are_added_up():
    report = counted(**{outcomes.LINE_STATE: [0, 0, 2], outcomes.LINES: [5, 7, 2]})
    assert (report.rows, report.lines) == (
        {"delivered": 2, "suppressed": 1},
        {"delivered": 12, "suppressed": 2},
    )
