"""`lakeferry query`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import WITHOUT_STAGE, CommandContext, command, command_group
from lakeferry.cli.target import open_target
from lakeferry.errors import LATER

app: Final = command_group()


class Catalog(StrEnum):
    """`tableflow` is Confluent's Iceberg REST catalog; LAKEFERRY_TABLEFLOW_SECRET names the secret with its key."""

    GLUE = "glue"
    TABLEFLOW = "tableflow"


@command(
    app,
    json_keys={
        "source": "The AWS or the Tableflow catalog that answered.",
        "columns": "Their names.",
        "rows": "A list of values each.",
    },
    exits=(LATER,),
    without_stage=WITHOUT_STAGE,
)
def query(
    call: CommandContext,
    *,
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    catalog: Annotated[Catalog, typer.Option(help="The catalog of the tables.")] = Catalog.GLUE,
) -> Mapping[str, Any]:
    """Query the Iceberg tables with SQL (DuckDB), in the AWS of the environment variables or the last demo's."""
    from lakeferry.local import query as core

    if catalog is Catalog.TABLEFLOW:
        key = core.tableflow_key()
        source = f"Kafka cluster {key.cluster_id} in Tableflow's catalog at {key.catalog_uri}"
        call.output.info(f"Asking {source}")
        answer = core.query_tableflow(sql, key)
    else:
        with open_target() as target:
            source = target.source
            call.output.info(f"Asking {source}")
            answer = core.query(target, sql)
    core.show(call.output, answer)
    return {"source": source, "columns": answer.columns, "rows": answer.rows}
