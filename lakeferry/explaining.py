"""`lakeferry explain`: what an error is, why it comes and what to do, from the data of its page."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, Final

from lakeferry.console import WRONG_INPUT, CommandFailed, Voice, command, page_of
from lakeferry.reference import known_errors
from lakeferry.reference.known_errors import Known

_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)]+)\)")
_NEAR: Final = 0.55
_MOST_SIMILAR: Final = 4
_MOST_NEAR: Final = 8


def told(voice: Voice, code: str | None) -> dict[str, Any]:
    """Raises CommandFailed for a code that nothing of ours has."""
    if code is None:
        return _all(voice)
    known = _found(code)
    voice.result(f"{known.code}  {known.what}")
    voice.result(f"\nWhy          {plain(known.why)}")
    voice.result(f"What to do   {plain(known.fix)}")
    if known.ends_commands:
        voice.result(f"Exit code    {' or '.join(map(str, known.exits))}")
    voice.result(f"More         {page_of(known.code)}")
    return {"errors": [_as_document(known)]}


def plain(markdown: str) -> str:
    """Links as what they lead to, as seen from the project's folder."""
    return _LINK.sub(lambda link: f"{link[1]} ({_place(link[2])})", markdown)


def _place(target: str) -> str:
    if "://" in target:
        return target
    return f"docs/{target.removeprefix('../')}" if target.startswith("../") else f"docs/reference/{target}"


def _all(voice: Voice) -> dict[str, Any]:
    everything = list(known_errors.by_code().values())
    for room in dict.fromkeys(known.room for known in everything):
        voice.result(f"\n{room}")
        voice.table(["code", "what"], [[known.code, known.what] for known in everything if known.room == room])
    voice.result(f"\nNext: {command()} explain CODE")
    return {"errors": [_as_document(known) for known in everything]}


def _found(code: str) -> Known:
    asked, every = code.strip().upper(), known_errors.by_code()
    if asked in every:
        return every[asked]
    near = ", ".join(_near(asked, every))
    hint = f"Near it: {near}" if near else f"`{command()} explain` lists all"
    raise CommandFailed(WRONG_INPUT, "UNKNOWN-CODE", f"no error has the code {code!r}", hint)


def _near(asked: str, every: Iterable[str]) -> list[str]:
    codes = list(every)
    holding = [code for code in codes if asked and asked in code]
    return list(dict.fromkeys([*difflib.get_close_matches(asked, codes, _MOST_SIMILAR, _NEAR), *holding]))[:_MOST_NEAR]


def _as_document(known: Known) -> dict[str, Any]:
    return {
        "code": known.code,
        "room": known.room,
        "what": known.what,
        "why": plain(known.why),
        "fix": plain(known.fix),
        "exit_codes": list(known.exits) if known.ends_commands else [],
        "docs": page_of(known.code),
    }
