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
        "passed": "Whether every check did.",
        "seconds": "How long it took.",
        "phases": "Name, seconds, checks (claim, seen, numbers) and failure of each.",
        "not_covered": "What a rehearsal doesn't cover.",
        "seeds": "With `--faults`: the seeds that were run.",
        "hits": "With `--faults`: how many calls were hit, by vendor.",
        "failed_first": "With `--faults`: how many steps failed under faults.",
        "steps": "With `--faults`: how many steps there were.",
        "runs": "With `--faults`: of each seed its steps, with faults, attempts and seconds.",
    },
)
def rehearse(
    call: CommandContext,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running to look around, until Ctrl-C.")] = False,
    faults: Annotated[
        int | None, typer.Option(metavar="SEED", help="Fail random calls to all three vendors; the same for the same seed.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("out"),
) -> Mapping[str, Any]:
    """Deploy everything into simulators on this machine, check that it works, destroy it, check that nothing is left."""
    from rehearsal import run

    if keep and faults is not None:
        message = "--keep leaves one deployment running, and --faults destroys its own"
        raise CommandFailed("USAGE", message, "Give one of them")
    if faults is not None:
        return run.run_fault_campaign(call.output, call.stage, [faults], out=out)
    return run.run_rehearsal(call.output, call.stage, out=out, keep=keep)
