"""Waits for something that is really under way elsewhere, through the product's own clock."""

from __future__ import annotations

from lambdas.core.clock import Deadline, SystemClock

_PAUSE = 0.05


def until(look, patience=20.0):
    """What `look` gives as soon as it gives something; what it gave last where it never does."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + patience)
    while not (found := look()) and deadline.left():
        clock.sleep(_PAUSE)
    return found
