"""Cron expressions of EventBridge Scheduler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.cron import problem


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
        ("rate(1 day)", "2 parts"),
        ("", "0 parts"),
    ],
)
def test_what_is_wrong_is_said(wrong, told):
    assert told in problem(wrong)


@given(st.text(max_size=60))
def test_any_text_gets_an_answer(text):
    found = problem(text)
    assert found is None or found


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12))
def test_numbers_within_bounds_are_sound(minute, hour, day, month):
    assert problem(f"{minute} {hour} {day} {month} ? *") is None


@given(st.integers(60, 10**9))
def test_numbers_beyond_bounds_are_not(number):
    assert problem(f"{number} 6 ? * MON *")
