"""Cron expressions as EventBridge Scheduler reads them: whether they are valid, and when they come next and came last."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import attrs

_FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week", "year")
_MONTHS: Final = tuple("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())
_DAYS: Final = tuple("SUN MON TUE WED THU FRI SAT".split())
#: Days that are tried. Leap days come after eight years at the latest, and then maybe on the wrong day of the week.
_FURTHEST: Final = 366 * 9


@attrs.frozen
class Cron:
    """`day` returns whether a date is one of the expression's; times are of `zone`."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    day: Callable[[date], bool]
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """Return the first time later than `instant`, or None."""
        return next((time for time in self._times(instant, 1) if time > instant), None)

    def until(self, instant: datetime) -> datetime | None:
        """Return the last time that isn't later than `instant`, or None."""
        return next((time for time in self._times(instant, -1) if time <= instant), None)

    def _times(self, start: datetime, step: int) -> Iterator[datetime]:
        """Yield times from the day before `start` on, or backwards from the day after it: days of two zones overlap."""
        first = start.astimezone(self.zone).date() - timedelta(days=step)
        for number in range(_FURTHEST):
            today = first + timedelta(days=number * step)
            if self.day(today):
                yield from self._of_day(today)[::step]

    def _of_day(self, day: date) -> list[datetime]:
        """Return the times of a day: none that clocks skip when they are put forward, one where they are put back.

        EventBridge Scheduler does so (its user guide, "Daylight saving time").
        """
        local = (datetime(day.year, day.month, day.day, hour, minute) for hour in self.hours for minute in self.minutes)
        times = ((time, time.replace(tzinfo=self.zone).astimezone(UTC)) for time in local)
        return sorted({instant for time, instant in times if instant.astimezone(self.zone).replace(tzinfo=None) == time})


def parse(expression: str, zone: str) -> Cron:
    """Raises ValueError that says all that is wrong with `expression`."""
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"{expression[:60]!r} has {len(parts)} parts, not 6: {', '.join(_FIELDS)}")
    minute, hour, day, month, weekday, year = parts
    minutes, hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
    months, years = _numbers(month, 1, 12, _MONTHS), _numbers(year, 1970, 2199)
    in_month, in_week = _day_of_month(day), _day_of_week(weekday)
    read = (minutes, hours, in_month, months, in_week, years)
    wrong = [f"{part!r} is no {name}" for name, part, values in zip(_FIELDS, parts, read, strict=True) if not values]
    if (day == "?") == (weekday == "?"):
        wrong.append("exactly one of day of month and day of week must be ?")
    if wrong or in_month is None or in_week is None:
        raise ValueError("; ".join(wrong))

    def fits(today: date) -> bool:
        return today.month in months and today.year in years and in_month(today) and in_week(today)

    return Cron(tuple(minutes), tuple(hours), fits, ZoneInfo(zone))


def problem(expression: str) -> str | None:
    """Return what is wrong with `expression`, all of it in one sentence."""
    try:
        parse(expression, "UTC")
    except ValueError as error:
        return str(error)
    return None


def _numbers(part: str, least: int, most: int, words: tuple[str, ...] = ()) -> list[int]:
    """Return the values of a list of `*`, `n` and `n-m`, each with or without `/step`; none if one of them is wrong."""
    values: set[int] = set()
    try:
        for item in part.split(","):
            base, slash, step = item.partition("/")
            ends = [least, most] if base == "*" else [_number(text, least, most, words) for text in base.split("-", 1)]
            first, last = ends[0], ends[-1] if len(ends) > 1 or not slash else most
            span = range(first, last + 1) if first <= last else [*range(first, most + 1), *range(least, last + 1)]
            values.update(span[:: _number(step, 1, most) if slash else 1])
    except ValueError:
        return []
    return sorted(values)


def _number(text: str, least: int, most: int, words: tuple[str, ...] = ()) -> int:
    if text.upper() in words:
        return words.index(text.upper()) + 1
    if text.isascii() and text.isdecimal() and least <= int(text) <= most:
        return int(text)
    raise ValueError(text)


def _day_of_month(part: str) -> Callable[[date], bool] | None:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: today.day == _length(today)
    if part == "LW":
        return lambda today: today == _working_day(today, _length(today))
    if match := re.fullmatch(r"([1-9]|[12][0-9]|3[01])W", part):
        nearest = int(match[1])
        return lambda today: today == _working_day(today, nearest)
    days = _numbers(part, 1, 31)
    return (lambda today: today.day in days) if days else None


def _day_of_week(part: str) -> Callable[[date], bool] | None:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: _weekday(today) == 7
    if match := re.fullmatch(r"([1-7])L", part):
        last = int(match[1])
        return lambda today: _weekday(today) == last and today.day > _length(today) - 7
    if match := re.fullmatch(r"([1-7])#([1-5])", part):
        weekday, number = int(match[1]), int(match[2])
        return lambda today: _weekday(today) == weekday and (today.day + 6) // 7 == number
    weekdays = [] if "/" in part else _numbers(part, 1, 7, _DAYS)  # EventBridge has no steps in this field
    return (lambda today: _weekday(today) in weekdays) if weekdays else None


def _weekday(day: date) -> int:
    """Return 1 for Sunday."""
    return day.isoweekday() % 7 + 1


def _length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _working_day(month: date, day: int) -> date | None:
    """Return the day from Monday to Friday of the same month that is nearest to its `day`, or None without such a day."""
    if day > _length(month):
        return None
    wanted = month.replace(day=day)
    if wanted.isoweekday() == 6:
        return wanted - timedelta(days=1) if day > 1 else wanted + timedelta(days=2)
    if wanted.isoweekday() == 7:
        return wanted + timedelta(days=1) if day < _length(month) else wanted - timedelta(days=2)
    return wanted
