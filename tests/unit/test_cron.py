"""Cron expressions of EventBridge Scheduler: the next and the last time in a time zone, and which expressions
are valid.
"""

from __future__ import annotations

import calendar
import itertools
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.exports import cron
from config.exports.cron import problem

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)  # a Wednesday


def local(text, zone):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "last", "following"),
    [
        ("15 1 * * ? *", "America/New_York", "2026-11-18T01:15", "2026-11-19T01:15"),
        ("0 7 ? * MON *", "Europe/Berlin", "2026-11-16T07:00", "2026-11-23T07:00"),
        ("0 7 ? * 2-4 *", "Europe/Berlin", "2026-11-18T07:00", "2026-11-23T07:00"),
        ("0/15 * * * ? *", "UTC", "2026-11-18T12:00", "2026-11-18T12:15"),
        ("20 0/6 * * ? *", "UTC", "2026-11-18T06:20", "2026-11-18T12:20"),
        ("0 6 1 * ? *", "Asia/Kolkata", "2026-11-01T06:00", "2026-12-01T06:00"),
        ("0 6 L * ? *", "UTC", "2026-10-31T06:00", "2026-11-30T06:00"),
        ("0 6 LW * ? *", "UTC", "2026-10-30T06:00", "2026-11-30T06:00"),
        ("0 6 15W * ? *", "UTC", "2026-11-16T06:00", "2026-12-15T06:00"),
        ("0 6 1W AUG ? *", "UTC", "2026-08-03T06:00", "2027-08-02T06:00"),
        ("0 6 ? * 6L *", "UTC", "2026-10-30T06:00", "2026-11-27T06:00"),
        ("0 6 ? * L *", "UTC", "2026-11-14T06:00", "2026-11-21T06:00"),
        ("0 6 ? * 3#2 *", "UTC", "2026-11-10T06:00", "2026-12-08T06:00"),
        ("0 6 29 2 ? *", "UTC", "2024-02-29T06:00", "2028-02-29T06:00"),
        ("0 6 ? 2 1#5 *", "UTC", "2004-02-29T06:00", "2032-02-29T06:00"),
        ("0 6 1 1,7 ? 2026-2027", "UTC", "2026-07-01T06:00", "2027-01-01T06:00"),
        ("0 6 ? * SUN *", "UTC", "2026-11-15T06:00", "2026-11-22T06:00"),
        ("0 6 ? * FRI-MON *", "UTC", "2026-11-16T06:00", "2026-11-20T06:00"),
        ("0 23-0 * * ? *", "UTC", "2026-11-18T00:00", "2026-11-18T23:00"),
    ],
)
def test_the_next_and_the_last_time(expression, zone, last, following):
    assert problem(expression) is None
    schedule = cron.parse(expression, zone)
    assert schedule.until(NOW) == local(last, zone)
    assert schedule.after(NOW) == local(following, zone)


@pytest.mark.parametrize("number", range(1, 13))
def test_a_month_may_be_named(number):
    schedule = cron.parse(f"0 6 1 {calendar.month_abbr[number].upper()} ? *", "UTC")
    assert schedule.after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, number, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize("number", range(1, 8))
def test_a_day_of_the_week_may_be_named(number):
    following = cron.parse(f"0 6 ? * {calendar.day_abbr[number - 1].upper()} *", "UTC").after(NOW)
    assert (following.isoweekday(), following - NOW <= timedelta(days=7)) == (number, True)


def test_a_past_year_has_no_next_time():
    assert cron.parse("0 6 1 1 ? 2025", "UTC").after(NOW) is None
    assert cron.parse("0 6 1 1 ? 2030", "UTC").until(NOW) is None


def test_the_same_local_time_on_both_sides_of_a_change_of_clocks():
    schedule = cron.parse("0 7 * * ? *", "Europe/Berlin")
    before = schedule.after(datetime(2026, 10, 24, 0, 0, tzinfo=UTC))
    after = schedule.after(before)
    assert (before.hour, after.hour) == (5, 6)


