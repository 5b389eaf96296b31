"""Waits for something that is really under way elsewhere, through the product's own clock."""

from __future__ import annotations

from lambdas.shared.clock import Deadline, SystemClock

_PAUSE = 0.05
#: Seconds that a test waits for a process or a thread of its own before it fails: more than any of them takes on a busy machine.
PATIENCE = 300.0


def until(look, patience=20.0):
    """What `look` gives as soon as it gives something; what it gave last where it never does."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + patience)
    while not (found := look()) and deadline.left():
        clock.sleep(_PAUSE)
    return found
