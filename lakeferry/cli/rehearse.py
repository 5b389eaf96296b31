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
        "proven": "Whether everything was.",
        "seconds": "How long it took.",
        "phases": "Name, seconds, proofs (claim, seen, numbers) and failure of each.",
        "not_proven": "What a rehearsal can't prove.",
        "seeds": "With `--nemesis`: the seeds that were lived.",
        "hits": "With `--nemesis`: how many calls were hit, by vendor.",
        "failed_first": "With `--nemesis`: how many steps failed under faults.",
        "steps": "With `--nemesis`: how many steps there were.",
        "lives": "With `--nemesis`: of each seed its steps, with faults, runs and seconds.",
    },
)
def rehearse(
    call: CommandContext,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running to look around, until Ctrl-C.")] = False,
    nemesis: Annotated[
        int | None, typer.Option(metavar="SEED", help="Faults at random calls of all three vendors; the same for the same seed.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("out"),
) -> Mapping[str, Any]:
    """Deploy everything for real into stand-ins on this machine, prove that it works, destroy it, prove that nothing is left."""
    from rehearsal import run

    if keep and nemesis is not None:
        message = "--keep leaves one deployment running, and --nemesis destroys its own"
        raise CommandFailed("USAGE", message, "Give one of them")
    if nemesis is not None:
        return run.under_faults(call.output, call.stage, [nemesis], out=out)
    return run.run_rehearsal(call.output, call.stage, out=out, keep=keep)
