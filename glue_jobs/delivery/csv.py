"""Encode rows as CSV (RFC 4180), one batch at a time, with Arrow's compute functions.

Text is quoted if necessary, and guarded if a spreadsheet would execute it as a formula. A spreadsheet splits
a line at commas, semicolons or tabs, depending on the language of the machine. If that is not the file's
delimiter, the file's quotation marks have no effect. So an apostrophe is put before a formula not only at the
beginning of a text, but after each comma, semicolon, tab or line end in it. `unguarded` is the exact reverse.
"""

from __future__ import annotations

import operator
import re
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column, decimal_type
from config.exports.file_model import Delivery

#: Ends every record; RFC 4180 §2.1.
RECORD_END: Final = "\r\n"
BYTE_ORDER_MARK: Final = "\ufeff"
#: The most UTF-16 code units in a cell of Excel, apostrophes included. The dialect excel cuts longer texts,
#: and counts them.
LONGEST_TEXT: Final = 32_767
#: Arrow writes small decimals of a larger scale than this with an exponent, so Spark turns them into text.
PLAIN_SCALE: Final = 6

#: The first day that is written, 0001-01-01, and the first one after 9999-12-31, as days since 1970.
FIRST_DAY: Final = -719_162
END_DAY: Final = 2_932_897
#: The message of an error about another one. The name of the column precedes it.
UNPRINTABLE: Final = "a date or time outside of the years 1 to 9999"
DAY_OF_MICROSECONDS: Final = 86_400_000_000

#: Characters that start a formula, and those that a spreadsheet skips in front of one: blanks, quotation
#: marks, control characters that don't separate cells.
_FORMULA: Final = "[=+\\-@＝＋－＠]"
_SKIPPED: Final = " '\"\u00a0\u3000"
#: The beginning of a text that is guarded. It may be any control character, because spreadsheets drop them.
GUARDED: Final = f"^[{_SKIPPED}]*(?:{_FORMULA}|[\\x00-\\x1f])"
#: Where another cell would begin inside a text: the separator, and the formula after it.
_INSIDE: Final = f"([,;\t\r\n])([{_SKIPPED}\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]*{_FORMULA})"
_GUARD_INSIDE: Final = r"\1'\2"
_UNGUARD_INSIDE: Final = _INSIDE.replace(")(", ")'(")


@attrs.frozen
class Lines:
    """`data` holds whole records.

    `cut` counts texts that were too long, `replaced` bytes that were not UTF-8.
    """

    data: memoryview | bytes
    cut: int
    replaced: int


def build_header(columns: list[Column], delivery: Delivery) -> bytes:
    """Return the first record, with a byte order mark in the dialect excel.

    The form of names makes quotes unnecessary.
    """
    mark = BYTE_ORDER_MARK if delivery.dialect == "excel" else ""
    return (mark + delivery.delimiter.join(column.name for column in columns) + RECORD_END).encode()


def lines(rows: pa.Table, columns: list[Column], delivery: Delivery) -> Lines:
    """Return the records of `rows`, whose columns have the contract's names and types."""
    cells: list[pa.ChunkedArray] = []
    cut = replaced = 0
    is_formula: pa.ChunkedArray | None = None
    for column in columns:
        values = rows[column.name]
        if pa.types.is_string(values.type):
            values, bad = _replace_invalid(values)
            replaced += bad
        if _is_free_text(column):
            values = _guard_values(values)
            if delivery.dialect == "excel":
                values, long = _cut_long(values)
                cut += long
        cells.append(_encode_cell(values, column, delivery, is_formula))
        # If lines are split at another delimiter, a cell begins where the file's first one does or, because
        # spreadsheets drop a leading tab, at any tab.
        if len(cells) == 1 or delivery.delimiter == "\t":
            signed = _is_formula(cells[-1], column, delivery.null_text)
            if pc.any(signed).as_py():
                is_formula = signed if is_formula is None else pc.or_(is_formula, signed)
    last = cells[-1]
    if last.null_count:
        last = pc.fill_null(last, delivery.null_text)
    cells[-1] = _join_parts([last, RECORD_END])
    joined = pc.binary_join_element_wise(
        *cells, delivery.delimiter, null_handling="replace", null_replacement=delivery.null_text
    )
    return Lines(_view_as_bytes(joined), cut, replaced)


def unguarded(cell: str) -> str:
    """Remove the guard and return the original text."""
    if cell.startswith("'") and re.search(GUARDED, cell[1:]):
        cell = cell[1:]
    return re.sub(_UNGUARD_INSIDE, r"\1\2", cell)


def guarded(text: str) -> str:
    inside = re.sub(_INSIDE, _GUARD_INSIDE, text)
    return f"'{inside}" if re.search(GUARDED, text) else inside


def is_written_by_spark(column: Column) -> bool:
    """Return whether Spark turns the column into text, because Arrow would write it in another form."""
    size = decimal_type(column.type)
    return size is not None and size[1] > PLAIN_SCALE


