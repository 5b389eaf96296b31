"""The engine without Flink.

It checks names of tables and columns, but runs nothing; each column of a new table is a string.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from simulators.confluent.flink.sql import SqlError
from simulators.confluent.flink.types import build_avro_schema
from simulators.confluent.model import Database, ParsedStatement
from simulators.confluent.schemas import Schema

#: The name of the column `$rowtime` in sqlglot, which can't parse `$rowtime`.
_ROWTIME: Final = "row_time_"
#: A windowing table-valued function of Flink, and the query that replaces it: it has the columns that the
#: function adds.
_WINDOW: Final = re.compile(
    r"TABLE\s*\(\s*(?:TUMBLE|HOP|CUMULATE)\s*\(\s*TABLE\s+(`?[\w.-]+`?)[^)]*\)[^)]*\)\s*\)", re.IGNORECASE
)
_FLAT: Final = (
    r"(SELECT *, `$rowtime` AS window_start, `$rowtime` AS window_end, `$rowtime` AS window_time FROM \1)"
)
_TEXT: Final = {"type": "VARCHAR", "nullable": True}


@attrs.frozen
class PaperPlan:
    columns: list[dict[str, Any]]

    def build_schema(self, table: str) -> Schema:
        return Schema.from_avro(build_avro_schema(table, self.columns))


@attrs.define
class PaperRun:
    columns: list[dict[str, Any]]
    rows: list[list[str | None]] = attrs.Factory(list)

    def advance(self) -> None:
        """Do nothing: there are no rows."""


class PaperEngine:
    def plan(self, parsed: ParsedStatement, database: Database) -> PaperPlan:
        tables: dict[str, object] = {
            name: _list_columns(database.find_schema(name)) for name in database.readable
        }
        try:
            text = _WINDOW.sub(_FLAT, parsed.query).replace("$rowtime", _ROWTIME)
            query: Any = sqlglot.parse_one(text, dialect="spark")
            known_tables = tables.keys() | {expression.alias for expression in query.find_all(exp.CTE)}
            for table in query.find_all(exp.Table):
                if table.name not in known_tables:
                    raise SqlError(f"SQL validation failed. Object '{table.name}' not found")
            qualified: Any = qualify(query, schema=tables, dialect="spark", validate_qualify_columns=True)
        except SqlglotError as error:
            raise SqlError(f"SQL validation failed. {str(error).splitlines()[0]}") from None
        names = [column.alias_or_name.replace(_ROWTIME, "$rowtime") for column in qualified.selects]
        return PaperPlan([{"name": name, "type": _TEXT} for name in names])

    def start(self, parsed: ParsedStatement, database: Database, *, bounded: bool) -> PaperRun:
        return PaperRun(self.plan(parsed, database).columns)


def _list_columns(schema: dict[str, Any] | None) -> dict[str, object]:
    """Return the columns of a topic, with `$rowtime`. Without a schema, they are `key` and `val`."""
    names = ["key", "val"]
    if schema:
        names = [field["name"] for field in schema["fields"]]
    return dict.fromkeys([_ROWTIME, *names], "string")
