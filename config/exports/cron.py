"""Cron expressions of EventBridge Scheduler: whether one is valid, and its next and its previous time."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import attrs

from config.exports.contract import Every

_FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week", "year")
_MONTHS: Final = tuple("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())
_DAYS: Final = tuple("SUN MON TUE WED THU FRI SAT".split())
#: How many days are searched. Two leap days of the same weekday, such as the fifth Sunday of February, are up
#: to 40 years apart.
_FURTHEST: Final = 366 * 40


@attrs.frozen
class Cron:
    """A parsed expression.

    `day` returns whether it includes a date; `hours` and `minutes` are local time in `zone`.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    day: Callable[[date], bool]
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """Return the first time later than `instant`, or None."""
        return next((time for time in self._iterate_times(instant, 1) if time > instant), None)

    def until(self, instant: datetime) -> datetime | None:
        """Return the last time that isn't later than `instant`, or None."""
        return next((time for time in self._iterate_times(instant, -1) if time <= instant), None)

    def _iterate_times(self, start: datetime, step: int) -> Iterator[datetime]:
        """Yield times forwards from the day before `start`, or backwards from the day after it."""
        first = start.astimezone(self.zone).date() - timedelta(days=step)
        for number in range(_FURTHEST):
            today = first + timedelta(days=number * step)
            if self.day(today):
                yield from self._list_times_of_day(today)[::step]

    def _list_times_of_day(self, day: date) -> list[datetime]:
        """Return the times of a day in UTC.

        A local time that clocks skip is left out, and one that occurs twice is returned once, as in
        EventBridge Scheduler (user guide, "Daylight saving time").
        """
        instants = set()
        for hour in self.hours:
            for minute in self.minutes:
                local = datetime(day.year, day.month, day.day, hour, minute)
                instant = local.replace(tzinfo=self.zone).astimezone(UTC)
                is_skipped = instant.astimezone(self.zone).replace(tzinfo=None) != local
                if not is_skipped:
                    instants.add(instant)
        return sorted(instants)


def parse(expression: str, zone: str) -> Cron:
    """Parse an expression. Raises ValueError with everything that is wrong with it."""
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"{expression[:60]!r} has {len(parts)} parts, not 6: {', '.join(_FIELDS)}")
    minute, hour, day, month, weekday, year = parts
    minutes = _parse_numbers(minute, 0, 59)
    hours = _parse_numbers(hour, 0, 23)
    months = _parse_numbers(month, 1, 12, _MONTHS)
    years = _parse_numbers(year, 1970, 2199)
    in_month = _parse_day_of_month(day)
    in_week = _parse_day_of_week(weekday)
    read = (minutes, hours, in_month, months, in_week, years)
    wrong = [
        f"{part!r} is not a valid {name}"
        for name, part, values in zip(_FIELDS, parts, read, strict=True)
        if not values
    ]
    if (day == "?") == (weekday == "?"):
        wrong.append("exactly one of day of month and day of week must be ?")
    if wrong or in_month is None or in_week is None:
        raise ValueError("; ".join(wrong))

    def fits(today: date) -> bool:
        return today.month in months and today.year in years and in_month(today) and in_week(today)

    return Cron(tuple(minutes), tuple(hours), fits, ZoneInfo(zone))


def more_often(minute: int | str, hours: Sequence[int], every: Every) -> str:
    """Return an expression for every day at these hours or, for windows of a day, at the first of them and
    eight hours later.
    """
    times = sorted({hours[0], (hours[0] + 8) % 24}) if every == "day" else hours
    return f"{minute} {','.join(map(str, times))} * * ? *"


def problem(expression: str) -> str | None:
    """Return everything that is wrong with `expression` in one sentence, or None."""
    try:
        parse(expression, "UTC")
    except ValueError as error:
        return str(error)
    return None


def _parse_numbers(part: str, least: int, most: int, words: tuple[str, ...] = ()) -> list[int]:
    """Return the values of a list of `*`, `n` and `n-m`, each with an optional `/step`.

    Empty if an item is not valid.
    """
    values: set[int] = set()
    try:
        for item in part.split(","):
            base, slash, step = item.partition("/")
            if base == "*":
                ends = [least, most]
            else:
                ends = [_parse_number(text, least, most, words) for text in base.split("-", 1)]
            first = ends[0]
            last = ends[-1] if len(ends) > 1 or not slash else most
            span = (
                range(first, last + 1)
                if first <= last
                else [*range(first, most + 1), *range(least, last + 1)]
            )
            distance = _parse_number(step, 1, most) if slash else 1
            values.update(span[::distance])
    except ValueError:
        return []
    return sorted(values)


def _parse_number(text: str, least: int, most: int, words: tuple[str, ...] = ()) -> int:
    if text.upper() in words:
        return words.index(text.upper()) + 1
    if text.isascii() and text.isdecimal() and least <= int(text) <= most:
        return int(text)
    raise ValueError(text)


def _parse_day_of_month(part: str) -> Callable[[date], bool] | None:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: today.day == _count_days(today)
    if part == "LW":
        return lambda today: today == _find_working_day(today, _count_days(today))
    if match := re.fullmatch(r"([1-9]|[12][0-9]|3[01])W", part):
        nearest = int(match[1])
        return lambda today: today == _find_working_day(today, nearest)
    days = _parse_numbers(part, 1, 31)
    return (lambda today: today.day in days) if days else None


def _parse_day_of_week(part: str) -> Callable[[date], bool] | None:
    if part == "?":
        return lambda today: True
    if part == "L":
        return lambda today: _number_weekday(today) == 7
    if match := re.fullmatch(r"([1-7])L", part):
        last = int(match[1])
        return lambda today: _number_weekday(today) == last and today.day > _count_days(today) - 7
    if match := re.fullmatch(r"([1-7])#([1-5])", part):
        weekday = int(match[1])
        number = int(match[2])
        return lambda today: _number_weekday(today) == weekday and (today.day + 6) // 7 == number
    # EventBridge has no steps in this field.
    weekdays = [] if "/" in part else _parse_numbers(part, 1, 7, _DAYS)
    return (lambda today: _number_weekday(today) in weekdays) if weekdays else None


def _number_weekday(day: date) -> int:
    """Return 1 for Sunday."""
    return day.isoweekday() % 7 + 1


def _count_days(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _find_working_day(month: date, day: int) -> date | None:
    """Return the day from Monday to Friday of the month that is nearest to `day`, or None if the month has no
    such day.
    """
    if day > _count_days(month):
        return None
    nominal_day = month.replace(day=day)
    if nominal_day.isoweekday() == 6:
        return nominal_day - timedelta(days=1) if day > 1 else nominal_day + timedelta(days=2)
    if nominal_day.isoweekday() == 7:
        return (
            nominal_day + timedelta(days=1) if day < _count_days(month) else nominal_day - timedelta(days=2)
        )
    return nominal_day
