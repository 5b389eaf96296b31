"""`lakeferry destroy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext
from lakeferry.errors import KEPT_BACK, LATER, CommandFailed

app: Final = frame.commands()


@frame.command(
    app,
    stage=True,
    yes=True,
    exits=(LATER, KEPT_BACK),
    json_keys={
        "stage": "Whose it is.",
        "account": "The AWS account.",
        "region": "The AWS region.",
        "goes": "With --plan: what would go, in order, as `inventory` tells it.",
        "stays": "With --plan: what would stay, each with why.",
        "stacks": "How many seconds each stack took that is gone.",
        "removed": "What no stack removed, and was removed by itself.",
        "items": "The inventory at the end.",
    },
)
def destroy(
    call: CommandContext,
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Only list what would go and what would stay, and why.")] = False,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="STAGE",
            help="The stage's name once more, instead of typing it when asked. --yes doesn't confirm.",
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Take a whole deployment down, in order, with what aborted deployments left, and look whether anything is left."""
    from lakeferry.cli import destroy_commands  # noqa: PLC0415 - commands load what they need

    if call.yes:
        hint = "Name the stage: `lakeferry destroy --confirm STAGE`"
        raise CommandFailed("USAGE", "`lakeferry destroy` takes no --yes: it doesn't say what is destroyed", hint)
    return destroy_commands.told(call.output, call.stage, confirmed=confirmed, plan_only=plan)
