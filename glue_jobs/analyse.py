"""Analyse a contract's expressions and types with Spark, on the table's columns and without reading a row.

The job does it with the table, and `lakeferry export check` with the columns that the topic's schema gives
the table, so that both accept the same contracts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import attrs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, NullType, StructField, StructType

from config.exports.allowed_functions import WINDOW_FIELDS
from config.exports.analysis import Analysis, AnalysisFinding, did_you_mean
from config.exports.contract import Column, Contract, Expression, decimal_type
from glue_jobs import additivity, columns, expression_guard
from glue_jobs.decimals import explain_inexact
from glue_jobs.errors import BadInput, SourceProblem, translate
from glue_jobs.source import quoted, table_path

#: Error codes of findings.
NOT_ALLOWED: Final = "EXP-EXPRESSION"
BAD_ARGUMENT: Final = "EXP-FUNCTION-ARGUMENT"
UNKNOWN_FIELD: Final = "EXP-SCHEMA-CHANGED"
WRONG_TYPE: Final = "EXP-EXPRESSION-TYPE"
OTHER_TYPE: Final = "EXP-TYPE-CHANGED"
NOT_ADDITIVE: Final = "EXP-NOT-ADDITIVE"
#: The codes, the most urgent first, with their exceptions and what to do.
_RAISED: Final = {
    NOT_ALLOWED: (BadInput, "Correct the contract"),
    BAD_ARGUMENT: (
        BadInput,
        "Correct the contract: a date format is like 'yyyy-MM-dd', a time zone like 'Europe/Berlin'",
    ),
    WRONG_TYPE: (BadInput, "Correct the contract. If a file was already published, also increase `version`"),
    NOT_ADDITIVE: (BadInput, "Correct the contract"),
    UNKNOWN_FIELD: (SourceProblem, "Correct the expression, or put the field back"),
    OTHER_TYPE: (
        SourceProblem,
        "Correct the type in the contract. If a file was already published, also increase `version`",
    ),
}
_UNKNOWN: Final = re.compile(
    r"UNRESOLVED_(COLUMN|FIELD|MAP_KEY)|FIELD_NOT_FOUND|INVALID_EXTRACT_BASE_FIELD_TYPE"
)
_CLOCK: Final = (
    "a text such as 'now' or 'today', or a function, gives the time of the run, so the result would differ "
    f"between runs. Write the time in digits, or use {' and '.join(WINDOW_FIELDS)}"
)


def require_sound(analysis: Analysis, contract: Contract, table: str) -> None:
    """Raises BadInput or SourceProblem with all findings."""
    for code, (error, remedy) in _RAISED.items():
        if any(finding.code == code for finding in analysis.findings):
            messages = "; ".join(f"{finding.label}: {finding.message}" for finding in analysis.findings)
            misfit = f" does not fit the table {table}" if code in (UNKNOWN_FIELD, OTHER_TYPE) else ""
            raise error(code, f"contract {contract.name}{misfit}: {messages}", remedy)


def analyse(contract: Contract, events: DataFrame) -> tuple[Analysis, StructType]:
    """Return what Spark finds, and its types of the columns' raw values, without those that have findings.

    `events` has the columns of the table, with Kafka's metadata as kafka_….
    """
    analyser = _Analyser(contract, events)
    for expression in contract.expressions():
        analyser.add_expression(expression)
    for index, column in enumerate(contract.column):
        analyser.add_column(index, column)
    analyser.add_keys()
    analyser.add_sums()
    return Analysis(analyser.findings, analyser.reads, analyser.counts), StructType(analyser.types)


@attrs.define(init=False)
class _Analyser:
    findings: list[AnalysisFinding]
    reads: dict[str, list[str]]
    counts: list[str]
    types: list[StructField]
    _contract: Contract
    _frames: dict[str, DataFrame]
    _values: dict[str, DataType]
    #: The digits and the decimal places of the columns, by the label of their expression.
    _sizes: dict[str, tuple[int, int]]

    def __init__(self, contract: Contract, events: DataFrame) -> None:
        self.findings = []
        self.reads = {}
        self.counts = []
        self.types = []
        self._contract = contract
        self._frames = _build_frames(contract, events)
        self._values = {}
        sizes = {column.name: decimal_type(column.type) for column in contract.columns}
        self._sizes = {f"column {name}": size for name, size in sizes.items() if size}

    def add_expression(self, expression: Expression) -> None:
        frame = self._frames[expression.of]
        spark = frame.sparkSession
        parsed = expression_guard.parse(spark, expression, self._contract)
        if parsed.mistakes:
            self._add(expression, parsed.mistakes, NOT_ALLOWED)
            return
        try:
            value = F.expr(expression.text)
            analysed = frame.agg(value) if expression.of == "group" else frame.select(value)
            nodes = list(expression_guard.list_nodes(_find_root(analysed)))
        except AnalysisException as error:
            self._add_error(expression, parsed, error)
            return
        # Spark also resolves the columns of Iceberg's metadata, which an expression may not use.
        visible = {name for name in frame.columns if not name.startswith("$")}
        hidden = [name for name in filter(None, map(_read_attribute, nodes)) if name not in visible]
        if hidden:
            self._add_unknown(expression, hidden)
            return
        uses_clock = expression_guard.uses_clock(analysed, nodes)
        if uses_clock:
            self._add(expression, [_CLOCK], NOT_ALLOWED)
        messages = [expression_guard.find_bad_argument(spark, node) for node in nodes]
        if not any(messages) and not uses_clock:
            messages.append(expression_guard.find_constant_failure(_find_root(analysed)))
        self._add(expression, [message for message in messages if message], BAD_ARGUMENT)
        wrong = self._explain_inexact(spark, expression, nodes)
        if expression.of in ("row", "group"):
            self._add(expression, wrong, WRONG_TYPE)
            self._add_uses(expression, analysed, parsed.counts)
        if not wrong:
            self._add_value(expression, analysed.schema[0].dataType)

    def _explain_inexact(self, spark: SparkSession, expression: Expression, nodes: list[Any]) -> list[str]:
        size = self._sizes.get(expression.label, (0, 0))
        reasons = [
            expression_guard.find_inexact(node) or explain_inexact(spark, node, size) for node in nodes
        ]
        return [reason for reason in reasons if reason]

    def _add_uses(self, expression: Expression, analysed: DataFrame, counts: bool) -> None:
        paths = [table_path(path, self._contract) for path in _list_paths(_find_root(analysed))]
        self.reads[expression.key] = list(dict.fromkeys(paths))
        if counts:
            self.counts.append(expression.key)

    def _add_value(self, expression: Expression, type_: DataType) -> None:
        self._values[expression.key] = type_
        if expression.key.startswith("column") or isinstance(type_, BooleanType | NullType):
            return
        value = F.expr(expression.text)
        try:  # as the job uses it
            condition = ~value if expression.of == "file_row" else F.coalesce(value, F.lit(False))
            self._frames[expression.of].select(condition)
        except AnalysisException:
            type_name = columns.describe_type(type_)
            self._add(
                expression,
                [f"gives {type_name}, and a condition is true or false. Compare it with something"],
                WRONG_TYPE,
            )

    def add_column(self, index: int, column: Column) -> None:
        """Compare the column's type with that of its value, unless the value itself has a finding."""
        key = f"column[{index}]"
        type_ = self._values.get(f"{key}.expression") or self._values.get(f"{key}.measure")
        if column.field:
            type_ = _find_type(self._frames["row"], column.field)
        if type_ is None:
            return
        if message := columns.explain_misfit(column, type_):
            code = OTHER_TYPE if column.field else WRONG_TYPE
            self.findings.append(AnalysisFinding(key, f"column {column.name}", message, code))
        else:
            self.types.append(StructField(column.name, type_))

    def add_keys(self) -> None:
        """Add a finding for each field of [deduplicate] that Spark can't compare."""
        rule = self._contract.deduplicate
        for name, paths in (("key", rule.key), ("order", rule.order)) if rule else ():
            for index, path in enumerate(paths):
                type_ = _find_type(self._frames["row"], path)
                if type_ and "map<" in type_.simpleString():
                    key = f"deduplicate.{name}[{index}]"
                    message = (
                        f"{path} is {columns.describe_type(type_)}, and Spark can't compare maps, nor what "
                        "contains one"
                    )
                    self.findings.append(AnalysisFinding(key, key, message, OTHER_TYPE))

    def add_sums(self) -> None:
        """Add a finding for each headline, chart and check that would add up a column that doesn't add up."""
        for key, message in additivity.find_problems(self._frames["row"].sparkSession, self._contract):
            self.findings.append(AnalysisFinding(key, key, message, NOT_ADDITIVE))

    def _add_error(
        self, expression: Expression, parsed: expression_guard.Parsed, error: AnalysisException
    ) -> None:
        code = _read_condition(error)
        if not _UNKNOWN.match(code):
            is_argument = translate(error).code == BAD_ARGUMENT
            self._add(expression, [_read_sentence(error)], BAD_ARGUMENT if is_argument else WRONG_TYPE)
            return
        frame = self._frames[expression.of]
        names = [name for name in dict.fromkeys(parsed.fields) if not _can_resolve(frame, name)]
        if not names:  # a field inside the result of another expression, or a name inside a lambda function
            parameters = error.getMessageParameters() or {}
            name = parameters.get("objectName") or parameters.get("fieldName") or "a field"
            names = [name.replace("`", "")]
        self._add_unknown(expression, names)

    def _add_unknown(self, expression: Expression, names: list[str]) -> None:
        messages = [self._explain_unknown(expression, name) for name in names]
        self._add(expression, messages, UNKNOWN_FIELD if expression.of in ("row", "group") else NOT_ALLOWED)

    def _explain_unknown(self, expression: Expression, name: str) -> str:
        fields: list[str] = []
        for field in self._frames[expression.of].schema:
            if not field.name.startswith("$"):
                fields += _list_fields_in(field)
        if expression.of == "file_row":
            return f"{name} is not a column of the file{did_you_mean(name, fields)}"
        if expression.of == "file":
            return (
                f"{name} is neither `rows` nor the sum_x, min_x or max_x of a numeric column "
                f"x{did_you_mean(name, fields)}"
            )
        topic = self._contract.source.topic
        return f"{name} is neither a field of {topic} nor another name known here{did_you_mean(name, fields)}"

    def _add(self, expression: Expression, messages: list[str], code: str) -> None:
        for message in dict.fromkeys(messages):
            self.findings.append(AnalysisFinding(expression.key, expression.label, message, code))


