"""The clock of a simulator. It runs `scale` times as fast as real time and can be advanced; nothing ever
sleeps.

What a vendor does in the background (a cluster becomes ready, a connector produces records) is an action with
a due time. Due actions run in the order of their due times, before the next call is served.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime

Action = Callable[[], object]


class Clock:
    """All times are seconds since 1970 UTC. With `scale` 0, only `advance` changes the time."""

    def __init__(self, scale: float = 1.0, start: float | None = None) -> None:
        _require_forward(scale)
        self._scale = scale
        self._start = time.time() if start is None else start
        self._began = time.monotonic()
        self._advanced = 0.0
        self._acting_at: float | None = None
        self._due: list[tuple[float, int, Action]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Return the current time; while a due action runs, the time at which it was due."""
        if self._acting_at is not None:
            return self._acting_at
        return self._read_present()

    def _read_present(self) -> float:
        return self._start + self._advanced + (time.monotonic() - self._began) * self._scale

    def format_time(self, moment: float | None = None) -> str:
        """Return `moment`, by default now, as RFC 3339 text in UTC, with microseconds unless they are 0."""
        if moment is None:
            moment = self.now()
        return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"{seconds} seconds: time can't run backwards. Give 0 or more")
        self._advanced += seconds

    def set_scale(self, scale: float) -> None:
        """Let time pass `scale` times as fast from now on. Raises ValueError."""
        _require_forward(scale)
        self._start = self._read_present()
        self._advanced = 0.0
        self._began = time.monotonic()
        self._scale = scale

    def call_later(self, seconds: float, action: Action) -> None:
        heapq.heappush(self._due, (self.now() + seconds, next(self._order), action))

    @property
    def is_idle(self) -> bool:
        """Return whether no action is scheduled."""
        return not self._due

    def catch_up(self) -> None:
        """Set the time of the running action to the present, for an action that does everything since its due
        time at once.
        """
        self._acting_at = self._read_present()

    def run_due(self) -> None:
        """Run all due actions, including those that they schedule if these are due too."""
        now = self.now()
        try:
            while self._due and self._due[0][0] <= now:
                self._acting_at, _, action = heapq.heappop(self._due)
                action()
        finally:
            self._acting_at = None


def _require_forward(scale: float) -> None:
    if scale < 0:
        raise ValueError(f"time scale {scale}: time can't run backwards. Give 0 or more")
