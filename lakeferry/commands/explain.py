"""`lakeferry explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry import frame
from lakeferry.frame import Call

app: Final = frame.commands()


def _codes(incomplete: str) -> list[str]:
    from lakeferry.reference import known_errors  # noqa: PLC0415 - commands load what they need

    return [code for code in known_errors.by_code() if code.startswith(incomplete.upper())]


@frame.command(app, says={"errors": "Of the code, or of all: code, room, what, why, fix, exit_codes, docs."})
def explain(
    call: Call,
    *,
    code: Annotated[str | None, typer.Argument(help="An error's code; all of them without it.", autocompletion=_codes)] = None,
) -> Mapping[str, Any]:
    """What an error is, why it comes, and what to do."""
    from lakeferry import explaining  # noqa: PLC0415

    return explaining.told(call.voice, code)
