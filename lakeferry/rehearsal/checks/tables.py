"""Check tables: trades flow into Iceberg tables, and every reader sees the same rows and can only read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lakeferry.local import query
from lakeferry.local.target import ExportTarget
from lakeferry.rehearsal import producer
from lakeferry.rehearsal.harness import Check, CheckFailed, Harness, require, wait_until
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake

#: Seconds of Confluent's clock: after the moment, until Flink has polled, until Tableflow has committed.
_AFTER: Final = 60.0
_FLINK_POLL: Final = 40.0
_TABLEFLOW_COMMIT: Final = 310.0
_TABLE: Final = "stock_trades"
#: Asks only about trades before a moment, so that later ones change nothing.
_QUESTION: Final = (
    "SELECT side, count(*) AS trades, sum(quantity) AS shares FROM {table} WHERE {time} < {moment} GROUP "
    "BY side ORDER BY side"
)
#: Seconds of Snowflake's clock until it has refreshed from its catalog.
_REFRESH: Final = 120.0
Answer = list[tuple[str, int, int]]


def trades_flow(harness: Harness, moment: datetime) -> list[Check]:
    """Let the simulators run until a little after `moment`."""
    harness.simulators.advance_confluent(
        max(0.0, moment.timestamp() - harness.simulators.confluent_now()) + _AFTER
    )
    traded = harness.records(_TABLE)
    require(traded, f"topic {_TABLE} is empty")
    producer.write_to_each_partition(harness, _TABLE, traded[0]["value"])
    harness.simulators.advance_confluent(_FLINK_POLL)
    harness.simulators.advance_confluent(_TABLEFLOW_COMMIT)
    tables = [topic.name for topic in harness.ctx.deployment.tables_in_glue]
    return [_check_glue(harness, table) for table in tables]


def _check_glue(harness: Harness, table: str) -> Check:
    produced = harness.records(table)
    require(produced, f"topic {table} is empty")
    bad = [record for record in produced if "problem" in record]
    require(not bad, f"topic {table} has {len(bad)} records that can't be read")
    database = harness.output("confluent", "KafkaClusterId")
    entry = wait_until(
        lambda: _find_glue_table(harness, database, table), f"Glue shows no table {database}.{table}"
    )
    location = str(entry["Parameters"]["metadata_location"])
    bucket = harness.output("data", "TableflowBucketName")
    require(location.startswith(f"s3://{bucket}/"), f"{table} is at {location}, not in {bucket}")
    files = [key for key in harness.objects(bucket, "") if key.endswith(".parquet")]
    require(files, f"bucket {bucket} has no data file")
    result = (
        f"{len(produced)} records in the topic, {database}.{table} in Glue, {len(files)} data files in "
        f"{bucket}"
    )
    return Check(f"{table} flows into an Iceberg table", result, {"topic": table, "records": len(produced)})


def _find_glue_table(harness: Harness, database: str, table: str) -> dict[str, Any] | None:
    """Return the table once it has a snapshot."""
    glue = harness.ctx.client("glue")
    try:
        entry: dict[str, Any] = glue.get_table(DatabaseName=database, Name=table)["Table"]
    except glue.exceptions.EntityNotFoundException:
        return None
    return entry if entry.get("Parameters", {}).get("metadata_location") else None


def same_rows(harness: Harness, moment: datetime) -> list[Check]:
    """Ask every reader the same question about trades before `moment`.

    Every table already has all of them.
    """
    expected = _count_produced(harness, moment)
    require(len(expected) > 1, f"only {expected} was traded before {moment}")
    answers = {
        "Snowflake": _ask_snowflake(harness, moment),
        "Athena": _ask_athena(harness, moment),
        "DuckDB over Glue": _ask_duckdb_over_glue(harness, moment),
        "DuckDB over Tableflow's REST catalog": _ask_duckdb_over_rest(harness, moment),
    }
    for reader, answer in answers.items():
        require(answer == expected, f"{reader} answers {answer}, and {expected} was produced")
    trades = sum(row[1] for row in expected)
    result = f"{', '.join(answers)}: {trades} trades in {len(expected)} groups, as produced"
    return [
        Check("the same question gives the same rows everywhere", result, {"trades": trades}),
        *_can_only_read(harness),
    ]


def new_rows(harness: Harness) -> list[Check]:
    """Check that Snowflake shows later rows after its automatic refresh."""
    reader = snowflake_reader(harness)
    table = _name_snowflake_table(harness)
    count = sql.statement("SELECT count(*) FROM {table}", table=table)
    before = int(reader.value(count))
    harness.simulators.advance_confluent(_TABLEFLOW_COMMIT)
    harness.simulators.advance_snowflake(_REFRESH)
    after = wait_until(
        lambda: max(0, int(reader.value(count)) - before), f"Snowflake still shows {before} rows"
    )
    return [
        Check(
            "Snowflake shows new rows after its refresh",
            f"{before} rows, then {before + after}",
            {"new": after},
        )
    ]


def named_queries(harness: Harness) -> list[Check]:
    athena = harness.ctx.client("athena")
    workgroup = harness.output("data", "AthenaWorkgroup")
    ids = athena.list_named_queries(WorkGroup=workgroup)["NamedQueryIds"]
    require(ids, f"workgroup {workgroup} has no named query")
    ran = []
    for query_id in ids:
        named_query = athena.get_named_query(NamedQueryId=query_id)["NamedQuery"]
        ran.append(
            f"{named_query['Name'].partition(': ')[2]} "
            f"({len(_query_athena(harness, named_query['QueryString'], named_query['Database']))} rows)"
        )
    return [
        Check(
            "Athena's named queries run",
            f"{len(ids)} queries: {', '.join(sorted(ran))}",
            {"queries": len(ids)},
        )
    ]


def snowflake_reader(harness: Harness) -> Snowflake:
    """Log in as the reader that the deployment created, with the key in its secret."""
    fields = harness.secret(harness.output("snowflake", "ReaderSecretArn"))
    login = Login(
        fields["account"],
        fields["user"],
        sql.to_exact_name(fields["role"]),
        sql.to_exact_name(fields["warehouse"]),
    )
    clock = SystemClock()
    session = Session(Deadline(clock, clock.time() + 60))
    return Snowflake(
        session, clock, login, keypair.load(Secret(fields["privateKey"])), harness.simulators.snowflake["url"]
    )


def _count_produced(harness: Harness, moment: datetime) -> Answer:
    groups: dict[str, list[int]] = defaultdict(list)
    for record in harness.records(_TABLE):
        if record["timestamp"] < moment.timestamp() * 1000:
            groups[record["value"]["side"]].append(int(record["value"]["quantity"]))
    return [(side, len(traded), sum(traded)) for side, traded in sorted(groups.items())]


def _ask_snowflake(harness: Harness, moment: datetime) -> Answer:
    at = f"'{moment:%Y-%m-%d %H:%M:%S}+00:00'::TIMESTAMP_LTZ"
    question = _QUESTION.format(table="{table}", time='"$$TIMESTAMP"', moment=at)
    rows = snowflake_reader(harness).run(sql.statement(question, table=_name_snowflake_table(harness)))
    return _parse_answer([list(row.values()) for row in rows])


def _name_snowflake_table(harness: Harness) -> sql.Sql:
    topic = next(topic for topic in harness.ctx.deployment.topics if topic.name == _TABLE)
    table = topic.tableflow.snowflake_table if topic.tableflow else None
    return sql.path([*sql.split(harness.output("snowflake", "SchemaName")), table or _TABLE.upper()])


def _ask_athena(harness: Harness, moment: datetime) -> Answer:
    database = harness.output("confluent", "KafkaClusterId")
    at = f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S} UTC'"
    question = _QUESTION.format(table=f'"{database}"."{_TABLE}"', time='"$$timestamp"', moment=at)
    return _parse_answer(_query_athena(harness, question, database))


def _query_athena(harness: Harness, query_text: str, database: str) -> list[list[str]]:
    """Run a query and return its rows. Raises CheckFailed with Athena's own reason."""
    athena = harness.ctx.client("athena")
    workgroup = harness.output("data", "AthenaWorkgroup")
    context: Mapping[str, Any] = {"QueryExecutionContext": {"Database": database}, "WorkGroup": workgroup}
    query_id = athena.start_query_execution(QueryString=query_text, **context)["QueryExecutionId"]

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"][
            "Status"
        ]
        return status if status["State"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None

    status = wait_until(ended, "Athena's query has not ended")
    if status["State"] != "SUCCEEDED":
        raise CheckFailed(f"Athena: {status.get('StateChangeReason')}")
    rows = athena.get_query_results(QueryExecutionId=query_id)["ResultSet"]["Rows"][1:]
    return [[cell.get("VarCharValue", "") for cell in row["Data"]] for row in rows]


def _ask_duckdb_over_glue(harness: Harness, moment: datetime) -> Answer:
    lake = ExportTarget(
        bucket=harness.output("data", "LakeBucketName"),
        database=harness.output("confluent", "KafkaClusterId"),
    )
    return _parse_answer(query.query(lake, _query_duckdb(moment)).rows)


def _ask_duckdb_over_rest(harness: Harness, moment: datetime) -> Answer:
    key = query.read_tableflow_key(harness.output("confluent", "TableflowKeySecretArn"))
    return _parse_answer(query.query_tableflow(_query_duckdb(moment), key).rows)


def _parse_answer(rows: Iterable[Sequence[Any]]) -> Answer:
    return [(side, int(trades), int(shares)) for side, trades, shares in rows]


def _query_duckdb(moment: datetime) -> str:
    return _QUESTION.format(
        table=_TABLE, time='"$$timestamp"', moment=f"TIMESTAMPTZ '{moment:%Y-%m-%d %H:%M:%S}+00'"
    )


def _can_only_read(harness: Harness) -> list[Check]:
    reader = snowflake_reader(harness)
    table = _name_snowflake_table(harness)
    try:
        reader.run(sql.statement("DROP ICEBERG TABLE {table}", table=table))
    except LakeferryError as refused:
        return [Check("Snowflake's reader can only read", f"DROP is refused: {refused.kind.code}")]
    raise CheckFailed("Snowflake's reader could drop a table")
