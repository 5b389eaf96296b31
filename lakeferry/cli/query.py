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
    """`tableflow` is Confluent's Iceberg REST catalog; LAKEFERRY_TABLEFLOW_SECRET names the secret with its
    key.
    """

    GLUE = "glue"
    TABLEFLOW = "tableflow"


@command(
    app,
    json_keys={
        "source": "The database and bucket, the demo, or the Tableflow catalog that was queried.",
        "columns": "The names of the columns.",
        "rows": "The rows, each a list of values.",
    },
    exits=(LATER,),
    without_stage=WITHOUT_STAGE,
)
def query(
    call: CommandContext,
    *,
    sql: Annotated[str, typer.Argument(help="One SELECT statement.")],
    catalog: Annotated[Catalog, typer.Option(help="The catalog to read the tables from.")] = Catalog.GLUE,
) -> Mapping[str, Any]:
    """Query the Iceberg tables with SQL (DuckDB), in the bucket that environment variables name, or in the
    last demo.
    """
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
    return {"source": source, "columns": answer.columns, "rows": answer.rows}
