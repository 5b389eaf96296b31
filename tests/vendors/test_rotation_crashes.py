"""A rotation is killed, or a call fails, at each of its calls; a retry ends like an undisturbed rotation.

The invariant is checked after every call: the current key exists, the replaced one too during its grace, and
there are never more keys than allowed.
"""

from __future__ import annotations

import pytest

from lambdas.rotation.versions import DAY
from tests.support.rotation_environment import RotationEnvironment, aws_error
from tests.support.staged_secrets import CURRENT
from tests.support.wire import Killed

NAMES = ("kafka", "snowflake")
MONTH = 31 * DAY


class Watch:
    """Checks the invariant after every call.

    `grace_of` has the credentials that must work, and until when.
    """

    def __init__(self, env, name):
        self.env = env
        self.name = name
        self.looked = 0
        self.grace_of = []
        self.current = env.fields(name)
        env.steps.look = self.look

    def look(self):
        env = self.env
        fields = self.env.fields(self.name)
        self.looked += 1
        if fields != self.current:
            self.grace_of.append((self.current, env.clock.now + env.policy.grace))
            self.current = fields
        assert env.exists(fields), "the current key is gone"
        for replaced, until in self.grace_of:
            assert env.clock.now > until or env.exists(replaced), "a replaced key is gone within its grace"
        assert len(env.ours(self.name)) <= env.policy.keep + 1, "too many keys"


def die():
    raise Killed


def fail():
    raise aws_error()


@pytest.fixture(scope="module", params=NAMES)
def environment_and_calls(request):
    """Return an environment after its second rotation, the secret's name, and the calls of that undisturbed
    rotation.
    """
    with RotationEnvironment() as env:
        env.rotate(request.param)
        env.clock.sleep(MONTH)
        before = env.steps.count
        env.rotate(request.param)
        yield env, request.param, env.steps.log[before - env.steps.count :]


def survive(env, name, disturb):
    """Disturb one rotation, and try it again as Secrets Manager would."""
    env.clock.sleep(MONTH)
    watch = Watch(env, name)
    before = env.secrets.all[name].labelled(CURRENT)
    disturb()
    error = env.try_rotating(name, tries=4)
    env.steps.look = lambda: None
    env.steps.plan = {}
    env.disturb()
    assert error is None
    assert env.secrets.all[name].labelled(CURRENT) != before
    assert env.accepts(env.fields(name))
    assert env.ours(name) == env.held(name), "a key that nobody knows"
    return watch.looked


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.deep), "after"])
def test_r1_killed_at_every_call_a_rotation_converges(environment_and_calls, moment):
    env, name, calls = environment_and_calls
    looked = 0
    for number in range(1, len(calls) + 1):
        looked += survive(
            env, name, lambda number=number: env.steps.plan.update({env.steps.count + number: (moment, die)})
        )
    assert len(calls) >= 20
    assert looked > len(calls) ** 2


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.deep), "after"])
def test_r1_with_aws_failing_at_every_call_a_rotation_converges(environment_and_calls, moment):
    env, name, calls = environment_and_calls
    failed = 0
    for number in range(1, len(calls) + 1):

        def disturb(number=number):
            nonlocal failed
            at = env.steps.count + number

            def perhaps():
                nonlocal failed
                if env.steps.log[-1][0].isupper() and " " not in env.steps.log[-1]:
                    failed += 1
                    fail()

            env.steps.plan[at] = (moment, perhaps)

        survive(env, name, disturb)
    assert failed >= 12


FAULTS = {
    "503 before the effect": {"fault": "error", "status": 503},
    "502 after the effect": {"fault": "effect_then_error", "status": 502},
    "reset after the effect": {"fault": "effect_then_reset"},
    "429": {"fault": "error", "status": 429, "reply_headers": {"Retry-After": "30"}},
    "an answer that breaks off": {"fault": "cut"},
    "401 for a while": {"fault": "error", "status": 401, "times": 3},
}
EVERY_DAY = ("502 after the effect",)


@pytest.mark.parametrize(
    "fault", [name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.deep) for name in FAULTS]
)
def test_r1_with_the_vendor_failing_at_every_call_a_rotation_converges(environment_and_calls, fault):
    env, name, calls = environment_and_calls
    of_vendor = sum(" " in call for call in calls)
    for number in range(1, of_vendor + 1):
        survive(env, name, lambda number=number: env.disturb(**FAULTS[fault], nth=number))
    assert of_vendor >= 7
