"""`lakeferry rotate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import LATER, CommandFailed

app: Final = command_group()


@command(
    app,
    stage=True,
    yes=True,
    exits=(LATER,),
    json_keys={
        "stage": "The deployment stage.",
        "secrets": (
            "With --check, each: secret, vendor, age_days, next_rotation (seconds since 1970), "
            "overdue_days, pending_days, label of the live key, keys at the vendor (id, label, since), and "
            "trouble (why the vendor was not asked)."
        ),
        "rotated": "With --now and --revoke, each: secret, version (which is current now), seconds.",
        "revoked": (
            "With --revoke, an entry before and one after the rotation: secret, revoked, unmanaged, kept "
            "(ids of keys)."
        ),
    },
)
def rotate(
    call: CommandContext,
    *,
    secret: Annotated[
        str | None,
        typer.Argument(
            help="The name of a secret or its end, or confluent, snowflake or exports. Default: all secrets."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only show ages, live keys and next rotations. This is the default."),
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Replace the key, and wait until the new one is current.")
    ] = False,
    revoke: Annotated[
        bool,
        typer.Option(
            "--revoke", help="Replace a key that has leaked, and revoke all older keys immediately."
        ),
    ] = False,
) -> Mapping[str, Any]:
    """Show the ages of the keys that rotate on schedule, or replace or revoke keys now."""
    from lakeferry.credentials import rotation

    if check + now + revoke > 1:
        raise CommandFailed("USAGE", "--check, --now and --revoke can't be combined", "Give one of them")
    if now:
        return rotation.now(call.output, call.stage, secret, yes=call.yes)
    if revoke:
        return rotation.revoke(call.output, call.stage, secret, yes=call.yes)
    return rotation.check(call.output, call.stage, secret)
