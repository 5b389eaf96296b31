"""`lakeferry deploy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry import frame
from lakeferry.commands.plan import PLANNED
from lakeferry.console import LATER
from lakeferry.frame import Call

app: Final = frame.commands()


@frame.command(
    app,
    stage=True,
    yes=True,
    exits=(LATER,),
    says={
        **PLANNED,
        "seconds": "How long it took.",
        "exists": "Outputs that people need: stack, name, what, value.",
        "next": "Commands that come next.",
    },
)
def deploy(
    call: Call,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Also create objects again that are missing at Confluent or Snowflake.")
    ] = False,
) -> Mapping[str, Any]:
    """Make what the deployment file says: look whether all is there, show the plan, ask, deploy, and say what exists."""
    from lakeferry.deploying import flow  # noqa: PLC0415 - commands load what they need

    return flow.told(call.voice, call.stage, yes=call.yes, repair=repair)
