"""Runs queries on real Flink, in a worker process that is started before the first query and keeps
running.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import fastavro

from simulators.confluent.flink.offsets import read_offsets
from simulators.confluent.flink.sql import SqlError
from simulators.confluent.flink.types import UnknownType, build_avro_schema, from_json, list_columns, to_json
from simulators.confluent.kafka_log import KafkaTopic, frame_value
from simulators.confluent.model import Database, Form, ParsedStatement
from simulators.confluent.record_reader import BadRecord, Reader
from simulators.confluent.schemas import Schema

ROOT: Final = Path(__file__).resolve().parents[3]
FLINK_PYTHON: Final = ROOT / ".venv-flink" / "bin" / "python"
_LOG_LINES: Final = 5
#: The parts of an Avro type that decide which values it has.
_OF_TYPES: Final = ("type", "logicalType", "precision", "scale", "items", "values")
#: A worker runs for minutes and spends most of its CPU time on starting, so the optimizing compiler isn't
#: worth its cost.
_JAVA: Final = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
#: The operators that process each row by itself.
_STATELESS: Final = frozenset(
    {
        "Sink",
        "Calc",
        "TableSourceScan",
        "Correlate",
        "Union",
        "WatermarkAssigner",
        "Values",
        "DropUpdateBefore",
    }
)
_UNITS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}
_WINDOW: Final = re.compile(
    r"\b(?:TUMBLE|HOP|CUMULATE)\s*\(.*?INTERVAL\s+'(\d+)'\s+(SECOND|MINUTE|HOUR|DAY)S?",
    re.IGNORECASE | re.DOTALL,
)


class FlinkWorker:
    """The worker process, and a folder for its input and output. It handles one request at a time."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="lakeferry-flink-"))

    def warm(self) -> None:
        """Start the process and plan a query, so that the first statement needn't wait.

        The first statement gets any error.
        """
        with suppress(RuntimeError, OSError, ValueError):
            self.ask({"catalog": "warm", "database": "up", "tables": {}, "query": "SELECT 1 AS `one`"})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer. Raises SqlError, with Flink's own message, for a query that
        Flink refuses.

        Raises RuntimeError if the process has ended.
        """
        with self._turn:
            process = self._start_process()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if not line:
            tail = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-_LOG_LINES:]
            raise RuntimeError("\n".join(["the Flink worker ended. Its last lines:", *tail]))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SqlError(answer["error"])
        return answer

    def _start_process(self) -> subprocess.Popen[str]:
        if self._process is None:
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "LANG": "C.UTF-8",
                "HOME": str(self.folder),
            } | _JAVA
            with (self.folder / "log").open("w") as log:
                self._process = subprocess.Popen(
                    [str(FLINK_PYTHON), "-m", "simulators.confluent.flink.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=ROOT,
                    env=environment,
                    text=True,
                )
        return self._process

    def close(self) -> None:
        process = self._process
        self._process = None
        if process is not None and process.stdin is not None and process.stdout is not None:
            process.stdin.close()
            process.wait()
            process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@attrs.frozen
class FlinkPlan:
    """`operators` are those of Flink's optimized physical plan."""

    columns: list[dict[str, Any]]
    operators: list[str]
    sources: dict[str, KafkaTopic]

    @property
    def is_stateless(self) -> bool:
        return set(self.operators) <= _STATELESS

    def build_schema(self, table: str) -> Schema:
        try:
            return Schema.from_avro(build_avro_schema(table, self.columns))
        except UnknownType as error:
            raise SqlError(f"{error} can't be in an Avro schema") from None


