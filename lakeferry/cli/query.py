"""`lakeferry query`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group, complete_stages
from lakeferry.cli.target import open_target
from lakeferry.errors import LATER, CommandFailed

app: Final = command_group()


class Catalog(StrEnum):
    """`tableflow` is Confluent's Iceberg REST catalog; LAKEFERRY_TABLEFLOW_SECRET names the secret with its
    key.
    """

    GLUE = "glue"
    TABLEFLOW = "tableflow"


class Engine(StrEnum):
    ATHENA = "athena"
    SNOWFLAKE = "snowflake"
    DUCKDB = "duckdb"


@command(
    app,
    json_keys={
        "source": "What was queried: a bucket and database, the demo, a catalog, or the engine of --stage.",
        "columns": "The names of the columns.",
        "rows": "The rows, each a list of values.",
        "hidden": "With --stage: the hidden columns of each table that the query reads.",
    },
    exits=(LATER,),
)
def query(
    call: CommandContext,
    *,
    sql: Annotated[str, typer.Argument(help="One SELECT statement.")],
    deployed: Annotated[
        str | None,
        typer.Option(
            "--stage", help="Ask this deployment stage, with your own rights.", autocompletion=complete_stages
        ),
    ] = None,
    engine: Annotated[
        Engine | None, typer.Option(help="Who runs a query of --stage; by default, athena.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows of --stage as CSV.")] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Show the personal columns of --stage too, if your rights allow it."),
    ] = False,
    catalog: Annotated[
        Catalog | None, typer.Option(help="The catalog to read the tables from, without --stage.")
    ] = None,
) -> Mapping[str, Any]:
    """Query the Iceberg tables with SQL: those of a deployment with --stage, or else with DuckDB those in the
    bucket that environment variables name, or in the last demo.
    """
    if deployed is not None:
        if catalog is not None:
            message = "--catalog is for queries without --stage"
            raise CommandFailed("USAGE", message, "Choose who runs it with --engine")
        return _ask_stage(call, deployed, sql, engine, as_csv=as_csv, raw=raw)
    if engine is not None or as_csv or raw:
        message = "--engine, --csv and --raw need --stage"
        raise CommandFailed("USAGE", message, "Give --stage too, or leave them out")
    return _ask_bucket(call, sql, catalog or Catalog.GLUE)


def _ask_stage(
    call: CommandContext,
    stage: str,
    sql: str,
    engine: Engine | None,
    *,
    as_csv: bool,
    raw: bool,
) -> Mapping[str, Any]:
    from lakeferry.queries import run

    chosen = run.Engine(engine or Engine.ATHENA)
    return run.run_query(call.output, stage, sql, engine=chosen, as_csv=as_csv, raw=raw)


def _ask_bucket(call: CommandContext, sql: str, catalog: Catalog) -> Mapping[str, Any]:
    from lakeferry.local import query as core

    if catalog is Catalog.TABLEFLOW:
        key = core.read_tableflow_key()
        source = f"Kafka cluster {key.cluster_id} in Tableflow's catalog at {key.catalog_uri}"
        call.output.info(f"Asking {source}")
        answer = core.query_tableflow(sql, key)
    else:
        with open_target() as target:
            source = target.source
            call.output.info(f"Asking {source}")
            answer = core.query(target, sql)
    core.show(call.output, answer)
    return {"source": source, "columns": answer.columns, "rows": answer.rows, "hidden": {}}
