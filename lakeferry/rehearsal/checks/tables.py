"""Check tables: events become rows of Iceberg tables; every reader sees the same rows and can only read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from config.deployments.confluent_model import Topic
from lakeferry.local import query
from lakeferry.local.query import TableflowKey
from lakeferry.local.target import ExportTarget
from lakeferry.rehearsal import existing
from lakeferry.rehearsal.checks import queries
from lakeferry.rehearsal.events import LEAD_SECONDS
from lakeferry.rehearsal.harness import (
    Check,
    CheckFailed,
    Harness,
    NotApplicable,
    Result,
    TopicRecords,
    require,
    wait_until,
)
from lakeferry.verification.oracle import Record
from lakeferry.verification.tables import find_glue_table, find_table_bucket
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake

#: Seconds of Confluent's clock: after a moment, until Flink has polled, until Tableflow has committed.
_AFTER: Final = 60.0
_FLINK_POLL: Final = 40.0
_TABLEFLOW_COMMIT: Final = 310.0
#: Seconds of Snowflake's clock until it has refreshed from its catalog.
REFRESH: Final = 120.0
#: Fields that a question is about, of each kind.
_FIELDS: Final = 3
_SAME: Final = "the same question gives the same rows everywhere"
_ONLY_READ: Final = "Snowflake's reader can only read"
_NEW: Final = "Snowflake shows new rows after its refresh"
Answer = list[int]


def events_flow(harness: Harness) -> list[Result]:
    """Let events flow until the window of each export is complete."""
    deployment = harness.deployment
    if deployment.source is None:
        for moment in harness.plan.moments:
            _let_flow(harness, moment)
        harness.simulators.advance_confluent(_TABLEFLOW_COMMIT)
    results: list[Result] = [_check_glue(harness, topic) for topic in deployment.tables_in_glue]
    for topic in deployment.topics:
        if topic.statement and not harness.read_topic(topic.name).records:
            why = f"statement {topic.statement} wrote nothing in the {LEAD_SECONDS} s that are rehearsed"
            results.append(NotApplicable(f"{topic.name} has records", why))
    return results


def _let_flow(harness: Harness, moment: float) -> None:
    """Produce the events of the window that ends at `moment`, and one in each partition after it.

    A run can't tell whether a partition without a later event is idle before the table is an hour old, and
    the commits of a rehearsal are of the same minutes.
    """
    simulators = harness.simulators
    lead = moment - LEAD_SECONDS - simulators.confluent_now()
    simulators.advance_confluent(max(0.0, lead))
    for events in harness.plan.events.values():
        existing.produce(simulators, events.topic, events.before.get(moment, []))
    simulators.advance_confluent(max(0.0, moment - simulators.confluent_now()) + _AFTER)
    for events in harness.plan.events.values():
        existing.produce(simulators, events.topic, events.after.get(moment, []))
    _repeat_in_each_partition(harness, written_by_statements=False)
    simulators.advance_confluent(_FLINK_POLL)
    _repeat_in_each_partition(harness, written_by_statements=True)


def _repeat_in_each_partition(harness: Harness, *, written_by_statements: bool) -> None:
    """Write a record of each topic of Datagen, or of a statement, to each partition of the topic."""
    for topic in harness.deployment.topics:
        is_wanted = topic.statement if written_by_statements else topic.datagen
        records = harness.read_topic(topic.name).records if is_wanted else []
        if records:
            partitions = harness.ctx.loaded.sources.partitions(topic)
            now = int(harness.simulators.confluent_now() * 1000)
            copies = [
                attrs.evolve(records[0], partition=partition, timestamp=now)
                for partition in range(partitions)
            ]
            existing.produce(harness.simulators, topic.name, copies)


def _check_glue(harness: Harness, topic: Topic) -> Check:
    database = harness.database
    entry = wait_until(
        lambda: find_glue_table(harness.ctx, database, topic.table),
        f"Glue shows no table {database}.{topic.table}",
    )
    location = str(entry["Parameters"]["metadata_location"])
    bucket = find_table_bucket(harness.ctx)
    require(location.startswith(f"s3://{bucket}/"), f"{topic.table} is at {location}, not in {bucket}")
    count = len(harness.read_topic(topic.name).records)
    if count == 0 and topic.statement:
        return Check(f"{topic.name} is an Iceberg table", f"{database}.{topic.table} in Glue, without rows")
    require(count, f"topic {topic.name} is empty")
    files = [key for key in harness.objects(bucket, "") if key.endswith(".parquet")]
    require(files, f"bucket {bucket} has no data file")
    result = (
        f"{count} records in the topic, {database}.{topic.table} in Glue, {len(files)} data files in {bucket}"
    )
    return Check(f"{topic.name} flows into an Iceberg table", result, {"topic": topic.name, "records": count})


@attrs.frozen
class Question:
    """What every reader is asked about a table: the number of rows that Kafka received before `moment`, sums
    of whole numbers, and how many different texts there are.
    """

    topic: Topic
    moment: datetime
    numbers: tuple[str, ...]
    texts: tuple[str, ...]

    def write(self, table: str, moment: str, *, upper: bool = False) -> str:
        """Return the SQL. `upper` is for names in upper case, as Snowflake has them."""
        scheme = self.topic.tableflow.metadata_columns if self.topic.tableflow else "DEFAULT"
        time = "$$timestamp" if scheme == "DEFAULT" else "cflt_metadata_timestamp"
        asked = ["count(*)"]
        asked += [f"sum({_quote(name, upper=upper)})" for name in self.numbers]
        asked += [f"count(DISTINCT {_quote(name, upper=upper)})" for name in self.texts]
        return f"SELECT {', '.join(asked)} FROM {table} WHERE {_quote(time, upper=upper)} < {moment}"  # noqa: S608

    def answer(self, records: TopicRecords) -> Answer:
        """Return what the records give."""
        end = self.moment.timestamp() * 1000
        values = [
            value
            for value, record in zip(records.values, records.records, strict=True)
            if record.timestamp < end
        ]
        sums = [sum(value[name] for value in values if value[name] is not None) for name in self.numbers]
        distinct = [len({value[name] for value in values} - {None}) for name in self.texts]
        return [len(values), *sums, *distinct]


def _quote(name: str, *, upper: bool) -> str:
    return f'"{name.upper() if upper else name}"'


def build_question(topic: Topic, schema: str, moment: datetime) -> Question:
    numbers = []
    texts = []
    for field in json.loads(schema)["fields"]:
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        kinds = [branch for branch in branches if branch != "null"]
        if kinds in (["int"], ["long"]):
            numbers.append(field["name"])
        elif kinds == ["string"]:
            texts.append(field["name"])
    return Question(topic, moment, tuple(numbers[:_FIELDS]), tuple(texts[:_FIELDS]))


def same_rows(harness: Harness) -> list[Result]:
    """Ask every reader of each table the same question about rows that are in the table for sure."""
    results: list[Result] = []
    rows = 0
    answered: dict[str, list[str]] = {}
    for topic in harness.deployment.tables:
        if topic.tableflow and topic.tableflow.write_mode == "UPSERT":
            why = "it keeps the last row of each key, which DuckDB and Athena read in their own ways"
            results.append(NotApplicable(f"every reader sees the same rows of {topic.name}", why))
            continue
        records = harness.read_topic(topic.name)
        moment = _find_committed_moment(harness, records.records)
        if moment is None:
            why = "no record of it is older than Tableflow's last commit"
            results.append(NotApplicable(f"every reader sees the same rows of {topic.name}", why))
            continue
        question = build_question(topic, records.schema, moment)
        expected = question.answer(records)
        answers = _ask_readers(harness, question)
        for reader, answer in answers.items():
            require(
                answer == expected, f"{reader} answers {answer} about {topic.name}, produced were {expected}"
            )
            answered.setdefault(reader, []).append(topic.name)
        rows += expected[0]
    if not answered:
        return [*results, NotApplicable(_SAME, "the file has no table with rows that anybody can read")]
    names = dict.fromkeys(name for topics in answered.values() for name in topics)
    result = f"{', '.join(answered)}: {rows} rows of {', '.join(names)}"
    return [
        Check(_SAME, f"{result}, as produced", {"rows": rows, "readers": len(answered)}),
        *results,
        *_can_only_read(harness),
    ]


def _find_committed_moment(harness: Harness, records: Sequence[Record]) -> datetime | None:
    """Return a moment after the first record, and before the last commit."""
    if not records:
        return None
    now = harness.simulators.confluent_now()
    moment = max(harness.plan.moments)
    if harness.deployment.source is None:
        moment = min(moment, now - _TABLEFLOW_COMMIT)
    if min(record.timestamp for record in records) >= moment * 1000:
        moment = now - _TABLEFLOW_COMMIT
    first = min(record.timestamp for record in records) / 1000
    return datetime.fromtimestamp(int(moment), UTC) if first < int(moment) else None


def _ask_readers(harness: Harness, question: Question) -> dict[str, Answer]:
    deployment = harness.deployment
    topic = question.topic
    answers = {}
    if deployment.uses_snowflake and topic.tableflow and topic.tableflow.snowflake_table:
        answers["Snowflake"] = _ask_snowflake(harness, question)
    if topic in deployment.tables_in_glue:
        answers["Athena"] = _ask_athena(harness, question)
        answers["DuckDB over Glue"] = _ask_duckdb_over_glue(harness, question)
    if key := _find_tableflow_key(harness, topic):
        answers["DuckDB over Tableflow's REST catalog"] = _ask_duckdb_over_rest(question, key)
    return answers


def _find_tableflow_key(harness: Harness, topic: Topic) -> TableflowKey | None:
    """Return a key that may read the table in Tableflow's catalog, if the deployment has one."""
    deployment = harness.deployment
    catalog = deployment.source.catalog if deployment.source else None
    if catalog:
        fields = harness.secret(catalog.key_secret)
        path = catalog.uri.partition("/iceberg/")[2]
        uri = f"{harness.simulators.confluent['iceberg_catalog_url']}/iceberg/{path}"
        return TableflowKey(fields["apiKey"], fields["apiSecret"], uri, catalog.cluster_id)
    confluent = deployment.confluent
    if confluent is None or confluent.tableflow_key_secret:
        return None
    managed = topic in deployment.managed_tables
    name = "tableflow/table_reader" if managed else "tableflow"
    return query.read_tableflow_key(harness.ctx.confluent_secret(name))


