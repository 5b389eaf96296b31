"""What functions of a deployment say when they fail, read back into its parts."""

from __future__ import annotations

import re
from typing import Final

import attrs

from lambdas.shared.redaction import redact

#: As lambdas/shared/errors.py writes an error.
_OURS: Final = re.compile(
    r"(?P<code>[A-Z]{2,}(?:-[A-Z]+)+)  (?P<what>.*?)\.? Likely cause: (?P<why>.*?) What to do: (?P<fix>.*)", re.DOTALL
)


@attrs.frozen
class Refusal:
    code: str
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.code}  {self.what}"


def read(text: str) -> Refusal | None:
    """None where it isn't one of ours."""
    found = _OURS.search(redact(text))
    return Refusal(*(found[name].strip() for name in ("code", "what", "why", "fix"))) if found else None
