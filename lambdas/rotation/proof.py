"""When a key counts as accepted: several logins in a row, because one server may know it before another does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lambdas.rotation import errors as rotation_errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import NotYet, OutOfTime, RateLimited, Refused, Transient

SUCCESSES: Final = 2
#: Seconds between two successes, and the least and the most between two tries.
APART: Final = 1.0
_LEAST: Final = 1.0
_MOST: Final = 20.0
#: Seconds that a try may need.
_ENOUGH: Final = 10.0


def prove(works: Callable[[], bool], is_there: Callable[[], bool], deadline: Deadline, what: str) -> None:
    """Raises Refused where the vendor doesn't have the key, NotYet where the time of this invocation is not enough."""
    successes, wait = 0, _LEAST
    while True:
        accepted, asked = _tried(works, is_there, what)
        successes = successes + 1 if accepted else 0
        if successes == SUCCESSES:
            return
        pause = APART if accepted else max(wait, asked)
        wait = wait if accepted else min(_MOST, wait * 1.5)
        if deadline.left() <= pause + _ENOUGH:
            raise NotYet(rotation_errors.NOT_PROVEN, what)
        deadline.clock.sleep(pause)


def _tried(works: Callable[[], bool], is_there: Callable[[], bool], what: str) -> tuple[bool, float]:
    """Whether the key is accepted, and for how many seconds the vendor wants to be left alone. An outage counts as a failure."""
    try:
        if works():
            return True, 0.0
        if is_there():
            return False, 0.0
    except OutOfTime:
        raise
    except RateLimited as limited:
        return False, limited.wait
    except Transient:
        return False, 0.0
    raise Refused(rotation_errors.NOT_THERE, what)
