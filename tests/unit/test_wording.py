"""Formats of numbers, times and windows in the report."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.exports.contract import WindowRule
from config.exports.windows import find_window
from glue_jobs.delivery.report import wording

LONG = 12_345_678_901_234_567_890_123_456_789_012_345_678
DECIMALS = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**27), max_value=10**27, places=10
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("-0.00", "0.00"),
        ("0.0000000000", "0.00"),
        ("7", "7"),
        ("1000", "1,000"),
        ("1E+3", "1,000"),
        ("-1234567.891", "−1,234,567.89"),
        ("12.5", "12.5"),
        ("12.5000", "12.50"),
        ("0.1250", "0.125"),
        ("12.00004", "12.00"),
        ("0.000123456789", "0.000123457"),
        ("0.99999949", "0.999999"),
        ("0.9999996", "1.00"),
        ("1.00004", "1.00"),
        ("1.00006", "1.0001"),
        ("999.99994", "999.9999"),
        ("1000.004", "1,000.00"),
        ("1000.005", "1,000.01"),
        ("-1000.005", "−1,000.01"),
        ("-0.00000001", "−0.00000001"),
        ("100", "100"),
        ("100.0", "100.0"),
        ("99999999999999999999999999999999999999", "99,999,999,999,999,999,999,999,999,999,999,999,999"),
        ("999999999999999999999999999999999999.99", "999,999,999,999,999,999,999,999,999,999,999,999.99"),
    ],
)
def test_numbers(value, text):
    assert wording.number(Decimal(value)) == text


@given(DECIMALS)
def test_a_number_is_rounded_within_its_tolerance(value):
    text = wording.number(value)
    assert re.fullmatch(r"−?\d{1,3}(,\d{3})*(\.\d+)?", text)
    read = Decimal(text.replace(",", "").replace("−", "-"))
    assert abs(read - value) <= max(abs(value) * Decimal("0.00006"), Decimal("1e-10"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("123456789012345", "123,456,789,012,345"),
        ("1234567890123456", "1.23 × 10^15"),
        ("-1e37", "−1.00 × 10^37"),
        ("1e-9", "1.00 × 10^−9"),
        ("0.00", "0.00"),
        ("999999999999999", "999,999,999,999,999"),
        ("1000000000000000", "1.00 × 10^15"),
        ("-999999999999999", "−999,999,999,999,999"),
        ("0.000001", "0.000001"),
        ("0.00000099", "9.90 × 10^−7"),
        ("-0.00000099", "−9.90 × 10^−7"),
    ],
)
def test_short_numbers(value, text):
    assert wording.short(Decimal(value)) == text


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        ("120", "100", "+20 (+20.0 %) against week 45"),
        ("80", "100", "−20 (−20.0 %) against week 45"),
        ("50", "-100", "+150 (+150.0 %) against week 45"),
        ("0", "100", "−100 (−100.0 %) against week 45"),
        ("100.00", "100", "unchanged from week 45"),
        ("5", "0", "+5 against week 45, which had 0"),
        ("-5", "0.00", "−5.00 against week 45, which had 0"),
        ("0.5", "1", "−0.5 (−50.0 %) against week 45"),
        ("1.5", "1", "+0.5 (+50.0 %) against week 45"),
        ("0.5", "0", "+0.5 against week 45, which had 0"),
        ("5", "0.5", "+4.5 (+900.0 %) against week 45"),
        ("5", None, "no figure for week 45"),
        ("0", "0", "unchanged from week 45"),
        ("1005", "1000", "+5 (+0.5 %) against week 45"),
        ("10005", "10000", "+5 (+0.1 %) against week 45"),
        ("99995", "100000", "−5 (less than −0.1 %) against week 45"),
        ("9995", "10000", "−5 (−0.1 %) against week 45"),
        ("10004.9", "10000", "+4.9 (less than +0.1 %) against week 45"),
        ("-105", "-100", "−5 (−5.0 %) against week 45"),
        ("1000001", "1000000", "+1 (less than +0.1 %) against week 45"),
        ("999999", "1000000", "−1 (less than −0.1 %) against week 45"),
        (str(LONG + 100), "100", f"+{LONG:,} (+{LONG:,}.0 %) against week 45"),
        ("300000", "100", "+299,900 (+299,900.0 %) against week 45"),
        ("1.00000000000000000000000000000000001", "1", f"+0.{34 * '0'}1 (less than +0.1 %) against week 45"),
    ],
)
def test_changes(now, before, text):
    assert wording.change(Decimal(now), None if before is None else Decimal(before), "week 45") == text


@pytest.mark.parametrize(
    ("every", "day", "text"),
    [
        (
            "iso_week",
            date(2026, 11, 11),
            "Week 46 of 2026: Monday 9 November to Sunday 15 November 2026, Europe/Berlin",
        ),
        (
            "iso_week",
            date(2027, 1, 2),
            "Week 53 of 2026: Monday 28 December 2026 to Sunday 3 January 2027, Europe/Berlin",
        ),
        ("day", date(2026, 11, 15), "Sunday 15 November 2026, Europe/Berlin"),
        (
            "quarter",
            date(2026, 11, 11),
            "Quarter 4 of 2026: Thursday 1 October to Thursday 31 December 2026, Europe/Berlin",
        ),
        (
            "month",
            date(2028, 2, 3),
            "February 2028: Tuesday 1 February to Tuesday 29 February 2028, Europe/Berlin",
        ),
    ],
)
def test_windows(every, day, text):
    rule = WindowRule(every=every, zone="Europe/Berlin", first=date(2026, 1, 1))
    assert wording.window(find_window(day, rule), rule) == text


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("2026-W03", "week 3 of 2026"),
        ("2026-11-05", "5 November 2026"),
        ("2026-02", "February 2026"),
        ("2026-Q4", "quarter 4 of 2026"),
        ("2026-W53", "week 53 of 2026"),
    ],
)
def test_labels(label, text):
    assert wording.label(label) == text


def test_an_instant_is_shown_in_its_zone():
    moment = datetime(2026, 11, 15, 22, 10, tzinfo=UTC)
    assert wording.instant(moment, "Europe/Berlin") == "Sunday 15 November 2026, 23:10 (Europe/Berlin)"


@pytest.mark.parametrize(
    ("moment", "zone", "text"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "America/New_York", "Wednesday 31 December 2025, 19:00"),
        (datetime(2026, 6, 30, 23, 59, tzinfo=UTC), "UTC", "Tuesday 30 June 2026, 23:59"),
    ],
)
def test_an_instant_has_the_day_of_its_zone(moment, zone, text):
    assert wording.instant(moment, zone) == f"{text} ({zone})"


def test_a_day_has_its_weekday_and_its_year_unless_they_are_left_out():
    day = date(987, 9, 3)
    assert wording.day(day) == "Monday 3 September 0987"
    assert wording.day(day, weekday=False) == "3 September 0987"
    assert wording.day(day, year=False) == "Monday 3 September"
    assert wording.short_day(day) == "Mon 3 Sep 0987"


def test_each_day_and_each_month_has_its_name():
    week = [wording.short_day(date(2026, 11, day)) for day in range(9, 16)]
    assert [text[:3] for text in week] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    months = [wording.label(f"2026-{month:02}") for month in range(1, 13)]
    assert [text[:3] for text in months] == ("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())


@pytest.mark.parametrize(("amount", "text"), [(1, "1 row"), (0, "0 rows"), (2_000, "2,000 rows")])
def test_counts(amount, text):
    assert wording.count(amount, "row") == text
    assert wording.count(amount, "is", "are") == text.replace("rows", "are").replace("row", "is")


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [("", 1, ""), ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("abcd", 1, "…")],
)
def test_a_text_is_cut_to_its_limit(text, limit, cut):
    assert wording.cut(text, limit) == cut
    assert wording.prose(f"  {text}\n", limit) == cut


def test_prose_has_five_hundred_characters_unless_asked_for_others():
    assert wording.prose("x " * 400) == ("x " * 400)[:499] + "…"


@pytest.mark.parametrize(
    ("label", "letters", "cut"),
    [
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abc…"),
        ("東京", 4, "東京"),
        ("東京都", 4, "東…"),
        ("東京都", 5, "東…"),
        ("ＡＢ", 3, "Ａ…"),
        ("a東京", 4, "a…"),
        ("東", 1, "東…"),
        ("", 4, ""),
    ],
)
def test_a_label_is_cut_to_its_width_and_keeps_a_letter(label, letters, cut):
    assert wording.cut_to_width(label, letters) == cut


@pytest.mark.parametrize(
    ("title", "unit", "text"),
    [
        ("Amount", None, "Amount"),
        ("Amount", "", "Amount"),
        ("Amount", "EUR", "Amount (EUR)"),
        ("Amount in EUR", "eur", "Amount in EUR"),
        ("Amount in EURO", "EUR", "Amount in EURO (EUR)"),
        ("t" * 81, None, f"{'t' * 79}…"),
        ("t" * 80, None, "t" * 80),
        ("t" * 81, "u" * 41, f"{'t' * 79}… ({'u' * 39}…)"),
        ("t" * 80, "u" * 40, f"{'t' * 80} ({'u' * 40})"),
    ],
)
def test_a_number_is_named_with_its_unit(title, unit, text):
    assert wording.named(title, unit) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_900, "999.9 kB"),
        (1_000_000, "1.0 MB"),
        (357_100_000, "357.1 MB"),
        (999_900_000, "999.9 MB"),
        (10**9, "1.0 GB"),
        (2_345 * 10**9, "2,345.0 GB"),
    ],
)
def test_sizes(amount, text):
    assert wording.size(amount) == text
