"""The lists that both checks of expressions ask."""

from __future__ import annotations

from exports.expressions import AGGREGATE, CLOCK_WORDS, SCALAR, forbidden, why_forbidden


def test_functions_of_groups_are_allowed_in_measures_only():
    assert forbidden(["SUM", "lower"], aggregate=True) == []
    assert forbidden(["SUM", "lower"], aggregate=False) == ["SUM"]
    assert set() == SCALAR & AGGREGATE


def test_what_is_reported_says_where_to_go():
    assert "Use it in `measure`" in why_forbidden("Sum")
    assert "docs/reference/expressions.md" in why_forbidden("my_udf")


def test_words_of_the_clock_are_no_functions_that_are_allowed():
    assert set() == CLOCK_WORDS & (SCALAR | AGGREGATE)