def _build_frames(contract: Contract, events: DataFrame) -> dict[str, DataFrame]:
    """Return the frames whose columns an expression may use, by what its value is computed from."""
    lines = events.withColumns(dict.fromkeys(WINDOW_FIELDS, F.lit(None).cast("timestamp")))
    if contract.explode:
        array_type = _find_type(lines, contract.explode.array)
        if array_type is not None and array_type.typeName() == "array":
            item = F.explode_outer(F.col(contract.explode.array)).alias(contract.explode.alias)
            lines = lines.select("*", item)
    one_row = events.sparkSession.range(1)
    cells = one_row.select(
        [columns.cast_to(F.lit(None), column.type).alias(column.name) for column in contract.columns]
    )
    numbers: list[str] = []
    for column in contract.columns:
        if column.numeric:
            numbers += [f"sum_{column.name}", f"min_{column.name}", f"max_{column.name}"]
    totals = one_row.select(
        F.lit(0).alias("rows"), *[F.lit(None).cast("decimal(38,6)").alias(name) for name in numbers]
    )
    return {"row": lines, "group": lines, "file_row": cells, "file": totals}


def _find_type(frame: DataFrame, path: str) -> DataType | None:
    """Return the type of a field, None if there is no such field."""
    try:
        return frame.select(F.col(path)).schema[0].dataType
    except AnalysisException:
        return None


