"""`lakeferry deploy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.cli.plan import PLANNED
from lakeferry.errors import LATER

app: Final = command_group()


@command(
    app,
    stage=True,
    yes=True,
    exits=(LATER,),
    json_keys={
        **PLANNED,
        "seconds": "How long it took.",
        "exists": "Outputs that people need: stack, name, what, value.",
        "next": "Commands that come next.",
    },
)
def deploy(
    call: CommandContext,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Also recreate objects that are missing at Confluent or Snowflake.")
    ] = False,
) -> Mapping[str, Any]:
    """Deploy what the deployment file says: check the prerequisites, show the plan, ask, deploy, and list the outputs."""
    from lakeferry.deploy import run

    return run.run_deploy(call.output, call.stage, yes=call.yes, repair=repair)
