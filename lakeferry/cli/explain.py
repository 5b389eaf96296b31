"""`lakeferry explain`: explain an error from the catalogue of errors."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry import errors
from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed, Entry
from lakeferry.output import Output, find_program_name

app: Final = command_group()
_CUTOFF: Final = 0.55
_MAX_SIMILAR: Final = 4
_MAX_SHOWN: Final = 8


def _complete_codes(incomplete: str) -> list[str]:
    return [code for code in errors.load_catalogue() if code.startswith(incomplete.upper())]


@command(
    app,
    json_keys={
        "errors": "The error with this code, or all: code, part, title, cause, remedy, exit_code, docs."
    },
)
def explain(
    call: CommandContext,
    *,
    code: Annotated[
        str | None,
        typer.Argument(
            help="The code of an error. Without it, all errors are listed.", autocompletion=_complete_codes
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Explain an error: what it is, its cause, and what to do."""
    if code is None:
        return {"errors": _print_all(call.output)}
    entry = _find(code)
    call.output.print(f"{entry.code}  {entry.title}")
    call.output.print(f"\nWhy          {errors.to_plain_text(entry.cause)}")
    call.output.print(f"What to do   {errors.to_plain_text(entry.remedy)}")
    if entry.ends_commands:
        call.output.print(f"Exit code    {entry.exit_code}")
    call.output.print(f"More         {entry.page}")
    return {"errors": [_document(entry)]}


def _print_all(output: Output) -> list[dict[str, Any]]:
    entries = errors.load_catalogue().values()
    for part, title in errors.PARTS.items():
        output.print(f"\n{title}")
        output.table(["code", "what"], [[entry.code, entry.title] for entry in entries if entry.part == part])
    output.print(f"\nNext: {find_program_name()} explain CODE")
    return [_document(entry) for entry in entries]


def _find(code: str) -> Entry:
    asked = code.strip().upper()
    try:
        return errors.find_entry(asked)
    except errors.UnknownCode:
        near = ", ".join(_find_similar_codes(asked, errors.load_catalogue()))
        hint = f"Similar: {near}" if near else f"`{find_program_name()} explain` lists all"
        raise CommandFailed("UNKNOWN-CODE", f"no error has the code {code!r}", hint) from None


def _find_similar_codes(asked: str, codes: Collection[str]) -> list[str]:
    close = difflib.get_close_matches(asked, codes, _MAX_SIMILAR, _CUTOFF)
    containing = [code for code in codes if asked and asked in code]
    similar = dict.fromkeys([*close, *containing])
    return list(similar)[:_MAX_SHOWN]


def _document(entry: Entry) -> dict[str, Any]:
    return {
        "code": entry.code,
        "part": entry.part,
        "title": entry.title,
        "cause": errors.to_plain_text(entry.cause),
        "remedy": errors.to_plain_text(entry.remedy),
        "exit_code": entry.exit_code if entry.ends_commands else None,
        "docs": entry.page,
    }