def _can_resolve(frame: DataFrame, path: str) -> bool:
    return _find_type(frame, ".".join(map(quoted, path.split(".")))) is not None


def _list_fields_in(field: StructField) -> Iterator[str]:
    yield field.name
    if isinstance(field.dataType, StructType):
        for inner in field.dataType:
            yield from (f"{field.name}.{path}" for path in _list_fields_in(inner))


def _find_root(analysed: DataFrame) -> Any:
    found: Any = analysed._jdf.queryExecution().analyzed().expressions()
    return found.apply(0)


def _read_attribute(node: Any) -> str | None:
    return str(node.name()) if node.getClass().getSimpleName() == "AttributeReference" else None


def _list_paths(node: Any) -> Iterator[str]:
    """Yield the paths of the fields that the expression uses.

    A record that is used as a whole has the path of the record.
    """
    parts: list[str] = []
    while step := _read_step(node):
        part, key = step
        parts.append(part)
        if key is not None:
            yield from _list_paths(key)
        node = node.children().apply(0)
    if name := _read_attribute(node):
        yield name + "".join(reversed(parts))
        return
    children = node.children()
    for index in range(children.size()):
        yield from _list_paths(children.apply(index))


def _read_step(node: Any) -> tuple[str, Any] | None:
    """Return what an access to a part of a value adds to its path, and the key or index; None if the node is
    no such access.
    """
    match node.getClass().getSimpleName():
        case "GetStructField":
            return f".{node.extractFieldName()}", None
        case "GetArrayStructFields":
            return f"[].{node.field().name()}", None
        case "GetArrayItem":
            return "[]", node.children().apply(1)
        case "GetMapValue":
            return "{}", node.children().apply(1)
    return None


def _read_condition(error: AnalysisException) -> str:
    """Return Spark's name of the error.

    `getErrorClass` is deprecated in Spark 4, and Spark 3 has no other method.
    """
    name = error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()
    return str(name)


def _read_sentence(error: AnalysisException) -> str:
    if _read_condition(error).startswith(("MISSING_GROUP_BY", "MISSING_AGGREGATION")):
        return "must be an aggregate of the rows of a group, such as sum(x) or count(*)"
    line = str(error).strip().splitlines()[0]
    sentence = re.sub(r"\s*SQLSTATE: \w+", "", re.sub(r"^\[[\w.]+\]\s*", "", line))
    return re.sub(r"[.;]*\s*(; )?line \d+ pos \d+;?$", "", sentence).rstrip(".; ")
