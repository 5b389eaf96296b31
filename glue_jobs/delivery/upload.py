"""One file from many partitions: executors upload what they encode, the driver fills the gaps and completes.

Nothing is visible before the complete call, and there is no staging prefix to leave behind.
"""

from __future__ import annotations

import attrs
from pyspark.sql import DataFrame, Row

from glue_jobs.delivery.encode import RESULT_SCHEMA, Form, PartitionReport, encoder, read_report
from glue_jobs.delivery.multipart import MAX_PARTS, Part, Target, begin, complete, upload_part
from glue_jobs.store import Bucket, told


@attrs.frozen
class StoredFile:
    """A finished object (absolute key) and its parts in order."""

    key: str
    parts: list[Part]


@attrs.frozen
class Uploaded:
    """The finished object, and what the executors counted while they wrote it."""

    file: StoredFile
    report: PartitionReport


def upload(frame: DataFrame, partitions: int, bucket: Bucket, key: str, form: Form) -> Uploaded:
    """Writes the lines of `frame`, which has at most this many partitions, in order, to `key`.

    Leaves an upload behind when it fails; the caller clears the run's folder.
    """
    target = Target(bucket.name, bucket.key(key), "", MAX_PARTS // (partitions + 1))
    kind = "application/gzip" if form.delivery.gzip else "text/csv; charset=utf-8"
    with told(f"beginning the upload of s3://{target.bucket}/{target.key}"):
        target = begin(bucket.s3, target, kind)
    results = _run(frame, target, form)
    with told(f"uploading s3://{target.bucket}/{target.key}"):
        parts = _fill_gaps(bucket, target, form, results, partitions)
        complete(bucket.s3, target, parts)
    return Uploaded(StoredFile(target.key, parts), _sum(results))


Result = tuple[int, PartitionReport, bytes]


def _run(frame: DataFrame, target: Target, form: Form) -> list[Result]:
    rows = frame.mapInArrow(encoder(target, form), RESULT_SCHEMA).collect()
    return [(row.partition, read_report(row.report), bytes(row.head)) for row in sorted(rows, key=_partition)]


def _partition(row: Row) -> int:
    return int(row.partition)


def _fill_gaps(bucket: Bucket, target: Target, form: Form, results: list[Result], partitions: int) -> list[Part]:
    """What partitions were too small to upload goes before the head of the next one that did."""
    parts: list[Part] = []
    pending = form.stored_header
    for index, report, head in results:
        pending += head
        if report.parts:
            parts += [upload_part(bucket.s3, target, index * target.stride + 1, pending), *report.parts]
            pending = b""
    if pending:
        parts.append(upload_part(bucket.s3, target, partitions * target.stride + 1, pending))
    return parts


def _sum(results: list[Result]) -> PartitionReport:
    total = PartitionReport()
    for _, report, _ in results:
        total.add(report)
    return total
