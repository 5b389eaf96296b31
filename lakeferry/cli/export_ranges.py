"""`lakeferry export backfill`, `lakeferry export restate` and `lakeferry export logs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command
from lakeferry.cli.export import (
    AcceptFewerEvents,
    AcceptWindowChange,
    CompleteUntil,
    app,
    build_job_arguments,
)
from lakeferry.cli.logs import LOG_KEYS, show_logs
from lakeferry.errors import BLOCKED, LATER

__all__ = ["app"]

_KEYS: Final = {
    "stage": "The deployment stage.",
    "export": "The contract's name.",
    "asked": "The windows as they were named.",
    "runs": "The record of each run, in order. None if there was nothing to do.",
    "windows": "The result of each window, of all runs.",
    "left": "Windows that no run has begun.",
}
Name = Annotated[str, typer.Argument(help="The name of an export of the deployment.")]
Windows = Annotated[
    str, typer.Option(help="Closed windows: a range like 2026-W40..W44, or a list with commas.")
]


@command(app, stage=True, json_keys=_KEYS, exits=(LATER, BLOCKED))
def backfill(
    call: CommandContext,
    *,
    name: Name,
    windows: Windows,
    accept_window_change: AcceptWindowChange = False,
    complete_until: CompleteUntil = "",
) -> Mapping[str, Any]:
    """Publish the windows of a range that were never published, oldest first, with the deployment's Glue job.

    One run follows another until the range is done. No other window changes.
    """
    from glue_jobs.arguments import MISSING
    from lakeferry.exports.run import run_range

    arguments = build_job_arguments(accept_window_change=accept_window_change, complete_until=complete_until)
    return run_range(call.output, call.stage, name, windows=windows, only=MISSING, arguments=arguments)


@command(app, stage=True, json_keys=_KEYS, exits=(LATER, BLOCKED))
def restate(
    call: CommandContext,
    *,
    name: Name,
    windows: Windows,
    accept_fewer_events: AcceptFewerEvents = False,
    accept_window_change: AcceptWindowChange = False,
    complete_until: CompleteUntil = "",
) -> Mapping[str, Any]:
    """Compute published windows of a range again, however old they are, with the deployment's Glue job.

    A window gets a new generation only if its rows or the contract have changed. One run follows another
    until the range is done. No other window changes.
    """
    from glue_jobs.arguments import PUBLISHED
    from lakeferry.exports.run import run_range

    arguments = build_job_arguments(
        accept_fewer_events=accept_fewer_events,
        accept_window_change=accept_window_change,
        complete_until=complete_until,
    )
    return run_range(call.output, call.stage, name, windows=windows, only=PUBLISHED, arguments=arguments)


@command(app, stage=True, json_keys=LOG_KEYS)
def logs(
    call: CommandContext,
    *,
    name: Name,
    last: Annotated[int | None, typer.Option(min=1, help="How many runs; by default one.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Show the newest run until it has ended.")] = False,
) -> Mapping[str, Any]:
    """Show the log of the last runs of a deployed export, as `lakeferry logs` does. It never contains a
    secret.
    """
    return show_logs(call, name, last, follow=follow)
