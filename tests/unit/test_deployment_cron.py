"""Cron expressions of EventBridge Scheduler."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.cron import problem
from lambdas.shared import cron

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "sound",
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
def test_sound_expressions(sound):
    assert problem(sound) is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("0 6 * * *", "5 parts"),
        ("0 6 * * * *", "exactly one"),
        ("0 6 ? * ? *", "exactly one"),
        ("60 6 * * ? *", "'60' is no minute"),
        ("0 24 * * ? *", "'24' is no hour"),
        ("0 6 32 * ? *", "'32' is no day of month"),
        ("0 6 ? 13 MON *", "'13' is no month"),
        ("0 6 ? * MOND *", "'MOND' is no day of week"),
        ("0 6 ? * 8 *", "'8' is no day of week"),
        ("0 6 ? * MON 1969", "'1969' is no year"),
        ("*/0 6 ? * MON *", "is no minute"),
        ("0 6 0W * ? *", "'0W' is no day of month"),
        ("0 6 32W * ? *", "'32W' is no day of month"),
        ("٣ 6 1 * ? *", "is no minute"),
        ("rate(1 day)", "2 parts"),
        ("", "0 parts"),
    ],
)
def test_what_is_wrong_is_said(wrong, told):
    assert told in problem(wrong)


#: What fields are written with, sound or not.
PARTS = st.one_of(
    st.sampled_from(
        ["*", "?", "L", "LW", "15W", "0W", "31W", "32W", "2#5", "2#6", "6L", "0L", "MON-FRI", "FRI-MON", "JAN/2", "1-5/2"]
    ),
    st.from_regex(r"[0-9*]{1,3}([-/,#][0-9A-Z]{1,3})?[LW]?", fullmatch=True),
)


@given(st.lists(PARTS, min_size=6, max_size=6))
@settings(max_examples=50)
def test_what_is_accepted_can_be_evaluated(parts):
    """By the schedule that the watch and the mails compute with; what is refused is named."""
    expression = " ".join(parts)
    found = problem(expression)
    if found is None:
        schedule = cron.parse(expression, "Europe/Berlin")
        assert schedule.after(NOW) is None or schedule.after(NOW) > NOW
    else:
        assert "must be ?" in found or any(repr(part) in found for part in parts)


@given(st.text(max_size=60))
def test_any_text_that_is_no_expression_is_refused(text):
    assert len(text.split()) == 6 or f"has {len(text.split())} parts" in problem(text)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12))
def test_numbers_within_bounds_are_sound(minute, hour, day, month):
    assert problem(f"{minute} {hour} {day} {month} ? *") is None


@given(st.integers(60, 10**9))
def test_numbers_beyond_bounds_are_not(number):
    assert problem(f"{number} 6 ? * MON *")