def _encode_cell(
    values: pa.ChunkedArray, column: Column, delivery: Delivery, is_formula: pa.ChunkedArray | None
) -> pa.ChunkedArray:
    if column.type in ("date", "timestamp"):
        _require_printable(values, column)
    if column.type == "timestamp":
        # Without the zone, which is UTC anyway, Arrow is ten times as fast.
        text = values.cast(pa.timestamp("us")).cast(pa.string())
        return _join_parts([pc.replace_substring(text, " ", "T"), "Z"])
    if _is_free_text(column):
        return _quote_values(values, delivery, is_formula)
    return values.cast(pa.string())


def _require_printable(values: pa.ChunkedArray, column: Column) -> None:
    """Raises ValueError for a date or time for which Arrow would write a message, or a year that isn't of
    four digits.

    The job's plan has refused it before, in a way that doesn't depend on Arrow.
    """
    number, unit = (pa.int32(), 1) if column.type == "date" else (pa.int64(), DAY_OF_MICROSECONDS)
    least, most = pc.min_max(values.cast(number)).as_py().values()
    if least is not None and (least < FIRST_DAY * unit or most >= END_DAY * unit):
        raise ValueError(f"column {column.name}: {UNPRINTABLE}")


def _is_free_text(column: Column) -> bool:
    return column.type == "text" and not column.is_hashed


def _is_formula(cell: pa.ChunkedArray, column: Column, null_text: str) -> pa.ChunkedArray:
    """Find rows whose cell is unguarded and begins like a formula: a negative number, or a missing value's
    text such as "-".

    A spreadsheet that splits at another delimiter would read such a row as one formula if its texts were not
    quoted.
    """
    missing = re.match(_FORMULA, null_text) is not None
    if _is_free_text(column):
        return pc.and_(pc.is_null(cell), missing)
    return pc.fill_null(pc.match_substring_regex(cell, f"^{_FORMULA}"), missing)


def _guard_values(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Apply `guarded` to each text of a column."""
    begins = pc.match_substring_regex(values, GUARDED)
    if pc.any(pc.match_substring_regex(values, _INSIDE)).as_py():
        values = pc.replace_substring_regex(values, _INSIDE, _GUARD_INSIDE)
    if pc.any(begins).as_py():
        values = pc.if_else(begins, _join_parts(["'", values]), values)
    return values


def _quote_values(
    values: pa.ChunkedArray, delivery: Delivery, is_formula: pa.ChunkedArray | None
) -> pa.ChunkedArray:
    # Quotation marks, delimiters, line ends, spaces that readers may trim, and the empty text, which would
    # read as null.
    special = pc.match_substring_regex(values, f'["{delivery.delimiter}\r\n]|^ | $|^$')
    if delivery.null_text:
        special = pc.or_(special, pc.equal(values, delivery.null_text))
    if is_formula is not None:
        special = pc.or_(special, is_formula)
    if not pc.any(special).as_py():
        return values
    quoted = _join_parts(['"', pc.replace_substring(values, '"', '""'), '"'])
    return pc.if_else(special, quoted, values)


def _replace_invalid(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Replace invalid UTF-8 with U+FFFD, and count the replacements. Spark doesn't validate text."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = values.cast(pa.binary()).to_pylist()
        texts = [None if value is None else value.decode("utf-8", errors="replace") for value in raw]
        before = sum(value.count("\ufffd".encode()) for value in raw if value is not None)
        after = sum(text.count("\ufffd") for text in texts if text is not None)
        return pa.chunked_array([pa.array(texts, pa.string())]), after - before
    return values, 0


def _cut_long(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Cut guarded texts to the length of an Excel cell, and count those that were longer."""
    if (pc.max(pc.binary_length(values)).as_py() or 0) <= LONGEST_TEXT:
        return values, 0
    cells = values.to_pylist()
    short = [cell and _cut_to_fit(cell) for cell in cells]
    return pa.chunked_array([short], pa.string()), sum(map(operator.ne, cells, short))


def _cut_to_fit(cell: str) -> str:
    """Return as much of a guarded text as fits into a cell of Excel.

    `unguarded` makes it a beginning of the original text.
    """
    units = cell.encode("utf-16-le")
    if len(units) <= 2 * LONGEST_TEXT:
        return cell
    short = units[: 2 * LONGEST_TEXT].decode("utf-16-le", errors="ignore")
    text = unguarded(cell)
    kept = unguarded(short)
    # An apostrophe whose formula was cut off remains in `kept`, although it isn't part of the text.
    return short if text.startswith(kept) else guarded(text[: len(kept) - 1])


def _join_parts(parts: list[pa.ChunkedArray | str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*parts, "")


def _view_as_bytes(joined: pa.ChunkedArray) -> memoryview | bytes:
    """Return the lines as one buffer. Arrow stores them consecutively."""
    pieces = []
    for chunk in joined.chunks:
        if len(chunk):
            offsets = memoryview(chunk.buffers()[1]).cast("i")
            first = offsets[chunk.offset]
            end = offsets[chunk.offset + len(chunk)]
            pieces.append(memoryview(chunk.buffers()[2])[first:end])
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
