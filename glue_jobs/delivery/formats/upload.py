"""Write an object in S3 piece by piece, without knowing its size."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from glue_jobs.delivery.counts import PartitionReport
from glue_jobs.delivery.multipart import PartitionSink, Upload, begin, complete, fill_gaps, upload_part
from glue_jobs.delivery.reading import Part
from glue_jobs.store import Bucket


class ObjectWriter(io.RawIOBase):
    """A file to write to, whose parts are uploaded meanwhile. If it isn't finished, the upload is left; the
    caller cleans up the run's folder.
    """

    def __init__(self, bucket: Bucket, key: str, content_type: str) -> None:
        super().__init__()
        self._bucket = bucket
        self._key = key
        self._pool = ThreadPoolExecutor(1)
        self._upload: Upload = begin(bucket.s3, bucket.name, bucket.key(key), content_type, 1)
        self._sink = PartitionSink(self._upload, 0, self._pool)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._sink.add(view)
        return view.nbytes

    def finish(self) -> list[Part]:
        """Complete the upload and return its parts."""
        head = self._sink.close()
        s3 = self._bucket.s3
        parts = fill_gaps(s3, self._upload, b"", [(0, PartitionReport(parts=self._sink.parts), head)], 1)
        # An upload has at least one part, which may be empty.
        complete(s3, self._upload, parts or [upload_part(s3, self._upload, 1, b"")])
        self.close()
        return parts

    def close(self) -> None:
        self._pool.shutdown()
        super().close()
