"""Typed access to errors.toml, the catalogue of errors.

Commands, `lakeferry explain` and the generated pages read it here.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from config.aws_denials import denial_of
from lambdas.confluent import errors as confluent
from lambdas.monitoring import errors as monitoring
from lambdas.notifications import errors as notifications
from lambdas.rotation import errors as rotation
from lambdas.shared import errors as shared
from lambdas.shared.errors import ErrorRow
from lambdas.shared.redaction import redact
from lambdas.snowflake import errors as snowflake

FILE: Final = Path(__file__).with_name("errors.toml")
#: One page explains all errors; each code has an anchor there.
PAGE: Final = "docs/reference/errors.md"
#: Exit codes from 0 to 7: success; failure; invalid input; this machine or something that `doctor` checks is
#: not ready; there are changes (`plan --check`); not possible yet, try later; stopped by the user; blocked by
#: a check.
DONE, FAILED, WRONG_INPUT, NOT_SET_UP, CHANGES, LATER, STOPPED, KEPT_BACK = range(8)
#: Titles of the parts of Lakeferry by their names in errors.toml, in the order of the generated page.
PARTS: Final = {
    "exports": "Exports",
    "commands": "Commands",
    "resources": "Resources of a deployment",
    "rotation": "Rotation",
    "notifications": "Notifications",
    "monitoring": "Monitoring",
}
#: Parts whose errors can end a command. Errors of the other parts appear only in the logs of functions.
_END_COMMANDS: Final = ("exports", "commands", "resources")
ROWS: Final = (shared, confluent, snowflake, rotation, notifications, monitoring)
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)]+)\)")
#: The format in which lambdas/shared/errors.py writes an error.
_REPORTED: Final = re.compile(r"(?P<code>[A-Z]{2,}(?:-[A-Z]+)+)  (?P<what>.*?)\.? What to do: ", re.DOTALL)


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


@attrs.frozen
class Reported:
    """An error that a function of a deployment reported."""

    entry: Entry
    what: str

    @property
    def remedy(self) -> str:
        """What the function advised: against what denied a call of AWS, if the message names it, else the
        catalogue's advice.
        """
        denial = denial_of(self.what)
        return denial.remedy if denial else self.entry.remedy

    def __str__(self) -> str:
        return f"{self.entry.code}  {self.what}"


class CommandFailed(Exception):
    """Ends a command with an error, which is shown as text or, with --json, as a document.

    The catalogue must have `code`; it gives the exit code. `hint` replaces the catalogue's remedy where there
    is more specific advice. `why` is the likely cause, `details` goes into the document, `trace` is shown
    with --verbose. Raises UnknownCode.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", details: Any = None, *, why: str = "", trace: str = ""
    ) -> None:
        super().__init__(message)
        known = entry(code)
        self.exit_code = known.exit_code
        self.page = known.page
        self.code = code
        self.message = message
        self.why = why
        self.hint = hint or plain(known.remedy)
        self.details = details
        self.trace = trace


@functools.cache
def catalogue() -> Mapping[str, Entry]:
    """Return every error by its code, by part in the order of errors.toml, then by code."""
    remedies = {row.code: row.remedy for row in rows()}
    parts = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        code: _entry(code, part, entry, remedies)
        for part, entries in parts.items()
        for code, entry in sorted(entries.items())
    }


def entry(code: str) -> Entry:
    """Return the error with this code. Raises UnknownCode."""
    if known := catalogue().get(code):
        return known
    raise UnknownCode(f"{FILE.name} has no error {code!r}")


def rows() -> list[ErrorRow]:
    """Return every error that lambdas raise.

    Their remedies are in the code of lambdas, because their messages contain them.
    """
    return [row for module in ROWS for row in vars(module).values() if isinstance(row, ErrorRow)]


def read(message: str) -> Reported | None:
    """Parse the message of an error that a function reported.

    Return None if it has no error of the catalogue.
    """
    match = _REPORTED.search(redact(message))
    if match is None or (known := catalogue().get(match["code"])) is None:
        return None
    return Reported(known, match["what"].strip())


def plain(markdown: str) -> str:
    """Replace each Markdown link by its text and its target, with the path of a file relative to the root of
    the repository.
    """
    return _LINK.sub(lambda link: f"{link[1]} ({_target(link[2])})", markdown)


def _target(link: str) -> str:
    if "://" in link:
        return link
    return f"docs/{link.removeprefix('../')}" if link.startswith("../") else f"docs/reference/{link}"


def _entry(code: str, part: str, given: Mapping[str, Any], remedies: Mapping[str, str]) -> Entry:
    title = given["title"]
    cause = " ".join(given["cause"].split())
    remedy = " ".join(given["remedy"].split()) if "remedy" in given else remedies[code]
    return Entry(code, part, title, cause, remedy, given.get("exit", FAILED))
