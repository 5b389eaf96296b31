"""`lakeferry export links`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lakeferry.cli.app import CommandContext, command
from lakeferry.cli.export import app
from lakeferry.cli.export_ranges import Name
from lakeferry.errors import CommandFailed

__all__ = ["app"]


@command(
    app,
    stage=True,
    yes=True,
    json_keys={
        "stage": "The deployment stage.",
        "export": "The contract's name.",
        "days": "Days for which a link works.",
        "downloads_allowed": "How many files a link downloads at most.",
        "links": (
            "Links with which files were downloaded, those used last first: window, generation, recipient, "
            "downloads, first and last (seconds since 1970), files (downloads by name)."
        ),
        "revoked": (
            "What ends links before their time: at (links signed until then, in seconds since 1970), window "
            "and recipient, each of which may be `any`."
        ),
        "revoked_now": "With --revoke, the entries that this call added: at, window, recipient.",
    },
)
def links(
    call: CommandContext,
    *,
    name: Name,
    revoke: Annotated[
        bool,
        typer.Option("--revoke", help="End the links that were sent until now. Later mails have new ones."),
    ] = False,
    recipient: Annotated[
        str,
        typer.Option(help="With --revoke: an address, also one that is no longer in the file. Default: all."),
    ] = "",
    windows: Annotated[
        str,
        typer.Option(help="With --revoke: a range like 2026-W40..W44, or a list with commas. Default: all."),
    ] = "",
) -> Mapping[str, Any]:
    """Show which links in mails about an export were used, or end links before their time."""
    from lakeferry.exports import links as commands

    if not revoke:
        if recipient or windows:
            raise CommandFailed("USAGE", "--recipient and --windows need --revoke", "Give --revoke too")
        return commands.show(call.output, call.stage, name)
    return commands.revoke(call.output, call.stage, name, recipient=recipient, windows=windows, yes=call.yes)
