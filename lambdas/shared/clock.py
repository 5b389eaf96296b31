"""The clock, which everything that depends on time gets as a parameter.

Nothing else in `lambdas` reads the time or sleeps.
"""

from __future__ import annotations

import time
from typing import Protocol

import attrs


class Clock(Protocol):
    def time(self) -> float:
        """Return the seconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@attrs.frozen
class Deadline:
    """The time after which nothing new may start. `at` is in seconds since 1970."""

    clock: Clock
    at: float

    def left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self.at - self.clock.time())
