"""When a cron expression of EventBridge Scheduler comes next, and when it came last."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import attrs

_MONTHS: Final = tuple("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())
_DAYS: Final = tuple("SUN MON TUE WED THU FRI SAT".split())
#: Days that are looked at. Leap days come after eight years at the latest, and then maybe on the wrong day of the week.
_FURTHEST: Final = 366 * 9


@attrs.frozen
class Cron:
    """`day` says whether a date is one of the expression's; times are of `zone`."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    day: Callable[[date], bool]
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """The first time later than `instant`; None where none comes."""
        return next((time for time in self._times(instant, 1) if time > instant), None)

    def until(self, instant: datetime) -> datetime | None:
        """The last time that isn't later than `instant`; None where there was none."""
        return next((time for time in self._times(instant, -1) if time <= instant), None)

    def _times(self, start: datetime, step: int) -> Iterator[datetime]:
        """Times from the day before `start` on, or backwards from the day after it: days of two zones overlap."""
        first = start.astimezone(self.zone).date() - timedelta(days=step)
        for number in range(_FURTHEST):
            today = first + timedelta(days=number * step)
            if self.day(today):
                yield from self._of_day(today)[::step]

    def _of_day(self, day: date) -> list[datetime]:
        """Without times that clocks skip when they are put forward, and once where clocks are put back: EventBridge Scheduler
        runs so (its user guide, "Daylight saving time")."""
        local = (datetime(day.year, day.month, day.day, hour, minute) for hour in self.hours for minute in self.minutes)
        times = ((time, time.replace(tzinfo=self.zone).astimezone(UTC)) for time in local)
        return sorted({instant for time, instant in times if instant.astimezone(self.zone).replace(tzinfo=None) == time})


def parse(expression: str, zone: str) -> Cron:
    """Raises ValueError where `expression` is none, which deployment files are checked for."""
    minute, hour, day, month, weekday, year = expression.upper().split()
    months, years = _numbers(month, 1, 12, _MONTHS), _numbers(year, 1970, 2199)
    in_month, in_week = _day_of_month(day), _day_of_week(weekday)

    def fits(today: date) -> bool:
        return today.month in months and today.year in years and in_month(today) and in_week(today)

    return Cron(tuple(_numbers(minute, 0, 59)), tuple(_numbers(hour, 0, 23)), fits, ZoneInfo(zone))


def _numbers(part: str, least: int, most: int, words: tuple[str, ...] = ()) -> list[int]:
    found: set[int] = set()
    for item in part.split(","):
        base, slash, step = item.partition("/")
        if base == "*":
            first, last = least, most
        else:
            ends = [words.index(text) + 1 if text in words else int(text) for text in base.split("-")]
            first, last = ends[0], ends[-1] if len(ends) > 1 or not slash else most
        round_trip = range(first, last + 1) if first <= last else [*range(first, most + 1), *range(least, last + 1)]
        found.update(round_trip[:: int(step) if slash else 1])
    return sorted(found)


def _day_of_month(part: str) -> Callable[[date], bool]:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: today.day == _length(today)
    if part == "LW":
        return lambda today: today == _working_day(today, _length(today))
    if part.endswith("W"):
        return lambda today: today == _working_day(today, int(part[:-1]))
    days = _numbers(part, 1, 31)
    return lambda today: today.day in days


def _day_of_week(part: str) -> Callable[[date], bool]:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: _weekday(today) == 7
    if part.endswith("L"):
        return lambda today: _weekday(today) == int(part[:-1]) and today.day > _length(today) - 7
    if "#" in part:
        weekday, _, number = part.partition("#")
        return lambda today: _weekday(today) == int(weekday) and (today.day + 6) // 7 == int(number)
    weekdays = _numbers(part, 1, 7, _DAYS)
    return lambda today: _weekday(today) in weekdays


def _weekday(day: date) -> int:
    """Sunday is 1."""
    return day.isoweekday() % 7 + 1


def _length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _working_day(month: date, day: int) -> date | None:
    """The day from Monday to Friday of the same month that is nearest to its `day`; None where it has no such day."""
    if day > _length(month):
        return None
    wanted = month.replace(day=day)
    if wanted.isoweekday() == 6:
        return wanted - timedelta(days=1) if day > 1 else wanted + timedelta(days=2)
    if wanted.isoweekday() == 7:
        return wanted + timedelta(days=1) if day < _length(month) else wanted - timedelta(days=2)
    return wanted
