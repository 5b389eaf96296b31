"""Windows that a user names: which ones a text means, and what is said about the wrong ones."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from config.exports.contract import WindowRule
from config.exports.window_ranges import BadWindows, select_windows, write_ranges
from config.exports.windows import list_closed_windows

AS_OF = datetime(2026, 11, 16, 6, tzinfo=UTC)


def rule(every="iso_week", first=date(2026, 9, 28), zone="Europe/Berlin"):
    return WindowRule(every=every, zone=zone, first=first)


def select(text, **changes):
    return [window.label for window in select_windows(text, rule(**changes), AS_OF)]


def mistakes(text, **changes):
    with pytest.raises(BadWindows) as bad:
        select(text, **changes)
    return str(bad.value).split("; ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-W41", ["2026-W41"]),
        ("2026-W40..2026-W42", ["2026-W40", "2026-W41", "2026-W42"]),
        ("2026-W40..W42", ["2026-W40", "2026-W41", "2026-W42"]),
        ("2026-W44..W44", ["2026-W44"]),
        ("2026-W44, 2026-W40", ["2026-W40", "2026-W44"]),
        ("2026-W40..W41,2026-W41..W42,2026-W46", ["2026-W40", "2026-W41", "2026-W42", "2026-W46"]),
    ],
)
def test_ranges_and_lists_are_windows_oldest_first(text, expected):
    assert select(text) == expected


@pytest.mark.parametrize(
    ("every", "text", "expected"),
    [
        ("day", "2026-10-31..11-01", ["2026-10-31", "2026-11-01"]),
        ("day", "2026-11-01..02", ["2026-11-01", "2026-11-02"]),
        ("month", "2026-01..03", ["2026-01", "2026-02", "2026-03"]),
        ("quarter", "2025-Q4..2026-Q1", ["2025-Q4", "2026-Q1"]),
    ],
)
def test_every_kind_of_window_has_ranges(every, text, expected):
    assert select(text, every=every, first=date(2025, 10, 1)) == expected


def test_a_range_over_the_end_of_a_year_of_53_weeks_has_all_of_them():
    weeks = select("2020-W52..2021-W01", first=date(2020, 12, 1))
    assert weeks == ["2020-W52", "2020-W53", "2021-W01"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-10", "'2026-10' is not a window of this export (write it like 2026-W40)"),
        ("2026-10-05", "'2026-10-05' is not a window"),
        ("2026-Q4", "'2026-Q4' is not a window"),
        ("2026-W41,", "'' is not a window"),
        ("2026-w41", "'2026-w41' is not a window"),
        ("2026-W4١", "is not a window"),
        ("W40..W42", "'W40' is not a window"),
        ("2026-W54", "2026-W54 is not in the calendar"),
        ("2026-W00", "2026-W00 is not in the calendar"),
        ("2026-W47", "2026-W47 is not over: it ends at 2026-11-22 23:00 UTC"),
        ("9999-W52", "9999-W52 is not"),
        ("2026-W39", "2026-W39 is before 2026-W40, the first window of this export"),
        ("2026-W42..W41", "2026-W42..2026-W41 ends before it begins"),
    ],
)
def test_a_wrong_window_is_named_with_the_reason(text, said):
    (mistake,) = [mistake for mistake in mistakes(text) if said in mistake]
    assert mistake


def test_the_way_to_a_window_before_the_first_one_is_the_day_to_set():
    assert "(without one, window.from of the contract) to 2026-08-31, and deploy" in mistakes("2026-W36")[0]


def test_all_mistakes_are_in_one_message():
    assert len(mistakes("2026-W39..W47,2026-11,2026-W41")) == 3


def test_a_day_that_its_zone_skipped_is_no_window():
    pacific = {"every": "day", "first": date(2011, 12, 28), "zone": "Pacific/Apia"}
    assert mistakes("2011-12-30", **pacific) == ["2011-12-30 has no time: the zone Pacific/Apia skipped it"]
    assert select("2011-12-29..2011-12-31", **pacific) == ["2011-12-29", "2011-12-31"]


@pytest.mark.parametrize("text", ["2026-W40..2026-W42,2026-W46", "2026-W41", "2026-W40..2026-W46", ""])
def test_what_is_left_is_written_as_it_is_read(text):
    closed = [window.label for window in list_closed_windows(rule(), AS_OF)]
    labels = set(select(text)) if text else set()
    assert write_ranges(labels, closed) == text
