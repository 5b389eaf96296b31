"""Bytes that stay on disk while they are passed around. Standard library only."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHUNK = 256 * 1024


class Descriptor:
    """An open file that is closed when nothing refers to it any more."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


@dataclass(frozen=True)
class Extent:
    """A stretch of an open file. It has a length and can be sliced as bytes can, and that is all it can do.

    It stays readable when the file's name is removed or given to another file.
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

    def __getitem__(self, wanted: slice) -> Extent:
        begin, end, _ = wanted.indices(self.length)
        return Extent(self.file, self.start + begin, max(0, end - begin))

    def chunks(self) -> Iterator[bytes]:
        """Raises OSError where the file has become shorter."""
        position, end = self.start, self.start + self.length
        while position < end:
            chunk = os.pread(self.file.number, min(CHUNK, end - position), position)
            if not chunk:
                raise OSError(f"{end - position} bytes are missing at the end of a file")
            yield chunk
            position += len(chunk)


class Spool:
    """A file without a name that takes what arrives, from several threads, and vanishes with the last extent in it."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._file = Descriptor(os.dup(file.fileno()))
        self._end = 0
        self._lock = threading.Lock()

    def append(self, data: bytes) -> Extent:
        with self._lock:
            start, self._end = self._end, self._end + len(data)
        written = 0
        while written < len(data):
            written += os.pwrite(self._file.number, memoryview(data)[written:], start + written)
        return Extent(self._file, start, len(data))
