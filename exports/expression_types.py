"""The type of an expression in Spark, derived from a topic's schema; None if only Spark can tell.

This is enough to refuse, before anything runs, what the job would refuse: sums of doubles, numbers in a text column, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from exports.contract import Column, Personal, decimal_type
from exports.expressions import CASTS_DOUBLE, SUMS_DOUBLES, WINDOW_FIELDS

#: The type that an Avro type, or a field of Kafka's metadata, has in Tableflow's tables.
OF_FIELD: Final = {
    **dict.fromkeys(("int", "long", "kafka_partition", "kafka_offset"), "integer"),
    **dict.fromkeys(("float", "double"), "double"),
    **dict.fromkeys(("string", "enum", "kafka_topic"), "text"),
    **dict.fromkeys(("timestamp-millis", "timestamp-micros", "kafka_timestamp", *WINDOW_FIELDS), "timestamp"),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), "timestamp without a zone"),
    **dict.fromkeys(("record", "array", "map", "union"), "nested"),
    **{kind: kind for kind in ("boolean", "date", "decimal", "bytes", "fixed")},
}
_OF_CAST = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"), "timestamp"),
    "DECIMAL": "decimal",
    "DATE": "date",
    "BOOLEAN": "boolean",
}
_FITTING = {"text": {"text"}, "integer": {"integer"}, "date": {"date"}, "timestamp": {"timestamp"}, "boolean": {"boolean"}}
_GENERALISED = {
    "year": {"date", "timestamp"},
    "month": {"date", "timestamp"},
    "prefix": {"text"},
    "bucket": {"integer", "decimal"},
}


def misfit(column: Column, type_: str | None) -> str | None:
    """Return why the job would refuse a column whose value has this type. None if the type fits or is not known yet."""
    if type_ is None or not column.delivered or type_ in _accepted(column, column.personal):
        return None
    if type_ == "nested":
        return "is a record, array, map or union; name a field inside it, or explode an array with [explode]"
    if type_ == "double" and column.measure and decimal_type(column.type):
        return "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate"
    if column.personal and column.personal.treatment in ("hash", "mask"):
        return f"is {type_}; {column.personal.treatment} needs text: cast it"
    return f"is {type_} in the topic, {column.type} in the contract"


def shortened(column: Column, size: tuple[int, int]) -> str | None:
    """Return why the job would refuse a column that copies a decimal of this precision and scale, or None if it fits."""
    wanted = decimal_type(column.type)
    kept = column.delivered and (column.personal is None or column.personal.treatment == "keep")
    if not kept or wanted is None or size[1] <= wanted[1]:
        return None
    return f"is decimal({size[0]},{size[1]}) in the topic, {column.type} in the contract: a field keeps its decimal places"


def _accepted(column: Column, personal: Personal | None) -> set[str]:
    if personal and personal.treatment in ("hash", "mask"):
        return {"text"}
    if personal and personal.treatment == "generalise":
        return _GENERALISED[personal.to or ""]
    if decimal_type(column.type):
        return {"decimal", "integer"} if column.measure else {"decimal", "integer", "double"}
    return _FITTING[column.type]


def type_of(node: exp.Expr, of_column: Callable[[exp.Column], str | None]) -> str | None:
    """Return the type of an expression by Spark's rules for arithmetic and aggregates."""

    def of(child: exp.Expr) -> str | None:
        return type_of(child, of_column)

    type_ = None
    match node:
        case exp.Column():
            type_ = of_column(node)
        case exp.Cast():
            type_ = _OF_CAST.get(node.to.this.name)
        case exp.Literal():
            type_ = "text" if node.is_string else _number(node.this)
        case exp.Count() | exp.CountIf():
            type_ = "integer"
        case exp.Paren() | exp.Neg() | exp.Sum() | exp.Min() | exp.Max() | exp.Filter():
            type_ = of(node.this)
        case exp.Avg():
            type_ = {"decimal": "decimal", "integer": "double", "double": "double"}.get(of(node.this) or "")
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            type_ = _arithmetic(of(node.left), of(node.right), divides=isinstance(node, exp.Div))
    return type_


def inexact(tree: exp.Expr, of_column: Callable[[exp.Column], str | None]) -> list[str]:
    """Return messages about what the job would refuse: aggregates that sum doubles, and casts of doubles to decimals."""
    wrong = []
    for node in tree.find_all(exp.Sum, exp.Avg, exp.Cast):
        if type_of(node.this, of_column) == "double":
            if not isinstance(node, exp.Cast):
                wrong.append(SUMS_DOUBLES)
            elif type_of(node, of_column) == "decimal" and not node.args.get("safe"):  # "safe" is set for try_cast
                wrong.append(CASTS_DOUBLE)
    return list(dict.fromkeys(wrong))


def _number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    return "decimal" if "." in text else "integer"


def _arithmetic(left: str | None, right: str | None, *, divides: bool) -> str | None:
    types = {left, right}
    if not types <= {"integer", "decimal", "double"}:
        return None
    if "double" in types or (divides and types == {"integer"}):
        return "double"
    return "decimal" if "decimal" in types else "integer"
