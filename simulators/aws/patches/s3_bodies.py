"""S3 object bodies stay on disk: memory use depends on the parts that are being transferred, not on the size
of objects.

- s3_bodies: AWS streams objects. Stock MiniStack holds all parts of an upload and the assembled object in
  memory, reads a whole object for each requested range (357 MB in ranges of 8 MiB: 35 MB/s) and keeps all
  versions in memory. Here parts are spooled to a file as they arrive, and objects are sent from their file in
  chunks. `python -m dev.benchmarks growth` needs this: its exports have up to 20 million rows. GetObject
  supports Range together with VersionId; stock sends the whole version. Source: S3 API reference, GetObject.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and s3_bodies"`
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from simulators.aws.hooks import Answer, Original, OriginalRequest, Patch, Request, import_ministack

CHUNK = 256 * 1024


class Descriptor:
    """A file descriptor that is closed when no object refers to it any more."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


@dataclass(frozen=True)
class Extent:
    """A range of an open file. Like bytes, it has a length and can be sliced; it supports no other operation
    of bytes.

    It stays readable when the file is deleted or replaced.
    """

    file: Descriptor
    start: int
    length: int

    @classmethod
    def whole(cls, path: Path) -> Extent:
        file = Descriptor(os.open(path, os.O_RDONLY))
        return cls(file, 0, os.fstat(file.number).st_size)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> Extent:
        begin, end, _ = part.indices(self.length)
        return Extent(self.file, self.start + begin, max(0, end - begin))

    def chunks(self) -> Iterator[bytes]:
        """Yield the content. Raises OSError if the file was truncated."""
        position = self.start
        end = self.start + self.length
        while position < end:
            chunk = os.pread(self.file.number, min(CHUNK, end - position), position)
            if not chunk:
                raise OSError(f"{end - position} bytes are missing at the end of a file")
            yield chunk
            position += len(chunk)


