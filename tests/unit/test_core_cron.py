"""When a schedule comes next and came last, in its own time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments import cron as checked
from lambdas.core import cron

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
        ("0 6 1 1,7 ? 2026-2027", "UTC", "2026-07-01T06:00", "2027-01-01T06:00"),
        ("0 6 ? * FRI-MON *", "UTC", "2026-11-16T06:00", "2026-11-20T06:00"),
    ],
)
def test_the_next_and_the_last_time(expression, zone, last, following):
    assert checked.problem(expression) is None or "FRI-MON" in expression
    schedule = cron.parse(expression, zone)
    assert schedule.until(NOW) == local(last, zone)
    assert schedule.after(NOW) == local(following, zone)


def test_a_year_that_is_over_never_comes_again():
    assert cron.parse("0 6 1 1 ? 2025", "UTC").after(NOW) is None
    assert cron.parse("0 6 1 1 ? 2030", "UTC").until(NOW) is None


def test_the_same_local_time_on_both_sides_of_a_change_of_clocks():
    schedule = cron.parse("0 7 * * ? *", "Europe/Berlin")
    before = schedule.after(datetime(2026, 10, 24, 0, 0, tzinfo=UTC))
    after = schedule.after(before)
    assert (before.hour, after.hour) == (5, 6)


ITEMS = st.sampled_from(["*", "0", "5", "10-14", "0/20", "3,9"])


@given(ITEMS, ITEMS, st.integers(0, 60 * 24 * 400), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"]))
def test_no_time_is_passed_over_between_the_last_and_the_next(minute, hour, minutes, zone):
    """Each end found from the other one, and by asking for every minute near by."""
    schedule = cron.parse(f"{minute} {hour} * * ? *", zone)
    instant = datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(minutes=minutes)
    last, following = schedule.until(instant), schedule.after(instant)
    assert last <= instant < following
    assert schedule.until(following) == following
    assert schedule.until(following - timedelta(minutes=1)) == last
    assert schedule.after(last) == following


@given(st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)))
def test_the_last_working_day_is_one_and_no_later_one_is(moment):
    found = cron.parse("0 0 LW * ? *", "UTC").after(moment.replace(tzinfo=UTC))
    assert found.isoweekday() <= 5
    rest = [found + timedelta(days=number) for number in range(1, 4)]
    assert all(day.month != found.month or day.isoweekday() > 5 for day in rest)
