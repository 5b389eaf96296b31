"""Asks all that there is to ask at once: nobody waits for somebody else's service, and no check stops another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from lakeferry.cli import troubles
from lakeferry.cli.output import CommandFailed
from lakeferry.health.model import Check, Group
from lambdas.shared import errors

Tell = Callable[[str], object]
T = TypeVar("T")
#: Seconds after which a service has not answered.
PATIENCE: Final = 60.0
_DENIED: Final = (
    "AccessDenied",
    "AccessDeniedException",
    "UnauthorizedOperation",
    "AuthorizationError",
    "AuthorizationErrorException",
)


@attrs.frozen
class Probe:
    """Checks that ask one service, one after the other. `name` stands for all of them where it doesn't answer."""

    group: Group
    name: str
    look: Callable[[], list[Check]]


def run(probes: Sequence[Probe], tell: Tell = lambda _: None, patience: float = PATIENCE) -> list[Check]:
    """In the order of `probes`. What has not answered after `patience` seconds is told, and left behind."""
    answers: queue.SimpleQueue[tuple[int, list[Check]]] = queue.SimpleQueue()
    for number, probe in enumerate(probes):
        # A daemon: a service that hangs must not keep the command from ending.
        threading.Thread(target=lambda n=number, p=probe: answers.put((n, _guarded(p))), daemon=True).start()
    found: dict[int, list[Check]] = {}
    end = time.monotonic() + patience
    while len(found) < len(probes):
        waiting = [probe for number, probe in enumerate(probes) if number not in found]
        tell(", ".join(dict.fromkeys(probe.group.name for probe in waiting)))
        try:
            number, checks = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[number] = checks
    return [check for number, probe in enumerate(probes) for check in found.get(number) or [_silent(probe, patience)]]


def _guarded(probe: Probe) -> list[Check]:
    try:
        return probe.look()
    except Exception as error:  # a mistake in one check must not hide all others
        return [failed(probe.group, probe.name, error)]


def tried(group: Group, name: str, look: Callable[[], Check]) -> Check:
    """One check of several that ask one service."""
    try:
        return look()
    except Exception as error:
        return failed(group, name, error)


def found(group: Group, name: str, look: Callable[[], T]) -> T | Check:
    """What the following checks are about; the check of this name where it can't be had."""
    try:
        return look()
    except Exception as error:
        return failed(group, name, error)


def failed(group: Group, name: str, error: Exception) -> Check:
    """As any command would tell it. What the operator may not look at is not known, which isn't wrong."""
    failure = error if isinstance(error, CommandFailed) else troubles.as_failure(error)
    if failure.code == errors.STORAGE.code and failure.message.endswith(_DENIED):
        return group.warn(name, f"may not be looked at: {failure.message}", failure.hint)
    return group.fail(name, f"{failure.code}: {failure.message}", failure.hint)


def _silent(probe: Probe, patience: float) -> Check:
    return probe.group.fail(probe.name, f"no answer in {patience:g} s", "Check the network and the service's status page")
