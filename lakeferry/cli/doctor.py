"""`lakeferry doctor`."""

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
        "checks": "Each check: group, name, result (`ok`, `warn`, `fail`, or `none` where it can't be looked at yet), found, "
        "needed, fix, follows (the check whose trouble this one only shows).",
    },
)
def doctor(call: CommandContext) -> Mapping[str, Any]:
    """Look at what stands in the way of a deployment, or broke in one: tools, keys, rights, and who trusts whom, hop by hop."""
    from lakeferry.cli import doctor_commands  # noqa: PLC0415 - commands load what they need

    return doctor_commands.told(call.output, call.stage)
