"""What a rehearsal proves: one claim after another, each with what was seen."""

from __future__ import annotations

from typing import Any

import attrs


class NotProven(Exception):
    """A claim that what was seen contradicts; the sentence says what was seen."""


def require(holds: object, otherwise: str) -> None:
    """Raises NotProven."""
    if not holds:
        raise NotProven(otherwise)


@attrs.frozen
class Proof:
    """`claim` is a sentence, `seen` what shows it; `numbers` are the same for programs."""

    claim: str
    seen: str
    numbers: dict[str, Any] = attrs.Factory(dict)


@attrs.frozen
class Phase:
    """A part of a rehearsal. `seconds` are of the clock on the wall."""

    name: str
    seconds: float
    proofs: list[Proof]
    failure: str = ""
