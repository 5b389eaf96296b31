"""Where encoded lines go from an executor: parts of one object that all partitions share.

S3 wants 5 MiB of every part but the last. A partition of a shared object can't know what comes before it, so it hands
its first 5 MiB to the driver, which joins them to what the partitions before left over.
"""

from __future__ import annotations

import base64
import hashlib
import io
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MIB = 1 << 20
#: The least S3 takes as a part that isn't the last, and the most parts of an object.
LEAST_PART = 5 * MIB
MAX_PARTS = 10_000
_PART = 16 * MIB


@attrs.frozen
class Target:
    """An upload in progress. Of each partition's `stride` part numbers the first is the driver's."""

    bucket: str
    key: str
    upload_id: str
    stride: int


@attrs.frozen
class Part:
    number: int
    etag: str
    size: int
    sha256: str

    @property
    def checksum(self) -> str:
        """As S3 writes it."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()


class SharedObject:
    """A partition's share of the object. `close` returns the bytes that the driver must write before its parts."""

    def __init__(self, target: Target, index: int) -> None:
        self.parts: list[Part] = []
        self._head = b""
        self._buffer = io.BytesIO()
        self._writer = _PartWriter(target, index * target.stride + 2, (index + 1) * target.stride, self.parts)

    def add(self, data: bytes | memoryview) -> None:
        self._buffer.write(data)
        # Never let go of everything: what is left must be enough for a last part.
        if self._buffer.tell() >= _PART + LEAST_PART:
            self._spill(self._buffer.tell() - LEAST_PART)

    def close(self) -> bytes:
        if not self._head and self._buffer.tell() < 2 * LEAST_PART:
            return self._buffer.getvalue()
        self._spill(self._buffer.tell())
        return self._head

    def _spill(self, size: int) -> None:
        data = self._buffer.getvalue()
        start = 0
        if not self._head:
            self._head, start = data[:LEAST_PART], LEAST_PART
        self._writer.write(data[start:size])
        self._buffer = io.BytesIO()
        self._buffer.write(data[size:])


class _PartWriter:
    def __init__(self, target: Target, number: int, last: int, parts: list[Part]) -> None:
        self._target = target
        self._number = number
        self._last = last
        self._parts = parts
        self._s3: S3Client | None = None

    def write(self, data: bytes) -> None:
        if not data:
            return
        if self._number > self._last:
            raise OverflowError("one partition fills more parts than it has numbers for; more partitions are needed")
        if self._s3 is None:
            self._s3 = _connect()
        self._parts.append(upload_part(self._s3, self._target, self._number, data))
        self._number += 1


def begin(s3: S3Client, target: Target, content_type: str) -> Target:
    answer = s3.create_multipart_upload(
        Bucket=target.bucket, Key=target.key, ContentType=content_type, ChecksumAlgorithm="SHA256"
    )
    return attrs.evolve(target, upload_id=answer["UploadId"])


def upload_part(s3: S3Client, target: Target, number: int, data: bytes) -> Part:
    """S3 compares the checksum with what arrived."""
    part = Part(number, "", len(data), hashlib.sha256(data).hexdigest())
    answer = s3.upload_part(
        Bucket=target.bucket,
        Key=target.key,
        UploadId=target.upload_id,
        PartNumber=number,
        Body=data,
        ChecksumSHA256=part.checksum,
    )
    return attrs.evolve(part, etag=answer["ETag"])


def complete(s3: S3Client, target: Target, parts: list[Part]) -> None:
    listed = [{"PartNumber": part.number, "ETag": part.etag, "ChecksumSHA256": part.checksum} for part in parts]
    # An upload that is gone was completed by a try whose answer was lost. If not, reading the object back tells.
    with suppress(s3.exceptions.NoSuchUpload):
        s3.complete_multipart_upload(
            Bucket=target.bucket,
            Key=target.key,
            UploadId=target.upload_id,
            MultipartUpload={"Parts": listed},  # type: ignore[typeddict-item]
        )


def _connect() -> S3Client:
    from glue_jobs.store import connect_s3  # noqa: PLC0415 - boto3 takes a while, and small partitions need none

    return connect_s3()
