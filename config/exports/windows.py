"""Time windows: days, ISO weeks, months and quarters, which begin and end at local midnight.

They are half-open, so each instant is in exactly one window of a kind. This module distinguishes kinds by
`match`, so mypy reports each function that must be extended for a new kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

import attrs

from config.exports.contract import Every, WindowRule


@attrs.frozen(order=True)
class Window:
    """`start` (inclusive) and `end` (exclusive) are instants in UTC; `label` is 2026-11-15, 2026-W46, 2026-11
    or 2026-Q4.
    """

    start: datetime
    end: datetime
    first_day: date
    label: str


def find_window(day: date, rule: WindowRule) -> Window:
    """Return the window that `day`, a date in the rule's zone, belongs to."""
    first = _find_first_day(day, rule.every)
    end = _find_midnight(_find_next_first_day(first, rule.every), rule.zone)
    return Window(_find_midnight(first, rule.zone), end, first, _write_label(first, rule.every))


def window_at(instant: datetime, rule: WindowRule) -> Window:
    """Return the window that an aware `instant` belongs to."""
    window = find_window(instant.astimezone(ZoneInfo(rule.zone)).date(), rule)
    # If a zone puts its clocks back across midnight, the local date is the old one again for a while after
    # the new day began.
    return find_next_window(window, rule) if instant >= window.end else window


def find_next_window(window: Window, rule: WindowRule) -> Window:
    return find_window(_find_next_first_day(window.first_day, rule.every), rule)


def find_days(window: Window, every: Every) -> tuple[date, date]:
    """Return the first day of a window of this kind, and the first day after it."""
    return window.first_day, _find_next_first_day(window.first_day, every)


def list_closed_windows(rule: WindowRule, as_of: datetime) -> Iterator[Window]:
    """Yield all windows from the rule's first one that have ended by `as_of`, oldest first."""
    window = find_window(rule.first, rule)
    while window.end <= as_of:
        if window.start < window.end:  # a zone that moved across the date line skipped a whole day
            yield window
        window = find_next_window(window, rule)


def parse_label(label: str, rule: WindowRule) -> Window:
    """Return the window with this label, of any kind, in the rule's zone."""
    kind = find_kind(label)
    return find_window(_read_day(label, kind), attrs.evolve(rule, every=kind))


def find_kind(label: str) -> Every:
    """Return the kind of window that a label names."""
    if "-W" in label:
        return "iso_week"
    if "-Q" in label:
        return "quarter"
    return "day" if label.count("-") == 2 else "month"


def longest_days(every: Every) -> int:
    """Return how many days the longest window of a kind has."""
    match every:
        case "day":
            return 1
        case "iso_week":
            return 7
        case "month":
            return 31
        case "quarter":
            return 92
    assert_never(every)


def _read_day(label: str, kind: Every) -> date:
    """Return a day of the window with this label."""
    match kind:
        case "day":
            return date.fromisoformat(label)
        case "iso_week":
            year, _, week = label.partition("-W")
            return date.fromisocalendar(int(year), int(week), 1)
        case "month":
            return date.fromisoformat(f"{label}-01")
        case "quarter":
            year, _, quarter = label.partition("-Q")
            return date(int(year), 3 * int(quarter), 1)
    assert_never(kind)


def _find_first_day(day: date, every: Every) -> date:
    match every:
        case "day":
            return day
        case "iso_week":
            return day - timedelta(days=day.isoweekday() - 1)
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    assert_never(every)


def _find_next_first_day(first: date, every: Every) -> date:
    # After a short month or quarter, this is some days into the next one, so take the first day of that.
    return _find_first_day(first + timedelta(days=longest_days(every)), every)


def _write_label(first: date, every: Every) -> str:
    match every:
        case "day":
            return first.isoformat()
        case "iso_week":
            year, week, _ = first.isocalendar()
            return f"{year}-W{week:02}"
        case "month":
            return f"{first.year:04}-{first.month:02}"
        case "quarter":
            return f"{first.year:04}-Q{(first.month + 2) // 3}"
    assert_never(every)


def _find_midnight(day: date, zone: str) -> datetime:
    """Return a local midnight in UTC.

    If clocks skip it, that is the moment of the change; if it occurs twice, the first time.
    """
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
