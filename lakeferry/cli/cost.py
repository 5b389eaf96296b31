"""`lakeferry cost`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext

app: Final = frame.commands()


@frame.command(
    app,
    stage=True,
    json_keys={
        "stage": "Whose it is.",
        "currency": "USD.",
        "month": "The sums, `low` and `high`.",
        "lines": "What is billed by the month: what, from, to, how it was reckoned, and by which prices.",
        "rates": "What each further use costs.",
        "left_out": "What no sum holds.",
    },
)
def cost(call: CommandContext) -> Mapping[str, Any]:
    """What a deployment file costs a month, before anything is made: a range, rates by use, and what is left out."""
    from lakeferry.cli import cost_commands  # noqa: PLC0415 - commands load what they need

    return cost_commands.told(call.output, call.stage)
