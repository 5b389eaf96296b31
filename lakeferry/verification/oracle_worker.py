"""The process that `lakeferry.verification.oracle` starts: it reads requests from standard input, and writes
what files should have to standard output.
"""

from __future__ import annotations

import base64
import hmac
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import attrs
import fastavro
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from config.exports.contract import Contract
from config.exports.table_columns import list_spark_columns
from config.exports.topic_schema import from_avro
from config.exports.windows import Window, parse_label
from glue_jobs.platform import CATALOG
from glue_jobs.table_fields import metadata_columns
from lakeferry.local import spark as local_spark
from lakeferry.local.judge import CONVERTER
from lakeferry.verification.oracle_sql import EVENT, PERSONS, Query, quote, write_raw

#: Characters of Spark's message that a problem quotes.
_LONGEST: Final = 300
#: In the message of Iceberg's exception for a snapshot that the table's metadata doesn't have.
_NO_SNAPSHOT: Final = "Cannot find snapshot"
_OCCURRENCE: Final = "oracle-occurrence"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def main() -> None:
    answers_to = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.load(sys.stdin)
    java_home = local_spark.prepare(write_archive=False)
    try:
        spark = SparkSession.builder.appName("lakeferry-rehearsal").getOrCreate()
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        answers = [_answer(spark, topic) for topic in request]
    finally:
        local_spark.end(java_home)
    with answers_to:
        json.dump(answers, answers_to)


def _answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    """Choose events that the contracts can publish, if that is asked for, and compute the files of all."""
    contracts = [CONVERTER.structure(document, Contract) for document in request["contracts"]]
    windows = [
        parse_label(label, contract.window)
        for label, contract in zip(request["windows"], contracts, strict=True)
    ]
    spark.udf.register("pseudonym", _build_pseudonym(base64.b64decode(request["key"])))
    events = request["events"]
    is_real = request["snapshot"] is not None
    files = [
        File(spark, contract, window, is_real) for contract, window in zip(contracts, windows, strict=True)
    ]
    chosen: list[int] | None = None
    if request["snapshot"]:
        try:
            _create_view_of_table(spark, request["snapshot"])
        except Exception as error:  # Spark, Iceberg and py4j raise many classes
            return {"chosen": None, "files": [], "problem": _name_error(error)}
        return {"chosen": None, "files": [file.describe() for file in files], "problem": ""}
    if request["choose"]:
        _create_view(spark, request, events)
        try:
            chosen = _choose(spark, request, files)
        except PySparkException as error:
            return {"chosen": [], "files": [], "problem": _shorten(error)}
        events = [events[index] for index in chosen]
    _create_view(spark, request, events)
    return {"chosen": chosen, "files": [file.describe() for file in files], "problem": ""}


def _choose(spark: SparkSession, request: dict[str, Any], files: Sequence[File]) -> list[int]:
    """Return the indexes of the events of which each contract can publish every line, and that give no two
    rows with the same key. The view `events` has all events.
    """
    events = request["events"]
    refused: set[int] = set()
    for file in files:
        refused |= file.find_refused()
    chosen = [index for index in range(len(events)) if index not in refused]
    # Without a refused event, deduplication may keep another one, whose rows may repeat a key in turn.
    while repeated := _find_repeated(spark, request, files, chosen):
        chosen = [index for index in chosen if index not in repeated]
    return chosen


def _find_repeated(
    spark: SparkSession, request: dict[str, Any], files: Sequence[File], chosen: list[int]
) -> set[int]:
    """Return the indexes of the events with a row whose key a row before it has too."""
    keyed = [file for file in files if file.contract.unique and file.contract.aggregate is None]
    if not keyed:
        return set()
    _create_view(spark, request, [request["events"][index] for index in chosen])
    positions: set[int] = set()
    for file in keyed:
        positions |= file.find_repeated()
    return {chosen[position] for position in positions}


def _create_view_of_table(spark: SparkSession, snapshot: dict[str, Any]) -> None:
    """Make a snapshot of a table the view `events`, with Kafka's metadata as contracts name them."""
    table = f"{CATALOG}.`{snapshot['database']}`.`{snapshot['table']}`"
    frame = spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot['snapshot_id']}")
    names = {name: name for name in frame.columns if not name.startswith("$")}
    for column, name in metadata_columns(frame.columns).items():
        names.pop(column, None)
        if name not in frame.columns:
            names[column] = name
    columns = [frame[f"`{column}`"].alias(name) for column, name in names.items()]
    frame.select(*columns).createOrReplaceTempView("events")