def _ask_snowflake(harness: Harness, question: Question) -> Answer:
    at = f"'{question.moment:%Y-%m-%d %H:%M:%S}+00:00'::TIMESTAMP_LTZ"
    asked = question.write("{table}", at, upper=True)
    table = _name_snowflake_table(harness, question.topic)
    return _parse_answer(
        list(row.values()) for row in snowflake_reader(harness).run(sql.statement(asked, table=table))
    )


def _name_snowflake_table(harness: Harness, topic: Topic) -> sql.Sql:
    name = topic.tableflow.snowflake_table if topic.tableflow else None
    return sql.path([*sql.split(harness.output("snowflake", "SchemaName")), name or topic.name.upper()])


def _ask_athena(harness: Harness, question: Question) -> Answer:
    database = harness.database
    at = f"TIMESTAMP '{question.moment:%Y-%m-%d %H:%M:%S} UTC'"
    asked = question.write(f'"{database}"."{question.topic.table}"', at)
    return _parse_answer(queries.query_athena(harness, asked, database))


def _ask_duckdb_over_glue(harness: Harness, question: Question) -> Answer:
    lake = ExportTarget(bucket=harness.output("data", "LakeBucketName"), database=harness.database)
    return _parse_answer(query.query(lake, _write_for_duckdb(question, question.topic.table)).rows)


