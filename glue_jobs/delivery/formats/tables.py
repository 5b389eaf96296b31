"""The rows of the CSV file with the types of its columns, and a fingerprint of typed rows.

Other formats are made of the cells of the finished CSV file, so that they hold the same values: pseudonyms,
cut texts and guarded formulas included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column, Contract, decimal_type
from glue_jobs.delivery.reading import CheckedBody, parse_block, read_blocks
from glue_jobs.errors import Inconsistent

#: Rows that are converted at a time. It is fixed, so that the same rows always give the same bytes.
BATCH: Final = 65_536

_TYPES: Final[dict[str, pa.DataType]] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
#: As which numbers values are hashed that aren't of 64 bits.
_NUMBERS: Final = {pa.bool_(): pa.int8(), pa.date32(): pa.int32(), pa.int32(): pa.int32()}


def build_schema(contract: Contract) -> pa.Schema:
    """Return the names and types of the columns."""
    fields = [pa.field(column.name, choose_type(column), column.nullable) for column in contract.columns]
    return pa.schema(fields)


def choose_type(column: Column) -> pa.DataType:
    size = decimal_type(column.type)
    return pa.decimal128(*size) if size else _TYPES[column.type]


def read_typed(stored: CheckedBody, contract: Contract, header: bytes) -> Iterator[pa.Table]:
    """Yield the rows of the CSV file. Raises Inconsistent if it isn't the file that was written."""
    for block in read_blocks(stored, contract, header):
        yield type_table(parse_block(block, contract), contract)


def type_table(table: pa.Table, contract: Contract) -> pa.Table:
    """Return rows whose dates, times and booleans may be texts with the types of their columns. Raises
    Inconsistent.
    """
    try:
        return table.select([column.name for column in contract.columns]).cast(build_schema(contract))
    except ValueError:  # Arrow's message may have a value, which must not be in a log
        raise Inconsistent("EXP-FORMAT-DIFFERS", "a cell doesn't have the type of its column") from None


def divide(tables: Iterable[pa.Table], rows: int = BATCH) -> Iterator[pa.Table]:
    """Yield the same rows in tables of this many rows; the last one may have fewer."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        if count < rows:
            continue
        whole = pa.concat_tables(held)
        start = 0
        while count - start >= rows:
            yield whole.slice(start, rows).combine_chunks()
            start += rows
        held = [whole.slice(start)]
        count -= start
    if count:
        yield pa.concat_tables(held).combine_chunks()


class Fingerprint:
    """A hash of rows: of which values are missing, and of the others, by column. It is the same however the
    rows are divided into tables, and needs no format.
    """

    def __init__(self, contract: Contract) -> None:
        self._columns = contract.columns
        #: Of each column: hashes of which values are there, of the lengths of texts, and of the values.
        self._hashes = {column.name: [hashlib.sha256() for _ in range(3)] for column in contract.columns}
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        for column in self._columns:
            values = table[column.name]
            marks, lengths, content = self._hashes[column.name]
            for chunk in pc.is_valid(values).chunks:
                marks.update(_view_numbers(chunk))
            for chunk in values.chunks:
                if pa.types.is_string(chunk.type):
                    texts = pc.fill_null(chunk, "")
                    # With their lengths, no text can be taken for a part of the one before.
                    lengths.update(_view_numbers(pc.binary_length(texts)))
                    content.update(_view_texts(texts))
                else:
                    content.update(_view_numbers(chunk))

    def digest(self) -> str:
        whole = hashlib.sha256(str(self.rows).encode())
        for hashes in self._hashes.values():
            for part in hashes:
                whole.update(part.digest())
        return whole.hexdigest()


def _view_numbers(values: pa.Array) -> memoryview:
    """Return the bytes of values of a fixed width, with 0 for missing ones."""
    if pa.types.is_decimal(values.type):
        numbers = values
        zero = pa.scalar(Decimal(0), values.type)
    else:
        numbers = values.cast(_NUMBERS.get(values.type, pa.int64()))
        zero = pa.scalar(0, numbers.type)
    if numbers.null_count:
        numbers = pc.fill_null(numbers, zero)
    width = numbers.type.bit_width // 8
    whole = memoryview(numbers.buffers()[1] or b"")
    return whole[numbers.offset * width : (numbers.offset + len(numbers)) * width]


def _view_texts(values: pa.Array) -> memoryview | bytes:
    """Return the bytes of texts without missing ones."""
    _, offsets, data = values.buffers()
    if data is None:
        return b""
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[values.offset] : ends[values.offset + len(values)]]
