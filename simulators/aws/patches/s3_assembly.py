"""Makes an object out of the parts of an upload: its ETag from theirs, its file from the spooled bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from simulators.aws.hooks import Answer, ministack
from simulators.aws.patches.extents import Extent


class Part(NamedTuple):
    """An entry of the list that CompleteMultipartUpload is given."""

    number: int
    etag: str
    checksums: dict[str, str]


class Completion(NamedTuple):
    """An upload that is accepted, with the parts it shall consist of and the checksum that this gives."""

    bucket_name: str
    key: str
    upload: dict[str, Any]
    parts: list[Part]
    checksum: str | None

    def publish(self, host: str) -> Answer:
        s3, names = ministack("services.s3"), (self.bucket_name, self.key)
        path = Path(s3._object_disk_path(*names))
        assembled, obj = self._assembled(path), self._record()
        objects = s3._buckets[self.bucket_name]["objects"]
        prior, objects[self.key] = objects.get(self.key), obj
        # A version that this one displaces is still in the file: it is put aside before the file is replaced.
        version_id = s3._record_object_version(*names, prior, obj, None)
        assembled.replace(path)
        s3._persist_object(*names, obj)
        if s3._bucket_replication.get(self.bucket_name):
            s3._maybe_replicate(*names, obj, path.read_bytes())
        event = {"size": obj["size"], "etag": obj["etag"], "version_id": version_id}
        s3._fire_s3_event_async(*names, "s3:ObjectCreated:CompleteMultipartUpload", **event)
        version = {"x-amz-version-id": version_id} if version_id else {}
        headers = {"Content-Type": "application/xml", **s3._stored_sse_headers(obj), **version}
        return 200, headers, self._result(obj, host)

    @property
    def _stored(self) -> list[dict[str, Any]]:
        return [self.upload["parts"][part.number] for part in self.parts]

    def _assembled(self, path: Path) -> Path:
        """A copied part (UploadPartCopy) is bytes, all others are extents. MiniStack ignores files that are named so."""
        assembled = path.with_name(path.name + ".tmp")
        assembled.parent.mkdir(parents=True, exist_ok=True)
        with assembled.open("wb") as file:
            for body in (part["body"] for part in self._stored):
                file.writelines(body.chunks() if isinstance(body, Extent) else [body])
        return assembled

    def _record(self) -> dict[str, Any]:
        taken_over = ("content_type", "content_encoding", "metadata", "preserved_headers", "storage_class")
        digests = b"".join(bytes.fromhex(part.etag) for part in self.parts)
        sizes = [part["size"] for part in self._stored]
        return {
            **{name: self.upload.get(name) for name in taken_over},
            "body": None,
            "etag": f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(self.parts)}"',
            "last_modified": ministack("services.s3").now_iso(),
            "size": sum(sizes),
            "parts": [{"PartNumber": part.number, "Size": size} for part, size in zip(self.parts, sizes, strict=True)],
            "checksums": {self.upload["checksum_algorithm"]: self.checksum} if self.checksum else {},
            "checksum_type": "COMPOSITE" if self.checksum else None,
        }

    def _result(self, obj: dict[str, Any], host: str) -> bytes:
        fields = {
            "Location": f"http://{host}/{self.bucket_name}/{self.key}",
            "Bucket": self.bucket_name,
            "Key": self.key,
            "ETag": obj["etag"],
            **{f"Checksum{algorithm}": value for algorithm, value in obj["checksums"].items()},
            **({"ChecksumType": "COMPOSITE"} if self.checksum else {}),
        }
        xml = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
        tag = "CompleteMultipartUploadResult"
        return f'<{tag} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{xml}</{tag}>'.encode()
