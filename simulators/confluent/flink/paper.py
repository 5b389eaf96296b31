"""The engine without Flink.

It checks names of tables and columns, but runs nothing; each column of a new table is a string. A running
query counts as having read all records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from simulators.confluent.flink.offsets import find_ends, read_offsets
from simulators.confluent.flink.sql import SqlError
from simulators.confluent.flink.types import build_avro_schema
from simulators.confluent.kafka_log import KafkaTopic
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
#: What needs rows that were read before.
_STATEFUL: Final = (
    exp.AggFunc,
    exp.Distinct,
    exp.Group,
    exp.Join,
    exp.Limit,
    exp.MatchRecognize,
    exp.Order,
    exp.Window,
)


@attrs.frozen
class PaperPlan:
    columns: list[dict[str, Any]]
    is_stateless: bool
    sources: Mapping[str, KafkaTopic]

    def build_schema(self, table: str) -> Schema:
        return Schema.from_avro(build_avro_schema(table, self.columns))


@attrs.define
class PaperRun:
    columns: list[dict[str, Any]]
    is_stateless: bool
    sources: Mapping[str, KafkaTopic]
    positions: dict[str, dict[int, int]] = attrs.Factory(dict)
    rows: list[list[str | None]] = attrs.Factory(list)

    def advance(self) -> None:
        """Count all records as read. There are no rows."""
        self.positions |= {name: find_ends(topic) for name, topic in self.sources.items()}

    def offsets(self) -> dict[str, dict[int, int]]:
        return read_offsets(self.sources, self.positions)


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
        is_stateless = not _WINDOW.search(parsed.query) and not any(map(_needs_state, query.walk()))
        read = {table.name for table in query.find_all(exp.Table)}
        sources = {name: topic for name, topic in database.readable.items() if name in read}
        return PaperPlan([{"name": name, "type": _TEXT} for name in names], is_stateless, sources)

    def start(
        self,
        parsed: ParsedStatement,
        database: Database,
        *,
        bounded: bool,
        start: Mapping[str, Mapping[int, int]],
    ) -> PaperRun:
        plan = self.plan(parsed, database)
        fields = (database.find_schema(parsed.table[-1]) or {"fields": []})["fields"] if parsed.table else []
        names = [field["name"] for field in fields]
        for name in parsed.columns:
            if name not in names:
                raise SqlError(f"Unknown target column '{name}' of table '{parsed.table[-1]}'")
        if parsed.table and len(plan.columns) != len(parsed.columns or names):
            raise SqlError("Column types of query result and sink do not match: another number of columns")
        run = PaperRun(plan.columns, plan.is_stateless, plan.sources)
        run.positions |= {name: dict(of) for name, of in start.items()}
        return run


def _needs_state(node: exp.Expr) -> bool:
    is_unnest = isinstance(node, exp.Join) and isinstance(node.this, exp.Unnest)
    return isinstance(node, _STATEFUL) and not is_unnest


def _list_columns(schema: dict[str, Any] | None) -> dict[str, object]:
    """Return the columns of a topic, with `$rowtime`. Without a schema, they are `key` and `val`."""
    names = ["key", "val"]
    if schema:
        names = [field["name"] for field in schema["fields"]]
    return dict.fromkeys([_ROWTIME, *names], "string")
