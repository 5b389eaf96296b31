"""What a check says: how it went, what was found, what is needed, and the way to mend it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs


class Result(StrEnum):
    """`NONE` is for what can't be looked at yet."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    NONE = "none"


NOT_DEPLOYED: Final = "not deployed"


@attrs.frozen
class Check:
    """`needed` is "" where it goes without saying. `follows` names the check whose trouble this one only shows."""

    group: str
    name: str
    result: Result
    found: str
    needed: str = ""
    fix: str = ""
    follows: str = ""

    @property
    def is_root(self) -> bool:
        """Whether something is to be mended right here."""
        return self.result is Result.FAIL and not self.follows


@attrs.frozen
class Group:
    """Makes the checks of one group."""

    name: str

    def ok(self, name: str, found: str) -> Check:
        return Check(self.name, name, Result.OK, found)

    def warn(self, name: str, found: str, fix: str = "", needed: str = "") -> Check:
        return Check(self.name, name, Result.WARN, found, needed, fix)

    def fail(self, name: str, found: str, fix: str, needed: str = "") -> Check:
        return Check(self.name, name, Result.FAIL, found, needed, fix)

    def none(self, name: str, why: str = NOT_DEPLOYED) -> Check:
        return Check(self.name, name, Result.NONE, why)

    def all_none(self, names: Iterable[str], why: str = NOT_DEPLOYED) -> list[Check]:
        return [self.none(name, why) for name in names]


def followed(checks: Sequence[Check], reasons: Mapping[str, Collection[str]], remedy: str) -> list[Check]:
    """Some checks only show what is wrong before them in the chain. `reasons` are names of checks that can be why one fails,
    by its name; none means any. The first of them that failed is to be mended."""
    roots: list[str] = []
    made = []
    for check in checks:
        wrong = check.result is Result.FAIL
        why = [name for name in roots if wrong and check.name in reasons and name in (reasons[check.name] or roots)]
        if wrong and not why:
            roots.append(check.name)
        made.append(attrs.evolve(check, follows=why[0], fix=f"Mend “{why[0]}” first. {remedy}") if why else check)
    return made
