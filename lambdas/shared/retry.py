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

from lambdas.shared.clock import Clock, Deadline
from lambdas.shared.http_types import Answer, Broken, NotSent

LONGEST_WAIT = 30.0
NOT_IMPLEMENTED = 501


@attrs.frozen
class RetryPolicy:
    """`attempts` counts the first one too; `spread` gives a number from 0 to 1."""

    attempts: int = 4
    first_wait: float = 1.0
    spread: Callable[[], float] = random.random

    def run(self, call: Callable[[], Answer], *, repeatable: bool, deadline: Deadline) -> Answer:
        """Return the last answer, whatever it is. Raises what the last attempt raised: NotSent or Broken."""
        attempt = 0
        while True:
            attempt += 1
            outcome: Answer | NotSent | Broken
            try:
                outcome = call()
                if not _may_repeat(outcome, repeatable):
                    return outcome
            except (NotSent, Broken) as error:
                if isinstance(error, Broken) and not repeatable:
                    raise
                outcome = error
            wait = self._wait(attempt, outcome, deadline.clock)
            if attempt >= self.attempts or wait >= deadline.left():
                if isinstance(outcome, Answer):
                    return outcome
                raise outcome
            deadline.clock.sleep(wait)

    def _wait(self, attempt: int, outcome: Answer | NotSent | Broken, clock: Clock) -> float:
        asked = asked_wait(outcome.headers, clock) if isinstance(outcome, Answer) else None
        grown = min(LONGEST_WAIT, self.first_wait * 2.0 ** (attempt - 1))
        return grown * (0.5 + 0.5 * self.spread()) if asked is None else asked + self.first_wait * self.spread()


def _may_repeat(answer: Answer, repeatable: bool) -> bool:
    """Return whether the answer may differ next time. 429 says that nothing was done."""
    return answer.status == 429 or (repeatable and answer.status >= 500 and answer.status != NOT_IMPLEMENTED)


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
