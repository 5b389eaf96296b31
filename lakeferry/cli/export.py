"""`lakeferry export …`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext
from lakeferry.errors import KEPT_BACK, LATER, CommandFailed

#: Keys of the run's record, which docs/reference/run-record.md explains further.
_RUN: Final = {
    "source": "Which AWS it worked in.",
    "id": "The run's id.",
    "export": "The contract's name.",
    "as_of": "The instant up to which windows counted as closed.",
    "started_at": "When it began.",
    "expires_at": "After this moment a run that never ended counts as dead.",
    "state": "`done`, `blocked` or `failed`.",
    "reason": "Why, where all is not well.",
    "ended_at": "When it ended.",
    "windows": "What became of each window.",
    "working_on": "The window under way; null when it has ended.",
    "windows_left": "Missing windows beyond what one run takes on.",
    "phases": "Seconds by phase.",
    "host": "The machine.",
    "pid": "The process.",
}
app: Final = frame.commands("export", "Run and check exports.")


@frame.command(app, json_keys=_RUN, exits=(LATER, KEPT_BACK), without_stage=frame.WITHOUT_STAGE)
def run(
    call: CommandContext,
    *,
    name: Annotated[str, typer.Argument(help="A shipped export's name, or the path of yours.")],
    as_of: Annotated[str, typer.Option(help="Windows that ended by then are published, like 2026-11-16T06:00:00Z.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compute and check, publish nothing.")] = False,
    accept_fewer_events: Annotated[
        bool,
        typer.Option(
            "--accept-fewer-events", help="Publish a window again although the table lost events of its published file."
        ),
    ] = False,
    table: Annotated[str, typer.Option(help="The table to read, where its name is not the topic's.")] = "",
    out: Annotated[Path | None, typer.Option(help="Copy the files here as well.")] = None,
    master: Annotated[str, typer.Option(help="The Spark master, like local[4], spark://HOST:PORT or yarn.")] = "local[2]",
) -> Mapping[str, Any]:
    """Publish every closed window that needs it, in the AWS that the environment names (or the last demo's)."""
    from lakeferry.cli import export_commands  # noqa: PLC0415 - commands load what they need

    if dry_run and out:
        raise CommandFailed("USAGE", "--dry-run publishes nothing that --out could copy", "Give one of them")
    words = ["--export", name, "--as-of", as_of, "--table", table, "--dry-run", str(dry_run).lower()]
    words += ["--accept-fewer-events", str(accept_fewer_events).lower()]
    return export_commands.run(call.output, words, out, master)


@frame.command(
    app,
    json_keys={
        "name": "The contract's name.",
        "columns": "Names of its columns.",
        "personal": "Columns with personal data, and their treatment.",
    },
)
def check(
    call: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(help="The contract.")],
    schema: Annotated[Path | None, typer.Option(help="The Avro schema of its topic; else the shipped one.")] = None,
) -> Mapping[str, Any]:
    """Check a contract before anything runs: all mistakes at once, by key and line."""
    from lakeferry.cli import export_commands  # noqa: PLC0415

    return export_commands.check(call.output, file, schema)


@frame.command(app, "list", json_keys={"exports": "Name, title and topic of each."})
def listed(call: CommandContext) -> Mapping[str, Any]:
    """The exports that ship with Lakeferry."""
    from lakeferry.cli import export_commands  # noqa: PLC0415

    return export_commands.listed(call.output)
