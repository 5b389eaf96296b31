"""The test of a new key, which a vendor may accept only after some time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lambdas.rotation import errors as rotation_errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import InProgress, OutOfTime, RateLimited, Refused, Transient

#: Successful tests in a row after which a key counts as working.
SUCCESSES: Final = 2
#: Seconds between two successful tests, and the minimum and maximum seconds between two attempts.
SUCCESS_PAUSE: Final = 1.0
_MIN_PAUSE: Final = 1.0
_MAX_PAUSE: Final = 20.0
#: Seconds that an attempt may take.
_ATTEMPT_SECONDS: Final = 10.0


def verify(
    authenticates: Callable[[], bool], is_there: Callable[[], bool], deadline: Deadline, key_name: str
) -> None:
    """Test a key until it works.

    Raises Refused if the vendor doesn't have it, InProgress if time runs out.
    """
    successes = 0
    wait = _MIN_PAUSE
    while True:
        is_accepted, requested_wait = _try_key(authenticates, is_there, key_name)
        if is_accepted:
            successes += 1
            pause = SUCCESS_PAUSE
        else:
            successes = 0
            pause = max(wait, requested_wait)
            wait = min(_MAX_PAUSE, wait * 1.5)
        if successes == SUCCESSES:
            return
        if deadline.left() <= pause + _ATTEMPT_SECONDS:
            raise InProgress(rotation_errors.NOT_PROVEN, key_name)
        deadline.clock.sleep(pause)


def _try_key(
    authenticates: Callable[[], bool], is_there: Callable[[], bool], key_name: str
) -> tuple[bool, float]:
    """Return whether the key is accepted, and how many seconds the vendor asks to wait.

    During an outage it isn't accepted.
    """
    try:
        if authenticates():
            return True, 0.0
        if is_there():
            return False, 0.0
    except OutOfTime:
        raise
    except RateLimited as limited:
        return False, limited.wait
    except Transient:
        return False, 0.0
    raise Refused(rotation_errors.NOT_THERE, key_name)