class FlinkEngine:
    """The engine that runs queries on a Flink worker."""

    def __init__(self, worker: FlinkWorker) -> None:
        self.worker = worker

    def plan(self, parsed: ParsedStatement, database: Database) -> FlinkPlan:
        sources = self._list_sources(parsed, database)
        answer = self.worker.ask(self.request(parsed, database, sources))
        return FlinkPlan(answer["columns"], answer["operators"], sources)

    def start(
        self,
        parsed: ParsedStatement,
        database: Database,
        *,
        bounded: bool,
        start: Mapping[str, Mapping[int, int]],
    ) -> FlinkRun:
        plan = self.plan(parsed, database)
        if parsed.form is not Form.SELECT:
            require_sink_columns(parsed, database, plan.columns)
        run = FlinkRun(self, parsed, database, plan.sources, plan.columns, bounded, plan.is_stateless, start)
        run.positions |= {name: dict(of) for name, of in start.items()}
        return run

    def request(
        self, parsed: ParsedStatement, database: Database, sources: dict[str, KafkaTopic]
    ) -> dict[str, Any]:
        tables: dict[str, Any] = {}
        for name in sources:
            schema = database.find_schema(name)
            try:
                columns = list_columns(schema) if schema else [("key", "BYTES"), ("val", "BYTES")]
            except UnknownType:
                continue
            folder = self.worker.folder / database.cluster.id / name
            folder.mkdir(parents=True, exist_ok=True)
            tables[name] = {"columns": columns, "folder": str(folder)}
        return {
            "catalog": database.catalog,
            "database": database.cluster.name,
            "tables": tables,
            "query": parsed.query,
        }

    def _list_sources(self, parsed: ParsedStatement, database: Database) -> dict[str, KafkaTopic]:
        """Return the readable topics whose names occur in the query."""
        return {
            name: topic
            for name, topic in database.readable.items()
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", parsed.query)
        }


def require_sink_columns(parsed: ParsedStatement, database: Database, columns: list[dict[str, Any]]) -> None:
    """Raise SqlError if the query's columns don't fit the table that the statement fills.

    Columns of an INSERT that has a list are matched by the names in it, others by position.
    """
    table = parsed.table[-1]
    sink = database.find_schema(table)
    problem = "Column types of query result and sink do not match"
    fields = {field["name"]: field["type"] for field in sink["fields"]} if sink else {}
    for name in parsed.columns:
        if name not in fields:
            raise SqlError(f"Unknown target column '{name}' of table '{table}'")
    names = parsed.columns or tuple(fields)
    if len(names) != len(columns):
        raise SqlError(f"{problem}: {len(columns)} columns for table '{table}'")
    try:
        found = build_avro_schema(table, columns)["fields"]
    except UnknownType as error:
        raise SqlError(f"{error} can't be in an Avro schema") from None
    for name, field in zip(names, found, strict=True):
        if _strip_names(fields[name]) != _strip_names(field["type"]):
            raise SqlError(f"{problem}: column '{name}' of table '{table}' has another type")


def _strip_names(avro: Any) -> Any:
    """Return an Avro type without null and without the names of records, which depend on the statement."""
    if isinstance(avro, list):
        branches = [_strip_names(branch) for branch in avro if branch != "null"]
        return branches[0] if len(branches) == 1 else branches
    if isinstance(avro, dict) and avro.get("type") == "record":
        return [(field["name"], _strip_names(field["type"])) for field in avro["fields"]]
    if isinstance(avro, dict):
        return {name: _strip_names(value) for name, value in avro.items() if name in _OF_TYPES}
    return avro


