"""JSON Lines: an object for each row, with the columns in their order.

Integers are JSON numbers. Decimals are texts, because most readers of JSON would round them. Dates and times
are texts in the form of ISO 8601, in UTC. A missing value is null.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from io import RawIOBase
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from config.exports.contract import Column, Contract
from glue_jobs.delivery.csv import is_written_by_spark
from glue_jobs.delivery.formats.tables import type_table
from glue_jobs.errors import Inconsistent

_CHUNK: Final = 8 << 20
#: Characters that JSON doesn't allow in a text, besides the quotation mark and the backslash.
_CONTROL: Final = r"[\x00-\x1f]"


class JsonlWriter:
    """Writes rows to `target`, which it doesn't close."""

    def __init__(self, target: RawIOBase, contract: Contract) -> None:
        self._target = target
        self._contract = contract

    def add(self, table: pa.Table) -> None:
        lines = encode(table, self._contract.columns)
        self._target.write(gzip.compress(lines, 6, mtime=0) if self._contract.delivery.gzip else lines)

    def close(self) -> None:
        if self._contract.delivery.gzip:
            self._target.write(gzip.compress(b"", 6, mtime=0))  # also without rows, the file is one of gzip

    def discard(self) -> None:
        """Nothing is open."""


def encode(table: pa.Table, columns: list[Column]) -> bytes:
    """Return the lines of typed rows."""
    pieces: list[Any] = []
    for number, column in enumerate(columns):
        pieces.append(f"{',' if number else '{'}{json.dumps(column.name)}:")
        pieces.append(pc.fill_null(_encode_values(table[column.name], column), "null"))
    lines = pc.binary_join_element_wise(*pieces, "}\n", "")
    return "".join(lines.to_pylist()).encode()


def _encode_values(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if column.type == "text":
        return _quote(_escape(values))
    if column.type == "timestamp":
        text = values.cast(pa.timestamp("us")).cast(pa.string())
        return pc.binary_join_element_wise('"', pc.replace_substring(text, " ", "T"), 'Z"', "")
    if column.type == "date":
        return _quote(values.cast(pa.string()))
    if is_written_by_spark(column):  # Arrow would write some of them with an exponent
        texts = [None if value is None else f"{value:f}" for value in values.to_pylist()]
        return _quote(pa.chunked_array([pa.array(texts, pa.string())]))
    text = values.cast(pa.string())
    return _quote(text) if column.type.startswith("decimal") else text


def _quote(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise('"', values, '"', "")


def _escape(values: pa.ChunkedArray) -> pa.ChunkedArray:
    escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    if not pc.any(pc.match_substring_regex(values, _CONTROL)).as_py():
        return escaped
    texts = [
        None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in values.to_pylist()
    ]
    return pa.chunked_array([pa.array(texts, pa.string())])


def read(file: IO[bytes], contract: Contract) -> Iterator[pa.Table]:
    """Yield the rows of a file. Raises Inconsistent if a line is not an object with exactly the columns."""
    stream: Any = gzip.GzipFile(fileobj=file) if contract.delivery.gzip else file
    rest = b""
    while block := stream.read(_CHUNK):
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            yield _parse(rest[:end], contract)
            rest = rest[end:]
    if rest:
        raise Inconsistent("EXP-FORMAT-DIFFERS", "the JSON Lines file ends in the middle of a line")


def _parse(lines: bytes, contract: Contract) -> pa.Table:
    """Return the rows of whole lines. All but integers and booleans are read as texts, then typed."""
    read_as = {"integer": pa.int64(), "boolean": pa.bool_()}
    fields = [pa.field(column.name, read_as.get(column.type, pa.string())) for column in contract.columns]
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema(fields), newlines_in_values=False, unexpected_field_behavior="error"
    )
    try:
        table = arrow_json.read_json(
            pa.BufferReader(lines),
            read_options=arrow_json.ReadOptions(block_size=len(lines) + 1),
            parse_options=options,
        )
    except pa.ArrowInvalid:  # its message may have a value, which must not be in a log
        raise Inconsistent("EXP-FORMAT-DIFFERS", "the JSON Lines file can't be read") from None
    return type_table(table, contract)
