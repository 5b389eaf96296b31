"""A row as one line of CSV (RFC 4180), written by native expressions.

Text is quoted where it must be, and guarded where a spreadsheet would run it: a cell whose first character after blanks
and quotation marks is one of = + - @ (also full width), or that begins with a control character, gets an apostrophe in
front. `unguarded` is the exact reverse: take one apostrophe off where what follows would have been guarded.
"""

from __future__ import annotations

import re
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from exports.contract import Column, Delivery
from glue_jobs.transforms.columns import LONGEST_TEXT

#: Ends every record; RFC 4180 §2.1.
RECORD_END = "\r\n"
BYTE_ORDER_MARK = "\ufeff"

_TRIGGERS = "=+\\-@＝＋－＠"
_LOOKED_PAST = "[ '\"\u00a0\u3000]*"
#: Blanks and quotation marks that spreadsheets look past, then what makes them run a cell.
GUARDED = rf"^(?:{_LOOKED_PAST}[{_TRIGGERS}\x00-\x1f])"
#: First characters of cells that go out as they are, unless there is a separator inside: digits, letters of the Latin to
#: the Arabic blocks and further scripts. All other cells are looked at closely, which costs more.
_PLAIN_FIRST = (("0", ":"), ("A", "\x7f"), ("\u00a1", "\u3000"), ("\u3001", "\uff00"))
_SECOND = 1_000_000
_SEPARATORS = ('"', ",", "\r", "\n")


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
        text = _timestamp(value)
    else:
        text = value.cast("string")
    return F.coalesce(text, F.lit(null_text))


def _text(value: Expression, null_text: str) -> Expression:
    """Most cells need nothing but a glance; one that might need something is cut, guarded and quoted, needed or not.

    Kept small because Java compiles no method of more than 8,000 bytes, and a row may have many cells.
    """
    # Strings compare by their bytes, so this looks at the first character alone.
    plain = _any([(value >= first) & (value < after) for first, after in _PLAIN_FIRST])
    suspect = ~plain | _any([value.contains(sign) for sign in _SEPARATORS]) | value.endswith(" ")
    suspect = suspect | (F.octet_length(value) > LONGEST_TEXT)
    if null_text:
        suspect = suspect | (value == null_text)
    short = F.substring(value, 1, LONGEST_TEXT)
    guarded = F.regexp_replace(short, GUARDED.replace("^(?:", "^(?="), "'")
    quoted = F.concat(F.lit('"'), F.replace(guarded, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(suspect, quoted).otherwise(value)


def _timestamp(value: Expression) -> Expression:
    """2026-11-09T08:15:00.000000Z, by arithmetic: `date_format` takes four times as long. Needs a session in UTC."""
    of_day = F.pmod(F.unix_micros(value), F.lit(86_400 * _SECOND))
    hours = F.call_function("div", of_day, F.lit(3_600 * _SECOND))
    minutes = F.call_function("div", F.pmod(of_day, F.lit(3_600 * _SECOND)), F.lit(60 * _SECOND))
    # 1hhmmssffffff: the one in front keeps the zeros.
    digits = (F.lit(10**12) + hours * 10**10 + minutes * 10**8 + F.pmod(of_day, F.lit(60 * _SECOND))).cast("string")
    hour, minute, second, fraction = (F.substring(digits, at, size) for at, size in ((2, 2), (4, 2), (6, 2), (8, 6)))
    time = F.concat(hour, F.lit(":"), minute, F.lit(":"), second, F.lit("."), fraction, F.lit("Z"))
    return F.concat(value.cast("date").cast("string"), F.lit("T"), time)


def _any(conditions: list[Expression]) -> Expression:
    return reduce(lambda left, right: left | right, conditions)
