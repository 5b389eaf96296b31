"""`lakeferry doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.deployment import context as ground
from lakeferry.health import doctor, runner, tools
from lakeferry.health.model import Check, Result
from lakeferry.health.runner import Probe

_MARKS: Final = {Result.OK: "✓", Result.WARN: "!", Result.FAIL: "✗", Result.SKIPPED: "–"}
_INDENT: Final = "      "


def told(voice: Voice, stage: str) -> dict[str, Any]:
    """Raises CommandFailed where a check failed."""
    checks = _checks(voice, stage)
    show(voice, checks)
    document = {"stage": stage, "checks": [attrs.asdict(check) for check in checks]}
    require_well(checks, document)
    return document


def _checks(voice: Voice, stage: str) -> list[Check]:
    try:
        with ground.of(stage) as here:
            return _run(voice, doctor.probes(here))
    except CommandFailed as failure:
        if failure.code != "DEPLOYMENT-FILE":
            raise
        return [*_run(voice, doctor.machine_probes()), *tools.invalid_file(failure)]


def _run(voice: Voice, probes: Sequence[Probe]) -> list[Check]:
    with voice.step("Looking at") as tell:
        return runner.run(probes, tell)


def show(voice: Voice, checks: Sequence[Check]) -> None:
    """What is well is told in one line; what isn't, with what was found, what is needed and the way to mend it."""
    for group in dict.fromkeys(check.group for check in checks):
        voice.result(group)
        for check in _short([each for each in checks if each.group == group]):
            for line in lines(check, marks=voice.out.is_terminal):
                voice.result(line)
    counted = {result: sum(check.result is result for check in checks) for result in Result}
    voice.result(f"{counted[Result.OK]} ok, {counted[Result.WARN]} to look at, {counted[Result.FAIL]} wrong")


def _short(checks: list[Check]) -> list[Check]:
    """One line where nothing of a group can be looked at, and all for the same reason."""
    if len(checks) > 1 and {(check.result, check.found) for check in checks} == {(Result.SKIPPED, checks[0].found)}:
        return [attrs.evolve(checks[0], name=f"{len(checks)} checks")]
    return checks


def lines(check: Check, *, marks: bool) -> list[str]:
    mark = _MARKS[check.result] if marks else f"{check.result:<4}"
    told = [f"  {mark} {check.name}: {check.found}"]
    if check.needed:
        told.append(f"{_INDENT}needed: {check.needed}")
    if check.fix:
        told.append(f"{_INDENT}→ {check.fix}")
    return told


def require_well(checks: Sequence[Check], document: Any) -> None:
    """Raises CommandFailed; it names what is to be mended first."""
    failed = [check for check in checks if check.result is Result.FAIL]
    if not failed:
        return
    roots = [check for check in failed if check.is_root]
    names = ", ".join(f"{check.group}: {check.name}" for check in roots)
    raise CommandFailed("DOCTOR", f"{len(roots)} to correct: {names}", roots[0].fix, document)
