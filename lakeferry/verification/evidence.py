"""What was asked in real accounts, what was seen, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry import error_translation
from lakeferry.errors import CommandFailed
from lakeferry.health.model import Observation, State
from lambdas.shared.redaction import redact


class Outcome(StrEnum):
    """`UNKNOWN`: it was asked, and the answer doesn't tell. `NOT_ASKED`: it doesn't apply, or asking would
    change something.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_ASKED = "not asked"


#: What an observation of `status` means. What hasn't happened yet can't be seen.
_OUTCOMES: Final = {
    State.OK: Outcome.PASSED,
    State.WAITING: Outcome.UNKNOWN,
    State.ACTION_NEEDED: Outcome.FAILED,
    State.WRONG: Outcome.FAILED,
    State.UNKNOWN: Outcome.UNKNOWN,
}


@attrs.frozen
class Finding:
    """`claim` is what should hold of `about`; `asked` says who was asked what. No text has a secret, or a
    value of data.
    """

    claim: str
    about: str
    asked: str
    seen: str
    outcome: Outcome


@attrs.frozen
class Answer:
    """What was seen, and whether the claim holds: None if it can't be told."""

    holds: bool | None
    seen: str


@attrs.frozen
class Asked:
    """Makes findings about one thing, of which one service was asked."""

    claim: str
    about: str
    asked: str

    def found(self, outcome: Outcome, seen: str) -> Finding:
        return Finding(self.claim, self.about, self.asked, redact(seen), outcome)

    def passed(self, seen: str) -> Finding:
        return self.found(Outcome.PASSED, seen)

    def failed(self, seen: str) -> Finding:
        return self.found(Outcome.FAILED, seen)

    def unknown(self, seen: str) -> Finding:
        return self.found(Outcome.UNKNOWN, seen)

    def not_asked(self, why: str) -> Finding:
        return self.found(Outcome.NOT_ASKED, why)

    def observed(self, observation: Observation, seen: str = "") -> Finding:
        return self.found(_OUTCOMES[observation.state], observation.message or seen)

    def look(self, look: Callable[[], Answer]) -> Finding:
        """Return what `look` sees. If it raises, the claim is unknown, whatever the error is."""
        try:
            answer = look()
        except Exception as error:
            return self.unknown(explain_unseen(error))
        if answer.holds is None:
            return self.unknown(answer.seen)
        return self.passed(answer.seen) if answer.holds else self.failed(answer.seen)


def explain_unseen(error: Exception) -> str:
    """Return why something could not be seen, with the error's code."""
    failure = error if isinstance(error, CommandFailed) else error_translation.as_failure(error)
    return f"{failure.code}  {failure.message}"


def count_outcomes(findings: Sequence[Finding]) -> dict[str, int]:
    outcomes = [finding.outcome for finding in findings]
    return {str(outcome): outcomes.count(outcome) for outcome in Outcome}


def describe(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON values."""
    return [{**attrs.asdict(finding), "outcome": str(finding.outcome)} for finding in findings]
