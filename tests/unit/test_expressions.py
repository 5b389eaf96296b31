"""The lists of functions and words that both checks of expressions use."""

from __future__ import annotations

from config.exports.allowed_functions import AGGREGATE, CLOCK_WORDS, SCALAR, forbidden, why_forbidden


def test_functions_of_groups_are_allowed_in_measures_only():
    assert forbidden(["SUM", "lower"], aggregate=True) == []
    assert forbidden(["SUM", "lower"], aggregate=False) == ["SUM"]
    assert set() == SCALAR & AGGREGATE


def test_messages_name_a_page():
    assert "Use it in the `measure`" in why_forbidden("Sum")
    assert "docs/reference/expressions.md" in why_forbidden("my_udf")


def test_words_for_the_current_time_are_no_allowed_functions():
    assert set() == CLOCK_WORDS & (SCALAR | AGGREGATE)
