"""The lists that both checks of expressions ask."""

from __future__ import annotations

import pytest

from exports.expressions import AGGREGATE, CLOCK_WORDS, SCALAR, forbidden, why_forbidden

#: Functions of Spark that reach out, roll dice, read a clock, or depend on the order of rows or on where they lie.
DANGEROUS = """
    reflect java_method try_reflect input_file_name input_file_block_start input_file_block_length
    rand randn random uuid shuffle monotonically_increasing_id spark_partition_id
    now curdate current_date current_timestamp current_timezone localtimestamp unix_timestamp
    current_user user session_user current_catalog current_database current_schema version
    first first_value last last_value any_value collect_list collect_set array_agg listagg mode
    max_by min_by approx_count_distinct approx_percentile percentile_approx
    explode explode_outer inline posexplode stack java_method read_files
    aes_encrypt aes_decrypt raise_error assert_true sequence repeat space
""".split()


@pytest.mark.parametrize("name", DANGEROUS)
def test_no_dangerous_function_is_allowed_anywhere(name):
    assert forbidden([name, name.upper()], aggregate=True) == [name, name.upper()]


def test_functions_of_groups_are_allowed_in_measures_only():
    assert forbidden(["SUM", "lower"], aggregate=True) == []
    assert forbidden(["SUM", "lower"], aggregate=False) == ["SUM"]
    assert set() == SCALAR & AGGREGATE


def test_what_is_told_says_where_to_go():
    assert "Use it in `measure`" in why_forbidden("Sum")
    assert "docs/reference/expressions.md" in why_forbidden("my_udf")


def test_words_of_the_clock_are_no_functions_that_are_allowed():
    assert set() == CLOCK_WORDS & (SCALAR | AGGREGATE)