@attrs.define
class FlinkRun:
    """Reruns the query over all records, and emits only the new rows, which an unbounded query would
    append.

    `start` has the offsets before which records are not read.
    """

    engine: FlinkEngine
    parsed: ParsedStatement
    database: Database
    sources: dict[str, KafkaTopic]
    columns: list[dict[str, Any]]
    bounded: bool = False
    is_stateless: bool = False
    start: Mapping[str, Mapping[int, int]] = attrs.Factory(dict)
    positions: dict[str, dict[int, int]] = attrs.Factory(dict)
    rows: list[list[str | None]] = attrs.Factory(list)
    _seen: dict[str, int] = attrs.Factory(dict)
    _emitted: Counter[str] = attrs.Factory(Counter)

    def advance(self) -> None:
        counts = {name: len(topic.messages) for name, topic in self.sources.items()}
        if counts == self._seen or not any(counts.values()):
            return
        self._seen = counts
        request = self.engine.request(self.parsed, self.database, self.sources)
        for name, table in request["tables"].items():
            self._write(name, Path(table["folder"]) / "rows.json")
        output_folder = Path(tempfile.mkdtemp(dir=self.engine.worker.folder))
        try:
            self.engine.worker.ask(request | {"into": str(output_folder)})
            lines: list[str] = []
            for file in sorted(output_folder.rglob("*")):
                if file.is_file():
                    lines += file.read_text().splitlines()
        finally:
            shutil.rmtree(output_folder)
        self._emit(lines)

    def offsets(self) -> dict[str, dict[int, int]]:
        return read_offsets(self.sources, self.positions)

    def _write(self, name: str, file: Path) -> None:
        """Write the topic's records in the order of their timestamps, each with its timestamp as
        `$rowtime`.
        """
        schema = self.database.find_schema(name)
        if schema is None:
            raise SqlError(f"Table '{name}' has no schema")
        begins = self.start.get(name, {})
        unread = [
            message
            for message in self.sources[name].messages
            if message.offset >= begins.get(message.partition, 0)
        ]
        messages = sorted(unread, key=lambda message: (message.timestamp, message.partition, message.offset))
        position = self.positions.setdefault(name, dict(begins))
        for message in messages:
            position[message.partition] = max(position.get(message.partition, 0), message.offset + 1)
        end = self._compute_end(messages[-1].timestamp) if messages else 0
        reader = Reader(self.database.registry.schemas, schema, upserts=False)
        with file.open("w") as output:
            for record in reader.read(name, (message for message in messages if message.timestamp < end)):
                if isinstance(record, BadRecord):
                    raise SqlError(f"Failed to deserialize a record of '{name}': {record.problem}")
                time = datetime.fromtimestamp(record.timestamp / 1000, UTC)
                output.write(to_json({**(record.value or {}), "$rowtime": time}) + "\n")

    def _compute_end(self, newest: int) -> int:
        """Return the timestamp in milliseconds before which records are read.

        An unbounded query reads no record of a window that is still open, because the window emits no rows
        yet.
        """
        if self.bounded or not (window := _WINDOW.search(self.parsed.query)):
            return newest + 1
        length = int(window[1]) * _UNITS[window[2].upper()] * 1000
        return newest // length * length

    def _emit(self, lines: list[str]) -> None:
        new_lines = Counter(lines) - self._emitted
        self._emitted += new_lines
        rows = []
        for line in lines:
            if new_lines[line] > 0:
                new_lines[line] -= 1
                rows.append(json.loads(line))
        if self.parsed.form is Form.SELECT:
            names = [column["name"] for column in self.columns]
            for row in rows:
                values = [row.get(name) for name in names]
                self.rows.append([None if value is None else str(value) for value in values])
        elif rows:
            self._append(rows)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        """Append the rows to the statement's table. Columns are matched as in INSERT."""
        table = self.parsed.table[-1]
        schemas = self.database.registry.schemas
        topic = self.database.cluster.topics.get(table)
        schema = self.database.find_schema(table)
        version = schemas.find_version(f"{table}-value", "latest")
        if topic is None or topic.deleting or schema is None:
            raise SqlError(f"Table '{table}' is gone")
        parsed = fastavro.parse_schema(schema)
        now = int(self.database.clock.now() * 1000)
        names = self.parsed.columns or [field["name"] for field in schema["fields"]]
        types = {field["name"]: field["type"] for field in schema["fields"]}
        for row in rows:
            values = [row.get(column["name"]) for column in self.columns]
            record = {name: from_json(value, types[name]) for name, value in zip(names, values, strict=True)}
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, parsed, record)
            key = None
            if self.parsed.bucket_keys:
                key = "|".join(str(record[name]) for name in self.parsed.bucket_keys).encode()
            topic.append(now, key, frame_value(version.id, encoded.getvalue()))
