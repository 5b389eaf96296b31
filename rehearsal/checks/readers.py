"""The same question gives the same rows to every reader, and each of them can only read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lakeferry.local import iceberg_catalog, query
from lakeferry.local.target import ExportTarget
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Row, Snowflake
from rehearsal.check import NotProven, Proof, require
from rehearsal.checks.flow import TABLEFLOW_COMMITS
from rehearsal.harness import Harness, until

_TABLE: Final = "stock_trades"
#: Of trades up to a moment, so that what comes meanwhile changes nothing. Doubled braces are the moment's.
_QUESTION: Final = (
    "SELECT side, count(*) AS trades, sum(quantity) AS shares FROM {table} WHERE {time} < {moment} GROUP BY side ORDER BY side"
)
#: Seconds of Snowflake's clock: it looks at its catalog.
_REFRESH: Final = 120.0
Answer = list[tuple[str, int, int]]


def same_rows(stage: Harness, moment: datetime) -> list[Proof]:
    """`moment` is one that every table has passed."""
    expected = _produced(stage, moment)
    require(len(expected) > 1, f"only {expected} was traded before {moment}")
    answers = {
        "Snowflake": _of_snowflake(stage, moment),
        "Athena": _of_athena(stage, moment),
        "DuckDB over Glue": _of_duckdb_over_glue(stage, moment),
        "DuckDB over Tableflow's REST catalog": _of_duckdb_over_rest(stage, moment),
    }
    for who, answer in answers.items():
        require(answer == expected, f"{who} answers {answer}, and {expected} was produced")
    trades = sum(row[1] for row in expected)
    seen = f"{', '.join(answers)}: {trades} trades in {len(expected)} groups, as produced"
    return [Proof("the same question gives the same rows everywhere", seen, {"trades": trades}), *_only_reads(stage)]


def new_rows(stage: Harness) -> list[Proof]:
    """Snowflake shows what came since, after a refresh of its own."""
    reader, table = snowflake_reader(stage), _snowflake_table(stage)
    count = sql.statement("SELECT count(*) FROM {table}", table=table)
    before = int(reader.value(count))
    stage.worlds.advance_confluent(TABLEFLOW_COMMITS)
    stage.worlds.advance_snowflake(_REFRESH)
    after = until(lambda: max(0, int(reader.value(count)) - before), f"Snowflake still shows {before} rows")
    return [Proof("Snowflake shows new rows after its refresh", f"{before} rows, then {before + after}", {"new": after})]


def named_queries(stage: Harness) -> list[Proof]:
    athena, workgroup = stage.ctx.client("athena"), stage.output("data", "AthenaWorkgroup")
    ids = athena.list_named_queries(WorkGroup=workgroup)["NamedQueryIds"]
    require(ids, f"workgroup {workgroup} has no named query")
    told = []
    for query_id in ids:
        named = athena.get_named_query(NamedQueryId=query_id)["NamedQuery"]
        told.append(f"{named['Name'].partition(': ')[2]} ({len(_athena(stage, named['QueryString'], named['Database']))} rows)")
    return [Proof("Athena's named queries run", f"{len(ids)} queries: {', '.join(sorted(told))}", {"queries": len(ids)})]


def snowflake_reader(stage: Harness, version: str = "AWSCURRENT") -> Snowflake:
    """The user that the deployment made, with what stands in its secret."""
    held = stage.secret(stage.output("snowflake", "ReaderSecretArn"), version)
    login = Login(held["account"], held["user"], sql.named(held["role"]), sql.named(held["warehouse"]))
    clock = SystemClock()
    session = Session(Deadline(clock, clock.time() + 60))
    return Snowflake(session, clock, login, keypair.load(Secret(held["privateKey"])), stage.worlds.snowflake["url"])


def _produced(stage: Harness, moment: datetime) -> Answer:
    groups: dict[str, list[int]] = defaultdict(list)
    for record in stage.records(_TABLE):
        if record["timestamp"] < moment.timestamp() * 1000:
            groups[record["value"]["side"]].append(int(record["value"]["quantity"]))
    return [(side, len(traded), sum(traded)) for side, traded in sorted(groups.items())]


def _of_snowflake(stage: Harness, moment: datetime) -> Answer:
    wanted = _QUESTION.format(table="{table}", time='"$$TIMESTAMP"', moment=f"'{moment:%Y-%m-%d %H:%M:%S}+00:00'::TIMESTAMP_LTZ")
    rows = snowflake_reader(stage).run(sql.statement(wanted, table=_snowflake_table(stage)))
    return [_plain(row) for row in rows]


def _plain(row: Row) -> tuple[str, int, int]:
    side, trades, shares = row.values()
    return side, int(trades), int(shares)


def _snowflake_table(stage: Harness) -> sql.Sql:
    topic = next(topic for topic in stage.ctx.deployment.topics if topic.name == _TABLE)
    named = topic.tableflow.snowflake_table if topic.tableflow else None
    return sql.path([*sql.split(stage.output("snowflake", "SchemaName")), named or _TABLE.upper()])


def _of_athena(stage: Harness, moment: datetime) -> Answer:
    database = stage.output("confluent", "KafkaClusterId")
    at = f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S} UTC'"
    asked = _QUESTION.format(table=f'"{database}"."{_TABLE}"', time='"$$timestamp"', moment=at)
    return [(row[0], int(row[1]), int(row[2])) for row in _athena(stage, asked, database)]


def _athena(stage: Harness, asked: str, database: str) -> list[list[str]]:
    """Raises NotProven with Athena's own reason."""
    athena, workgroup = stage.ctx.client("athena"), stage.output("data", "AthenaWorkgroup")
    where: Mapping[str, Any] = {"QueryExecutionContext": {"Database": database}, "WorkGroup": workgroup}
    query_id = athena.start_query_execution(QueryString=asked, **where)["QueryExecutionId"]

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]["Status"]
        return status if status["State"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None

    status = until(ended, "Athena's query goes on")
    if status["State"] != "SUCCEEDED":
        raise NotProven(f"Athena: {status.get('StateChangeReason')}")
    rows = athena.get_query_results(QueryExecutionId=query_id)["ResultSet"]["Rows"][1:]
    return [[cell.get("VarCharValue", "") for cell in row["Data"]] for row in rows]


def _of_duckdb_over_glue(stage: Harness, moment: datetime) -> Answer:
    lake = ExportTarget(bucket=stage.output("data", "LakeBucketName"), database=stage.output("confluent", "KafkaClusterId"))
    return [(row[0], int(row[1]), int(row[2])) for row in query.query(lake, _in_duckdb(moment)).rows]


def _of_duckdb_over_rest(stage: Harness, moment: datetime) -> Answer:
    key = iceberg_catalog.key(stage.output("confluent", "TableflowKeySecretArn"))
    return [(row[0], int(row[1]), int(row[2])) for row in query.query_tableflow(_in_duckdb(moment), key).rows]


def _in_duckdb(moment: datetime) -> str:
    return _QUESTION.format(table=_TABLE, time='"$$timestamp"', moment=f"TIMESTAMPTZ '{moment:%Y-%m-%d %H:%M:%S}+00'")


def _only_reads(stage: Harness) -> list[Proof]:
    reader, table = snowflake_reader(stage), _snowflake_table(stage)
    try:
        reader.run(sql.statement("DROP ICEBERG TABLE {table}", table=table))
    except LakeferryError as refused:
        return [Proof("Snowflake's reader can only read", f"DROP is refused: {refused.row.code}")]
    raise NotProven("Snowflake's reader could drop a table")
