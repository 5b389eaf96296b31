"""`lakeferry logs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, find_program_name

if TYPE_CHECKING:
    from lakeferry.deployment.logs import Line, Run

_RUNS: Final = 1
_LINES: Final = 100
_FIRST: Final = ("level", "message")
#: Keys of the document of a log.
LOG_KEYS: Final = {
    "stage": "The deployment stage.",
    "name": "The export or function that the log is of.",
    "names": "Without a name: the names of all logs.",
    "runs": (
        "The newest first: id, state, began, group, lines (at in seconds since 1970, stream, text). A "
        "function has one entry, without an id."
    ),
}
app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys=LOG_KEYS,
)
def logs(
    call: CommandContext,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            help=(
                "An export, or aggregate-tables, confluent, snowflake, rotation, notification, links, watch. "
                "Without it, names are listed."
            )
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many runs of an export (default 1), or lines of a function (default 100)."
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Show the newest run of an export until it has ended."),
    ] = False,
) -> Mapping[str, Any]:
    """Show the log of the last runs of an export, or of a function of the deployment.

    It never contains a secret.
    """
    return show_logs(call, name, last, follow=follow)


def show_logs(call: CommandContext, name: str | None, last: int | None, *, follow: bool) -> Mapping[str, Any]:
    """Show a log and return its document, or list the names of logs. Raises CommandFailed."""
    from lakeferry.deployment import logs as core
    from lakeferry.deployment.context import open_context

    if last is not None and name is None:
        raise CommandFailed("USAGE", "--last counts runs or lines of one log", "Name the log too")
    if follow:
        return _follow(call, name, last)
    output = call.output
    stage = call.stage
    with open_context(stage) as ctx:
        if name is None:
            return _show_names(output, stage, core.list_sources(ctx))
        with output.step(f"Reading the log of {name}"):
            most = last or (_LINES if name in core.FUNCTIONS else _RUNS)
            runs = core.read_runs(ctx, name, most, everything=output.verbose)
        for run in runs:
            _show(output, name, run)
        if not runs:
            output.print(f"{name} has not run yet")
        return {"stage": stage, "name": name, "names": [], "runs": [attrs.asdict(run) for run in runs]}


def _follow(call: CommandContext, name: str | None, last: int | None) -> dict[str, Any]:
    """Show the lines of the newest run of an export as they are written."""
    from lakeferry.deployment import logs as core
    from lakeferry.deployment.context import open_context

    if name is None or last is not None:
        message = "--follow shows the newest run of one export"
        raise CommandFailed("USAGE", message, "Name the export, and leave out --last")
    output = call.output
    with open_context(call.stage) as ctx:
        run = core.follow_run(ctx, name, lambda line: output.print(f"{line.moment}  {_format_line(line)}"))
    if run is None:
        output.print(f"{name} has not run yet")
    else:
        output.print(f"{name}: run {run.id} of {run.began}: {run.state}")
    runs = [attrs.asdict(run)] if run else []
    return {"stage": call.stage, "name": name, "names": [], "runs": runs}


def _show_names(output: Output, stage: str, names: list[str]) -> dict[str, Any]:
    output.print("Logs: exports by their names, and functions by what they do")
    for name in names:
        output.print(f"  {find_program_name()} logs {name} --stage {stage}")
    return {"stage": stage, "name": "", "names": names, "runs": []}


def _show(output: Output, name: str, run: Run) -> None:
    heading = f"run {run.id} of {run.began}, {run.state}" if run.id else run.group
    output.print(f"{name}: {heading}")
    for line in run.lines:
        output.print(f"  {line.moment}  {_format_line(line)}")
    if not run.lines:
        output.print("  the log is empty")


def _format_line(line: Line) -> str:
    """Return a JSON log line as text, with level and message first. Other lines are returned unchanged."""
    fields = line.fields
    if "message" not in fields:
        return line.text
    rest = " ".join(
        f"{name}={value}" for name, value in fields.items() if name not in _FIRST and value not in (None, "")
    )
    return f"{fields.get('level', ''):<5} {fields['message']}  {rest}".rstrip()
