"""Waits for something that another process or thread does, with the product's own clock."""

from __future__ import annotations

from lambdas.shared.clock import Deadline, SystemClock

_PAUSE = 0.05
#: Seconds that a test waits for its process or thread before it fails. None takes as long, even on a busy
#: machine. pytest stops a test after 600 seconds, and then nobody sees what the process said.
PATIENCE = 500.0


def until(look, patience=20.0):
    """Return the first true value of `look`, or its last value when the time is over."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + patience)
    while not (found := look()) and deadline.left():
        clock.sleep(_PAUSE)
    return found
