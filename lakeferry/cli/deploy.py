"""`lakeferry deploy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.cli.plan import PLANNED
from lakeferry.errors import BLOCKED, LATER

app: Final = command_group()


@command(
    app,
    stage=True,
    yes=True,
    exits=(LATER, BLOCKED),
    json_keys={
        **PLANNED,
        "seconds": "Duration of the deployment.",
        "outputs": "Outputs of the stacks: stack, name, description, value.",
        "next": "The next commands.",
    },
)
def deploy(
    call: CommandContext,
    *,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Also recreate objects that are missing at Confluent or Snowflake."),
    ] = False,
) -> Mapping[str, Any]:
    """Deploy: check prerequisites, show the plan, ask for confirmation, deploy, and show the outputs."""
    from lakeferry.deploy import run

    return run.run_deploy(call.output, call.stage, yes=call.yes, repair=repair)
