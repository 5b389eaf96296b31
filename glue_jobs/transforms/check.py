"""What must hold of each row, as counts of the rows for which it does not."""

from __future__ import annotations

from functools import reduce
from typing import Final

import attrs
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from exports.contract import Check, Contract
from glue_jobs import outcomes

_BITS: Final = 60


@attrs.frozen
class RowRule:
    """A condition on the file's columns; `bad` is true for a row that breaks it (null passes, as in SQL's CHECK)."""

    id: str
    severity: str
    message: str
    bad: Expression


def row_rules(contract: Contract) -> list[RowRule]:
    """The contract's own checks of rows. What its columns imply is found in the finished file."""
    return [_own(check) for check in contract.check if check.each_row]


def flags(conditions: list[Expression]) -> dict[str, Expression]:
    """Columns with a bit for each condition that holds, as many to a column as a bigint takes; null counts as not holding."""
    parts = [conditions[start : start + _BITS] for start in range(0, len(conditions), _BITS)]
    return {f"{outcomes.FLAGS}{number}": _bits(part) for number, part in enumerate(parts)}


def raised(column: str, value: int) -> list[int]:
    """The numbers of the conditions that a value of one of the columns of `flags` stands for."""
    first = int(column.removeprefix(outcomes.FLAGS)) * _BITS
    return [first + bit for bit in range(value.bit_length()) if value >> bit & 1]


def _bits(conditions: list[Expression]) -> Expression:
    each = [
        F.when(condition, F.lit(1 << bit).cast("bigint")).otherwise(F.lit(0).cast("bigint"))
        for bit, condition in enumerate(conditions)
    ]
    return reduce(lambda left, right: left.bitwiseOR(right), each)


def _own(check: Check) -> RowRule:
    return RowRule(check.id, check.severity, check.message, ~F.expr(check.each_row or "true"))
