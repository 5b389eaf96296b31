"""Which columns add up: sums and counts do, but averages, extremes, ratios and parts of dates don't.

Spark's parser gives the tree of each expression, so this module decides about the expression that the job
runs. Totals, headlines, charts, and `sum_x` in checks only use columns that add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from config.exports.allowed_functions import AGGREGATE
from config.exports.contract import Column, Contract
from config.exports.contract_rules import Finding, explain_not_added
from glue_jobs.errors import BadInput

#: Aggregate functions for which the result of two groups together is the sum of their results.
_SUMS: Final = {"sum", "try_sum", "count", "count_if"}
_PLUS_AND_MINUS: Final = {"Add", "Subtract", "try_add", "try_subtract"}
_TIMES: Final = {"Multiply", "try_multiply"}
_DIVIDED: Final = {"Divide", "try_divide"}
#: What only changes the sign, the type or the decimal places. A total is then of the rounded values.
_SAME: Final = {"Cast", "UnaryMinus", "UnaryPositive", "bround", "negative", "positive", "round", "try_cast"}
#: What replaces a missing value.
_INSTEAD_OF_NULL: Final = {"coalesce", "ifnull", "nanvl", "nvl"}
#: Types that keep an amount in a cast. An amount that becomes a truth value or a time is lost.
_KEEP_AMOUNTS: Final = ("byte", "short", "integer", "long", "float", "double", "decimal", "string")
#: Functions of a row whose result says where something lies on a scale, such as a clock or a calendar.
_POSITIONS: Final = frozenset(
    """
    ascii date_format date_part day dayofmonth dayofweek dayofyear extract find_in_set from_unixtime hour
    instr minute mod month pmod position quarter second sign signum unix_date unix_millis unix_seconds weekday
    weekofyear width_bucket year IntegralDivide Remainder StringLocate
    """.split()
)
#: What a value may depend on without being computed from it, as in CASE WHEN hour(at) < 12 THEN amount END.
_CONDITIONS: Final = frozenset(
    """
    And EqualNullSafe EqualTo GreaterThan GreaterThanOrEqual ILike In IsNotNull IsNotUnknown IsNull IsUnknown
    LessThan LessThanOrEqual Like LikeAll LikeAny Not NotLikeAll NotLikeAny Or RLike between
    """.split()
)
_NOT_A_SUM = "its measure is not a sum or a count, nor one plus or minus another or scaled by a constant"
_NO_AMOUNT = (
    "its expression gives a ratio or a position, such as an hour. If its values are amounts that may be "
    "added, write adds_up = true"
)
_REMEDY = "Name another column, or remove it"


@attrs.frozen
class _Node:
    """A node of Spark's tree. `name` is the class, or the name of a function in lower case."""

    name: str
    fields: dict[str, Any]
    children: list[_Node]

    @property
    def arguments(self) -> list[_Node]:
        """Return the children without a FILTER clause."""
        return self.children[: len(self.fields["arguments"])] if "arguments" in self.fields else self.children

    @property
    def is_constant(self) -> bool:
        if self.name in ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable") or self.name in AGGREGATE:
            return False
        return all(child.is_constant for child in self.children)

    def has_two(self, names: set[str]) -> bool:
        """Return whether the node is one of these operators, with two arguments.

        Spark's analyser refuses another number.
        """
        return self.name in names and len(self.arguments) == 2

    def each(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child.each()


def decide_additivity(spark: SparkSession, contract: Contract) -> Contract:
    """Return the contract with `adds_up` for each numeric column.

    Raises BadInput with each headline, chart and check that would add up a column that doesn't.
    """
    if wrong := find_problems(spark, contract):
        listed = "; ".join(f"{key}: {message}" for key, message in wrong)
        raise BadInput("EXP-NOT-ADDITIVE", f"contract {contract.name}: {listed}")
    reasons = _find_reasons(spark, contract)
    known = {column.name: column.name not in reasons for column in contract.column if column.numeric}
    columns = [attrs.evolve(column, adds_up=known.get(column.name)) for column in contract.column]
    return attrs.evolve(contract, column=columns)


def find_problems(spark: SparkSession, contract: Contract) -> list[Finding]:
    """Return (key, what is wrong and what to do) for each key that needs a column to add up that doesn't.

    Expressions that Spark can't parse are ignored: `expression_guard.require_allowed` reports them.
    """
    reasons = _find_reasons(spark, contract)
    found = []
    for index, column in enumerate(contract.column):
        if column.adds_up and column.measure and column.name in reasons:
            found.append(
                (f"column[{index}].adds_up", f"{_explain_not_additive(column.name, reasons)}. Remove adds_up")
            )
    for index, name in enumerate(contract.report.headline):
        if name in reasons:
            found.append((f"report.headline[{index}]", f"{_explain_not_additive(name, reasons)}. {_REMEDY}"))
    for index, chart in enumerate(contract.report.chart):
        if chart.y in reasons:
            found.append(
                (f"report.chart[{index}].y", f"{_explain_not_additive(chart.y, reasons)}. {_REMEDY}")
            )
    return [*found, *_find_sums_in_checks(spark, contract, reasons)]


def _find_sums_in_checks(
    spark: SparkSession, contract: Contract, reasons: dict[str, str]
) -> Iterator[Finding]:
    varying = [column for column in contract.columns if column.per]
    wrong = {column.name: f"the unit of {column.name} varies by {column.per}" for column in varying}
    wrong |= {name: _explain_not_additive(name, reasons) for name in reasons}
    sums = {f"sum_{name}": (name, why) for name, why in wrong.items()}
    for index, check in enumerate(contract.check):
        for total in _list_names(spark, check.overall or ""):
            if total in sums:
                name, why = sums[total]
                instead = f"Use min_{name} or max_{name}, or each_row"
                yield f"check[{index}].overall", f"{total} is unknown, because {why}. {instead}"


def _explain_not_additive(name: str, reasons: dict[str, str]) -> str:
    return f"{name} does not add up: {reasons[name]}"


def _find_reasons(spark: SparkSession, contract: Contract) -> dict[str, str]:
    """Return why a column does not add up, by the names of those that don't."""
    reasons = {}
    for column in contract.columns:
        if not column.numeric:
            continue
        why = explain_not_added(column, contract) or _explain_expression(spark, column)
        if why is not None:
            reasons[column.name] = why
    return reasons


def _explain_expression(spark: SparkSession, column: Column) -> str | None:
    if column.measure:
        tree = _parse_expression(spark, column.measure)
        return None if tree is None or _is_sum(tree) else _NOT_A_SUM
    if column.expression and column.adds_up is None:
        tree = _parse_expression(spark, column.expression)
        return None if tree is None or _is_amount(tree) else _NO_AMOUNT
    return None


def _is_sum(node: _Node) -> bool:
    """Return whether the value of two groups together is the sum of their values, apart from rounding."""
    children = node.arguments
    if node.name in _SUMS:
        return not node.fields["isDistinct"]
    if node.name in _PLUS_AND_MINUS:
        return all(map(_is_sum, children))
    if node.has_two(_TIMES):
        left, right = children
        return (_is_sum(left) and right.is_constant) or (left.is_constant and _is_sum(right))
    if node.has_two(_DIVIDED):
        return _is_sum(children[0]) and children[1].is_constant
    if node.name in _INSTEAD_OF_NULL:
        return all(map(_is_sum, children[:1])) and all(map(_is_zero, children[1:]))
    keeps_amounts = node.name != "Cast" or str(node.fields["dataType"]).startswith(_KEEP_AMOUNTS)
    return node.name in _SAME and keeps_amounts and all(map(_is_sum, children[:1]))


def _is_amount(node: _Node) -> bool:
    """Return whether nothing in the expression of a row says that its values can't be added.

    Of a field, nothing is known.
    """
    if node.name in _CONDITIONS:
        return True
    if node.name in _POSITIONS or (node.has_two(_DIVIDED) and not node.arguments[1].is_constant):
        return False
    if node.has_two(_TIMES):
        # An amount times a share is an amount, and times one over a number it is a ratio.
        if any(map(_is_reciprocal, node.arguments)):
            return False
        return node.is_constant or any(_is_amount(child) for child in node.arguments if not child.is_constant)
    return all(map(_is_amount, node.children))


def _is_reciprocal(node: _Node) -> bool:
    return node.has_two(_DIVIDED) and node.arguments[0].is_constant and not node.arguments[1].is_constant


def _is_zero(node: _Node) -> bool:
    return node.name == "Literal" and str(node.fields.get("value")).strip("0.") == ""


def _list_names(spark: SparkSession, text: str) -> list[str]:
    """Return the names in an expression, without duplicates."""
    tree = _parse_expression(spark, text) if text else None
    if tree is None:
        return []
    names = [_join_name(node.fields) for node in tree.each() if node.name == "UnresolvedAttribute"]
    return list(dict.fromkeys(names))


def _parse_expression(spark: SparkSession, text: str) -> _Node | None:
    """Return the tree of an expression, or None if it is not one."""
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    try:
        nodes: list[dict[str, Any]] = json.loads(parser.parseExpression(text).toJSON())
    except ParseException:
        return None
    return _read_tree(iter(nodes))


def _read_tree(nodes: Iterator[dict[str, Any]]) -> _Node:
    """Return the next tree. Spark lists each node before its children."""
    fields = next(nodes)
    name = str(fields["class"]).rpartition(".")[2].partition("$")[0]
    if name == "UnresolvedFunction":
        name = _join_name(fields).lower()
    return _Node(name, fields, [_read_tree(nodes) for _ in range(fields["num-children"])])


def _join_name(fields: dict[str, Any]) -> str:
    return str(fields["nameParts"]).strip("[]").replace(", ", ".")
