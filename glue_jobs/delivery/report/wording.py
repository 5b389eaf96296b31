"""Format texts, numbers, times and windows for readers."""

from __future__ import annotations

import unicodedata
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import assert_never
from zoneinfo import ZoneInfo

from config.exports.contract import WindowRule
from config.exports.windows import Window, find_kind, find_next_window
from glue_jobs.delivery.verify import EXACT

# Not strftime's names, which depend on the machine's locale.
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()
MINUS = "\u2212"


def prose(value: str, limit: int = 500) -> str:
    """Return a text of a contract in one line, cut to `limit` characters."""
    return cut(" ".join(value.split()), limit)


def cut(value: str, limit: int) -> str:
    """Return a value as it is, but no longer than `limit`."""
    return value if len(value) <= limit else value[: limit - 1] + "…"


def cut_to_width(label: str, letters: int) -> str:
    """Cut a label to a width; letters of East Asian scripts are twice as wide."""
    width = 0
    for index, letter in enumerate(label):
        width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width > letters:
            return label[: max(1, index - 1)] + "…"
    return label


def named(title: str, unit: str | None) -> str:
    """Return the title of a number with its unit, unless the title already has it."""
    if not unit or unit.lower() in title.lower().split():
        return prose(title, 80)
    return f"{prose(title, 80)} ({prose(unit, 40)})"


def number(value: Decimal | int) -> str:
    """Return a number with thousands separators, rounded (see `_count_kept_digits`), without zeros after two
    decimals.
    """
    exact = Decimal(value)
    kept = _count_kept_digits(exact)
    rounded = exact if kept is None else EXACT.quantize(exact, Decimal(1).scaleb(-kept))
    whole, point, fraction = f"{rounded:,f}".partition(".")
    fraction = fraction.rstrip("0").ljust(min(2, len(fraction)), "0")
    text = f"{whole}{point}{fraction}"
    return text.removeprefix("-") if not exact else text.replace("-", MINUS)


def short(value: Decimal | int) -> str:
    """Return a number for small spaces. From 1e15 on and below 1e-6, it has a power of ten."""
    exact = Decimal(value)
    if not exact or Decimal("1e-6") <= exact.copy_abs() < Decimal("1e15"):
        return number(exact)
    mantissa, _, exponent = f"{exact:.2e}".partition("e")
    return f"{mantissa} × 10^{int(exponent)}".replace("-", MINUS)


def change(now: Decimal | int, before: Decimal | int | None, when: str) -> str:
    """Return how a number differs from that of the window before, whose name is `when`."""
    if before is None:
        return f"no figure for {when}"
    difference = EXACT.subtract(Decimal(now), Decimal(before))
    if not difference:
        return f"unchanged from {when}"
    sign = "+" if difference > 0 else ""
    if not before:
        return f"{sign}{number(difference)} against {when}, which had 0"
    return f"{sign}{number(difference)} ({_format_percent(difference, Decimal(before))}) against {when}"


def count(amount: int, one: str, many: str = "") -> str:
    noun = one if amount == 1 else many or f"{one}s"
    return f"{number(amount)} {noun}"


def size(amount: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if amount >= factor:
            return f"{amount / factor:,.1f} {unit}"
    return f"{amount} bytes"


def day(value: date, *, weekday: bool = True, year: bool = True) -> str:
    text = f"{value.day} {_MONTHS[value.month - 1]}" + (f" {value.year:04}" if year else "")
    return f"{_DAYS[value.weekday()]} {text}" if weekday else text


def short_day(value: date) -> str:
    return f"{_DAYS[value.weekday()][:3]} {value.day} {_MONTHS[value.month - 1][:3]} {value.year:04}"


def instant(moment: datetime, zone: str) -> str:
    local = moment.astimezone(ZoneInfo(zone))
    return f"{day(local)}, {local:%H:%M} ({zone})"


def window(span: Window, rule: WindowRule) -> str:
    """Return a window in words, like: Week 46 of 2026: Monday 9 November to Sunday 15 November 2026,
    Europe/Berlin.
    """
    first = span.first_day
    last = find_next_window(span, rule).first_day - timedelta(days=1)
    if rule.every == "day":
        return f"{day(first)}, {rule.zone}"
    days = f"{day(first, year=first.year != last.year)} to {day(last)}"
    name = label(span.label)
    return f"{name[0].upper()}{name[1:]}: {days}, {rule.zone}"


def label(text: str) -> str:
    """Return a window's label as part of a sentence: 2026-W46 is week 46 of 2026."""
    year, _, rest = text.partition("-")
    kind = find_kind(text)
    match kind:
        case "day":
            return day(date.fromisoformat(text), weekday=False)
        case "iso_week":
            return f"week {int(rest[1:])} of {year}"
        case "month":
            return f"{_MONTHS[int(rest) - 1]} {year}"
        case "quarter":
            return f"quarter {rest[1:]} of {year}"
    assert_never(kind)


def _count_kept_digits(value: Decimal) -> int | None:
    """Return how many decimal places are kept, or None if all are.

    They are two from 1,000 on, four from 1 on, and six significant digits below that.
    """
    exponent = value.as_tuple().exponent
    amount = value.copy_abs()
    if amount >= 1000:
        digits = 2
    elif amount >= 1 or not value:
        digits = 4
    else:
        digits = 5 - value.adjusted()
    return digits if isinstance(exponent, int) and -exponent > digits else None


def _format_percent(difference: Decimal, before: Decimal) -> str:
    share = EXACT.divide(EXACT.multiply(difference, Decimal(100)), before.copy_abs())
    if share.copy_abs() < Decimal("0.05"):
        sign = "+" if share > 0 else MINUS
        return f"less than {sign}0.1 %"
    return f"{EXACT.quantize(share, Decimal('0.1')):+,f} %".replace("-", MINUS)
