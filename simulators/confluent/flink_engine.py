"""What runs queries: real Flink, or where no worker is attached a planner that only knows names and types."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from simulators.confluent.flink_sql import Parsed, SqlError
from simulators.confluent.schemas import Schema

if TYPE_CHECKING:
    from simulators.confluent.flink_tables import Database


#: The time of a record, under a name that sqlglot takes for one.
_ROWTIME: Final = "row_time_"
#: A window of Flink's, and a table with the columns that it gives.
_WINDOW: Final = re.compile(
    r"TABLE\s*\(\s*(?:TUMBLE|HOP|CUMULATE)\s*\(\s*TABLE\s+(`?[\w.-]+`?)[^)]*\)[^)]*\)\s*\)", re.IGNORECASE
)
_FLAT: Final = r"(SELECT *, `$rowtime` AS window_start, `$rowtime` AS window_end, `$rowtime` AS window_time FROM \1)"


@attrs.frozen
class Column:
    """`avro` is its type in the sink's schema."""

    name: str
    avro: Any


@attrs.frozen
class Plan:
    columns: list[Column]

    def schema(self, table: str) -> Schema:
        fields = [{"name": each.name, "type": each.avro} for each in self.columns]
        name = f"{table.replace('-', '_').replace('.', '_')}_value"
        return Schema(
            "AVRO",
            json.dumps({"type": "record", "name": name, "namespace": "org.apache.flink.avro.generated.record", "fields": fields}),
        )


class Run(Protocol):
    """A query that goes on. `rows` are those of a SELECT; those of other statements go into their topic."""

    rows: list[list[str | None]]
    columns: list[dict[str, Any]]

    def advance(self) -> None:
        """Take what came into the source topics since. Raises SqlError."""


class Planned(Protocol):
    def schema(self, table: str) -> Schema: ...


class Engine(Protocol):
    def plan(self, parsed: Parsed, where: Database) -> Planned:
        """Names and types of a query's columns. Raises SqlError."""

    def start(self, parsed: Parsed, where: Database, *, bounded: bool) -> Run:
        """`bounded`: over what there is now, and no further. Raises SqlError."""


@attrs.define
class PaperRun:
    """Runs, and makes no rows."""

    columns: list[dict[str, Any]]
    rows: list[list[str | None]] = attrs.Factory(list)

    def advance(self) -> None:
        """Nothing flows."""


class PaperEngine:
    """Checks that tables and columns are there. No rows flow: that takes a worker."""

    def plan(self, parsed: Parsed, where: Database) -> Plan:
        tables: dict[str, object] = {name: _columns(where.schema(name)) for name in where.readable()}
        try:
            query: Any = sqlglot.parse_one(_WINDOW.sub(_FLAT, parsed.query).replace("$rowtime", _ROWTIME), dialect="spark")
            for each in query.find_all(exp.Table):
                _require_known(each.name, tables, query)
            typed: Any = annotate_types(
                qualify(query, schema=tables, dialect="spark", validate_qualify_columns=True), schema=tables
            )
        except SqlglotError as error:
            raise SqlError(f"SQL validation failed. {str(error).splitlines()[0]}") from None
        return Plan([Column(each.alias_or_name.replace(_ROWTIME, "$rowtime"), _avro(each.type)) for each in typed.selects])

    def start(self, parsed: Parsed, where: Database, *, bounded: bool) -> Run:
        plan = self.plan(parsed, where)
        return PaperRun([{"name": each.name, "type": {"type": "VARCHAR", "nullable": True}} for each in plan.columns])


def _require_known(name: str, tables: dict[str, object], query: Any) -> None:
    if name not in tables and name not in {each.alias for each in query.find_all(exp.CTE)}:
        raise SqlError(f"SQL validation failed. Object '{name}' not found")


def _columns(schema: dict[str, Any] | None) -> dict[str, object]:
    """A topic without a schema has two raw columns, and every topic the time of its records."""
    fields: dict[str, object] = (
        {each["name"]: _sql(each["type"]) for each in schema["fields"]} if schema else {"key": "binary", "val": "binary"}
    )
    return {_ROWTIME: "timestamp", **fields}


def _sql(avro: Any) -> str:
    if isinstance(avro, list):
        return _sql(next(each for each in avro if each != "null"))
    name = avro.get("logicalType") or avro["type"] if isinstance(avro, dict) else avro
    known = {"long": "bigint", "bytes": "binary", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp"}
    same = ("int", "string", "double", "float", "boolean", "date")
    return known.get(name) or (str(name) if name in same else "string")


def _avro(kind: exp.DataType | None) -> Any:
    words = {
        "INT": "int",
        "BIGINT": "long",
        "DOUBLE": "double",
        "FLOAT": "float",
        "BOOLEAN": "boolean",
        "BINARY": "bytes",
        "DATE": {"type": "int", "logicalType": "date"},
        "TIMESTAMP": {"type": "long", "logicalType": "timestamp-millis"},
    }
    found = words.get(kind.this.value, "string") if kind else "string"
    return ["null", found]