class Spool:
    """An unnamed temporary file that threads append parts to.

    It is deleted with the last extent that refers to it.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._file = Descriptor(os.dup(file.fileno()))
        self._end = 0
        self._lock = threading.Lock()

    def append(self, data: bytes) -> Extent:
        with self._lock:
            start = self._end
            self._end = self._end + len(data)
        written_bytes = 0
        while written_bytes < len(data):
            written_bytes += os.pwrite(
                self._file.number, memoryview(data)[written_bytes:], start + written_bytes
            )
        return Extent(self._file, start, len(data))


class Part(NamedTuple):
    """An entry of the part list in a CompleteMultipartUpload request."""

    number: int
    etag: str
    checksums: dict[str, str]


class Completion(NamedTuple):
    """An accepted CompleteMultipartUpload request, with its parts and the checksum of the object."""

    bucket_name: str
    key: str
    upload: dict[str, Any]
    parts: list[Part]
    checksum: str | None

    def publish(self, host: str) -> Answer:
        s3 = import_ministack("services.s3")
        names = (self.bucket_name, self.key)
        path = Path(s3._object_disk_path(*names))
        assembled_file = self._assemble(path)
        object_record = self._build_record()
        objects = s3._buckets[self.bucket_name]["objects"]
        earlier_record = objects.get(self.key)
        objects[self.key] = object_record
        # The previous version's body is still in the file, so it must be recorded before the file is
        # replaced.
        version_id = s3._record_object_version(*names, earlier_record, object_record, None)
        assembled_file.replace(path)
        s3._persist_object(*names, object_record)
        if s3._bucket_replication.get(self.bucket_name):
            s3._maybe_replicate(*names, object_record, path.read_bytes())
        event = {"size": object_record["size"], "etag": object_record["etag"], "version_id": version_id}
        s3._fire_s3_event_async(*names, "s3:ObjectCreated:CompleteMultipartUpload", **event)
        version = {"x-amz-version-id": version_id} if version_id else {}
        headers = {"Content-Type": "application/xml", **s3._stored_sse_headers(object_record), **version}
        return 200, headers, self._build_result(object_record, host)

    @property
    def _stored(self) -> list[dict[str, Any]]:
        return [self.upload["parts"][part.number] for part in self.parts]

    def _assemble(self, path: Path) -> Path:
        """Write the object to a .tmp file, which MiniStack ignores.

        Copied parts (UploadPartCopy) are bytes, not extents.
        """
        assembled_file = path.with_name(path.name + ".tmp")
        assembled_file.parent.mkdir(parents=True, exist_ok=True)
        with assembled_file.open("wb") as file:
            for body in (part["body"] for part in self._stored):
                chunks = body.chunks() if isinstance(body, Extent) else [body]
                file.writelines(chunks)
        return assembled_file

    def _build_record(self) -> dict[str, Any]:
        copied_fields = ("content_type", "content_encoding", "metadata", "preserved_headers", "storage_class")
        digests = b"".join(bytes.fromhex(part.etag) for part in self.parts)
        sizes = [part["size"] for part in self._stored]
        parts = [
            {"PartNumber": part.number, "Size": size} for part, size in zip(self.parts, sizes, strict=True)
        ]
        checksums = {self.upload["checksum_algorithm"]: self.checksum} if self.checksum else {}
        return {
            **{name: self.upload.get(name) for name in copied_fields},
            "body": None,
            "etag": f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(self.parts)}"',
            "last_modified": import_ministack("services.s3").now_iso(),
            "size": sum(sizes),
            "parts": parts,
            "checksums": checksums,
            "checksum_type": "COMPOSITE" if self.checksum else None,
        }

    def _build_result(self, object_record: dict[str, Any], host: str) -> bytes:
        fields = {
            "Location": f"http://{host}/{self.bucket_name}/{self.key}",
            "Bucket": self.bucket_name,
            "Key": self.key,
            "ETag": object_record["etag"],
            **{f"Checksum{algorithm}": value for algorithm, value in object_record["checksums"].items()},
            **({"ChecksumType": "COMPOSITE"} if self.checksum else {}),
        }
        xml = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
        tag = "CompleteMultipartUploadResult"
        return f'<{tag} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{xml}</{tag}>'.encode()


BODIES = Patch("s3_bodies")
_S3 = "ministack.services.s3"

#: Smaller objects are read whole, as in stock MiniStack, which is cheaper than a stream.
_STREAM_FROM = 1024 * 1024
#: True while GetObject runs. GetObject only slices the body, so an Extent can replace the bytes.
_getting: ContextVar[bool] = ContextVar("lakeferry_getting_object", default=False)


@BODIES.replaces(_S3, "_get_object", "bucket_name key headers query_params")
def get_object(
    original: Original,
    bucket_name: str,
    key: str,
    headers: dict[str, str],
    query_params: dict[str, Any] | None = None,
) -> Answer:
    token = _getting.set(True)
    try:
        status, answer, body = original(bucket_name, key, headers, query_params)
    finally:
        _getting.reset(token)
    if status == 200 and "versionId" in (query_params or {}):
        status, body = _select_range(headers.get("range", ""), answer, body)
    if isinstance(body, Extent):
        body = import_ministack("core.responses").StreamingResponse(partial(_send_chunks, body))
    return status, answer, body


@BODIES.replaces(_S3, "_read_body", "bucket_name key obj")
def read_body(original: Any, bucket_name: str, key: str, obj: dict[str, Any]) -> Any:
    if not _getting.get() or obj.get("body") is not None or obj["size"] < _STREAM_FROM:
        return original(bucket_name, key, obj)
    return Extent.whole(Path(import_ministack("services.s3")._object_disk_path(bucket_name, key)))


@BODIES.replaces(_S3, "_record_object_version", "bucket_name key prior_obj obj data")
def record_object_version(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., str | None],
    bucket_name: str,
    key: str,
    prior_obj: dict[str, Any] | None,
    obj: dict[str, Any],
    data: bytes | None,
) -> str | None:
    """Record a version without its bytes. It is read from its file, like all versions after a restart."""
    return original(bucket_name, key, prior_obj, obj, None)


@BODIES.replaces(_S3, "_upload_part", "bucket_name key body query_params headers")
def upload_part(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original,
    bucket_name: str,
    key: str,
    body: bytes,
    query_params: dict[str, Any],
    headers: dict[str, str],
) -> Answer:
    s3 = import_ministack("services.s3")
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId"))
    answer = original(bucket_name, key, body, query_params, headers)
    if answer[0] == 200:
        if "spool" not in upload:
            upload["spool"] = Spool()
        part = upload["parts"][int(s3._qp(query_params, "partNumber"))]
        part["body"] = upload["spool"].append(body)
    return answer


@BODIES.handles(_S3, "signed_path enforce_bucket_region internal access_point_region access_point")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    """Process each part in a thread, so that parts don't wait for one another, as on AWS."""
    answering = original()
    if request.method == "PUT" and {"partNumber", "uploadId"} <= request.query.keys():
        return await asyncio.to_thread(asyncio.run, answering)
    return await answering


def _select_range(range_header: str, answer: dict[str, str], body: Any) -> tuple[int, Any]:
    total = len(body)
    result = import_ministack("services.s3")._parse_range(range_header, total) if range_header else None
    if result is None:
        return 200, body
    start, end = result
    answer["Content-Length"] = str(end + 1 - start)
    answer["Content-Range"] = f"bytes {start}-{end}/{total}"
    return 206, body[start : end + 1]


async def _send_chunks(body: Extent, send: Any, receive: Any) -> None:
    for chunk in body.chunks():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


PATCHES: Final = (BODIES,)
