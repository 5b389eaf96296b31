"""Tables for people. No name and no value is ever cut: where a table is too wide for the terminal, it takes another form."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

_GAP = "  "
#: A last column narrower than this is not wrapped.
_NARROWEST = 24
_TOTALS = " · "
#: A number, perhaps with its unit, stands at the right edge of its column.
_NUMBER = re.compile(r"-?[\d,]*\.?\d+( \w+)?")


def told(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Lines with aligned columns. Where they are wider than `width`, the last column is wrapped, or stands below each row."""
    whole = aligned(columns, rows)
    if _fits(whole, width):
        return whole
    heads = aligned(columns[:-1], [row[:-1] for row in rows])
    lasts = [columns[-1], *[row[-1] for row in rows]]
    left = max(map(cell_len, heads)) + len(_GAP)
    if width is not None and left + _NARROWEST <= width:
        beside = [line for head, last in zip(heads, lasts, strict=True) for line in _beside(head, left, last, width - left)]
        if _fits(beside, width):
            return beside
    return [line for head, last in zip(heads, lasts, strict=True) for line in (head, f"{_GAP}{last}") if line.strip()]


def answered(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> list[str]:
    """The answer to a query: aligned columns, or, where they are too wide, a line for each value."""
    texts = [[text(value) for value in row] for row in rows]
    whole = aligned(columns, texts)
    return whole if _fits(whole, width) else list(_records(columns, texts))


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    right = [bool(rows) and all(_NUMBER.fullmatch(cell) for cell in column) for column in zip(*rows, strict=True)]
    right = right or [False] * len(columns)
    return [
        _GAP.join(_padded(cell, *form) for cell, form in zip(row, zip(widths, right, strict=True), strict=True)).rstrip()
        for row in (columns, *rows)
    ]


def text(value: Any) -> str:
    """A value as people read it. What a terminal would act on is written as an escape sequence instead."""
    if value is None:
        return "NULL"
    nested = isinstance(value, dict | list)
    shown = json.dumps(value, ensure_ascii=False, default=plain) if nested else str(plain(value))
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in shown)


def plain(value: Any) -> Any:
    """What JSON doesn't know, as text."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    return str(value)


def _beside(head: str, left: int, last: str, width: int) -> Iterator[str]:
    """`head`, and `last` in as many lines as it takes, from column `left` on."""
    *before, end = last.split(_TOTALS)
    lines: list[str] = []
    for part in (*(f"{part} ·" for part in before), end):
        if lines and cell_len(f"{lines[-1]} {part}") <= width:
            lines[-1] += f" {part}"
        else:
            lines += textwrap.wrap(part, width, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        yield f"{_padded(head if number == 0 else '', left, False)}{line}".rstrip()


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    longest = max(map(cell_len, columns))
    for number, row in enumerate(rows, start=1):
        yield f"-- row {number}"
        yield from (f"{_padded(name, longest, False)}{_GAP}{cell}" for name, cell in zip(columns, row, strict=True))


def _fits(lines: list[str], width: int | None) -> bool:
    return width is None or all(cell_len(line) <= width for line in lines)


def _padded(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if right else cell + blanks
