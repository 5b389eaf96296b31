"""The job's own check of a contract's expressions, by Spark's parser: a contract may come from anybody.

`exports.check` tells an author more and earlier; this one decides, because it asks the engine that will run them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from exports.contract import Contract
from exports.expressions import CLOCK_WORDS, forbidden, why_forbidden
from glue_jobs.errors import BadInput

_SUBQUERIES = {"InSubquery", "ListQuery", "ScalarSubquery", "Exists"}
_REFUSED = dict.fromkeys(_SUBQUERIES, "a subquery is not allowed: an export reads one table") | {
    "WindowExpression": "a window function is not allowed: use [deduplicate] or an aggregate",
    "UnresolvedStar": "name columns one by one: what isn't named doesn't leave",
    "UnresolvedRegex": "name columns one by one: what isn't named doesn't leave",
}

#: The parser puts the present moment in place of these words, so the tree no longer tells.
_CLOCK_LITERAL = re.compile(r"\b(?:date|timestamp(?:_ntz|_ltz)?)\s*['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def require_allowed(spark: SparkSession, contract: Contract) -> None:
    """Raises BadInput with every expression that doesn't parse or uses what a contract may not."""
    mistakes = [
        f"{place}: {mistake}" for place, text, measure in _expressions(contract) for mistake in _mistakes(spark, text, measure)
    ]
    if mistakes:
        raise BadInput("EXP-EXPRESSION", f"contract {contract.name}: " + "; ".join(mistakes), "Correct the contract")


def _expressions(contract: Contract) -> Iterator[tuple[str, str, bool]]:
    for index, one in enumerate(contract.filter):
        yield f"filter[{index}].where", one.where, False
    for column in contract.column:
        if column.expression:
            yield f"column {column.name}", column.expression, False
        if column.measure:
            yield f"column {column.name}", column.measure, True
    for check in contract.check:
        yield f"check {check.id}", check.each_row or check.overall or "", False


def _mistakes(spark: SparkSession, text: str, measure: bool) -> Iterator[str]:
    try:
        tree = spark._jsparkSession.sessionState().sqlParser().parseExpression(text).toJSON()
    except ParseException as error:
        yield f"not a Spark SQL expression ({str(error).strip().splitlines()[0]})"
        return
    for found in _CLOCK_LITERAL.finditer(text):
        yield f"'{found[1]}' changes with time, so the same rows would differ"
    for node in json.loads(tree):
        kind = node["class"].rpartition(".")[2]
        names = node.get("nameParts", "[]").strip("[]").split(", ")
        if kind in _REFUSED:
            yield _REFUSED[kind]
        elif kind == "UnresolvedFunction":
            yield from (why_forbidden(name) for name in forbidden([".".join(names)], aggregate=measure))
        elif kind == "UnresolvedAttribute" and len(names) == 1 and names[0].lower() in CLOCK_WORDS:
            yield f"{names[0]} changes with time or user, so the same rows would differ"
