"""`lakeferry query --stage`: choose the engine, ask it, and show the rows."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

import attrs

from config.deployments.confluent_model import Topic
from config.deployments.shown_columns import Shown
from lakeferry.deployment import context, stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.local import query as duckdb
from lakeferry.local import target
from lakeferry.local.query import Answer
from lakeferry.local.target import ExportTarget
from lakeferry.output import Output, Reporter, to_text
from lakeferry.queries import athena, hiding, read_only, snowflake
from lakeferry.verification.tables import find_database

#: More rows are for a file, not for a terminal.
_MOST: Final = 10_000


class Engine(StrEnum):
    ATHENA = "athena"
    SNOWFLAKE = "snowflake"
    DUCKDB = "duckdb"


#: The hidden columns of each table, with the reason of each.
Hidden: TypeAlias = Mapping[str, Mapping[str, str]]


def run_query(
    output: Output, stage: str, sql: str, *, engine: Engine, as_csv: bool, raw: bool = False
) -> dict[str, Any]:
    """Refuse what is not a SELECT before anything is asked. Without `raw`, hide personal columns. Raises
    CommandFailed.
    """
    if engine is not Engine.DUCKDB:  # which has a parser of its own
        read_only.require_select(sql, engine)
    with context.open_context(stage) as ctx, output.step(f"Asking {engine}") as report:
        hidden: Hidden = {}
        if raw:
            source, answer = _ask(ctx, sql, engine, report)
        else:
            source, answer, hidden = _ask_as_people(ctx, sql, engine, report)
    is_cut = len(answer.rows) > _MOST
    shown = attrs.evolve(answer, rows=answer.rows[:_MOST])
    output.info(f"{engine}: {source}")
    hiding.tell(output, hidden)
    if as_csv:
        _write_csv(output, shown)
    else:
        duckdb.show(output, shown)
    if is_cut:
        output.warn(f"only the first {_MOST:,} rows are shown: name fewer with WHERE or LIMIT")
    columns_by_table = {table: list(reasons) for table, reasons in hidden.items()}
    return {
        "source": f"{engine}: {source}",
        "columns": shown.columns,
        "rows": shown.rows,
        "hidden": columns_by_table,
    }


def _ask(ctx: DeploymentContext, sql: str, engine: Engine, report: Reporter) -> tuple[str, Answer]:
    match engine:
        case Engine.ATHENA:
            return athena.query(ctx, sql, _MOST, report)
        case Engine.SNOWFLAKE:
            _require_snowflake(ctx)
            return snowflake.query(ctx, sql, snowflake.READER)
        case Engine.DUCKDB:
            return _ask_duckdb(ctx, sql)


def _ask_as_people(
    ctx: DeploymentContext, sql: str, engine: Engine, report: Reporter
) -> tuple[str, Answer, Hidden]:
    """Return what was asked, the rows, and the hidden columns of each table. Raises CommandFailed."""
    if engine is Engine.SNOWFLAKE:
        _require_snowflake(ctx)
        tables = hiding.describe_tables(ctx, _name_in_snowflake)
        source, answer = snowflake.query(ctx, sql, snowflake.PEOPLE)
        return source, answer, snowflake.list_hidden(sql, tables)
    tables = hiding.describe_tables(ctx, lambda topic: topic.table)
    open_databases = [stacks.require_output(ctx, "data", "AggregatesDatabase")]
    known = hiding.Hiding(tables, [find_database(ctx)], open_databases)
    if engine is Engine.ATHENA:
        text = hiding.restrict(sql, engine, known, lambda table: athena.list_columns(ctx, table, report))
        source, answer = athena.query(ctx, text, _MOST, report)
    else:
        source, answer = _ask_duckdb(ctx, sql, known)
    _, named = hiding.find_named(sql, engine, known)
    return source, answer, hiding.list_hidden(named)


def _name_in_snowflake(topic: Topic) -> str | None:
    return topic.tableflow.snowflake_table if topic.tableflow else None


def _require_snowflake(ctx: DeploymentContext) -> None:
    if not ctx.deployment.uses_snowflake:
        message = f"the deployment of stage {ctx.stage} does not use Snowflake"
        raise CommandFailed("NO-SNOWFLAKE", message, "Choose --engine athena or duckdb")


def _ask_duckdb(ctx: DeploymentContext, sql: str, known: hiding.Hiding | None = None) -> tuple[str, Answer]:
    bucket = stacks.require_output(ctx, "data", "LakeBucketName")
    aggregates = stacks.require_output(ctx, "data", "AggregatesDatabase")
    lake = ExportTarget(bucket=bucket, database=find_database(ctx), aggregates_database=aggregates)
    columns = None
    if known:
        hiding.find_named(sql, Engine.DUCKDB, known)  # which refuses what would show hidden columns
        columns = {
            table: columns_of_table.columns
            for table, columns_of_table in known.tables.items()
            if isinstance(columns_of_table, Shown)
        }
    region = {"AWS_REGION": ctx.region, "AWS_DEFAULT_REGION": ctx.region}
    with target.set_environment({**os.environ, **region}):
        return f"database {lake.database}, on this machine", duckdb.query(lake, sql, columns)


def _write_csv(output: Output, answer: Answer) -> None:
    if output.as_json:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(["" if value is None else to_text(value) for value in row] for row in answer.rows)
