"""What the report says about a column and shows in its cells."""

from __future__ import annotations

import pytest

from config.exports.contract import Column, Personal
from glue_jobs.delivery.report import values


def column(type_: str = "text", **more) -> Column:
    return Column(name="c", type=type_, title="C", description="D.", **more)


@pytest.mark.parametrize(
    ("value", "type_", "cell"),
    [
        ("plain", "text", "plain"),
        ("", "text", "“”"),
        (None, "text", "“”"),
        (None, "integer", "“”"),
        ("a longer text", "text", "a lon…"),
        ("2026-11-09", "date", "2026-…"),
        ("1E-8", "decimal(9,8)", "0.00000001"),
        ("1234567", "integer", "1234567"),
        ("9" * 38, "decimal(38,0)", "9" * 38),
    ],
)
def test_a_cell_is_cut_unless_it_is_a_number(value, type_, cell):
    assert values.cell(value, column(type_), 6) == cell


def test_numbers_of_the_first_rows_are_to_the_right_as_is_the_rows_own():
    columns = [column(type_) for type_ in ("integer", "text", "decimal(9,2)", "timestamp")]
    assert values.numeric(columns) == {0, 1, 3}
    assert values.numeric([]) == {0}


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        ("text", "text"),
        ("date", "date"),
        ("timestamp", "time (UTC)"),
        ("boolean", "true or false"),
        ("integer", "whole number"),
        ("decimal(9,0)", "number, 0 decimal places"),
        ("decimal(38,1)", "number, 1 decimal place"),
        ("decimal(18,2)", "number, 2 decimal places"),
    ],
)
def test_the_type_of_a_column_is_in_words(type_, words):
    assert values.column_type(column(type_)) == words
    assert values.column_type(column(type_, adds_up=True)) == words
    assert values.column_type(column(type_, adds_up=False)) == f"{words}; sums have no meaning"


@pytest.mark.parametrize(
    ("personal", "words"),
    [
        (None, "none"),
        ({"treatment": "keep", "reason": "It is\n known."}, "left as it is: It is known."),
        (
            {"treatment": "keep", "reason": "It is known to everybody here."},
            "left as it is: It is known to ever…",
        ),
        ({"treatment": "mask", "visible": 4}, "masked, the last 4 characters can be read"),
        ({"treatment": "mask", "visible": 1}, "masked, the last 1 character can be read"),
        ({"treatment": "mask", "visible": 0}, "masked altogether"),
        ({"treatment": "mask"}, "masked altogether"),
        ({"treatment": "hash", "kind": "email"}, "replaced by a pseudonym; equal values stay equal"),
        ({"treatment": "generalise", "to": "year"}, "only the year is left"),
        ({"treatment": "generalise", "to": "month"}, "only year and month are left"),
        ({"treatment": "generalise", "to": "prefix", "size": 1}, "only the first character is left"),
        ({"treatment": "generalise", "to": "prefix", "size": 3}, "only the first 3 characters are left"),
        ({"treatment": "generalise", "to": "bucket", "size": 5_000}, "rounded down to steps of 5,000"),
    ],
)
def test_the_treatment_of_personal_data_is_in_words(personal, words):
    assert values.treatment(personal and Personal(**personal), 20) == words


@pytest.mark.parametrize(
    ("personal", "why"),
    [({"treatment": "drop"}, "a dropped column"), ({"treatment": "generalise"}, "generalise needs `to`")],
)
def test_what_no_column_of_a_file_has_is_not_described(personal, why):
    with pytest.raises(ValueError, match=why):
        values.treatment(Personal(**personal), 500)
