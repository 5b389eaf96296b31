"""What the job itself refuses in a contract's expressions, whoever wrote it and whatever checked it before."""

from __future__ import annotations

import pytest
from lake import column, contract

from exports.contract import parse
from glue_jobs.errors import BadInput
from glue_jobs.expression_guard import require_allowed

REFUSED = {
    "(SELECT max(amount) FROM other)": "a subquery is not allowed",
    "row_number() OVER (ORDER BY amount)": "a window function is not allowed",
    "java_method('java.lang.System', 'exit', 1)": "java_method",
    "current_timestamp()": "current_timestamp",
    "current_date": "current_date changes with time or user",
    "cast(timestamp 'now' AS string)": "'now' changes with time",
    "cast(DATE'Yesterday' AS string)": "'Yesterday' changes with time",
    "rand()": "rand",
    "amount +": "not a Spark SQL expression",
}


def of(*expressions):
    computed = [column(f"c{index}", expression=expression) for index, expression in enumerate(expressions)]
    return parse(contract(column("id"), *computed), name="things")


@pytest.mark.parametrize("expression", REFUSED)
def test_what_could_reach_out_or_change_by_itself_is_refused(spark, expression):
    with pytest.raises(BadInput) as refused:
        require_allowed(spark, of(expression))
    assert "column c0: " in str(refused.value)
    assert REFUSED[expression] in str(refused.value)


def test_all_mistakes_are_told_at_once(spark):
    with pytest.raises(BadInput) as refused:
        require_allowed(spark, of("rand()", "upper(id)", "current_date"))
    assert "column c0" in str(refused.value)
    assert "column c2" in str(refused.value)
    assert "column c1" not in str(refused.value)


def test_what_only_depends_on_the_row_is_allowed(spark):
    require_allowed(spark, of("upper(id)", "concat('now', id)", "date_format(timestamp '2026-01-05 00:00:00', 'yyyy')"))