def _create_view(spark: SparkSession, request: dict[str, Any], events: Sequence[dict[str, Any]]) -> None:
    """Make the events the view `events`, with the columns that a contract can name."""
    schema = json.loads(request["schema"])
    columns = list_spark_columns(from_avro(schema, request["topic"]))
    parsed = fastavro.parse_schema(schema)
    columns["fields"].append({"name": EVENT, "type": "integer", "nullable": False, "metadata": {}})
    rows = []
    for index, event in enumerate(events):
        encoded = io.BytesIO(base64.b64decode(event["avro"]))
        value: Any = fastavro.schemaless_reader(encoded, parsed, None)
        key = base64.b64decode(event["key"]) if event.get("key") else None
        known = {
            "kafka_topic": request["topic"],
            "kafka_partition": event["partition"],
            "kafka_offset": event["offset"],
            "kafka_timestamp": event["timestamp"],
            "kafka_raw_key": key,
            "key": key,
            EVENT: index,
        }
        rows.append(
            [convert((known | value).get(column["name"]), column["type"]) for column in columns["fields"]]
        )
    frame = spark.createDataFrame(rows, StructType.fromJson(columns), verifySchema=False)
    frame.createOrReplaceTempView("events")


def convert(value: Any, type_: Any) -> Any:
    """Return a value of fastavro as PySpark takes it. `type_` is the JSON form of Spark's type."""
    if value is None:
        return None
    if isinstance(type_, str):
        return _convert_scalar(value, type_)
    match type_["type"]:
        case "struct":
            return [convert(value.get(field["name"]), field["type"]) for field in type_["fields"]]
        case "array":
            return [convert(item, type_["elementType"]) for item in value]
    entries = (
        value.items() if isinstance(value, dict) else ((entry["key"], entry["value"]) for entry in value)
    )
    return {convert(key, type_["keyType"]): convert(item, type_["valueType"]) for key, item in entries}


def _convert_scalar(value: Any, type_: str) -> Any:
    if type_ == "string":
        return str(value)
    if type_ == "timestamp" and isinstance(value, int):
        return _EPOCH + timedelta(milliseconds=value)
    return value


