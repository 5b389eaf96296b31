"""`lakeferry demo`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group, parse_time
from lakeferry.errors import BLOCKED, LATER

app: Final = command_group()


@command(
    app,
    json_keys={
        "out": "The folder with the files.",
        "seconds": "The duration in seconds.",
        "runs": "The record of each export's run.",
    },
    exits=(LATER, BLOCKED),
)
def demo(
    call: CommandContext,
    *,
    events: Annotated[
        Path | None,
        typer.Option(help="A JSON Lines file with your own events, which must fit the topic's schema."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="The topic that the events belong to.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The Avro schema of a topic of your own.")] = None,
    ignore_unknown_fields: Annotated[
        bool,
        typer.Option(
            "--ignore-unknown-fields", help="Leave out fields of the events that the schema doesn't have."
        ),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(help="Run only this export: the name of a shipped contract, or the path of your own."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(help="Publish windows that ended by this time, for instance 2026-11-16T06:00:00Z."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write the files to.")] = Path("out"),
    master: Annotated[
        str,
        typer.Option(
            help="The Spark master, like local[4], or local-cluster[2,1,1024] for separate executors."
        ),
    ] = "local[2]",
) -> Mapping[str, Any]:
    """Try Lakeferry without an account: write events to Iceberg tables and export them to files."""
    from lakeferry.local import demo as demos

    moment = parse_time("--as-of", as_of) if as_of is not None else None
    options = demos.DemoOptions(
        events=events,
        topic=topic,
        schema=schema,
        ignore_unknown_fields=ignore_unknown_fields,
        export=export,
        as_of=moment,
        out=out,
        master=master,
    )
    return demos.demo(call.output, options)
