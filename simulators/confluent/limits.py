"""The rate limit, off until a test asks for one. Each service tells of it in its own way."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from simulators.confluent.http import CONNECT, CONTROL, FLINK, KAFKA, ROLE_BINDINGS, TABLEFLOW, Api

_ALL_HEADERS: Final = (CONTROL, ROLE_BINDINGS, TABLEFLOW)
_SILENT: Final = (FLINK, KAFKA)


@attrs.define
class RateLimit:
    """`calls` of each key in a window of `seconds`; 0 is no limit. `headers` False leaves all headers out of a 429."""

    calls: int = 0
    seconds: float = 60.0
    headers: bool = True
    _window: int = -1
    _counted: Counter[str] = attrs.Factory(Counter)

    def take(self, key: str, now: float) -> bool:
        """Count one call; whether it is still within the limit."""
        if not self.calls:
            return True
        window = int(now // self.seconds)
        if window != self._window:
            self._window = window
            self._counted.clear()
        self._counted[key] += 1
        return self._counted[key] <= self.calls

    def told(self, api: Api, key: str, now: float) -> dict[str, str]:
        """Headers of any answer; the reset is in seconds from now."""
        if not self.calls or not self.headers or api not in _ALL_HEADERS:
            return {}
        left = max(0, self.calls - self._counted[key])
        reset = str(self._reset(now))
        return {"X-RateLimit-Limit": str(self.calls), "X-RateLimit-Remaining": str(left), "X-RateLimit-Reset": reset}

    def retry_after(self, api: Api, now: float) -> dict[str, str]:
        """The header of a 429, where the service sends one."""
        telling = self.headers and api in (*_ALL_HEADERS, CONNECT) and api not in _SILENT
        return {"Retry-After": str(self._reset(now))} if telling else {}

    def _reset(self, now: float) -> int:
        return int(self.seconds - now % self.seconds) + 1
