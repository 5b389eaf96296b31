"""What the job allows in a contract's expressions, by Spark's own parser and analyser, because anybody may
write a contract.

A parsed expression may contain only the listed classes of nodes, so that an unknown way to call code is
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import ArithmeticException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from config.exports.allowed_functions import (
    CASTS_DOUBLE,
    CLOCK_WORDS,
    COUNTS_PEOPLE,
    SUMS_DOUBLES,
    explain_forbidden,
    find_forbidden,
    shows_one_person,
)
from config.exports.contract import Contract, Expression
from glue_jobs.errors import BadInput, DataProblem, translate

#: Classes of Spark's unresolved expressions: operators, literals, fields, function calls (whose names are
#: checked), and functions with their own syntax.
_ALLOWED = frozenset(
    """
    Add Alias And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Concat CreateNamedStruct Divide
    EqualNullSafe EqualTo GreaterThan GreaterThanOrEqual ILike In IntegralDivide IsNotNull IsNotUnknown IsNull
    IsUnknown LambdaFunction LessThan LessThanOrEqual Like LikeAll LikeAny Literal Lower Multiply Not
    NotLikeAll NotLikeAny Or Overlay RLike Remainder StringLocate StringTrim StringTrimLeft StringTrimRight
    Substring Subtract TimestampAdd TimestampDiff UnaryMinus UnaryPositive UnresolvedAttribute
    UnresolvedExtractValue UnresolvedFunction UnresolvedNamedLambdaVariable
    """.split()
)
#: Spark 4 parses the operator BETWEEN as a function call.
_BETWEEN = ["between"]
_SUBQUERIES = {"InSubquery", "ListQuery", "ScalarSubquery", "Exists"}
_WHY_REFUSED = dict.fromkeys(_SUBQUERIES, "a subquery is not allowed: an export reads one table") | {
    "WindowExpression": "a window function is not allowed: use [deduplicate] or an aggregate",
    "UnresolvedStar": "name columns one by one: a field that isn't named is never exported",
    "UnresolvedRegex": "name columns one by one: a field that isn't named is never exported",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER() is not allowed: write the name of the field or "
    "function itself",
}
#: Expressions of Spark's analyser whose value differs between runs or users.
_CLOCKS = re.compile(r"Current\w+|Now|LocalTimestamp")
#: Spark's functions that are other functions when they run.
_REPLACED = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
#: What authors call functions that have another name inside of Spark.
_NAMES = {"gettimestamp": "to_date() or to_timestamp()"}
#: Types whose neutral values no function refuses.
_NEUTRAL = ("integer", "long", "double", "boolean", "date", "timestamp", "timestamp_ntz")
_COUNTS = ("count", "count_if")
#: Expressions that compute some of their parts for some rows only.
_CONDITIONS = ("And", "CaseWhen", "Coalesce", "If", "NaNvl", "Or")
#: The nodes of a measure that counts people.
_OF_COUNTS = frozenset(
    "Cast Literal Lower StringTrim UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction".split()
)
_TIMES = {"date", "timestamp", "timestamp_ntz"}
#: The required form of a typed literal. The words that Spark replaces with the current time begin with a
#: letter.
_FIXED_TIME = re.compile(r"\w+\s*(['\"])\s*[-+]?[0-9][^'\"\\]*\1")


@attrs.frozen
class Parsed:
    """An expression as Spark's parser reads it.

    `mistakes` are messages about what a contract may not use; `fields` the names of columns; `counts`
    says whether the expression is nothing but a count.
    """

    mistakes: list[str]
    fields: list[str]
    counts: bool = False


def require_allowed(spark: SparkSession, contract: Contract) -> list[str]:
    """Return the source fields that the contract's expressions name, as written there.

    Raises BadInput with every expression that doesn't parse or uses something that a contract may not use.
    """
    fields: list[str] = []
    mistakes: list[str] = []
    for expression in contract.expressions():
        parsed = parse(spark, expression, contract)
        mistakes += [f"{expression.label}: {mistake}" for mistake in parsed.mistakes]
        if expression.of in ("row", "group"):
            fields += parsed.fields
    if mistakes:
        raise BadInput("EXP-EXPRESSION", f"contract {contract.name}: " + "; ".join(mistakes))
    return list(dict.fromkeys(fields))


def parse(spark: SparkSession, expression: Expression, contract: Contract) -> Parsed:
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    try:
        tree = parser.parseExpression(expression.text)
    except (
        ParseException,
        ArithmeticException,
    ) as error:  # the second is for a decimal of more than 38 digits
        return Parsed([f"not a Spark SQL expression ({_read_first_line(error)})"], [])
    nodes = json.loads(tree.toJSON())
    mistakes = [
        *_find_mistakes(nodes, expression.of == "group"),
        *_find_clock_literals(tree, nodes, expression.text),
    ]
    fields = list(_list_named_fields(_read_tree(iter(nodes)), frozenset()))
    if expression.of == "group" and (wrong := _explain_one_person(contract, expression, nodes, fields)):
        mistakes.append(wrong)
    counts = (
        _read_kind(nodes[0]) == "UnresolvedFunction" and ".".join(_list_names(nodes[0])).lower() in _COUNTS
    )
    return Parsed(list(dict.fromkeys(mistakes)), fields, counts)


def _read_tree(nodes: Iterator[dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
    """Return the first node with the trees of its children. Spark lists a node before its children."""
    node = next(nodes)
    return node, [_read_tree(nodes) for _ in range(node["num-children"])]


def _list_named_fields(tree: tuple[dict[str, Any], list[Any]], variables: frozenset[str]) -> Iterator[str]:
    """Yield the fields that an expression names. `variables` are those of the lambda functions around it.

    Spark's parser calls every name in a lambda function a variable, also those of fields.
    """
    node, children = tree
    if _read_kind(node) == "LambdaFunction":
        body, *arguments = children
        own = frozenset(_list_names(argument)[0].lower() for argument, _ in arguments)
        yield from _list_named_fields(body, variables | own)
        return
    names = _list_names(node)
    is_variable = _read_kind(node) == "UnresolvedNamedLambdaVariable" and names[0].lower() in variables
    if _read_kind(node) in ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable") and not is_variable:
        yield ".".join(names)
    for child in children:
        yield from _list_named_fields(child, variables)


def _explain_one_person(
    contract: Contract, measure: Expression, nodes: list[dict[str, Any]], named: list[str]
) -> str | None:
    """Return why a measure may show one person's value, None if it doesn't or has a reason."""
    person_id = contract.aggregate.person_id if contract.aggregate else None
    excused = {column.measure for column in contract.column if column.shows_one_person_because}
    if person_id is None or measure.text in excused:
        return None
    functions = [_list_names(node)[-1] for node in nodes if _read_kind(node) == "UnresolvedFunction"]
    only_counts = {name.lower() for name in functions} <= COUNTS_PEOPLE
    only_counts = only_counts and all(_read_kind(node) in _OF_COUNTS for node in nodes)
    names_person = any(_contains(name.lower(), person_id.lower(), contract) for name in named)
    return shows_one_person(functions, compares_person_id=names_person and not only_counts)


def _contains(path: str, person_id: str, contract: Contract) -> bool:
    """Return whether the field at the path is the person's id, or a record or array that has it inside."""
    explode = contract.explode
    inside = [person_id]
    if explode is not None and person_id.partition(".")[0] == explode.alias.lower():
        inside.append(f"{explode.array}.".lower())
    return any(field == path or field.startswith(f"{path}.") for field in inside)


