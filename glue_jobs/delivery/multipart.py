"""Write one CSV file in S3 from many partitions, as a multipart upload.

Executors upload the parts that they encode. The driver uploads the parts between them and completes the
upload. Nothing is visible before that, and there is no staging prefix to clean up. Every part but the last
must have at least 5 MiB. A partition doesn't know what comes before it, so it returns its first 5 MiB to the
driver, which joins them with what the partitions before it were too small to upload.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column
from config.exports.file_model import Delivery
from glue_jobs import outcomes
from glue_jobs.delivery import csv
from glue_jobs.delivery.counts import PartitionReport, count
from glue_jobs.delivery.reading import Part
from glue_jobs.pseudonyms import create_hasher

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef
    from pyspark.sql import DataFrame

    from glue_jobs.store import Bucket

#: S3's smallest size of a part that isn't the last, in bytes, and its highest number of parts.
LEAST_PART: Final = 5 << 20
MAX_PARTS: Final = 10_000
_PART: Final = 16 << 20
#: What a partition returns: its index, a `PartitionReport` as JSON, and the bytes that the driver must write
#: before its parts.
_RESULT_SCHEMA: Final = "partition int, report string, head binary"


@attrs.frozen
class Upload:
    """An upload in progress.

    Each partition has `stride` part numbers, and the driver uses the first of them.
    """

    region: str
    bucket: str
    key: str
    upload_id: str
    stride: int


@attrs.frozen
class StoredFile:
    """The finished object (absolute key), its parts in order, and what the executors counted while they wrote
    it.
    """

    key: str
    parts: list[Part]
    report: PartitionReport


@attrs.frozen
class CsvFormat:
    """The format of the file: columns and delivery of the contract. `hashed` names columns with values of the
    table, which are replaced with pseudonyms, made with `key`, before they are written.
    """

    columns: list[Column]
    delivery: Delivery
    hashed: frozenset[str] = frozenset()
    key: bytes = attrs.field(default=b"", repr=False)

    @property
    def header(self) -> bytes:
        return csv.build_header(self.columns, self.delivery)

    @property
    def stored_header(self) -> bytes:
        return bytes(self.packed(self.header))

    def hashers(self) -> dict[str, Callable[[pa.Array], pa.Array]]:
        """Return, by column, functions that turn values into pseudonyms. Each task makes its own: they can't
        be sent to it.

        Raises ValueError without a valid key, so that no value is written as it is in the table.
        """
        kinds = {column.name: column.personal.kind or "text" for column in self.columns if column.personal}
        return {name: create_hasher(self.key, kinds[name]) for name in sorted(self.hashed)}

    def packed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Compress a piece by itself: concatenated gzip members are a gzip file (RFC 1952 §2.2)."""
        return gzip.compress(data, 6, mtime=0) if self.delivery.gzip and len(data) else data


def write_file(frame: DataFrame, partitions: int, bucket: Bucket, key: str, form: CsvFormat) -> StoredFile:
    """Write the lines of `frame`, which has at most this many partitions, in order, to `key`.

    If it fails, the upload is left unfinished; the caller cleans up the run's folder.
    """
    # Executors import this module, and boto3 takes a while.
    from glue_jobs.store import translate_aws_errors  # noqa: PLC0415

    where = f"s3://{bucket.name}/{bucket.key(key)}"
    with translate_aws_errors(f"beginning the upload of {where}"):
        kind = "application/gzip" if form.delivery.gzip else "text/csv; charset=utf-8"
        upload = begin(bucket.s3, bucket.name, bucket.key(key), kind, partitions)
    rows = frame.mapInArrow(encoder(upload, form), _RESULT_SCHEMA).collect()
    results = [(row.partition, PartitionReport.from_json(row.report), bytes(row.head)) for row in rows]
    results.sort(key=lambda result: result[0])
    with translate_aws_errors(f"uploading {where}"):
        parts = fill_gaps(bucket.s3, upload, form.stored_header, results, partitions)
        complete(bucket.s3, upload, parts)
    total = PartitionReport()
    for _, report, _ in results:
        total.add(report)
    return StoredFile(upload.key, parts, total)


def fill_gaps(
    s3: S3Client,
    upload: Upload,
    header: bytes,
    results: list[tuple[int, PartitionReport, bytes]],
    partitions: int,
) -> list[Part]:
    """Upload the driver's parts, and return all parts.

    A part of the driver has all of the partitions that were too small to upload a part, and the head of the
    next one that did.
    """
    parts: list[Part] = []
    pending = header
    for index, report, head in results:
        pending += head
        if report.parts:
            parts += [upload_part(s3, upload, index * upload.stride + 1, pending), *report.parts]
            pending = b""
    if pending:
        parts.append(upload_part(s3, upload, partitions * upload.stride + 1, pending))
    return parts


