"""When a call is made once more, and how long to wait before it.

429 says that nothing was done, so every call may be repeated; a failure after the request was sent leaves that open, so
only a call that may be made twice is repeated. The wait is what the vendor asks for, otherwise it grows by itself; both
are spread at random, so that a hundred callers that were turned away together don't come back together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

import attrs
import tenacity

from lambdas.core.clock import Clock, Deadline
from lambdas.core.http_types import Answer, Broken, NotSent

LONGEST_WAIT = 30.0
NOT_IMPLEMENTED = 501


@attrs.frozen
class RetryPolicy:
    """`attempts` counts the first one too; `spread` gives a number from 0 to 1."""

    attempts: int = 4
    first_wait: float = 1.0
    spread: Callable[[], float] = random.random

    def run(self, call: Callable[[], Answer], *, repeatable: bool, deadline: Deadline) -> Answer:
        """The last answer, whatever it is. Raises what the last attempt raised: NotSent or Broken."""

        def again(state: tenacity.RetryCallState) -> bool:
            outcome = state.outcome
            assert outcome is not None
            error = outcome.exception()
            if error is not None:
                return isinstance(error, NotSent) or (repeatable and isinstance(error, Broken))
            status = outcome.result().status
            return status == 429 or (repeatable and status >= 500 and status != NOT_IMPLEMENTED)

        def stop(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= self.attempts or state.upcoming_sleep >= deadline.left()

        retrying = tenacity.Retrying(
            retry=again,
            stop=stop,
            wait=lambda state: self._wait(state, deadline.clock),
            sleep=deadline.clock.sleep,
            retry_error_callback=_last,
        )
        return retrying(call)

    def _wait(self, state: tenacity.RetryCallState, clock: Clock) -> float:
        outcome = state.outcome
        asked = None
        if outcome is not None and outcome.exception() is None:
            asked = asked_wait(outcome.result().headers, clock)
        grown = min(LONGEST_WAIT, self.first_wait * 2.0 ** (state.attempt_number - 1))
        return grown * (0.5 + 0.5 * self.spread()) if asked is None else asked + self.first_wait * self.spread()


def asked_wait(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds that the vendor wants to be left alone; None where it doesn't say.

    Confluent's X-RateLimit-Reset counts seconds from now, unlike that of others.
    """
    for name in ("Retry-After", "X-RateLimit-Reset"):
        if (text := headers.get(name)) is not None and (wait := _seconds(text, clock)) is not None:
            return wait
    return None


def _seconds(text: str, clock: Clock) -> float | None:
    """`text` is a number, or a date as HTTP writes it."""
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.time())
    except ValueError:
        return None


def _last(state: tenacity.RetryCallState) -> Answer:
    assert state.outcome is not None
    return state.outcome.result()  # type: ignore[no-any-return]
