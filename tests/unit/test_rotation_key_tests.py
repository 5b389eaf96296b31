"""How often a new key is tested, how long between two tests, and when the test ends."""

from __future__ import annotations

import pytest

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.verification import verify
from lambdas.shared import errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, InProgress, OutOfTime, RateLimited, Refused, Transient
from tests.support.resource_environment import ManualClock


def attempt(*answers, seconds=10**6, exists=True):
    """Test a key that gives these answers, and works afterwards. Return how long the test waited."""
    clock = ManualClock()
    given = iter(answers)

    def authenticates():
        answer = next(given, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    verify(authenticates, lambda: exists, Deadline(clock, clock.time() + seconds), "the key")
    return clock.slept


NO_ANSWER = Transient(errors.UNREACHABLE, "no answer")


@pytest.mark.parametrize(
    ("answers", "slept"),
    [
        ((), [1]),
        ((False,), [1, 1]),
        ((False, False, False), [1, 1.5, 2.25, 1]),
        ((True, False), [1, 1, 1]),
        ((NO_ANSWER, False), [1, 1.5, 1]),
        ((RateLimited(errors.INTERNAL, "slow down", wait=40.0),), [40, 1]),
        ((RateLimited(errors.INTERNAL, "slow down", wait=0.5),), [1, 1]),
        ((False, True, False, True), [1, 1, 1.5, 1]),
    ],
)
def test_a_key_is_tested_until_it_worked_twice(answers, slept):
    assert attempt(*answers) == slept


def test_the_pause_between_two_tests_is_twenty_seconds_at_most():
    slept = attempt(*[False] * 11)
    assert slept[7:] == [pytest.approx(1.5**7), 20, 20, 20, 1]


@pytest.mark.parametrize(("seconds", "is_enough"), [(11.0, False), (11.1, True)])
def test_a_test_that_could_not_end_in_time_is_not_begun(seconds, is_enough):
    if is_enough:
        assert attempt(seconds=seconds) == [1]
        return
    with pytest.raises(InProgress) as raised:
        attempt(seconds=seconds)
    assert (raised.value.kind, raised.value.what) == (rotation_errors.NOT_PROVEN, "the key")


def test_a_key_that_the_vendor_does_not_have_is_not_waited_for():
    with pytest.raises(Refused) as raised:
        attempt(False, exists=False)
    assert (raised.value.kind, raised.value.what) == (rotation_errors.NOT_THERE, "the key")


@pytest.mark.parametrize(
    "error", [OutOfTime(errors.OUT_OF_TIME, "no time is left"), Denied(errors.INTERNAL, "no")]
)
def test_an_error_that_no_other_test_would_change_ends_the_test(error):
    with pytest.raises(type(error)) as raised:
        attempt(error)
    assert raised.value is error
