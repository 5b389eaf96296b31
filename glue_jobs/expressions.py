"""The job's own check of a contract's expressions with Spark's parser, because anybody may write a contract.

`exports.check` finds more, and earlier. This check is decisive, because it uses the engine that runs the expressions. A parsed
expression may contain only the listed classes of nodes, so that an unknown way to call code is refused.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from exports.contract import Contract
from exports.expressions import CASTS_DOUBLE, CLOCK_WORDS, SUMS_DOUBLES, WINDOW_FIELDS, forbidden, why_forbidden
from glue_jobs import columns
from glue_jobs.errors import BadInput, SourceProblem

#: Classes of Spark's unresolved expressions: operators, literals, fields, function calls (whose names are checked),
#: and functions with their own syntax.
_ALLOWED = frozenset(
    """
    Add Alias And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Concat CreateNamedStruct Divide EqualNullSafe
    EqualTo GreaterThan GreaterThanOrEqual ILike In IntegralDivide IsNotNull IsNotUnknown IsNull IsUnknown LambdaFunction
    LessThan LessThanOrEqual Like LikeAll LikeAny Literal Lower Multiply Not NotLikeAll NotLikeAny Or Overlay RLike
    Remainder StringLocate StringTrim StringTrimLeft StringTrimRight Substring Subtract TimestampAdd TimestampDiff UnaryMinus
    UnaryPositive UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction UnresolvedNamedLambdaVariable
    """.split()
)
#: Spark 4 parses the operator BETWEEN as a function call.
_BETWEEN = ["between"]
_SUBQUERIES = {"InSubquery", "ListQuery", "ScalarSubquery", "Exists"}
_WHY_REFUSED = dict.fromkeys(_SUBQUERIES, "a subquery is not allowed: an export reads one table") | {
    "WindowExpression": "a window function is not allowed: use [deduplicate] or an aggregate",
    "UnresolvedStar": "name columns one by one: a field that isn't named is never exported",
    "UnresolvedRegex": "name columns one by one: a field that isn't named is never exported",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER() is not allowed: write the name of the field or function itself",
}
_TIMES = {"date", "timestamp", "timestamp_ntz"}
#: The required form of a typed literal. The words that Spark replaces with the current time begin with a letter.
_FIXED_TIME = re.compile(r"\w+\s*(['\"])\s*[-+]?[0-9][^'\"\\]*\1")


def require_allowed(spark: SparkSession, contract: Contract) -> list[str]:
    """Return the source fields that the contract's expressions name, as written there.

    Raises BadInput with every expression that doesn't parse or uses something that a contract may not use.
    """
    fields: list[str] = []
    mistakes: list[str] = []
    for expression in contract.expressions():
        try:
            tree: Any = spark._jsparkSession.sessionState().sqlParser().parseExpression(expression.text)
        except ParseException as error:
            mistakes.append(f"{expression.label}: not a Spark SQL expression ({str(error).strip().splitlines()[0]})")
            continue
        nodes = json.loads(tree.toJSON())
        wrong = (*_mistakes(nodes, expression.of == "group"), *_clock_literals(tree, nodes, expression.text))
        mistakes += [f"{expression.label}: {mistake}" for mistake in wrong]
        if expression.of in ("row", "group"):
            fields += [".".join(_names(node)) for node in nodes if _kind(node) == "UnresolvedAttribute"]
    if mistakes:
        raise BadInput("EXP-EXPRESSION", f"contract {contract.name}: " + "; ".join(mistakes), "Correct the contract")
    return list(dict.fromkeys(fields))


def require_no_clock(contract: Contract, lines: DataFrame) -> None:
    """Raises BadInput if Spark would replace a text with the time of the run, as in `ordered_at < 'now'`.

    Spark does so wherever it casts a constant text to a date or a timestamp, and only its analyser knows where. `lines` are the
    exploded events before any filter.
    """
    if labels := [label for label, frame in _analysed(contract, lines) if _reads_clock(frame)]:
        raise BadInput(
            "EXP-EXPRESSION",
            f"{', '.join(labels)}: a text such as 'now' or 'today' is compared with a time or cast to one, so the result "
            "would differ between runs",
            f"Write the time in digits, or use {' and '.join(WINDOW_FIELDS)}",
        )


def require_exact(contract: Contract, lines: DataFrame) -> None:
    """Raises SourceProblem with each sum of doubles, which depends on the order of rows, and each cast of a double to a decimal,
    which turns NaN and infinity into null. `lines` are the exploded events before any filter.
    """
    problems = []
    for label, frame in _analysed(contract, lines):
        expressions: Any = frame._jdf.queryExecution().analyzed().expressions()
        nodes = itertools.chain.from_iterable(_each(expressions.apply(index)) for index in range(expressions.size()))
        problems += [f"{label} {wrong}" for wrong in dict.fromkeys(map(_inexact, nodes)) if wrong]
    if problems:
        raise SourceProblem(
            "EXP-TYPE-CHANGED",
            f"contract {contract.name}: " + "; ".join(problems),
            "Correct the expression in the contract, and count up its version",
        )


def _inexact(node: Any) -> str | None:
    kind = node.getClass().getSimpleName()
    if kind not in ("Cast", "Sum", "Average") or node.children().apply(0).dataType().typeName() not in ("double", "float"):
        return None
    if kind != "Cast":
        return SUMS_DOUBLES
    is_strict = node.evalMode().toString() != "TRY"
    return CASTS_DOUBLE if is_strict and node.dataType().typeName().startswith("decimal") else None


def _mistakes(nodes: list[dict[str, Any]], measure: bool) -> Iterator[str]:
    for node in nodes:
        kind, names = _kind(node), _names(node)
        if kind not in _ALLOWED:
            yield _WHY_REFUSED.get(kind, f"{kind} is not among what a contract may use (docs/reference/expressions.md)")
        elif kind == "UnresolvedFunction" and names != _BETWEEN:
            yield from (why_forbidden(name) for name in forbidden([".".join(names)], aggregate=measure))
        elif kind == "UnresolvedAttribute" and len(names) == 1 and names[0].lower() in CLOCK_WORDS:
            yield f"{names[0]} changes with time or user, so the result would differ between runs"


def _clock_literals(tree: Any, nodes: list[dict[str, Any]], text: str) -> Iterator[str]:
    """Yield a message for each date or timestamp literal that isn't written in digits.

    The parser replaces TIMESTAMP 'now' with the current time, so only the text of the expression still has the word.
    """
    if not any(_kind(node) == "Literal" and node["dataType"] in _TIMES for node in nodes):
        return
    for node in _each(tree):
        if node.getClass().getSimpleName() == "Literal" and node.dataType().typeName() in _TIMES:
            origin = node.origin()
            source = text[origin.startIndex().get() : origin.stopIndex().get() + 1]
            if not _FIXED_TIME.fullmatch(source):
                yield f"{source} may change with time, so the result would differ between runs. Write it like DATE '2026-01-31'"


def _analysed(contract: Contract, lines: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    """Yield the label of each expression and a frame that selects it. Checks use the file's columns, or its totals."""
    one_row = lines.sparkSession.range(1)
    cells = one_row.select([columns.cast_to(F.lit(None), column.type).alias(column.name) for column in contract.columns])
    numbers = [F.lit(None).cast("decimal(38,6)").alias(name) for name in contract.total_names]
    totals = one_row.select(F.lit(0).alias("rows"), *numbers)
    frames: dict[str, Callable[..., DataFrame]] = {
        "row": lines.select,
        "group": lines.agg,
        "file_row": cells.select,
        "file": totals.select,
    }
    for expression in contract.expressions():
        yield expression.label, frames[expression.of](F.expr(expression.text))


def _reads_clock(frame: DataFrame) -> bool:
    jvm: Any = frame.sparkSession._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceExpressions.apply(frame._jdf.queryExecution().analyzed())
    return not rules.SpecialDatetimeValues.apply(plan).fastEquals(plan)


def _each(tree: Any) -> Iterator[Any]:
    yield tree
    children = tree.children()
    for index in range(children.size()):
        yield from _each(children.apply(index))


def _kind(node: dict[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2].partition("$")[0]


def _names(node: dict[str, Any]) -> list[str]:
    return str(node.get("nameParts", "[]")).strip("[]").split(", ")