def _read_first_line(error: PySparkException) -> str:
    """Return Spark's sentence about the mistake, without the name of its class, and with its place in the
    text.
    """
    line = str(error).strip().splitlines()[0]
    sentence = re.sub(r"\s*SQLSTATE: \w+", "", re.sub(r"^\[[\w.]+\]\s*", "", line))
    place = re.search(r"\(line (\d+), pos (\d+)\)", sentence)
    if not place:
        return sentence.rstrip(". ")
    where = f"character {int(place[2]) + 1}"
    if place[1] != "1":
        where += f" of line {place[1]}"
    return f"{sentence[: place.start()].rstrip('. ')}, {where}"


def find_inexact(node: Any) -> str | None:
    """Return a message about a sum of doubles, which depends on the order of rows, or about a cast of a
    double to a decimal, which turns NaN and infinity into null.
    """
    kind = node.getClass().getSimpleName()
    if kind not in ("Cast", "Sum", "Average"):
        return None
    if node.children().apply(0).dataType().typeName() not in ("double", "float"):
        return None
    if kind != "Cast":
        return SUMS_DOUBLES
    is_strict = node.evalMode().toString() != "TRY"
    return CASTS_DOUBLE if is_strict and node.dataType().typeName().startswith("decimal") else None


def find_bad_argument(spark: SparkSession, node: Any) -> str | None:
    """Return a message about a function that doesn't accept one of its constant texts, such as a date format.

    The function is computed with these constants, and with neutral values in the place of everything else.
    What a text of a row may be isn't known, so a function with such an argument is not computed, but for the
    first argument, its subject.
    """
    arguments = [node.children().apply(index) for index in range(node.children().size())]
    texts = [
        argument
        for argument in arguments
        if argument.foldable() and argument.dataType().typeName() == "string"
    ]
    others = [argument for argument in arguments[1:] if not argument.foldable()]
    if not texts or any(argument.dataType().typeName() not in _NEUTRAL for argument in others):
        return None
    jvm: Any = spark._jvm
    literal = jvm.org.apache.spark.sql.catalyst.expressions.Literal
    neutral = [
        argument if argument.foldable() else literal.default(argument.dataType()) for argument in arguments
    ]
    subjects = [neutral[0]]
    if not arguments[0].foldable() and arguments[0].dataType().typeName() == "string":
        parser: Any = spark._jsparkSession.sessionState().sqlParser()
        subjects.append(parser.parseExpression("'UTC'"))  # some functions have a time zone there
    if not all(_is_refused(node, jvm.PythonUtils.toSeq([subject, *neutral[1:]])) for subject in subjects):
        return None
    name = _NAMES.get(node.prettyName(), f"{node.prettyName()}()")
    return f"{name} does not accept {' or '.join(text.sql() for text in texts)} as an argument"