def encoder(
    upload: Upload, form: CsvFormat
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for mapInArrow, which runs on executors."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - exists only in a task

        context = TaskContext.get()
        index = context.partitionId() if context else 0
        report = PartitionReport()
        hashers = form.hashers()
        with ThreadPoolExecutor(1) as pool:
            sink = PartitionSink(upload, index, pool)
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                report.add(count(rows))
                states = rows[outcomes.LINE_STATE]
                if states.null_count or pc.max(states).as_py():
                    rows = rows.filter(pc.equal(states, outcomes.DELIVERED))
                for name, hashed in hashers.items():
                    position = rows.column_names.index(name)
                    rows = rows.set_column(
                        position, name, pa.chunked_array(map(hashed, rows[name].chunks), pa.string())
                    )
                if rows.num_rows:
                    written = csv.lines(rows, form.columns, form.delivery)
                    report.add(
                        PartitionReport(written=rows.num_rows, cut=written.cut, replaced=written.replaced)
                    )
                    sink.add(form.packed(written.data))
            head = sink.close()
        report.parts = sink.parts
        yield pa.RecordBatch.from_arrays(
            [pa.array([index], pa.int32()), pa.array([report.to_json()]), pa.array([head], pa.binary())],
            names=["partition", "report", "head"],
        )

    return encode


class PartitionSink:
    """A partition's share of the object. A part is uploaded in `pool` while the next one is encoded."""

    def __init__(self, upload: Upload, index: int, pool: Executor) -> None:
        self.parts: list[Part] = []
        self._head = b""
        self._buffer = io.BytesIO()
        self._upload = upload
        self._pool = pool
        self._uploading: Future[Part] | None = None
        self._first_number = index * upload.stride + 2
        self._number = self._first_number
        self._last_number = (index + 1) * upload.stride
        self._s3: S3Client | None = None

    @property
    def _part_size(self) -> int:
        """Bytes of the next part.

        They double each time a quarter of the part numbers is used: 98 numbers hold 5.6 GiB.
        """
        return _PART << 4 * (self._number - self._first_number) // self._upload.stride

    def add(self, data: bytes | memoryview) -> None:
        self._buffer.write(data)
        # Always keep enough for the last part.
        if self._buffer.tell() >= self._part_size + LEAST_PART:
            self._write_part(self._buffer.tell() - LEAST_PART)

    def close(self) -> bytes:
        """Return the bytes that the driver must write before this partition's parts."""
        if not self._head and self._buffer.tell() < 2 * LEAST_PART:
            return self._buffer.getvalue()
        self._write_part(self._buffer.tell())
        self._end_upload()
        return self._head

    def _write_part(self, size: int) -> None:
        data = self._buffer.getvalue()
        start = 0
        if not self._head:
            self._head = data[:LEAST_PART]
            start = LEAST_PART
        self._upload_part(data[start:size])
        self._buffer = io.BytesIO()
        self._buffer.write(data[size:])

    def _upload_part(self, data: bytes) -> None:
        if not data:
            return
        if self._number > self._last_number:
            raise OverflowError("a partition of the file is larger than its part numbers allow")
        if self._s3 is None:
            from glue_jobs.store import connect_s3  # noqa: PLC0415 - small partitions need none

            self._s3 = connect_s3(self._upload.region)
        self._end_upload()  # one at a time: memory holds two parts at most
        self._uploading = self._pool.submit(upload_part, self._s3, self._upload, self._number, data)
        self._number += 1

    def _end_upload(self) -> None:
        if self._uploading is not None:
            self.parts.append(self._uploading.result())
            self._uploading = None


def begin(s3: S3Client, bucket: str, key: str, content_type: str, partitions: int) -> Upload:
    """Begin an upload without S3's checksums: with them, part numbers must be consecutive (API reference,
    CompletedPart).
    """
    answer = s3.create_multipart_upload(Bucket=bucket, Key=key, ContentType=content_type)
    return Upload(s3.meta.region_name, bucket, key, answer["UploadId"], MAX_PARTS // (partitions + 1))


def upload_part(s3: S3Client, upload: Upload, number: int, data: bytes) -> Part:
    """Upload a part. Its hash is compared when the object is read back."""
    answer = s3.upload_part(
        Bucket=upload.bucket, Key=upload.key, UploadId=upload.upload_id, PartNumber=number, Body=data
    )
    return Part(number, answer["ETag"], len(data), hashlib.sha256(data).hexdigest())


def complete(s3: S3Client, upload: Upload, parts: list[Part]) -> None:
    listed: list[CompletedPartTypeDef] = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
    # If the upload is gone, an attempt completed it and its answer was lost. Otherwise, reading the object
    # back fails.
    with suppress(s3.exceptions.NoSuchUpload):
        s3.complete_multipart_upload(
            Bucket=upload.bucket,
            Key=upload.key,
            UploadId=upload.upload_id,
            MultipartUpload={"Parts": listed},
        )
