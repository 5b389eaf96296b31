"""An object as it comes back from S3, hashed as a whole and part by part while it is read."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Final, Protocol

from glue_jobs.delivery.multipart import Part
from glue_jobs.errors import Inconsistent

#: Bytes that are read at a time.
CHUNK: Final = 8 << 20
AGAIN: Final = "Nothing was published; run again, and report it if it stays so"


class Readable(Protocol):
    def read(self, amt: int) -> bytes: ...


class Checked(io.RawIOBase):
    """Raises Inconsistent, while it is read or in `finish`, where the bytes are not those of the parts."""

    def __init__(self, body: Readable, parts: list[Part]) -> None:
        self._body = body
        self._parts = iter(parts)
        self._part: Part | None = None
        self._left = 0
        self._of_part = hashlib.sha256()
        self._whole = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, amount: int = -1) -> bytes:
        data = self._body.read(amount if amount > 0 else CHUNK)
        self._whole.update(data)
        self.size += len(data)
        view = memoryview(data)
        while view:
            if not self._left:
                self._next_part()
            taken, view = view[: self._left], view[self._left :]
            self._of_part.update(taken)
            self._left -= len(taken)
        return data

    def finish(self) -> str:
        """The SHA-256 of the whole."""
        if self._left or next(self._parts, None) is not None:
            raise Inconsistent("EXP-CHECKSUM", "the file is shorter than what was written", AGAIN)
        self._verify()
        return self._whole.hexdigest()

    def _next_part(self) -> None:
        self._verify()
        self._part = next(self._parts, None)
        if self._part is None:
            raise Inconsistent("EXP-CHECKSUM", "the file is longer than what was written", AGAIN)
        self._left, self._of_part = self._part.size, hashlib.sha256()

    def _verify(self) -> None:
        if self._part is not None and self._of_part.hexdigest() != self._part.sha256:
            raise Inconsistent("EXP-CHECKSUM", f"part {self._part.number} of the file was changed on the way", AGAIN)