def _is_refused(node: Any, arguments: Any) -> bool:
    try:
        node.withNewChildren(arguments).eval(None)
    except (Py4JJavaError, PySparkException) as error:
        return translate(error).code == "EXP-FUNCTION-ARGUMENT"
    return False


def find_constant_failure(node: Any) -> str | None:
    """Return a message about a part without fields that fails for each row, such as `1 div 0`."""
    for part in _list_always_computed(node):
        if message := find_constant_failure(part):
            return message
    if not node.foldable() or node.getClass().getSimpleName() == "Literal":
        return None
    try:
        node.eval(None)
    except (Py4JJavaError, PySparkException) as error:
        problem = translate(error)
        if isinstance(problem, DataProblem):
            return f"{node.sql()} fails for each row: {problem.what}"
    return None


def _list_always_computed(node: Any) -> list[Any]:
    """Return the children that are computed for each row: of a condition, that is only the first."""
    if is_instance_of(SparkContext._gateway, node, _REPLACED):
        return [node.replacement()]
    children = [node.children().apply(index) for index in range(node.children().size())]
    return children[:1] if node.getClass().getSimpleName() in _CONDITIONS else children


def _find_mistakes(nodes: list[dict[str, Any]], measure: bool) -> Iterator[str]:
    for node in nodes:
        kind = _read_kind(node)
        names = _list_names(node)
        if kind == "AggregateExpression":
            continue  # the aggregate function that it contains is refused
        if kind not in _ALLOWED:
            yield _WHY_REFUSED.get(
                kind,
                f"{kind} is not among the functions and operators that a contract may use "
                "(docs/reference/expressions.md)",
            )
        elif kind == "UnresolvedFunction" and names != _BETWEEN:
            for name in find_forbidden([".".join(names)], aggregate=measure):
                yield explain_forbidden(name)
        elif kind == "UnresolvedAttribute" and len(names) == 1 and names[0].lower() in CLOCK_WORDS:
            yield f"{names[0]} changes with time or user, so the result would differ between runs"


def _find_clock_literals(tree: Any, nodes: list[dict[str, Any]], text: str) -> Iterator[str]:
    """Yield a message for each date or timestamp literal that isn't written in digits.

    The parser replaces TIMESTAMP 'now' with the current time, so only the text of the expression still has
    the word.
    """
    if not any(_read_kind(node) == "Literal" and node["dataType"] in _TIMES for node in nodes):
        return
    for node in list_nodes(tree):
        if node.getClass().getSimpleName() == "Literal" and node.dataType().typeName() in _TIMES:
            origin = node.origin()
            source = text[origin.startIndex().get() : origin.stopIndex().get() + 1]
            if not _FIXED_TIME.fullmatch(source):
                yield (
                    f"{source} may change with time, so the result would differ between runs. Write it "
                    "like DATE '2026-01-31'"
                )


def uses_clock(frame: DataFrame, nodes: list[Any]) -> bool:
    """Return whether the result of the frame's expressions, whose analysed nodes are given, differs between
    runs or users.

    Spark replaces a text with the time of the run wherever it casts a constant text to a date or a timestamp,
    as in `ordered_at < 'now'`, and only its analyser knows where.
    """
    if any(_CLOCKS.fullmatch(node.getClass().getSimpleName()) for node in nodes):
        return True
    jvm: Any = frame.sparkSession._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    plan = rules.ReplaceExpressions.apply(frame._jdf.queryExecution().analyzed())
    return not rules.SpecialDatetimeValues.apply(plan).fastEquals(plan)


def list_nodes(tree: Any) -> Iterator[Any]:
    """Yield the nodes of an expression, and those by which Spark replaces a function when it runs."""
    yield tree
    if is_instance_of(SparkContext._gateway, tree, _REPLACED):
        yield from list_nodes(tree.replacement())
    children = tree.children()
    for index in range(children.size()):
        yield from list_nodes(children.apply(index))


def _read_kind(node: dict[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2].partition("$")[0]


def _list_names(node: dict[str, Any]) -> list[str]:
    return str(node.get("nameParts", "[]")).strip("[]").split(", ")
