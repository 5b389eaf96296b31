"""`lakeferry logs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext
from lakeferry.errors import CommandFailed

app: Final = frame.commands()


@frame.command(
    app,
    stage=True,
    json_keys={
        "stage": "Whose it is.",
        "name": "Of what the log is.",
        "names": "Without a name: what writes a log.",
        "runs": "The newest first: id, state, began, place, lines (at in seconds since 1970, stream, text). Of functions there "
        "is one, without id.",
    },
)
def logs(
    call: CommandContext,
    *,
    name: Annotated[
        str | None,
        typer.Argument(help="An export, or confluent, snowflake, rotation, notification, watch; names without it."),
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, help="How many runs of an export (1 without it), or lines of functions (100).")
    ] = None,
) -> Mapping[str, Any]:
    """What the last run of an export wrote, or a function of the deployment. No secret is ever in it."""
    from lakeferry.cli import log_commands  # noqa: PLC0415 - commands load what they need

    if last is not None and name is None:
        raise CommandFailed("USAGE", "--last counts runs or lines of one log", "Name the log too")
    return log_commands.told(call.output, call.stage, name, last)
