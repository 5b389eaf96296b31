"""What each field of a cron expression includes, compared with the calendar."""

from __future__ import annotations

import calendar
import functools
from datetime import UTC, date, datetime, timedelta

import pytest

from config.exports import cron

DAYS = [date(2026, 11, 1) + timedelta(days=number) for number in range(18 * 31)]


def select(day="?", month="*", weekday="?", year="*"):
    """Return the days that an expression includes."""
    includes = cron.parse(f"0 6 {day} {month} {weekday} {year}", "UTC").day
    return [today for today in DAYS if includes(today)]


def length(today):
    return calendar.monthrange(today.year, today.month)[1]


def find_nearest_working_day(today, number):
    """Return the nearest day from Monday to Friday in the month of `today`."""
    return _find_nearest_in_month(today.replace(day=1), number) if number <= length(today) else None


@functools.cache
def _find_nearest_in_month(first, number):
    days = [first.replace(day=day) for day in range(1, length(first) + 1)]
    return min((day for day in days if day.weekday() < 5), key=lambda day: abs(day.day - number))


@pytest.mark.parametrize("number", range(1, 32))
def test_the_working_day_that_is_nearest_to_a_day_of_the_month(number):
    assert select(f"{number}W") == [
        today for today in DAYS if today == find_nearest_working_day(today, number)
    ]


def test_the_last_day_and_the_last_working_day_of_a_month():
    assert select("L") == [today for today in DAYS if today.day == length(today)]
    assert select("LW") == [
        today for today in DAYS if today == find_nearest_working_day(today, length(today))
    ]


@pytest.mark.parametrize("number", range(1, 8))
def test_the_days_of_a_week_are_counted_from_sunday(number):
    of_week = [today for today in DAYS if today.isoweekday() % 7 + 1 == number]
    assert select(weekday=number) == of_week
    assert select(weekday=calendar.day_name[(number + 5) % 7][:3].upper()) == of_week
    assert select(weekday=f"{number}L") == [
        today for today in of_week if (today + timedelta(days=7)).month != today.month
    ]
    for nth in range(1, 6):
        assert select(weekday=f"{number}#{nth}") == [
            today for today in of_week if 7 * (nth - 1) < today.day <= 7 * nth
        ]


def test_other_fields_select_days_together():
    assert select(weekday="L") == select(weekday="7") == select(weekday="SAT")
    assert select("1,31", "JAN-mar,12", year="2027") == [
        today
        for today in DAYS
        if today.day in (1, 31) and today.month in (1, 2, 3, 12) and today.year == 2027
    ]
    assert select("28-3", year="2026-2027") == [
        today for today in DAYS if (today.day >= 28 or today.day <= 3) and today.year < 2028
    ]
    assert select("1/10") == [today for today in DAYS if today.day in (1, 11, 21, 31)]
    assert select("*", "11/1") == [today for today in DAYS if today.month >= 11]
    assert select("?", weekday="*") == select("*") == DAYS


@pytest.mark.parametrize(
    ("part", "minutes"),
    [
        ("*", range(60)),
        ("0", [0]),
        ("59", [59]),
        ("5,3,5", [3, 5]),
        ("10-12", [10, 11, 12]),
        ("12-12", [12]),
        ("58-1", [0, 1, 58, 59]),
        ("5/20", [5, 25, 45]),
        ("*/30", [0, 30]),
        ("10-20/5", [10, 15, 20]),
        ("50-10/15", [5, 50]),
        ("*/59", [0, 59]),
        ("0/1", range(60)),
        ("07", [7]),
    ],
)
def test_which_minutes_a_field_names(part, minutes):
    schedule = cron.parse(f"{part} 0-23/23 * * ? *", "UTC")
    assert (schedule.minutes, schedule.hours) == (tuple(minutes), (0, 23))


@pytest.mark.parametrize(
    "part",
    [
        "-1",
        "60",
        "1-60",
        "60-1",
        "*/60",
        "*/0",
        "1/",
        "1-",
        "1-2-3",
        "1,",
        ",1",
        "a",
        "?",
        "L",
        "1.5",
        "*-2",
        "1_0",
        "+1",
        "²",
    ],
)
def test_what_is_no_minute(part):
    assert cron.problem(f"{part} 6 * * ? *") == f"{part!r} is not a valid minute"


def test_everything_that_is_wrong_is_in_one_sentence():
    assert cron.problem("60 24 32 13 8 1969") == (
        "'60' is not a valid minute; '24' is not a valid hour; '32' is not a valid day of month; '13' is not a "
        "valid month; '8' is not a valid day of week; '1969' is not a valid year; exactly one of day of month and "
        "day of week must be ?"
    )
    assert cron.problem("0 6 0 0 0 2200").startswith(
        "'0' is not a valid day of month; '0' is not a valid month; '0' is not a valid day of week; "
        "'2200' is not"
    )
    assert cron.problem("0 6 * *") == (
        "'0 6 * *' has 4 parts, not 6: minute, hour, day of month, month, day of week, year"
    )
    assert cron.problem("x" * 61) == (
        f"'{'x' * 60}' has 1 parts, not 6: minute, hour, day of month, month, day of week, year"
    )
    for year, is_valid in ((1969, False), (1970, True), (2199, True), (2200, False)):
        assert (cron.problem(f"0 6 1 1 ? {year}") is None) == is_valid


def test_two_leap_days_of_one_weekday_are_forty_years_apart_around_2100():
    schedule = cron.parse("0 6 ? 2 1#5 *", "UTC")
    first, second = (datetime(year, 2, 29, 6, tzinfo=UTC) for year in (2088, 2128))
    assert schedule.after(first) == second
    assert schedule.until(second - timedelta(seconds=1)) == first


@pytest.mark.parametrize(
    ("hours", "every", "expected"),
    [
        ([6], "day", "30 6,14 * * ? *"),
        ([6, 9], "day", "30 6,14 * * ? *"),
        ([20], "day", "30 4,20 * * ? *"),
        ([16], "day", "30 0,16 * * ? *"),
        ([6], "iso_week", "30 6 * * ? *"),
        ([6, 9], "month", "30 6,9 * * ? *"),
    ],
)
def test_a_schedule_that_runs_more_often(hours, every, expected):
    assert cron.more_often(30, hours, every) == expected
