"""Rows as lines of CSV (RFC 4180), a batch at a time, by Arrow's kernels.

Text is quoted where it must be, and guarded where a spreadsheet would run it: a cell whose first character after blanks
and quotation marks is one of = + - @ (also full width) or a control character gets an apostrophe in front. `unguarded`
is the exact reverse: take one apostrophe off where what follows would have been guarded.
"""

from __future__ import annotations

import re
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from exports.contract import Column, Delivery, decimal_type

#: Ends every record; RFC 4180 §2.1.
RECORD_END: Final = "\r\n"
BYTE_ORDER_MARK: Final = "\ufeff"
#: Characters of a cell; what is more is cut, and counted. Excel shows no more, and memory stays bounded.
LONGEST_TEXT: Final = 32_767
#: Arrow writes smaller numbers than this scale with an exponent, so Spark makes text of them.
PLAIN_SCALE: Final = 6

#: Blanks and quotation marks that spreadsheets look past, then what makes them run a cell.
GUARDED: Final = "^[ '\"\u00a0\u3000]*[=+\\-@＝＋－＠\\x00-\\x1f]"
#: A separator, what readers may trim, and nothing at all, which would read as null.
_QUOTED: Final = '[",\r\n]|^ | $|^$'


@attrs.frozen
class Lines:
    """`data` holds whole records. `cut` counts texts that were too long, `replaced` bytes that were not UTF-8."""

    data: memoryview | bytes
    cut: int
    replaced: int


def header(columns: list[Column], delivery: Delivery) -> bytes:
    """The first record, with the byte order mark where the dialect wants one. Names need no quotes by their form."""
    mark = BYTE_ORDER_MARK if delivery.dialect == "excel" else ""
    return (mark + ",".join(column.name for column in columns) + RECORD_END).encode()


def lines(rows: pa.Table, columns: list[Column], delivery: Delivery) -> Lines:
    """The records of `rows`, whose columns have the contract's names and types."""
    cells, cut, replaced = [], 0, 0
    for column in columns:
        values = rows[column.name]
        if pa.types.is_string(values.type):
            values, bad = _valid(values)
            values, long = _short(values)
            replaced, cut = replaced + bad, cut + long
        cells.append(_cell(values, column, delivery.null_text))
    cells[-1] = _joined([_filled(cells[-1], delivery.null_text), RECORD_END])
    joined = pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement=delivery.null_text)
    return Lines(_bytes(joined), cut, replaced)


def unguarded(cell: str) -> str:
    """The text that was guarded: what a reader who wants the exact value does."""
    return cell[1:] if cell.startswith("'") and re.search(GUARDED, cell[1:]) else cell


def guarded(text: str) -> str:
    return f"'{text}" if re.search(GUARDED, text) else text


def written_by_spark(column: Column) -> bool:
    """Whether Spark hands the column over as text, because Arrow would write it in another form."""
    size = decimal_type(column.type)
    return size is not None and size[1] > PLAIN_SCALE


def _cell(values: pa.ChunkedArray, column: Column, null_text: str) -> pa.ChunkedArray:
    if column.type == "timestamp":
        # Without the zone, which is UTC anyway, Arrow is ten times as fast.
        text = values.cast(pa.timestamp("us")).cast(pa.string())
        return _joined([pc.utf8_replace_slice(text, 10, 11, "T"), "Z"])
    is_hash = column.personal is not None and column.personal.treatment == "hash"
    if column.type != "text" or is_hash:
        return values.cast(pa.string())
    return _text(values, null_text)


def _text(values: pa.ChunkedArray, null_text: str) -> pa.ChunkedArray:
    risky = pc.match_substring_regex(values, GUARDED)
    if pc.any(risky).as_py():
        values = pc.if_else(risky, _joined(["'", values]), values)
    special = pc.match_substring_regex(values, _QUOTED)
    if null_text:
        special = pc.or_(special, pc.equal(values, null_text))
    if not pc.any(special).as_py():
        return values
    return pc.if_else(special, _joined(['"', pc.replace_substring(values, '"', '""'), '"']), values)


def _valid(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Bytes that are no UTF-8 become the replacement character; Spark passes on whatever a file holds."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = [None if value is None else value.as_py() for value in values.cast(pa.binary())]
        texts = [None if value is None else value.decode("utf-8", errors="replace") for value in raw]
        before = sum(value.count("\ufffd".encode()) for value in raw if value is not None)
        after = sum(text.count("\ufffd") for text in texts if text is not None)
        return pa.chunked_array([pa.array(texts, pa.string())]), after - before
    return values, 0


def _short(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    if (pc.max(pc.binary_length(values)).as_py() or 0) <= LONGEST_TEXT:
        return values, 0
    long = pc.greater(pc.utf8_length(values), LONGEST_TEXT)
    return pc.utf8_slice_codeunits(values, 0, LONGEST_TEXT), pc.sum(long).as_py() or 0


def _filled(values: pa.ChunkedArray, null_text: str) -> pa.ChunkedArray:
    return pc.fill_null(values, null_text) if values.null_count else values


def _joined(parts: list[pa.ChunkedArray | str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*parts, "")


def _bytes(joined: pa.ChunkedArray) -> memoryview | bytes:
    """The lines one after another, which is how Arrow holds them."""
    pieces = [_slice(chunk) for chunk in joined.chunks if len(chunk)]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _slice(chunk: pa.Array) -> memoryview:
    offsets = memoryview(chunk.buffers()[1]).cast("i")
    first, last = offsets[chunk.offset], offsets[chunk.offset + len(chunk)]
    return memoryview(chunk.buffers()[2])[first:last]