@attrs.frozen
class File:
    """The file of a contract's window, over the view `events`. What is said of real events has no value of
    theirs.
    """

    spark: SparkSession
    contract: Contract
    window: Window
    is_real: bool = False

    def find_refused(self) -> set[int]:
        """Return the numbers of the events with a line that the contract refuses: an empty value, one that
        is not allowed, or one for which a check that blocks is false.
        """
        query = self._query()
        columns = [column for column in self.contract.columns if column.measure is None]
        conditions = []
        for column in columns:
            if not column.nullable:
                conditions.append(f"`{column.name}` IS NOT NULL")
            if column.allowed:
                listed = ", ".join(_write_text(text) for text in column.allowed)
                conditions.append(f"coalesce(CAST(`{column.name}` AS STRING) IN ({listed}), true)")
        if self.contract.aggregate is None:
            for check in self.contract.check:
                if check.each_row and check.severity == "block":
                    conditions.append(f"coalesce(({check.each_row}), true)")
        if not conditions:
            return set()
        values = (
            f"SELECT `{EVENT}`, {query.write_columns(columns)} FROM ({query.select_lines(all_events=True)})"
        )
        refused = f"SELECT DISTINCT `{EVENT}` FROM ({values}) WHERE NOT ({' AND '.join(conditions)})"
        return {row[0] for row in self.spark.sql(refused).collect()}

    def find_repeated(self) -> set[int]:
        """Return the numbers of the events with a row whose key a row before it has too."""
        query = self._query()
        keys = [column for column in self.contract.columns if column.name in self.contract.unique]
        names = ", ".join(f"`{column.name}`" for column in keys)
        values = f"SELECT `{EVENT}`, {query.write_columns(keys)} FROM ({query.select_lines()})"
        number = f"row_number() OVER (PARTITION BY {names} ORDER BY `{EVENT}`)"
        numbered = f"SELECT `{EVENT}`, {number} AS `{_OCCURRENCE}` FROM ({values})"
        repeated = f"SELECT DISTINCT `{EVENT}` FROM ({numbered}) WHERE `{_OCCURRENCE}` > 1"
        return {row[0] for row in self.spark.sql(repeated).collect()}

    def describe(self) -> dict[str, Any]:
        """Return the rows of the file as texts, and why it would not be published."""
        try:
            query = self._query()
            rows = self.spark.sql(query.select_rows())
            kept = self._suppress([row.asDict() for row in rows.collect()])
            names = [column.name for column in self.contract.columns]
            cells = [[_write_cell(row[name]) for name in names] for row in kept]
            return {"rows": cells, "problems": list(self._list_problems(rows)) if kept else []}
        except PySparkException as error:
            problem = _name_error(error) if self.is_real else _shorten(error)
            return {"rows": [], "problems": [problem]}

    def _query(self) -> Query:
        """Return the query, with the types that decide how it reads a value."""
        plain = Query(self.contract, self.window, {quote(self.contract.source.event_time): ""})
        lines = self.spark.sql(plain.select_lines(all_events=True))
        raw = {write_raw(column) for column in self.contract.columns if column.measure is None}
        paths = [quote(self.contract.source.event_time), *raw]
        types = {text: lines.selectExpr(text).schema[0].dataType.simpleString() for text in paths}
        return Query(self.contract, self.window, types)

    def _suppress(self, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the groups that are large enough. If one group is not, the next smallest is left out too."""
        rule = self.contract.aggregate
        if rule is None or rule.person_id is None:
            return groups
        small = [group for group in groups if group[PERSONS] < rule.min_group_size]
        large = [group for group in groups if group[PERSONS] >= rule.min_group_size]
        if len(small) == 1 and large:
            keys = [column.name for column in self.contract.columns if column.measure is None]
            large.remove(min(large, key=lambda group: _order_group(group, keys)))
        return large

    def _list_problems(self, rows: DataFrame) -> Iterator[str]:
        """Yield why the rows block the file. A group that is left out counts too, which is rather strict.

        A file without earlier windows passes the checks that compare with them.
        """
        for column in self.contract.columns:
            if not column.nullable and rows.filter(f"`{column.name}` IS NULL").limit(1).count():
                yield f"column {column.name} is empty in a row"
        if key := ", ".join(f"`{name}`" for name in self.contract.unique):
            occurrences = rows.selectExpr(f"count(*) OVER (PARTITION BY {key}) AS `{_OCCURRENCE}`")
            if occurrences.filter(f"`{_OCCURRENCE}` > 1").limit(1).count():
                yield f"two rows have the same {', '.join(self.contract.unique)}"
        for check in self.contract.check:
            if check.severity != "block":
                continue
            if check.each_row and self._fails(rows, check.each_row, check.at_most_percent):
                yield f"check {check.id} is false for {'too many rows' if check.at_most_percent else 'a row'}"
            if check.overall and not self._holds(rows, check.overall):
                yield f"check {check.id} is false"

    def _fails(self, rows: DataFrame, condition: str, at_most_percent: float | None) -> bool:
        counts = rows.selectExpr(f"count_if(NOT coalesce(({condition}), true))", "count(*)")
        ((failed, total),) = counts.collect()
        return bool(100 * failed > Decimal(str(at_most_percent or 0)) * total)

    def _holds(self, rows: DataFrame, condition: str) -> bool:
        totals = ["count(*) AS `rows`"]
        for column in self.contract.columns:
            for total in column.totals:
                if total != "sum" or column.per is None:
                    totals.append(f"{total}(`{column.name}`) AS `{total}_{column.name}`")
        (row,) = rows.selectExpr(*totals).selectExpr(f"coalesce(({condition}), true)").collect()
        return bool(row[0])


def _order_group(group: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    """Return what groups are compared by: the number of people, then the values, null first."""
    values = [(group[name] is not None, "" if group[name] is None else group[name]) for name in keys]
    return (group[PERSONS], *values)


def _write_cell(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):  # in UTC, which is the zone of this process
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}Z"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _write_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _name_error(error: Exception) -> str:
    """Return what is wrong, without Spark's message, which may have data."""
    if str(error).find(_NO_SNAPSHOT) >= 0:
        return "the table has no such snapshot: it has expired, or the table was created again"
    condition = error.getErrorClass() if isinstance(error, PySparkException) else None
    return f"Spark failed: {condition or type(error).__name__}"


def _shorten(error: PySparkException) -> str:
    return " ".join(str(error).split())[:_LONGEST]


def _build_pseudonym(key: bytes) -> Callable[[str | None, str], str | None]:
    """Return a function that computes pseudonyms as docs/how-to/keep-personal-data-out.md defines them."""

    def compute(text: str | None, kind: str) -> str | None:
        spelled = unicodedata.normalize("NFKC", text or "").strip(" \t\n\r")
        if kind == "phone":
            digits = [str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in spelled]
            spelled = re.sub("[^0-9+]", "", "".join(digits))
            if not re.search("[0-9]", spelled):
                return None
        elif kind != "id":
            spelled = spelled.lower()
        if kind in ("name", "text"):
            spelled = re.sub("[ \t\n\r]+", " ", spelled)
        return hmac.new(key, f"v1|{kind}|{spelled}".encode(), "sha256").hexdigest() if spelled else None

    return compute


if __name__ == "__main__":
    main()
