"""The simulator's one clock. Time runs `scale` times as fast as outside, and can be advanced; nothing ever sleeps.

What the vendor does by itself (a cluster that becomes ready, a connector that produces) is an action with a due time.
Due actions run, in their order, before the next call is served.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime

Action = Callable[[], object]


class Clock:
    """Seconds since 1970 UTC. With `scale` 0 it stands still between calls of `advance`."""

    def __init__(self, scale: float = 1.0, start: float | None = None) -> None:
        if scale < 0:
            raise ValueError(f"time scale {scale}: time can't run backwards. Give 0 or more")
        self._scale = scale
        self._start = time.time() if start is None else start
        self._began = time.monotonic()
        self._advanced = 0.0
        self._acting_at: float | None = None
        self._due: list[tuple[float, int, Action]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """While a due action runs, the time at which it was due."""
        if self._acting_at is not None:
            return self._acting_at
        return self._present()

    def _present(self) -> float:
        return self._start + self._advanced + (time.monotonic() - self._began) * self._scale

    def text(self, moment: float | None = None) -> str:
        """RFC 3339, microseconds, UTC."""
        return datetime.fromtimestamp(self.now() if moment is None else moment, UTC).isoformat().replace("+00:00", "Z")

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"{seconds} seconds: time can't run backwards. Give 0 or more")
        self._advanced += seconds

    def after(self, seconds: float, action: Action) -> None:
        heapq.heappush(self._due, (self.now() + seconds, next(self._order), action))

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is due, now or ever."""
        return not self._due

    def catch_up(self) -> None:
        """For an action that does in one go what was due since: from here on, it acts in the present."""
        self._acting_at = self._present()

    def run_due(self) -> None:
        """Run the actions that are due, and further ones that they add, once their time has come."""
        now = self.now()
        try:
            while self._due and self._due[0][0] <= now:
                self._acting_at, _, action = heapq.heappop(self._due)
                action()
        finally:
            self._acting_at = None
