"""`lakeferry plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext
from lakeferry.errors import CHANGES

#: What a plan says, also one that is carried out.
PLANNED: Final = {
    "stage": "Whose it is.",
    "account": "The AWS account.",
    "region": "The AWS region.",
    "changes": "Each resource that would change: stack, world (AWS, Confluent, Snowflake), what, logical_id, name, action, "
    "why (property is a path; before, after, does, follows, perhaps) and what the old object takes along (loses).",
    "losses": "Of these, those with which something is lost.",
    "permissions": "Each resource whose policy statements would change: stack, logical_id, type, added, removed, broadens.",
    "settings": "Outputs, tags and protection of stacks that would change: stack, what, before, after.",
    "unwanted": "Stacks that are deployed and that the file no longer wants; they stay.",
    "phases": "Each stack's part: minutes from low to high, and seconds of the last time.",
    "cost": "What it costs a month while it stands: currency, low, high.",
}
app: Final = frame.commands()


@frame.command(
    app,
    stage=True,
    exits=(CHANGES,),
    json_keys=PLANNED,
)
def plan(
    call: CommandContext,
    *,
    check: Annotated[bool, typer.Option("--check", help="End with exit code 4 where anything would change.")] = False,
) -> Mapping[str, Any]:
    """What deploying would make, change, replace and delete, in AWS, Confluent Cloud and Snowflake, with why. Changes nothing."""
    from lakeferry.plan import run as flow  # noqa: PLC0415 - commands load what they need

    return flow.told(call.output, call.stage, check=check)