def _ask_duckdb_over_rest(question: Question, key: TableflowKey) -> Answer:
    return _parse_answer(query.query_tableflow(_write_for_duckdb(question, question.topic.name), key).rows)


def _write_for_duckdb(question: Question, table: str) -> str:
    return question.write(f'"{table}"', f"TIMESTAMPTZ '{question.moment:%Y-%m-%d %H:%M:%S}+00'")


def _parse_answer(rows: Iterable[Sequence[Any]]) -> Answer:
    (row,) = rows
    return [int(cell or 0) for cell in row]


def _can_only_read(harness: Harness) -> list[Result]:
    topic = _choose_snowflake_topic(harness)
    if topic is None:
        return [NotApplicable(_ONLY_READ, "Snowflake has no table of the file")]
    table = _name_snowflake_table(harness, topic)
    try:
        snowflake_reader(harness).run(sql.statement("DROP ICEBERG TABLE {table}", table=table))
    except LakeferryError as refused:
        return [Check(_ONLY_READ, f"DROP is refused: {refused.kind.code}")]
    raise CheckFailed("Snowflake's reader could drop a table")


def _choose_snowflake_topic(harness: Harness) -> Topic | None:
    """Return a topic whose table Snowflake has, one that no statement writes if there is one."""
    if not harness.deployment.uses_snowflake:
        return None
    topics = [
        topic
        for topic in harness.deployment.topics
        if topic.tableflow and topic.tableflow.snowflake_table and topic.tableflow.write_mode == "APPEND"
    ]
    return min(topics, key=lambda topic: topic.statement is not None, default=None)


def new_rows(harness: Harness) -> list[Result]:
    """Check that Snowflake shows later rows after its automatic refresh."""
    topic = _choose_snowflake_topic(harness)
    if topic is None:
        return [NotApplicable(_NEW, "Snowflake has no table of the file")]
    reader = snowflake_reader(harness)
    count = sql.statement("SELECT count(*) FROM {table}", table=_name_snowflake_table(harness, topic))
    before = int(reader.value(count))
    records = harness.read_topic(topic.name).records
    if not records:
        return [NotApplicable(_NEW, f"topic {topic.name} has no record")]
    now = int(harness.simulators.confluent_now() * 1000)
    existing.produce(harness.simulators, topic.name, [attrs.evolve(records[0], timestamp=now)])
    harness.simulators.advance_confluent(_TABLEFLOW_COMMIT)
    harness.simulators.advance_snowflake(REFRESH)
    after = wait_until(
        lambda: max(0, int(reader.value(count)) - before), f"Snowflake still shows {before} rows"
    )
    return [Check(_NEW, f"{before} rows, then {before + after}", {"new": after})]


def snowflake_reader(harness: Harness, *, role: str = "") -> Snowflake:
    """Log in as the reader that the deployment created, with the key in its secret.

    Without another one, its role is that in the secret.
    """
    fields = harness.secret(harness.output("snowflake", "ReaderSecretArn"))
    login = Login(
        fields["account"],
        fields["user"],
        sql.to_exact_name(role or fields["role"]),
        sql.to_exact_name(fields["warehouse"]),
    )
    clock = SystemClock()
    session = Session(Deadline(clock, clock.time() + 60))
    return Snowflake(
        session, clock, login, keypair.load(Secret(fields["privateKey"])), harness.simulators.snowflake["url"]
    )
