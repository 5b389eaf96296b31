"""The rate limit. It is off until a test sets one. The APIs differ in the headers that they send."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from simulators.confluent.http import CONNECT, CONTROL, ROLE_BINDINGS, TABLEFLOW, Api

_ALL_HEADERS: Final = (CONTROL, ROLE_BINDINGS, TABLEFLOW)


@attrs.define
class RateLimit:
    """At most `calls` of each key in a window of `seconds`; 0 is no limit.

    Without `headers`, no rate limit headers are sent.
    """

    calls: int = 0
    seconds: float = 60.0
    headers: bool = True
    _window: int = -1
    _counted: Counter[str] = attrs.Factory(Counter)

    def take(self, key: str, now: float) -> bool:
        """Count a call, and return whether it is within the limit."""
        if not self.calls:
            return True
        window = int(now // self.seconds)
        if window != self._window:
            self._window = window
            self._counted.clear()
        self._counted[key] += 1
        return self._counted[key] <= self.calls

    def build_headers(self, api: Api, key: str, now: float) -> dict[str, str]:
        """Return the rate limit headers that every response has. X-RateLimit-Reset is in seconds from now."""
        if not self.calls or not self.headers or api not in _ALL_HEADERS:
            return {}
        remaining_calls = max(0, self.calls - self._counted[key])
        reset = str(self._reset(now))
        return {
            "X-RateLimit-Limit": str(self.calls),
            "X-RateLimit-Remaining": str(remaining_calls),
            "X-RateLimit-Reset": reset,
        }

    def retry_after(self, api: Api, now: float) -> dict[str, str]:
        """Return the Retry-After header of a 429, in seconds, if the API sends one."""
        sends_headers = self.headers and api in (*_ALL_HEADERS, CONNECT)
        return {"Retry-After": str(self._reset(now))} if sends_headers else {}

    def _reset(self, now: float) -> int:
        return int(self.seconds - now % self.seconds) + 1
