"""`lakeferry query`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext
from lakeferry.errors import LATER

app: Final = frame.commands()


class Catalog(StrEnum):
    """`tableflow` is Confluent's own Iceberg REST catalog, entered with the key that LAKEFERRY_TABLEFLOW_SECRET names."""

    GLUE = "glue"
    TABLEFLOW = "tableflow"


@frame.command(
    app,
    json_keys={
        "source": "Which AWS or which of Tableflow's catalogs answered.",
        "columns": "Their names.",
        "rows": "A list of values each.",
    },
    exits=(LATER,),
    without_stage=frame.WITHOUT_STAGE,
)
def query(
    call: CommandContext,
    *,
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    catalog: Annotated[Catalog, typer.Option(help="Where the tables are looked up.")] = Catalog.GLUE,
) -> Mapping[str, Any]:
    """Query the Iceberg tables with SQL (DuckDB), in the AWS that the environment names or in the last demo's."""
    from lakeferry.local import iceberg_catalog as tableflow_catalog  # noqa: PLC0415
    from lakeferry.local import query as queries  # noqa: PLC0415 - commands load what they need
    from lakeferry.local import target as world  # noqa: PLC0415

    if catalog is Catalog.TABLEFLOW:
        key = tableflow_catalog.key()
        source = f"Kafka cluster {key.cluster_id} in Tableflow's catalog at {key.catalog_uri}"
        call.output.info(f"Asking {source}")
        answer = queries.query_tableflow(sql, key)
    else:
        with world.current() as target:
            source = target.source
            call.output.info(f"Asking {source}")
            answer = queries.query(target, sql)
    queries.show(call.output, answer)
    return {"source": source, "columns": answer.columns, "rows": answer.rows}
