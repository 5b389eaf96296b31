"""`lakeferry inventory`."""

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
        "account": "The AWS account.",
        "region": "The AWS region.",
        "items": "Each thing: world, kind, name, id, whose (a stack, `orphan`, or `-`), verdict (belongs, kept, left over, "
        "not asked), why, where (ids of what it lies in).",
    },
)
def inventory(call: CommandContext) -> Mapping[str, Any]:
    """What of a deployment exists in AWS, Confluent Cloud and Snowflake. It fails where something is left over."""
    from lakeferry.cli import inventory_commands  # noqa: PLC0415 - commands load what they need

    return inventory_commands.told(call.output, call.stage)
