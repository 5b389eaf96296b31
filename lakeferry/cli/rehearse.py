"""`lakeferry rehearse`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed

app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys={
        "passed": "Whether every check passed.",
        "seconds": "The duration in seconds.",
        "phases": "Each phase: name, seconds, checks (claim, seen, numbers), failure.",
        "not_covered": "What a rehearsal doesn't cover.",
        "seeds": "With `--faults`: the seeds that were run.",
        "hits": "With `--faults`: the number of calls that were made to fail, by vendor.",
        "failed_first": "With `--faults`: the number of steps that failed while calls were made to fail.",
        "steps": "With `--faults`: the number of steps.",
        "runs": "With `--faults`: the steps for each seed, with faults, attempts and seconds.",
    },
)
def rehearse(
    call: CommandContext,
    *,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave everything running until Ctrl-C, so that you can inspect it."),
    ] = False,
    faults: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Make random calls to all three vendors fail. The same seed makes the same calls fail.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write the report to.")] = Path("out"),
) -> Mapping[str, Any]:
    """Deploy everything into simulators on this machine, check that it works, destroy it, check that nothing
    is left.
    """
    from lakeferry.rehearsal import run

    if keep and faults is not None:
        message = "--keep leaves one deployment running, and --faults destroys its own"
        raise CommandFailed("USAGE", message, "Give one of them")
    if faults is not None:
        return run.run_fault_campaign(call.output, call.stage, [faults], out=out)
    return run.run_rehearsal(call.output, call.stage, out=out, keep=keep)
