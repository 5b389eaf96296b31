"""`lakeferry forget`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import BLOCKED, LATER, CommandFailed
from lakeferry.output import Output

app: Final = command_group()


@command(
    app,
    stage=True,
    exits=(LATER, BLOCKED),
    json_keys={
        "stage": "The deployment stage.",
        "stack": "The stack.",
        "logical_id": "The object's logical id in the stack.",
        "object": "Its type, its id at the vendor, and the organization or account in which it was.",
        "forgotten": "When, by whom and why.",
    },
)
def forget(
    call: CommandContext,
    *,
    stack: Annotated[str, typer.Argument(help="The stack's name, as the error shows it.")],
    logical_id: Annotated[
        str, typer.Argument(help="The object's logical id in the stack, as the error shows it.")
    ],
    why: Annotated[
        str, typer.Option("--why", help="Who deleted it, and why. The state and the log keep the text.")
    ] = "",
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="LOGICAL_ID",
            help="Confirm with the logical id instead of typing it when prompted.",
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Declare that somebody deleted an object at Confluent or Snowflake, so that deleting its stack doesn't
    wait for a proof.
    """
    from lakeferry.deployment.context import open_context
    from lakeferry.inventory import forget as core

    with open_context(call.stage) as ctx:
        with call.output.step(f"Looking for {logical_id}"):
            found = core.find(ctx, stack, logical_id)
        call.output.print(f"{found}: {found.existence.why or 'the login sees that it does not exist'}")
        call.output.print(
            "If it does exist, nothing deletes it any more, and it costs money. Look for it in the "
            "vendor's console."
        )
        _require_confirmed(call.output, logical_id, confirmed)
        note = core.forget(ctx, found, why or "no reason given")
    call.output.print(f"Forgotten: {found}. The deletion of {stack} passes over it")
    return {
        "stage": call.stage,
        "stack": stack,
        "logical_id": logical_id,
        "object": str(found),
        "forgotten": note,
    }


def _require_confirmed(output: Output, logical_id: str, confirmed: str | None) -> None:
    if confirmed is None and output.can_prompt:
        confirmed = output.ask(f"Type {logical_id} to forget it")
        if confirmed != logical_id:
            raise CommandFailed("STOPPED", "cancelled; nothing was changed", "Run the command again")
    if confirmed != logical_id:
        raise CommandFailed(
            "FORGET-NOT-CONFIRMED", f"{logical_id} was not confirmed", f"Add `--confirm {logical_id}`"
        )
