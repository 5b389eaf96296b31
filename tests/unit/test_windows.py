"""Windows cover time without gaps or overlaps, in every zone of the tz database."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import settings as configured
from hypothesis import strategies as st

from config.exports.contract import Every, WindowRule
from config.exports.windows import (
    Window,
    find_days,
    find_kind,
    find_next_window,
    find_window,
    list_closed_windows,
    longest_days,
    parse_label,
    window_at,
)

ZONES = sorted(zoneinfo.available_timezones())
FIRST = date(1990, 1, 1)
LAST = date(2100, 12, 31)
DAYS = st.dates(FIRST, LAST)
EVERY = get_args(Every)
HOUR = timedelta(hours=1)
#: Zones that skip days or midnights, that change by half an hour or at a minute past midnight, and the ends
#: of the day.
ODD = [
    "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Santiago", "Africa/Cairo",
    "Africa/Casablanca", "Asia/Gaza", "Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Apia",
    "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Midway",
]  # fmt: skip
#: Each example tests all of these zones; at night, every zone of the database.
IN_ZONES = pytest.mark.parametrize(
    "zones", [pytest.param(ODD, id="odd"), pytest.param(ZONES, id="all", marks=pytest.mark.deep)]
)
FEW = configured(max_examples=6)


def rule(every: str, zone: str, first: date = FIRST) -> WindowRule:
    return WindowRule(every=every, zone=zone, first=first)


@IN_ZONES
@pytest.mark.parametrize("every", EVERY)
@FEW
@given(day=DAYS)
@example(day=date(2011, 12, 29))  # Samoa skipped the day after this one
@example(day=date(1993, 8, 20))  # Kwajalein skipped a day too
@example(day=date(1994, 12, 31))  # and so did Kiritimati
@example(day=date(2026, 3, 29))
@example(day=date(2026, 10, 25))
def test_windows_follow_one_another_in_every_zone(zones, every, day):
    for zone in zones:
        this = rule(every, zone)
        window = find_window(day, this)
        after = find_next_window(window, this)
        assert window.end == after.start, zone
        assert window.first_day <= day < after.first_day
        assert window.start <= window.end
        assert window.label < after.label
        assert find_window(after.first_day - timedelta(days=1), this) == window


@IN_ZONES
@FEW
@given(instant=st.datetimes(datetime(1990, 1, 3), datetime(2100, 12, 1), timezones=st.just(UTC)))
@example(instant=datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
@example(instant=datetime(2010, 11, 7, 3, 0, tzinfo=UTC))  # St. John's turned back from 00:01 to 23:01
@example(instant=datetime(2010, 11, 7, 2, 30, 30, tzinfo=UTC))
@example(instant=datetime(2011, 12, 30, 10, 0, tzinfo=UTC))
def test_every_instant_is_in_the_window_that_is_found_for_it(zones, instant):
    for zone in zones:
        for interval in EVERY:
            window = window_at(instant, rule(interval, zone))
            assert window.start <= instant < window.end, (zone, interval)


@IN_ZONES
@FEW
@given(instant=st.datetimes(datetime(1990, 1, 3), datetime(2100, 12, 1), timezones=st.just(UTC)))
def test_the_day_is_the_one_on_the_clock_of_the_zone(zones, instant):
    """Except for the hour after midnight that a zone has twice, first with the date of the day before."""
    for zone in zones:
        window = window_at(instant, rule("day", zone))
        clock = instant.astimezone(zoneinfo.ZoneInfo(zone))
        assert window.first_day == clock.date() or instant - window.start < 2 * HOUR, zone


@given(day=DAYS)
def test_iso_weeks_are_numbered_by_their_thursday(day):
    window = find_window(day, rule("iso_week", "UTC"))
    thursday = window.first_day + timedelta(days=3)
    number = (thursday - date(thursday.year, 1, 1)).days // 7 + 1
    assert window.first_day.weekday() == 0
    assert window.label == f"{thursday.year}-W{number:02}"
    assert window.end - window.start == timedelta(days=7)


@pytest.mark.parametrize(
    ("day", "label"),
    [
        (date(2026, 12, 31), "2026-W53"),
        (date(2027, 1, 3), "2026-W53"),
        (date(2027, 1, 4), "2027-W01"),
        (date(2024, 12, 30), "2025-W01"),
        (date(2021, 1, 1), "2020-W53"),
        (date(2026, 11, 15), "2026-W46"),
        (date(2100, 12, 31), "2100-W52"),
    ],
)
def test_weeks_at_the_turn_of_years(day, label):
    assert find_window(day, rule("iso_week", "Europe/Berlin")).label == label


@pytest.mark.parametrize(
    ("day", "label", "first", "after"),
    [
        (date(2026, 1, 1), "2026-Q1", date(2026, 1, 1), date(2026, 4, 1)),
        (date(2024, 3, 31), "2024-Q1", date(2024, 1, 1), date(2024, 4, 1)),
        (date(2026, 5, 15), "2026-Q2", date(2026, 4, 1), date(2026, 7, 1)),
        (date(2026, 9, 30), "2026-Q3", date(2026, 7, 1), date(2026, 10, 1)),
        (date(2026, 10, 1), "2026-Q4", date(2026, 10, 1), date(2027, 1, 1)),
    ],
)
def test_quarters_begin_in_january_april_july_and_october(day, label, first, after):
    quarterly = rule("quarter", "Europe/Berlin")
    window = find_window(day, quarterly)
    assert (window.label, window.first_day, find_next_window(window, quarterly).first_day) == (
        label,
        first,
        after,
    )


@pytest.mark.parametrize("every", EVERY)
def test_a_label_names_its_kind_and_no_window_is_longer_than_the_longest(every):
    windows = list(list_closed_windows(rule(every, "UTC"), datetime(2030, 1, 10, tzinfo=UTC)))
    assert {find_kind(window.label) for window in windows} == {every}
    assert max(window.end - window.start for window in windows) == timedelta(days=longest_days(every))


@pytest.mark.parametrize("every", EVERY)
def test_a_label_is_that_of_its_window_in_the_zone_of_any_rule(every):
    windows = list(list_closed_windows(rule(every, "Asia/Tehran"), datetime(1995, 1, 1, tzinfo=UTC)))
    other = rule("month" if every == "day" else "day", "Asia/Tehran")
    assert [parse_label(window.label, other) for window in windows] == windows
    assert [find_days(window, every)[0] for window in windows] == [window.first_day for window in windows]
    assert [find_days(before, every)[1] for before, _ in pairwise(windows)] == [
        after.first_day for _, after in pairwise(windows)
    ]


def test_how_many_days_the_longest_window_has():
    assert {every: longest_days(every) for every in EVERY} == {
        "day": 1,
        "iso_week": 7,
        "month": 31,
        "quarter": 92,
    }
    assert [find_kind(label) for label in ("2026-11-15", "2026-W46", "2026-11", "2026-Q4")] == list(EVERY)


@pytest.mark.parametrize("every", EVERY)
def test_labels_are_unique_and_in_the_order_of_time(every):
    windows = list(list_closed_windows(rule(every, "Europe/Berlin"), datetime(2101, 1, 10, tzinfo=UTC)))
    labels = [window.label for window in windows]
    assert labels == sorted(set(labels))
    assert all(before.end == after.start for before, after in pairwise(windows))
    assert windows == sorted(windows)
    assert len(labels) == {"day": 40_551, "iso_week": 5_793, "month": 1_332, "quarter": 444}[every]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Europe/Berlin", date(2026, 7, 1), 24),
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("America/Santiago", date(2026, 9, 6), 23),  # has no midnight: its clocks go from 24:00 to 01:00
        ("America/Santiago", date(2026, 4, 4), 25),  # lives through 23:00 to 24:00 twice
        ("Africa/Cairo", date(2026, 4, 24), 23),
        (
            "America/St_Johns",
            date(2010, 11, 6),
            24,
        ),  # goes back a minute after midnight: the next day is the long one
        ("America/St_Johns", date(2010, 11, 7), 25),
        ("Pacific/Apia", date(2011, 12, 29), 24),
        ("Pacific/Apia", date(2011, 12, 30), 0),
        ("Pacific/Apia", date(2011, 12, 31), 24),
        ("Asia/Kolkata", date(2026, 3, 29), 24),
        ("UTC", date(2016, 12, 31), 24),
    ],
)
def test_days_have_the_hours_that_their_zone_gives_them(zone, day, hours):
    window = find_window(day, rule("day", zone))
    assert window.end - window.start == hours * HOUR


def test_a_week_and_a_month_with_a_change_of_clocks():
    week = find_window(date(2026, 10, 25), rule("iso_week", "Europe/Berlin"))
    assert (week.start, week.end) == (
        datetime(2026, 10, 18, 22, tzinfo=UTC),
        datetime(2026, 10, 25, 23, tzinfo=UTC),
    )
    month = find_window(date(2026, 3, 31), rule("month", "Europe/Berlin"))
    assert month == Window(
        datetime(2026, 2, 28, 23, tzinfo=UTC),
        datetime(2026, 3, 31, 22, tzinfo=UTC),
        date(2026, 3, 1),
        "2026-03",
    )


def test_a_day_that_a_zone_skipped_is_no_window():
    days = list_closed_windows(
        rule("day", "Pacific/Apia", date(2011, 12, 28)), datetime(2012, 1, 3, tzinfo=UTC)
    )
    assert [window.label for window in days] == [
        "2011-12-28",
        "2011-12-29",
        "2011-12-31",
        "2012-01-01",
        "2012-01-02",
    ]


def test_a_window_is_closed_at_its_end():
    daily = rule("day", "Europe/Berlin", date(2026, 11, 14))
    end = datetime(2026, 11, 14, 23, tzinfo=UTC)
    assert list(list_closed_windows(daily, end - timedelta(microseconds=1))) == []
    assert [window.label for window in list_closed_windows(daily, end)] == ["2026-11-14"]


def test_the_first_window_is_complete_even_if_the_rule_starts_within_it():
    weekly = rule("iso_week", "Europe/Berlin", date(2026, 11, 12))
    assert next(islice(list_closed_windows(weekly, datetime(2026, 12, 1, tzinfo=UTC)), 1)).label == "2026-W46"


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("day", [FIRST, LAST])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Midway", "UTC"])
def test_the_first_and_last_allowed_days(every, day, zone):
    this = rule(every, zone, day)
    first = find_window(this.first, this)
    assert find_next_window(first, this).start == first.end
