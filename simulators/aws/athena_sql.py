"""Translates Athena's SQL to DuckDB's."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

NOT_SIMULATED: Final = "NOT_SUPPORTED: not simulated"
_UNKNOWN_COLUMN: Final = re.compile(
    r"Column '(?:[^']*\.)?\"?([^'\"]+)\"?' could not be resolved|Unknown column: \"?([^\".]+)"
)


class Failed(Exception):
    """The query failed, with Athena's reason."""


def describe_position(table: exp.Table) -> str:
    """Return the line and column at which the table's name begins."""
    first_part = table.parts[0].meta
    length = first_part.get("end", 0) - first_part.get("start", 0)
    return f"line {first_part.get('line', 1)}:{first_part.get('col', 1) - length}: "


def translate(tree: exp.Query, schemas: dict[str, dict[str, str]]) -> str:
    """Return DuckDB's SQL.

    Columns without a name get one by position (_col0). Raises Failed for an unknown column.
    """
    for select in tree.find_all(exp.Select):
        for number, projection in enumerate(select.expressions):
            if not isinstance(projection, exp.Alias | exp.Column | exp.Dot) and not projection.is_star:
                projection.replace(exp.alias_(projection.copy(), f"_col{number}", quoted=True))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    schema = MappingSchema(dict(schemas), dialect="duckdb")
    try:
        resolved = annotate_types(
            qualify(tree, dialect="trino", schema=schema), schema=schema, dialect="trino"
        )
    except SqlglotError as error:
        message = str(error)
    else:
        for kind in resolved.find_all(exp.DataType):  # DuckDB has no TIMESTAMP(6)
            if kind.is_type(*exp.DataType.TEMPORAL_TYPES):
                kind.set("expressions", [])
        return str(resolved.sql(dialect="duckdb"))
    unknown = _UNKNOWN_COLUMN.search(message)
    if unknown is None:
        raise Failed(f"SYNTAX_ERROR: {message.splitlines()[0]}")
    name = unknown[1] or unknown[2]
    position = re.search(r"Line: (\d+), Col: (\d+)", message)
    line, end = (int(position[1]), int(position[2])) if position else (1, 1)
    raise Failed(
        f"COLUMN_NOT_FOUND: line {line}:{max(1, end - len(name) + 1)}: Column '{name}' cannot be resolved"
    )
