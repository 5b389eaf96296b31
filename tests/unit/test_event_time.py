"""The bounds of windows and of valid event times, for each type that a table can store an event time with."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import attrs
import pytest

from config.exports.windows import find_window
from glue_jobs.event_time import EventTime, to_micros
from glue_jobs.table_fields import Field
from tests.support import samples

#: zone, kind of window, a day of it, its first day, and the day after its last one.
WINDOWS = {
    "a day in New York": ("America/New_York", "day", "2024-03-10", "2024-03-10", "2024-03-11"),
    "a week in New York": ("America/New_York", "iso_week", "2024-11-03", "2024-10-28", "2024-11-04"),
    "a month in Kiritimati": ("Pacific/Kiritimati", "month", "2024-02-29", "2024-02-01", "2024-03-01"),
    "a quarter in Kiritimati": ("Pacific/Kiritimati", "quarter", "2024-12-31", "2024-10-01", "2025-01-01"),
    "Cairo skips the midnight": ("Africa/Cairo", "day", "2024-04-26", "2024-04-26", "2024-04-27"),
    "Havana repeats a midnight": ("America/Havana", "day", "2023-11-05", "2023-11-05", "2023-11-06"),
    "Apia before the day that it skipped": ("Pacific/Apia", "day", "2011-12-29", "2011-12-29", "2011-12-31"),
    "before 1970": ("America/New_York", "month", "1900-01-31", "1900-01-01", "1900-02-01"),
}


def midnight(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def days(day: str) -> int:
    return (date.fromisoformat(day) - date(1970, 1, 1)).days


def event_time(type_: str, zone: str = "UTC", every: str = "day", **changes) -> EventTime:
    """Return the event time of a table that has a field `at` of this type."""
    contract = samples.things(("id", "text"))
    contract = attrs.evolve(
        contract,
        source=attrs.evolve(contract.source, event_time="at", min_event_date=date(2020, 1, 1)),
        window=attrs.evolve(contract.window, zone=zone, every=every),
    )
    table = samples.pinned(find_window(date(2024, 3, 4), contract.window), "things")
    return EventTime(contract, attrs.evolve(table, fields={"at": Field(1, "at", type_)}, **changes))


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_has_the_dates_of_its_days(name):
    zone, every, day, first, following = WINDOWS[name]
    when = event_time("date", zone, every)
    bounds = when.bounds([find_window(date.fromisoformat(day), when.contract.window)])
    assert bounds == (midnight(first), midnight(following))
    assert when.to_numbers(bounds) == (days(first), days(following))
    assert event_time("timestamp", zone, every).bounds(
        [find_window(date.fromisoformat(day), when.contract.window)]
    ) == (midnight(first), midnight(following))


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_instants_are_in_windows_of_the_zone_and_dates_are_not(zone):
    when = event_time("timestamptz", zone)
    window = find_window(date(2024, 3, 4), when.contract.window)
    assert when.bounds([window]) == (window.start, window.end)
    assert window.start != midnight("2024-03-04")


@pytest.mark.parametrize(
    ("zone", "committed_at", "first_invalid"),
    [
        # In New York, it is the evening before: the date there counts, and one day more.
        ("America/New_York", "2024-03-06T04:59:59.999999", "2024-03-07"),
        ("America/New_York", "2024-03-06T05:00:00", "2024-03-08"),
        # In Kiritimati, it is the next day from 10:00 UTC on.
        ("Pacific/Kiritimati", "2024-03-06T09:59:59.999999", "2024-03-08"),
        ("Pacific/Kiritimati", "2024-03-06T10:00:00", "2024-03-09"),
    ],
)
def test_a_date_that_begins_more_than_a_day_after_the_last_commit_is_invalid(
    zone, committed_at, first_invalid
):
    when = event_time("date", zone, committed_at=midnight(committed_at))
    assert when.valid_bounds() == (midnight("2020-01-01"), midnight(first_invalid))
    assert when.to_numbers(when.valid_bounds()) == (days("2020-01-01"), days(first_invalid))


def test_a_timestamp_is_valid_until_a_day_after_the_last_commit():
    committed_at = datetime(2024, 3, 6, 4, 30, tzinfo=UTC)
    _, of_instants = event_time("timestamptz", "America/New_York", committed_at=committed_at).valid_bounds()
    _, of_clocks = event_time("timestamp", "America/New_York", committed_at=committed_at).valid_bounds()
    assert of_instants == committed_at + timedelta(days=1)
    assert of_clocks == datetime(2024, 3, 6, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "unit"), [("date", 1), ("timestamp", 86_400_000_000), ("timestamptz", 86_400_000_000)]
)
def test_the_numbers_are_those_of_the_type(type_, unit):
    bounds = (midnight("1969-12-31"), midnight("1970-01-03"))
    assert repr(event_time(type_).to_numbers(bounds)) == f"({-unit}, {2 * unit})", "whole numbers"


@pytest.mark.parametrize("microsecond", [0, 1, 999_999])
@pytest.mark.parametrize("day", ["0001-01-01", "1969-12-31", "1970-01-01", "2024-03-04", "9999-12-31"])
def test_microseconds_since_1970_are_exact(day, microsecond):
    moment = midnight(day).replace(microsecond=microsecond)
    assert to_micros(moment) == days(day) * 86_400_000_000 + microsecond
    if day > "0001-01-01":
        elsewhere = moment.astimezone(timezone(timedelta(hours=-5)))
        assert to_micros(elsewhere) == to_micros(moment)


def test_several_windows_are_bounded_by_the_first_and_the_last():
    when = event_time("timestamptz", "America/New_York")
    windows = [find_window(date(2024, 3, day), when.contract.window) for day in (12, 9, 10)]
    assert when.bounds(windows) == (windows[1].start, windows[0].end)
    dates = event_time("date", "America/New_York").bounds(windows)
    assert dates == (midnight("2024-03-09"), midnight("2024-03-13"))


def test_the_field_is_the_contracts_and_has_a_zone_or_none():
    assert event_time("date").field == "at"
    zones = {type_: event_time(type_).has_zone for type_ in ("date", "timestamp", "timestamptz")}
    assert zones == {"date": False, "timestamp": False, "timestamptz": True}


@pytest.mark.parametrize(
    ("type_", "is_suitable"),
    [
        ("date", True),
        ("timestamp", True),
        ("timestamptz", True),
        ("string", False),
        ("timestamptz_ns", False),
    ],
)
def test_times_have_one_of_three_types(type_, is_suitable):
    assert event_time(type_).has_suitable_type == is_suitable


class Expressions:
    """Iceberg's expressions, as far as a run uses them: each is a function of a value."""

    def isNull(self, name):
        return lambda value: value is None

    def lessThan(self, name, limit):
        return lambda value: value is not None and value < limit

    def greaterThanOrEqual(self, name, limit):
        return lambda value: value is not None and value >= limit

    def __getattr__(self, name):
        combine = {"and": all, "or": any}[name]
        return lambda *parts: lambda value: combine(part(value) for part in parts)


