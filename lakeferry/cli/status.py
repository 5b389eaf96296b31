"""`lakeferry status`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import LATER, CommandFailed

_MINUTES: Final = 30
app: Final = command_group()


class WaitFor(StrEnum):
    FIRST_TABLE = "first-table"
    FIRST_EXPORT = "first-export"


@command(
    app,
    stage=True,
    exits=(LATER,),
    json_keys={
        "stage": "The deployment stage.",
        "stacks": "CloudFormation's status of each.",
        "tables": "Each table's hops (topic, tableflow, iceberg, glue, snowflake): state (ok, waiting, wrong, not asked), value "
        "(its age in hours), told, code.",
        "secrets": "As `rotate --check` reports them.",
        "exports": "Each: last (id, began, seconds, result, record, windows, reason), next_run, zone, published, "
        "seen (what is wrong).",
        "drift": "With --drift, each: world, what, name, how, told.",
    },
)
def status(
    call: CommandContext,
    *,
    wait_for: Annotated[
        WaitFor | None, typer.Option("--wait-for", help="Wait until a table can be read, or until an export has published.")
    ] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, help=f"How long to wait with --wait-for; {_MINUTES} unless given.")
    ] = None,
    drift: Annotated[
        bool, typer.Option("--drift", help="Also find what was changed or deleted by hand; that takes minutes.")
    ] = False,
) -> Mapping[str, Any]:
    """Show how fresh each table is at every hop, the age of keys, and each export's last run. Fails if something is wrong."""
    from lakeferry.health import status as flow

    if minutes is not None and wait_for is None:
        raise CommandFailed("USAGE", "--minutes is how long --wait-for waits", "Give --wait-for too")
    awaited = flow.Event(wait_for) if wait_for else None
    return flow.run_status(call.output, call.stage, wait_for=awaited, minutes=minutes or _MINUTES, with_drift=drift)
