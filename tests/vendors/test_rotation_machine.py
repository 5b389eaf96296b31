"""Rotations, readers and people in random order: the invariant of rotation holds after every call.

1. The current key is accepted.
2. The replaced key is accepted while a reader may use it.
3. There are never more keys than allowed.
4. Every key of ours is in the secret, or is reclaimed.
5. No secret is in what is written.

Changes by hand may break the first two for the keys that they touch; then the next rotation must repair them.
"""

from __future__ import annotations

import contextlib
import json

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lambdas.rotation.versions import DAY, Policy
from lambdas.shared.errors import LakeferryError
from tests.support.rotation_environment import USER, RotationEnvironment, aws_error, pair_of, pool
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS
from tests.support.wire import Killed

NAMES = ("kafka", "snowflake")
names = st.sampled_from(NAMES)
#: Faults of a rotation: the number of the call, and the fault.
FAULTS = (
    "",
    "kill",
    "aws before",
    "aws after",
    "vendor before",
    "vendor after",
    "reset",
    "429",
    "401",
    "twin",
    "clock",
)
GRACE = 7 * DAY
HOURS = (0.1, 5, 26, 24 * 8, 24 * 31)


class Reader:
    """Caches a value for as long as it may, and reads it again when it isn't accepted."""

    def __init__(self, env, name, age):
        self.env = env
        self.name = name
        self.age = age
        self.read()

    def read(self):
        self.value = self.env.fields(self.name)
        self.read_at = self.env.clock.now

    def use(self):
        """Return whether the first try was accepted."""
        if self.env.clock.now - self.read_at > self.age:
            self.read()
        accepted = self.env.accepts(self.value)
        if not accepted:
            self.read()
        return accepted


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.env = RotationEnvironment(delay=2.0)
        self.current = {}
        self.graces = []
        self.touched = {name: set() for name in NAMES}
        for name in NAMES:
            self.current[name] = self.env.fields(name)
        self.readers = [Reader(self.env, name, age) for name in NAMES for age in (0, 3600, GRACE)]
        self.env.steps.look = self.look
        self.looked = 0

    # --- Secrets Manager

    @rule(name=names, fault=st.sampled_from(FAULTS), at=st.integers(1, 40))
    def rotate(self, name, fault, at):
        self.arrange(name, fault, at)
        try:
            self.env.rotate(name)
            ended = True
        except (LakeferryError, Killed):
            ended = False
        self.env.steps.plan = {}
        self.env.disturb()
        if ended and not self.touched[name]:
            assert self.env.accepts(self.env.fields(name))

    def arrange(self, name, fault, at):
        steps = self.env.steps
        env = self.env
        rules = {
            "vendor before": {"fault": "error", "status": 503},
            "vendor after": {"fault": "effect_then_error", "status": 502},
            "reset": {"fault": "effect_then_reset"},
            "429": {"fault": "error", "status": 429, "reply_headers": {"Retry-After": "20"}},
            "401": {"fault": "error", "status": 401, "times": 2},
        }
        if fault in rules:
            env.disturb(**rules[fault], nth=1 + at % 15)
        elif fault == "kill":
            steps.plan[steps.count + at] = ("after", self.die)
        elif fault.startswith("aws"):
            steps.plan[steps.count + at] = (fault.removeprefix("aws "), self.fail)
        elif fault == "twin":
            steps.plan[steps.count + at] = ("after", lambda: self.attempt(name))
        elif fault == "clock":
            steps.plan[steps.count + at] = ("after", self.revoke_expired)

    def die(self):
        raise Killed

    def fail(self):
        if " " not in self.env.steps.log[-1]:
            raise aws_error("ThrottlingException")

    def attempt(self, name):
        """Run the same rotation again while the first one is in the middle of a step."""
        version = self.env.secrets.all[name].labelled(PENDING)
        for step in STEPS if version else ():
            try:
                self.env.step(name, step, version)
            except LakeferryError:
                return

    @rule(name=names, step=st.sampled_from(STEPS), which=st.integers(0, 50))
    def replay(self, name, step, which):
        """Repeat any step of any earlier rotation out of order."""
        versions = sorted(self.env.secrets.all[name].versions)
        with contextlib.suppress(LakeferryError):
            self.env.step(name, step, versions[which % len(versions)])

    @rule()
    def revoke_expired(self):
        """Make the scheduled call, also in the middle of a rotation."""
        with contextlib.suppress(LakeferryError):
            self.env.ask(operation="revoke_expired", secrets=list(NAMES))

    # --- people

    @rule(name=names, label=st.sampled_from([PREVIOUS, PENDING]))
    def remove_a_key_by_hand(self, name, label):
        fields = self.env.fields(name, label)
        if fields is None or self.env.id_of(fields) == self.env.id_of(self.current[name]):
            return
        self.touched[name].add(self.env.id_of(fields))
        self.remove(name, self.env.id_of(fields))

    def remove(self, name, key):
        if name == "kafka":
            self.env.confluent.organization.api_keys.pop(key, None)
            return
        for number, slot_value in self.env.slots().items():
            if slot_value == key:
                self.env.run_sql(f"ALTER USER {USER} UNSET RSA_PUBLIC_KEY{'_2' if number == 2 else ''}")

    @rule(slot=st.sampled_from([1, 2]), which=st.integers(1, 3))
    def set_a_slot_by_hand(self, slot, which):
        """Set a foreign key, not over the current one. Rotation must leave it alone until it is removed."""
        found = self.env.slots().get(slot)
        if found == self.env.id_of(self.current["snowflake"]):
            return
        pair = pair_of(pool()[-which])
        if pair.fingerprint in self.env.slots().values() or pair.fingerprint in self.known():
            return
        self.touched["snowflake"].add(found)
        self.env.run_sql(f"ALTER USER {USER} SET RSA_PUBLIC_KEY{'_2' if slot == 2 else ''}='{pair.public}'")
        self.foreign = pair.fingerprint
        self.rotate("snowflake", "", 1)
        assert self.foreign in self.env.slots().values(), "a foreign key was overwritten"
        self.remove("snowflake", pair.fingerprint)

    def known(self):
        held = self.env.secrets.all["snowflake"].versions
        return {self.env.id_of(json.loads(value)) for value, _, _ in held.values() if value}

    @rule(name=names)
    def detach_by_hand(self, name):
        self.env.secrets.detach(name)

    @rule(name=names)
    def revoke(self, name):
        """Revoke all keys but the current one, within their grace or not."""
        self.touched[name] |= self.env.ours(name) - {self.env.id_of(self.current[name])}
        with contextlib.suppress(LakeferryError):
            self.env.ask(operation="revoke", secret=name)
        assert self.env.exists(self.current[name])

    @rule(hours=st.sampled_from(HOURS))
    def wait(self, hours):
        self.env.clock.sleep(hours * 3600)

    @rule(seconds=st.integers(-3600, 3600))
    def clocks_part(self, seconds):
        """Make our clock and AWS's differ from the vendors'."""
        if seconds > 0:
            self.env.clock.now += seconds
        else:
            self.env._pass(-seconds)

    # --- the invariant

    @rule()
    def use(self):
        """Readers that respect the grace never fail.

        Readers of a key that was changed by hand recover at once.
        """
        for reader in self.readers:
            key = self.env.id_of(reader.value)
            if not reader.use():
                assert key in self.touched[reader.name], f"a reader of {reader.name} was refused"
                assert reader.use(), f"a reader of {reader.name} did not recover"

    def look(self):
        """Check the invariant after every call, by whoever."""
        self.looked += 1
        env = self.env
        for name in NAMES:
            fields = env.fields(name)
            if env.id_of(fields) != env.id_of(self.current[name]):
                self.graces.append((name, self.current[name], env.clock.now + GRACE))
                self.current[name] = fields
            assert env.exists(fields), f"{name}: the current key is gone"
            assert len(env.ours(name)) <= env.policy.keep + 1, f"{name}: too many keys"
        for name, replaced, until in self.graces:
            within = env.clock.now <= until and env.id_of(replaced) not in self.touched[name]
            assert not within or env.exists(replaced), f"{name}: a replaced key is gone within its grace"

    @invariant()
    def no_secret_is_written(self):
        if hasattr(self, "env"):
            assert not self.env.leaks()

    def teardown(self):
        """Two undisturbed rotations restore order."""
        if not hasattr(self, "env"):
            return
        try:
            for _ in range(3):
                self.env.clock.sleep(32 * DAY)
                for name in NAMES:
                    self.env.try_rotating(name)
            for name in NAMES:
                assert self.env.accepts(self.env.fields(name))
                assert self.env.ours(name) == self.env.held(name), f"{name}: a key that nobody knows"
                assert self.env.secrets.all[name].labelled(CURRENT)
        finally:
            self.env.steps.look = lambda: None
            self.env.__exit__(ValueError, None, None)


@pytest.mark.slow
def test_the_invariant_holds():
    run_state_machine_as_test(Machine, settings=settings(max_examples=10, stateful_step_count=20))


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_the_invariant_holds_in_long_runs():
    run_state_machine_as_test(Machine, settings=settings(max_examples=2_000, stateful_step_count=50))


def test_a_key_that_is_revoked_too_early_is_found():
    """The planted defect: the function has a grace of zero, and readers expect seven days."""
    machine = Machine()
    machine.begin()
    machine.env.policy = Policy(2, 0.0)
    machine.rotate("kafka", "", 1)
    with pytest.raises(AssertionError, match="a replaced key is gone within its grace"):
        machine.rotate("kafka", "", 1)
    machine.env.__exit__(ValueError, None, None)
