"""Windows of time: days, ISO weeks and months between local midnights, half open, so each instant is in exactly one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs

from exports.contract import WindowRule


@attrs.frozen(order=True)
class Window:
    """`start` (inclusive) and `end` (exclusive) are instants in UTC; `label` is 2026-11-15, 2026-W46 or 2026-11."""

    start: datetime
    end: datetime
    first_day: date
    label: str


def window_of(day: date, rule: WindowRule) -> Window:
    """The window that `day`, a date in the rule's zone, belongs to."""
    first = _first_day(day, rule.every)
    end = _midnight(_next_first_day(first, rule.every), rule.zone)
    return Window(_midnight(first, rule.zone), end, first, _label(first, rule.every))


def window_at(instant: datetime, rule: WindowRule) -> Window:
    """The window that an aware `instant` belongs to."""
    window = window_of(instant.astimezone(ZoneInfo(rule.zone)).date(), rule)
    # A zone that turns its clocks back over midnight shows the old date again for a while after the new day has begun.
    return next_window(window, rule) if instant >= window.end else window


def next_window(window: Window, rule: WindowRule) -> Window:
    return window_of(_next_first_day(window.first_day, rule.every), rule)


def closed_windows(rule: WindowRule, as_of: datetime) -> Iterator[Window]:
    """All windows from the rule's first one that have ended by `as_of`, oldest first."""
    window = window_of(rule.first, rule)
    while window.end <= as_of:
        if window.start < window.end:  # a zone that moved across the date line skipped a whole day
            yield window
        window = next_window(window, rule)


def _first_day(day: date, every: str) -> date:
    if every == "iso_week":
        return day - timedelta(days=day.isoweekday() - 1)
    return day.replace(day=1) if every == "month" else day


def _next_first_day(first: date, every: str) -> date:
    if every == "month":
        return (first + timedelta(days=31)).replace(day=1)
    return first + timedelta(days=7 if every == "iso_week" else 1)


def _label(first: date, every: str) -> str:
    if every == "iso_week":
        year, week, _ = first.isocalendar()
        return f"{year}-W{week:02}"
    return f"{first.year:04}-{first.month:02}" if every == "month" else first.isoformat()


def _midnight(day: date, zone: str) -> datetime:
    """Where a zone skips midnight, that is the instant of the change; where it lives through it twice, the first."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
