"""The health of a deployment: checks of requirements, for doctor, and observations of values, for status."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas.monitoring import errors as monitoring_errors
from lambdas.shared.errors import LakeferryError

NOT_DEPLOYED: Final = "not deployed"
#: Error codes that mean that the first record or table hasn't arrived yet, which is not a failure, and what
#: to show instead.
_NOT_YET: Final = {
    monitoring_errors.NO_COMMIT.code: "the table is empty: no record has arrived yet",
    monitoring_errors.NO_TABLE.code: "there is no table yet: it appears with the topic's first records",
}


class Result(StrEnum):
    """`SKIPPED`: the check doesn't apply, or can't be made yet."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skip"


@attrs.frozen
class Check:
    """`needed` is the required value, "" if it is obvious.

    `caused_by` is the name of the check whose failure caused this one. If `is_seen` is false, what the check
    is about could not be seen.
    """

    group: str
    name: str
    result: Result
    message: str
    needed: str = ""
    fix: str = ""
    caused_by: str = ""
    is_seen: bool = True

    @property
    def is_root(self) -> bool:
        """Return whether the check failed, and not because another check did."""
        return self.result is Result.FAIL and not self.caused_by


@attrs.frozen
class Group:
    """Creates the checks of one group."""

    name: str

    def ok(self, name: str, message: str) -> Check:
        return Check(self.name, name, Result.OK, message)

    def warn(self, name: str, message: str, fix: str = "", needed: str = "") -> Check:
        return Check(self.name, name, Result.WARN, message, needed, fix)

    def fail(self, name: str, message: str, fix: str, needed: str = "") -> Check:
        return Check(self.name, name, Result.FAIL, message, needed, fix)

    def warn_unseen(self, name: str, message: str, fix: str = "", needed: str = "") -> Check:
        """Warn of something that could not be seen, or not yet, so that nobody knows whether it is right."""
        return Check(self.name, name, Result.WARN, message, needed, fix, is_seen=False)

    def skip(self, name: str, why: str) -> Check:
        """Return a check that doesn't apply to the deployment."""
        return Check(self.name, name, Result.SKIPPED, why)

    def skip_all(self, names: Iterable[str], why: str) -> list[Check]:
        return [self.skip(name, why) for name in names]

    def skip_unseen(self, name: str, why: str = NOT_DEPLOYED) -> Check:
        """Return a check that applies and could not be made."""
        return Check(self.name, name, Result.SKIPPED, why, is_seen=False)

    def skip_all_unseen(self, names: Iterable[str], why: str = NOT_DEPLOYED) -> list[Check]:
        return [self.skip_unseen(name, why) for name in names]


def mark_consequences(
    checks: Sequence[Check], causes: Mapping[str, Collection[str]], remedy: str
) -> list[Check]:
    """Mark the checks that failed only because an earlier check in the list failed.

    `causes` maps the name of a check to the names of the earlier checks that can make it fail; an empty
    collection means any.
    """
    roots: list[str] = []
    marked = []
    for check in checks:
        failed = check.result is Result.FAIL
        why = [
            name
            for name in roots
            if failed and check.name in causes and name in (causes[check.name] or roots)
        ]
        if failed and not why:
            roots.append(check.name)
        marked.append(
            attrs.evolve(check, caused_by=why[0], fix=f"Caused by “{why[0]}”: fix that first. {remedy}")
            if why
            else check
        )
    return marked


class State(StrEnum):
    """`ACTION_NEEDED`: a person may have to do something. Only `WRONG` and `UNKNOWN` fail the command."""

    OK = "ok"
    WAITING = "waiting"
    ACTION_NEEDED = "action needed"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@attrs.frozen
class Observation:
    """`value` is in the unit of the measurement, such as hours; `message` is the text to show with it."""

    state: State
    value: float | None = None
    message: str = ""
    code: str = ""

    def document(self) -> dict[str, Any]:
        return {"state": self.state, "value": self.value, "message": self.message, "code": self.code}


def observe(read: Callable[[], Any]) -> Any:
    """Return what `read` returns, or an Observation that says why `read` failed."""
    try:
        with translate_aws_errors("reading from AWS"):
            return read()
    except CommandFailed as failure:
        return Observation(State.UNKNOWN, message=failure.message, code=failure.code)
    except LakeferryError as error:
        if words := _NOT_YET.get(error.kind.code):
            return Observation(State.WAITING, message=words, code=error.kind.code)
        state = State.WRONG if error.kind.code == monitoring_errors.NOT_REFRESHING.code else State.UNKNOWN
        return Observation(state, message=error.what, code=error.kind.code)


def format_hours(hours: float) -> str:
    """Return a duration as text, such as 35 s, 4 min, 3.2 h or 2.1 days."""
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    if hours < 1:
        return f"{hours * 60:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