#: By type: the start and the end of two days, the first valid time and the first one that is too late.
OF_NEW_YORK = {
    "date": ("2024-03-04", "2024-03-06", "2020-01-01", "2024-03-07"),
    "timestamp": (
        "2024-03-04T00:00:00",
        "2024-03-06T00:00:00",
        "2020-01-01T00:00:00",
        "2024-03-06T23:30:00",
    ),
    "timestamptz": (
        "2024-03-04T05:00:00+00:00",
        "2024-03-06T05:00:00+00:00",
        "2020-01-01T00:00:00+00:00",
        "2024-03-07T04:30:00+00:00",
    ),
}


@pytest.mark.parametrize("type_", OF_NEW_YORK)
def test_files_may_matter_that_have_events_of_the_windows_or_without_a_valid_time(type_):
    committed_at = datetime(2024, 3, 6, 4, 30, tzinfo=UTC)
    when = event_time(type_, "America/New_York", committed_at=committed_at)
    windows = [find_window(date(2024, 3, day), when.contract.window) for day in (5, 4)]
    matters = when.may_matter(Expressions(), "at", windows)
    start, end, earliest, valid_end = OF_NEW_YORK[type_]
    assert matters(None)
    assert [matters(value) for value in (start, end, earliest, valid_end)] == [True, False, False, True]
    just_before = [f"{limit[:-1]}{chr(ord(limit[-1]) - 1)}" for limit in (start, end, earliest, valid_end)]
    assert [matters(value) for value in just_before] == [False, True, True, False]