def test_a_time_that_clocks_skip_is_skipped():
    """On 14 March 2027, New York's clocks go from 02:00 to 03:00."""
    schedule = cron.parse("30 2 * * ? *", "America/New_York")
    eve = local("2027-03-13T02:30", "America/New_York")
    assert schedule.after(eve) == local("2027-03-15T02:30", "America/New_York")
    assert schedule.until(local("2027-03-14T23:00", "America/New_York")) == eve


def test_a_time_that_clocks_show_twice_comes_once():
    """On 25 October 2026, Berlin's clocks go from 03:00 back to 02:00."""
    schedule = cron.parse("30 2 * * ? *", "Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert schedule.until(first) == first
    assert schedule.after(first) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_a_midnight_is_past_although_the_clock_shows_the_day_before_again():
    """On 7 November 2010, St. John's clocks went from 00:01 back to 23:01."""
    schedule = cron.parse("0 0 * * ? *", "America/St_Johns")
    midnight = datetime(2010, 11, 7, 2, 30, tzinfo=UTC)
    again = midnight + timedelta(minutes=30)
    assert again.astimezone(schedule.zone).isoformat() == "2010-11-06T23:30:00-03:30"
    assert schedule.until(again) == schedule.until(midnight) == midnight
    assert schedule.after(again) == datetime(2010, 11, 8, 3, 30, tzinfo=UTC)


ITEMS = st.sampled_from(["0", "30", "1-3", "0/20", "3,59"])
HOURS = st.sampled_from(["*", "0", "2", "3", "1-3", "10-14", "0/6", "3,9"])
#: Days around clock changes, in zones that change by an hour, by half an hour, at midnight, and never.
CHANGES = [
    (zone, datetime.fromisoformat(day).replace(tzinfo=UTC))
    for zone, days in {
        "America/New_York": ("2027-03-14", "2027-11-07"),
        "Europe/Berlin": ("2027-03-28", "2027-10-31"),
        "Australia/Lord_Howe": ("2027-04-04", "2027-10-03"),
        "America/Santiago": ("2027-04-04", "2027-09-05"),
        "America/St_Johns": ("2027-03-14", "2027-11-07"),
        "Asia/Kolkata": ("2027-03-14",),
        "UTC": ("2027-03-14",),
    }.items()
    for day in days
]


def walked(minute, hour, zone, start):
    """Return three days of instants at which the zone's clocks first show one of the times, by checking each
    minute.
    """
    shown = set()
    minutes = cron._parse_numbers(minute, 0, 59)
    hours = cron._parse_numbers(hour, 0, 23)
    for number in range(3 * 24 * 60):
        instant = start + timedelta(minutes=number)
        clock = instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        if clock.minute in minutes and clock.hour in hours and clock not in shown:
            shown.add(clock)
            yield instant


@pytest.mark.slow
@given(ITEMS, HOURS, st.sampled_from(CHANGES))
@settings(max_examples=15)
def test_times_are_those_that_clocks_show(minute, hour, change):
    """This includes days on which clocks change."""
    zone, day = change
    start = day - timedelta(days=1)
    schedule = cron.parse(f"{minute} {hour} * * ? *", zone)
    wanted = list(walked(minute, hour, zone, start))
    before = start - timedelta(minutes=1)
    found = []
    last = schedule.after(before)
    while last is not None and last < start + timedelta(days=3):
        found.append(last)
        last = schedule.after(last)
    assert found == [instant for instant in wanted if instant < start + timedelta(days=3)]
    for earlier, later in itertools.pairwise(found):
        assert schedule.until(later) == later
        assert schedule.until(later - timedelta(minutes=1)) == earlier


@given(st.integers(0, 60 * 24 * 400), ITEMS, HOURS, st.sampled_from([zone for zone, _ in CHANGES]))
def test_no_time_is_between_the_last_and_the_next(minutes, minute, hour, zone):
    schedule = cron.parse(f"{minute} {hour} * * ? *", zone)
    instant = datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(minutes=minutes)
    last = schedule.until(instant)
    following = schedule.after(instant)
    assert last <= instant < following
    assert schedule.until(following) == following
    assert schedule.after(last) == following


@given(st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)))
def test_the_last_working_day_of_a_month(moment):
    found = cron.parse("0 0 LW * ? *", "UTC").after(moment.replace(tzinfo=UTC))
    assert found.isoweekday() <= 5
    rest = [found + timedelta(days=number) for number in range(1, 4)]
    assert all(day.month != found.month or day.isoweekday() > 5 for day in rest)


