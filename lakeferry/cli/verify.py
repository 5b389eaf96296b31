"""`lakeferry verify`."""

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
        "stage": "The deployment stage.",
        "deployment": "The prefix of its names.",
        "account": "The AWS account that was asked.",
        "region": "The region.",
        "caller": "The ARN of the login that asked.",
        "began": "When it began, in UTC.",
        "ended": "When it ended, in UTC.",
        "passed": "Whether nothing failed, and nothing is unknown.",
        "counts": "How many findings have each outcome: `passed`, `failed`, `unknown`, `not asked`.",
        "versions": "What asked, and the SHA-256 of the files by which it judged.",
        "templates": "The SHA-256 of each stack's template, by the stack's name; empty if unknown.",
        "findings": "Each finding: claim, about, asked (who was asked what), seen, outcome.",
        "files": "The files with the evidence.",
    },
)
def verify(
    call: CommandContext,
    *,
    last: Annotated[
        int, typer.Option(min=1, help="How many of the newest windows of each export to verify.")
    ] = 1,
    no_recompute: Annotated[
        bool,
        typer.Option(
            "--no-recompute",
            help="Don't compute the windows a second time on this machine, which reads their events.",
        ),
    ] = False,
    assumptions: Annotated[
        bool,
        typer.Option(
            "--assumptions",
            help="Ask instead whether the services answer as the simulators assume.",
        ),
    ] = False,
    glue_probe: Annotated[
        str,
        typer.Option(
            metavar="EXPORT",
            help="Start a run of this export's job that checks Glue and exports nothing, and read its log.",
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="The folder to write the evidence to.")] = Path("out"),
) -> Mapping[str, Any]:
    """Check a deployment in the real accounts without changing anything, and write what was seen as evidence.

    Fails if something failed or is unknown.
    """
    from lakeferry.verification.run import Question, run_verify

    if assumptions and glue_probe:
        message = "--assumptions only reads, and --glue-probe starts a run"
        raise CommandFailed("USAGE", message, "Give one of them")
    question = Question(last, not no_recompute, assumptions, glue_probe)
    return run_verify(call.output, call.stage, out=out, question=question)
