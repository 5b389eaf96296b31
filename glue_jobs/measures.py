"""Measures that are computed from delivered lines only: a filter may be what prevents a division by zero.

Lines that are left out are counted by the same query, so that the numbers of events and lines add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, SparkSession

from config.exports.allowed_functions import AGGREGATE
from glue_jobs import outcomes

#: Spark doesn't compute a branch of CASE whose condition is false. FILTER would not do: Spark computes common
#: parts of the arguments of two aggregate functions before it looks at their filters.
_IF_DELIVERED = f"CASE WHEN `{outcomes.LINE_STATE}` = {outcomes.DELIVERED} THEN 0 END"


def measure_delivered_lines(spark: SparkSession, text: str) -> Column:
    """Return the measure with each argument and filter of an aggregate function null in lines that are not
    delivered.

    Aggregate functions ignore null, and a group has either only delivered lines or none.
    """
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    measure = parser.parseExpression(text)
    template = parser.parseExpression(_IF_DELIVERED)
    guarded = _guard_node(spark, measure, template)
    jvm: Any = spark._jvm
    sql = jvm.org.apache.spark.sql
    if spark.version.startswith("3."):
        return Column(sql.Column(guarded))
    return Column(sql.classic.ExpressionUtils.column(guarded))


def _guard_node(spark: SparkSession, node: Any, template: Any) -> Any:
    children = list(_list_items(node.children()))
    if not children:
        return node
    if not _is_aggregate(node):
        return _with(spark, node, [_guard_node(spark, child, template) for child in children])
    condition = template.children().apply(0)
    guarded = []
    for child in children:
        guarded.append(child if _is_star(child) else _with(spark, template, [condition, child]))
    return _with(spark, node, guarded)


def _is_aggregate(node: Any) -> bool:
    if node.getClass().getSimpleName() != "UnresolvedFunction":
        return False
    names = list(_list_items(node.nameParts()))
    return len(names) == 1 and names[0].lower() in AGGREGATE


def _is_star(node: Any) -> bool:
    """Return whether a node stands for the star of count(*), which the parser may replace with a literal."""
    return node.getClass().getSimpleName() in ("UnresolvedStar", "Literal")


def _with(spark: SparkSession, node: Any, children: list[Any]) -> Any:
    jvm: Any = spark._jvm
    return node.withNewChildren(jvm.org.apache.spark.api.python.PythonUtils.toSeq(children))


def _list_items(sequence: Any) -> Iterator[Any]:
    for index in range(sequence.size()):
        yield sequence.apply(index)
