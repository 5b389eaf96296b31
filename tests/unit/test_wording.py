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
        ("100.00", "100", "the same as in week 45"),
        ("5", "0", "+5; it was 0 in week 45"),
        ("-5", "0.00", "−5.00; it was 0 in week 45"),
        ("5", None, "no figure for week 45"),
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
    ],
)
def test_labels(label, text):
    assert wording.label(label) == text


def test_an_instant_is_shown_in_its_zone():
    moment = datetime(2026, 11, 15, 22, 10, tzinfo=UTC)
    assert wording.instant(moment, "Europe/Berlin") == "Sunday 15 November 2026, 23:10 (Europe/Berlin)"


@pytest.mark.parametrize(("amount", "text"), [(1, "1 row"), (0, "0 rows"), (2_000, "2,000 rows")])
def test_counts(amount, text):
    assert wording.count(amount, "row") == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(999, "999 bytes"), (1_000, "1.0 kB"), (357_100_000, "357.1 MB"), (2 * 10**9, "2.0 GB")],
)
def test_sizes(amount, text):
    assert wording.size(amount) == text
