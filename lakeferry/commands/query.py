"""`lakeferry query`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry import frame
from lakeferry.frame import Call

app: Final = frame.commands()


class Catalog(StrEnum):
    """`tableflow` is Confluent's own Iceberg REST catalog, entered with the key that LAKEFERRY_TABLEFLOW_SECRET names."""

    GLUE = "glue"
    TABLEFLOW = "tableflow"


@frame.command(app, says={"columns": "Their names.", "rows": "A list of values each."})
def query(
    call: Call,
    *,
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    catalog: Annotated[Catalog, typer.Option(help="Where the tables are looked up.")] = Catalog.GLUE,
) -> Mapping[str, Any]:
    """Ask the Iceberg tables a question, with DuckDB."""
    from lakeferry import query as queries  # noqa: PLC0415 - commands load what they need
    from lakeferry import world  # noqa: PLC0415

    with world.current() as here:
        answer = queries.query(here, sql) if catalog is Catalog.GLUE else queries.query_tableflow(sql)
    queries.show(call.voice, answer)
    return {"columns": answer.columns, "rows": answer.rows}
