"""A row as one line of CSV (RFC 4180), written by native expressions.

Text is quoted where it must be, and guarded where a spreadsheet would run it: a cell whose first character after blanks
and quotation marks is one of = + - @ (also full width), or that begins with a control character, gets an apostrophe in
front. `unguarded` is the exact reverse: take one apostrophe off where what follows would have been guarded.
"""

from __future__ import annotations

import re

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from exports.contract import Column, Delivery

#: Ends every record; RFC 4180 §2.1.
RECORD_END = "\r\n"
BYTE_ORDER_MARK = "\ufeff"

_TRIGGERS = "=+\\-@＝＋－＠"
#: Blanks and quotation marks that spreadsheets look past, then what makes them run a cell.
GUARDED = rf"^(?:[ '\"\u00a0\u3000]*[{_TRIGGERS}]|[ '\"\u00a0\u3000]*[\x00-\x1f])"
_QUOTED = r"[\",\r\n]|^[ ]|[ ]$"
#: First characters and inner ones that make a cell worth a second look; all other cells go out as they are.
_SUSPECT_FIRST = (
    *range(0x21),
    ord('"'),
    ord("'"),
    ord("+"),
    ord("-"),
    ord("="),
    ord("@"),
    0xA0,
    0x3000,
    *(ord(char) for char in "＝＋－＠"),
)
_SUSPECT_INNER = ('"', ",", "\r", "\n")


def header(columns: list[Column], delivery: Delivery) -> bytes:
    """The first record, with the byte order mark where the dialect wants one. Names need no quotes by their form."""
    mark = BYTE_ORDER_MARK if delivery.dialect == "excel" else ""
    return (mark + ",".join(column.name for column in columns) + RECORD_END).encode()


def line(columns: list[Column], delivery: Delivery) -> Expression:
    """The record of a row whose columns have the contract's names and types."""
    cells = [_cell(column, delivery.null_text) for column in columns]
    separated = [part for cell in cells for part in (F.lit(","), cell)][1:]
    return F.concat(*separated, F.lit(RECORD_END))


def unguarded(cell: str) -> str:
    """The text that was guarded: what a reader who wants the exact value does."""
    return cell[1:] if cell.startswith("'") and re.search(GUARDED, cell[1:]) else cell


def _cell(column: Column, null_text: str) -> Expression:
    value = F.col(column.name)
    if column.type == "text":
        safe = column.personal is not None and column.personal.treatment == "hash"
        text = value if safe else _text(value, null_text)
    elif column.type == "timestamp":
        text = F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    else:
        text = value.cast("string")
    return F.coalesce(text, F.lit(null_text))


def _text(value: Expression, null_text: str) -> Expression:
    suspect = F.ascii(value).isin(*_SUSPECT_FIRST) | value.endswith(" ")
    for character in _SUSPECT_INNER:
        suspect = suspect | value.contains(character)
    if null_text:
        suspect = suspect | (value == null_text)
    return F.when(suspect, _quoted(_guarded(value), null_text)).otherwise(value)


def _guarded(value: Expression) -> Expression:
    return F.when(value.rlike(GUARDED), F.concat(F.lit("'"), value)).otherwise(value)


def _quoted(value: Expression, null_text: str) -> Expression:
    """Quotes what holds a separator, what readers may trim, and what would read as null."""
    doubled = F.concat(F.lit('"'), F.replace(value, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(value.rlike(_QUOTED) | value.isin("", null_text), doubled).otherwise(value)
