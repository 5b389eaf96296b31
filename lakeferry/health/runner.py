"""Runs all groups of checks in parallel.

A group whose service hangs or fails neither delays nor stops the others.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import attrs

from lakeferry import error_translation
from lakeferry.errors import CommandFailed
from lakeferry.health.model import Check, Group

T = TypeVar("T")
#: Seconds to wait for an answer of a service.
PATIENCE: Final = 60.0


@attrs.frozen
class Probe:
    """Checks of one service, made in sequence.

    If it doesn't answer, one failed check called `name` takes their place.
    """

    group: Group
    name: str
    look: Callable[[], list[Check]]


def run(
    probes: Sequence[Probe], report: Callable[[str], object] = lambda _: None, patience: float = PATIENCE
) -> list[Check]:
    """Return the checks in the order of `probes`.

    A probe without an answer after `patience` seconds fails.
    """
    answers: queue.SimpleQueue[tuple[int, list[Check]]] = queue.SimpleQueue()
    for number, probe in enumerate(probes):
        # A daemon thread, because a service that hangs must not keep the command from ending.
        threading.Thread(
            target=lambda n=number, p=probe: answers.put((n, _run_guarded(p))), daemon=True
        ).start()
    finished: dict[int, list[Check]] = {}
    end = time.monotonic() + patience
    while len(finished) < len(probes):
        waiting = [probe for number, probe in enumerate(probes) if number not in finished]
        report(", ".join(dict.fromkeys(probe.group.name for probe in waiting)))
        try:
            number, checks = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        finished[number] = checks

    def silent(probe: Probe) -> Check:
        fix = "Check the network and the service's status page"
        failed = probe.group.fail(probe.name, f"no answer in {patience:g} s", fix)
        return attrs.evolve(failed, is_seen=False)

    answered = [finished.get(number, [silent(probe)]) for number, probe in enumerate(probes)]
    return [check for checks in answered for check in checks]


def _run_guarded(probe: Probe) -> list[Check]:
    try:
        return probe.look()
    except Exception as error:  # a bug in one check must not hide the results of the others
        return [report_failed(probe.group, probe.name, error)]


def attempt(group: Group, name: str, look: Callable[[], T]) -> T | Check:
    """Return what `look` returns, or a failed check of this name if it raises."""
    try:
        return look()
    except Exception as error:
        return report_failed(group, name, error)


def report_failed(group: Group, name: str, error: Exception) -> Check:
    """Return a failed check with the code and message that any command would report for the error.

    Missing permissions to read are a warning, not a failure.
    """
    failure = error if isinstance(error, CommandFailed) else error_translation.as_failure(error)
    if error_translation.is_aws_denial(error):
        return group.warn_unseen(name, f"can't be read: {failure.message}", failure.hint)
    failed = group.fail(name, f"{failure.code}: {failure.message}", failure.hint)
    return attrs.evolve(failed, is_seen=False)
