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
        "phases": (
            "Each phase: name, seconds, checks (claim, seen, numbers), failure, not_applicable (claim, why)."
        ),
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
    example: Annotated[
        bool,
        typer.Option(
            "--example",
            help="Rehearse the deployment that comes with the command, instead of that of a stage.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder to write the report to.")] = Path("out"),
) -> Mapping[str, Any]:
    """Deploy the file of a stage into simulators on this machine, check that it works, destroy it, check that
    nothing is left.
    """
    from lakeferry.rehearsal import run
    from lakeferry.rehearsal import subject as subjects

    if keep and faults is not None:
        message = "--keep leaves one deployment running, and --faults destroys its own"
        raise CommandFailed("USAGE", message, "Give one of them")
    source = call.get_parameter_source("stage")
    if example and source is not None and source.name == "COMMANDLINE":
        message = "--example rehearses a deployment of its own, and --stage names another one"
        raise CommandFailed("USAGE", message, "Give one of them")
    subject = subjects.load_example() if example else subjects.load_stage(call.stage)
    if faults is not None:
        return run.run_fault_campaign(call.output, subject, [faults], out=out)
    return run.run_rehearsal(call.output, subject, out=out, keep=keep)
