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
        "stacks": "The CloudFormation status of each stack.",
        "tables": (
            "Each table's hops (topic, tableflow, iceberg, glue, snowflake): state (ok, waiting, wrong, "
            "unknown), value (its age in hours), message, code."
        ),
        "secrets": "The same as in `rotate --check`.",
        "exports": (
            "Each: last (id, began, seconds, result, record, windows, reason), next_run, zone, published, "
            "observations (problems: state, value, message, code)."
        ),
        "alarms": (
            "Why engineers don't receive alarms: state, value (how many have not confirmed), message, "
            "code; or null."
        ),
        "drift": "With --drift, each: system, type, name, status, details, stack.",
    },
)
def status(
    call: CommandContext,
    *,
    wait_for: Annotated[
        WaitFor | None,
        typer.Option("--wait-for", help="Wait until a table can be read, or an export has published files."),
    ] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, help=f"How long to wait with --wait-for; {_MINUTES} by default.")
    ] = None,
    drift: Annotated[
        bool,
        typer.Option("--drift", help="Also detect what was changed or deleted manually. This takes minutes."),
    ] = False,
) -> Mapping[str, Any]:
    """Show each table's freshness at every hop, the ages of keys and the last runs of exports.

    Fails if something is wrong.
    """
    from lakeferry.health import status as health

    if minutes is not None and wait_for is None:
        raise CommandFailed("USAGE", "--minutes needs --wait-for", "Give --wait-for too")
    awaited = health.Event(wait_for) if wait_for else None
    return health.run_status(
        call.output, call.stage, wait_for=awaited, minutes=minutes or _MINUTES, with_drift=drift
    )
