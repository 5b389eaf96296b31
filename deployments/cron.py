"""Cron expressions as EventBridge Scheduler reads them: minute, hour, day of month, month, day of week, year."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_MONTHS: Final = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
_DAYS: Final = "SUN MON TUE WED THU FRI SAT".split()


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    special: str = ""


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31, special=r"\?|L|([1-9]|[12][0-9]|3[01])W|LW"),
    _Field("month", 1, 12, tuple(_MONTHS)),
    _Field("day of week", 1, 7, tuple(_DAYS), special=r"\?|L|[1-7]L|[1-7]#[1-5]"),
    _Field("year", 1970, 2199),
)


def problem(expression: str) -> str | None:
    """What is wrong with `expression`, all of it in one sentence."""
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        return f"{expression[:60]!r} has {len(parts)} parts, not 6: minute, hour, day of month, month, day of week, year"
    wrong = [f"{part!r} is no {field.name}" for field, part in zip(_FIELDS, parts, strict=True) if not _fits(field, part)]
    if (parts[2] == "?") == (parts[4] == "?"):
        wrong.append("exactly one of day of month and day of week must be ?")
    return "; ".join(wrong) or None


def _fits(field: _Field, part: str) -> bool:
    if field.special and re.fullmatch(field.special, part):
        return True
    return all(_is_item(field, item) for item in part.split(","))


def _is_item(field: _Field, item: str) -> bool:
    """`*`, `n`, `n-m`, each with or without `/step`."""
    base, slash, step = item.partition("/")
    if slash and not (_is_number(step) and 1 <= int(step) <= field.most):
        return False
    if base == "*":
        return True
    values = list(_values(field, base.split("-")))
    return None not in values and len(values) in (1, 2)


def _values(field: _Field, texts: list[str]) -> Iterator[int | None]:
    for text in texts:
        if text.upper() in field.words:
            yield field.words.index(text.upper()) + 1
        else:
            yield int(text) if _is_number(text) and field.least <= int(text) <= field.most else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
