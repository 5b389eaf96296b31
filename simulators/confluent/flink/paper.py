"""The engine without a worker. It checks tables and columns; no rows flow, and each column of a new table is text."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from simulators.confluent.flink.sql import SqlError
from simulators.confluent.flink.types import avro_schema
from simulators.confluent.model import Database, ParsedStatement
from simulators.confluent.schemas import Schema

#: The time of a record, under a name that sqlglot can parse.
_ROWTIME: Final = "row_time_"
#: A window function of Flink, and a query with the columns that it adds.
_WINDOW: Final = re.compile(
    r"TABLE\s*\(\s*(?:TUMBLE|HOP|CUMULATE)\s*\(\s*TABLE\s+(`?[\w.-]+`?)[^)]*\)[^)]*\)\s*\)", re.IGNORECASE
)
_FLAT: Final = r"(SELECT *, `$rowtime` AS window_start, `$rowtime` AS window_end, `$rowtime` AS window_time FROM \1)"
_TEXT: Final = {"type": "VARCHAR", "nullable": True}


@attrs.frozen
class PaperPlan:
    columns: list[dict[str, Any]]

    def schema(self, table: str) -> Schema:
        return Schema.avro(avro_schema(table, self.columns))


@attrs.define
class PaperRun:
    columns: list[dict[str, Any]]
    rows: list[list[str | None]] = attrs.Factory(list)

    def advance(self) -> None:
        """Do nothing: there are no rows."""


class PaperEngine:
    def plan(self, parsed: ParsedStatement, database: Database) -> PaperPlan:
        tables: dict[str, object] = {name: _columns(database.schema(name)) for name in database.readable}
        try:
            query: Any = sqlglot.parse_one(_WINDOW.sub(_FLAT, parsed.query).replace("$rowtime", _ROWTIME), dialect="spark")
            known = tables.keys() | {each.alias for each in query.find_all(exp.CTE)}
            for each in query.find_all(exp.Table):
                if each.name not in known:
                    raise SqlError(f"SQL validation failed. Object '{each.name}' not found")
            qualified: Any = qualify(query, schema=tables, dialect="spark", validate_qualify_columns=True)
        except SqlglotError as error:
            raise SqlError(f"SQL validation failed. {str(error).splitlines()[0]}") from None
        names = [each.alias_or_name.replace(_ROWTIME, "$rowtime") for each in qualified.selects]
        return PaperPlan([{"name": name, "type": _TEXT} for name in names])

    def start(self, parsed: ParsedStatement, database: Database, *, bounded: bool) -> PaperRun:
        return PaperRun(self.plan(parsed, database).columns)


def _columns(schema: dict[str, Any] | None) -> dict[str, object]:
    """Return the columns of a topic: two raw ones without a schema, and always the time of its records."""
    names = [each["name"] for each in schema["fields"]] if schema else ["key", "val"]
    return dict.fromkeys([_ROWTIME, *names], "string")
