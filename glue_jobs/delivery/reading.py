"""Read a finished file back: compare its bytes with what was uploaded, and divide a CSV file into blocks of
whole records.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import attrs
import pyarrow as pa
from pyarrow import csv as arrow_csv

from config.exports.contract import Column, Contract, decimal_type
from glue_jobs.delivery.csv import RECORD_END
from glue_jobs.errors import Inconsistent

#: Bytes that are read at a time.
_CHUNK = 8 << 20
_END = RECORD_END.encode()


class Readable(Protocol):
    def read(self, amt: int) -> bytes: ...


@attrs.frozen
class Part:
    """A part of the object as it was uploaded; `sha256` in hex."""

    number: int
    etag: str
    size: int
    sha256: str


def read_blocks(stored: CheckedBody, contract: Contract, header: bytes) -> Iterator[bytes]:
    """Yield the records of the file after its header, uncompressed. Raises Inconsistent."""
    text: Any = gzip.GzipFile(fileobj=io.BufferedReader(stored)) if contract.delivery.gzip else stored
    try:
        yield from _split_records(_read_ahead(text), header)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Inconsistent("EXP-CHECKSUM", f"the file can't be unpacked: {error}") from None


def _read_ahead(stream: Readable) -> Iterator[bytes]:
    """Yield the object's blocks.

    The next one is read, hashed and unpacked in a thread while the caller works on this one.
    """
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(stream.read, _CHUNK)
        while block := reading.result():
            reading = pool.submit(stream.read, _CHUNK)
            yield block


def _split_records(blocks: Iterator[bytes], header: bytes) -> Iterator[bytes]:
    """Return blocks of whole records, without the header."""
    rest = b""
    while len(rest) < len(header) and (block := next(blocks, b"")):
        rest += block
    if not rest.startswith(header):
        raise Inconsistent("EXP-HEADER", "the file does not begin with its header")
    rest = rest[len(header) :]
    while True:
        cut = _find_last_end(rest)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        block = next(blocks, b"")
        if not block:
            break
        rest += block
    if rest:
        raise Inconsistent("EXP-RECORDS", "the file ends in the middle of a record")


def _find_last_end(data: bytes) -> int:
    """Return the end of the last whole record: a line end outside quotation marks."""
    at = len(data)
    inside = data.count(b'"') % 2
    while (end := data.rfind(_END, 0, at)) >= 0:
        inside ^= data.count(b'"', end, at) % 2
        if not inside:
            return end + len(_END)
        at = end
    return 0


def parse_block(block: bytes, contract: Contract) -> pa.Table:
    """Return the rows of whole records. Dates, times and booleans are texts. Raises Inconsistent."""
    null_text = contract.delivery.null_text
    options = arrow_csv.ConvertOptions(
        column_types={column.name: _choose_arrow_type(column) for column in contract.columns},
        null_values=[null_text],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    names = [column.name for column in contract.columns]
    read = arrow_csv.ReadOptions(column_names=names, block_size=len(block) + 1)
    try:
        # A file of one column has an empty line for a missing value.
        parse = arrow_csv.ParseOptions(
            delimiter=contract.delivery.delimiter, newlines_in_values=b'"' in block, ignore_empty_lines=False
        )
        return arrow_csv.read_csv(
            pa.BufferReader(block), read_options=read, parse_options=parse, convert_options=options
        )
    except pa.ArrowInvalid as error:
        # Arrow's message ends with the wrong row, which may have data that must not be in a log.
        reason = str(error).split(":")[0][:120]
        raise Inconsistent("EXP-RECORDS", f"the file is not what the contract says: {reason}") from None


def _choose_arrow_type(column: Column) -> pa.DataType:
    if size := decimal_type(column.type):
        return pa.decimal128(*size)
    return pa.int64() if column.type == "integer" else pa.string()


class CheckedBody(io.RawIOBase):
    """The body of an S3 object, which is hashed as a whole and part by part while it is read.

    `read` and `finish` raise Inconsistent if the bytes are not those of the parts.
    """

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
        data = self._body.read(amount if amount > 0 else _CHUNK)
        self._whole.update(data)
        self.size += len(data)
        view = memoryview(data)
        while view:
            if not self._left:
                self._next_part()
            chunk = view[: self._left]
            view = view[self._left :]
            self._of_part.update(chunk)
            self._left -= len(chunk)
        return data

    def finish(self) -> str:
        """Return the SHA-256 of the whole object in hex."""
        if self._left or next(self._parts, None) is not None:
            raise Inconsistent("EXP-CHECKSUM", "the file is shorter than what was written")
        self._verify()
        return self._whole.hexdigest()

    def _next_part(self) -> None:
        self._verify()
        self._part = next(self._parts, None)
        if self._part is None:
            raise Inconsistent("EXP-CHECKSUM", "the file is longer than what was written")
        self._left = self._part.size
        self._of_part = hashlib.sha256()

    def _verify(self) -> None:
        if self._part is not None and self._of_part.hexdigest() != self._part.sha256:
            raise Inconsistent("EXP-CHECKSUM", f"part {self._part.number} of the file was changed on the way")
