"""Errors that end a command, and those that functions report. Commands read the catalogue of errors here.

The catalogue itself is config/errors.toml.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from config.aws_denials import find_denial
from config.errors import (
    BLOCKED,
    CHANGES,
    DONE,
    FAILED,
    LATER,
    NOT_SET_UP,
    PAGE,
    STOPPED,
    WRONG_INPUT,
    Entry,
    UnknownCode,
    find_entry,
    load_catalogue,
    to_plain_text,
)
from lambdas.confluent import errors as confluent
from lambdas.links import errors as links
from lambdas.monitoring import errors as monitoring
from lambdas.notifications import errors as notifications
from lambdas.rotation import errors as rotation
from lambdas.shared import errors as shared
from lambdas.shared.errors import ErrorKind
from lambdas.shared.redaction import redact
from lambdas.snowflake import errors as snowflake

__all__ = [
    "BLOCKED",
    "CHANGES",
    "DONE",
    "FAILED",
    "LATER",
    "NOT_SET_UP",
    "PAGE",
    "STOPPED",
    "WRONG_INPUT",
    "CommandFailed",
    "Entry",
    "UnknownCode",
    "find_entry",
    "load_catalogue",
    "read",
    "to_plain_text",
]

#: Titles of the parts of Lakeferry by their names in errors.toml, in the order of the generated page.
PARTS: Final = {
    "exports": "Exports",
    "commands": "Commands",
    "resources": "Resources of a deployment",
    "rotation": "Rotation",
    "notifications": "Notifications",
    "monitoring": "Monitoring",
}
MODULES: Final = (shared, confluent, snowflake, rotation, notifications, links, monitoring)
#: The format in which lambdas/shared/errors.py writes an error.
_REPORTED: Final = re.compile(r"(?P<code>[A-Z]{2,}(?:-[A-Z]+)+)  (?P<what>.*?)\.? What to do: ", re.DOTALL)


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
        denial = find_denial(self.what)
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
        known = find_entry(code)
        self.exit_code = known.exit_code
        self.page = known.page
        self.code = code
        self.message = message
        self.why = why
        self.hint = hint or to_plain_text(known.remedy)
        self.details = details
        self.trace = trace


def list_kinds() -> list[ErrorKind]:
    """Return every error that functions raise."""
    return [value for module in MODULES for value in vars(module).values() if isinstance(value, ErrorKind)]


def read(message: str) -> Reported | None:
    """Parse the message of an error that a function reported.

    Return None if it has no error of the catalogue.
    """
    match = _REPORTED.search(redact(message))
    if match is None or (known := load_catalogue().get(match["code"])) is None:
        return None
    return Reported(known, match["what"].strip())
