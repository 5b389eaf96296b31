"""The lists of functions and words that both checks of expressions use."""

from __future__ import annotations

from config.exports.allowed_functions import AGGREGATE, CLOCK_WORDS, SCALAR, explain_forbidden, find_forbidden


def test_functions_of_groups_are_allowed_in_measures_only():
    assert find_forbidden(["SUM", "lower"], aggregate=True) == []
    assert find_forbidden(["SUM", "lower"], aggregate=False) == ["SUM"]
    assert set() == SCALAR & AGGREGATE


def test_messages_name_a_page():
    assert "Use it in the `measure`" in explain_forbidden("Sum")
    assert "docs/reference/expressions.md" in explain_forbidden("my_udf")


def test_words_for_the_current_time_are_no_allowed_functions():
    assert set() == CLOCK_WORDS & (SCALAR | AGGREGATE)
