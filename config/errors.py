"""Typed access to errors.toml, the one place of each error's title, cause and remedy.

It is deployed with the functions and with the job. The file is read when the first error is raised.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Final

import attrs

#: One page explains all errors; each code has an anchor there.
PAGE: Final = "docs/reference/errors.md"
#: Exit codes from 0 to 7: success; failure; invalid input; this machine or something that `doctor` checks is
#: not ready; there are changes (`plan --check`); not possible yet, try later; stopped by the user; blocked by
#: a check.
DONE, FAILED, WRONG_INPUT, NOT_SET_UP, CHANGES, LATER, STOPPED, BLOCKED = range(8)
#: Parts whose errors can end a command. Errors of the other parts appear only in the logs of functions.
_END_COMMANDS: Final = ("exports", "commands", "resources")
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)]+)\)")


class UnknownCode(LookupError):
    """The catalogue has no such code."""


@attrs.frozen
class Entry:
    """An error of the catalogue. `cause` and `remedy` are Markdown, with links relative to docs/reference."""

    code: str
    part: str
    title: str
    cause: str
    remedy: str
    exit_code: int

    @property
    def page(self) -> str:
        return f"{PAGE}#{self.code.lower()}"

    @property
    def ends_commands(self) -> bool:
        return self.part in _END_COMMANDS


@functools.cache
def load_catalogue() -> Mapping[str, Entry]:
    """Return every error by its code, by part in the order of errors.toml, then by code."""
    # Python also imports this package from the job's zip, where only importlib finds the file.
    file = resources.files(__package__).joinpath("errors.toml")
    parts = tomllib.loads(file.read_text(encoding="utf-8"))
    catalogue: dict[str, Entry] = {}
    for part, tables in parts.items():
        for code, table in sorted(tables.items()):
            cause = " ".join(table["cause"].split())
            remedy = " ".join(table["remedy"].split())
            exit_code = table.get("exit", FAILED)
            catalogue[code] = Entry(code, part, table["title"], cause, remedy, exit_code)
    return catalogue


def find_entry(code: str) -> Entry:
    """Return the error with this code. Raises UnknownCode."""
    if known := load_catalogue().get(code):
        return known
    raise UnknownCode(f"errors.toml has no error {code!r}")


def to_plain_text(markdown: str) -> str:
    """Replace each Markdown link by its text and its target, with the path of a file relative to the root of
    the repository.
    """
    return _LINK.sub(lambda link: f"{link[1]} ({_resolve_target(link[2])})", markdown)


def _resolve_target(target: str) -> str:
    if "://" in target:
        return target
    if target.startswith("../"):
        return f"docs/{target.removeprefix('../')}"
    return f"docs/reference/{target}"