# --- which expressions are valid


@pytest.mark.parametrize(
    "valid",
    [
        "0 6 ? * MON *",
        "15 1 * * ? *",
        "0/15 * * * ? *",
        "0 8-18 ? * MON-FRI *",
        "30 6 1,15 * ? 2026-2030",
        "0 0 L * ? *",
        "0 12 ? JAN,JUL 2#1 *",
        "0 3 15W * ? *",
        "5 4 ? * 6L *",
        "0 0 LW * ? *",
    ],
)
def test_valid_expressions(valid):
    assert problem(valid) is None


@pytest.mark.parametrize(
    ("wrong", "expected_message"),
    [
        ("0 6 * * *", "5 parts"),
        ("0 6 * * * *", "exactly one"),
        ("0 6 ? * ? *", "exactly one"),
        ("60 6 * * ? *", "'60' is not a valid minute"),
        ("0 24 * * ? *", "'24' is not a valid hour"),
        ("0 6 32 * ? *", "'32' is not a valid day of month"),
        ("0 6 ? 13 MON *", "'13' is not a valid month"),
        ("0 6 ? * MOND *", "'MOND' is not a valid day of week"),
        ("0 6 ? * 8 *", "'8' is not a valid day of week"),
        ("0 6 ? * 2/2 *", "'2/2' is not a valid day of week"),
        ("0 6 ? * MON-FRI/2 *", "'MON-FRI/2' is not a valid day of week"),
        ("0 6 ? * */2 *", "'*/2' is not a valid day of week"),
        ("0 6 ? * SUN,2/3 *", "'SUN,2/3' is not a valid day of week"),
        ("0 6 ? * MON 1969", "'1969' is not a valid year"),
        ("*/0 6 ? * MON *", "is not a valid minute"),
        ("0 6 0W * ? *", "'0W' is not a valid day of month"),
        ("0 6 32W * ? *", "'32W' is not a valid day of month"),
        ("٣ 6 1 * ? *", "is not a valid minute"),
        ("rate(1 day)", "2 parts"),
        ("", "0 parts"),
    ],
)
def test_invalid_expressions_are_reported(wrong, expected_message):
    assert expected_message in problem(wrong)


#: Parts of fields, valid or not.
PARTS = st.one_of(
    st.sampled_from(
        [
            "*",
            "?",
            "L",
            "LW",
            "15W",
            "0W",
            "31W",
            "32W",
            "2#5",
            "2#6",
            "6L",
            "0L",
            "MON-FRI",
            "FRI-MON",
            "JAN/2",
            "1-5/2",
            "*/2",
        ]
    ),
    st.from_regex(r"[0-9*]{1,3}([-/,#][0-9A-Z]{1,3})?[LW]?", fullmatch=True),
)


@given(st.lists(PARTS, min_size=6, max_size=6))
@settings(max_examples=50)
def test_accepted_expressions_can_be_evaluated_and_refused_ones_are_named(parts):
    expression = " ".join(parts)
    wrong = problem(expression)
    if wrong is None:
        schedule = cron.parse(expression, "Europe/Berlin")
        assert schedule.after(NOW) is None or schedule.after(NOW) > NOW
    else:
        assert "must be ?" in wrong or any(repr(part) in wrong for part in parts)
        with pytest.raises(ValueError, match=re.escape(wrong)):
            cron.parse(expression, "Europe/Berlin")


@given(st.text(max_size=60))
def test_any_other_text_is_refused(text):
    assert len(text.split()) == 6 or f"has {len(text.split())} parts" in problem(text)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12))
def test_numbers_within_their_limits_are_valid(minute, hour, day, month):
    assert problem(f"{minute} {hour} {day} {month} ? *") is None


@given(st.integers(60, 10**9))
def test_numbers_beyond_their_limits_are_invalid(number):
    assert problem(f"{number} 6 ? * MON *")
