"""`lakeferry query --stage`: choose the engine, ask it, and show the rows."""

from __future__ import annotations

import csv
import os
import sys
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry.deployment import context, stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.local import query as duckdb
from lakeferry.local import target
from lakeferry.local.query import Answer
from lakeferry.local.target import ExportTarget
from lakeferry.output import Output, Reporter, to_text
from lakeferry.queries import athena, read_only, snowflake
from lakeferry.verification.tables import find_database

#: More rows are for a file, not for a terminal.
_MOST: Final = 10_000


class Engine(StrEnum):
    ATHENA = "athena"
    SNOWFLAKE = "snowflake"
    DUCKDB = "duckdb"


def run_query(output: Output, stage: str, sql: str, *, engine: Engine, as_csv: bool) -> dict[str, Any]:
    """Refuse what is not a SELECT before anything is asked. Raises CommandFailed."""
    if engine is not Engine.DUCKDB:  # which has a parser of its own
        read_only.require_select(sql, engine)
    with context.open_context(stage) as ctx, output.step(f"Asking {engine}") as report:
        source, answer = _ask(ctx, sql, engine, report)
    is_cut = len(answer.rows) > _MOST
    shown = attrs.evolve(answer, rows=answer.rows[:_MOST])
    output.info(f"{engine}: {source}")
    if as_csv:
        _write_csv(output, shown)
    else:
        duckdb.show(output, shown)
    if is_cut:
        output.warn(f"only the first {_MOST:,} rows are shown: name fewer with WHERE or LIMIT")
    return {"source": f"{engine}: {source}", "columns": shown.columns, "rows": shown.rows}


def _ask(ctx: DeploymentContext, sql: str, engine: Engine, report: Reporter) -> tuple[str, Answer]:
    match engine:
        case Engine.ATHENA:
            return athena.query(ctx, sql, _MOST, report)
        case Engine.SNOWFLAKE:
            if not ctx.deployment.uses_snowflake:
                message = f"the deployment of stage {ctx.stage} does not use Snowflake"
                raise CommandFailed("NO-SNOWFLAKE", message, "Choose --engine athena or duckdb")
            return snowflake.query(ctx, sql)
        case Engine.DUCKDB:
            return _ask_duckdb(ctx, sql)


def _ask_duckdb(ctx: DeploymentContext, sql: str) -> tuple[str, Answer]:
    bucket = stacks.require_output(ctx, "data", "LakeBucketName")
    lake = ExportTarget(bucket=bucket, database=find_database(ctx))
    region = {"AWS_REGION": ctx.region, "AWS_DEFAULT_REGION": ctx.region}
    with target.set_environment({**os.environ, **region}):
        return f"database {lake.database}, on this machine", duckdb.query(lake, sql)


def _write_csv(output: Output, answer: Answer) -> None:
    if output.as_json:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(["" if value is None else to_text(value) for value in row] for row in answer.rows)
