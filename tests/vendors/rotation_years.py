"""Simulates years of monthly rotation of all credentials, with readers that cache values for as long as they
may.

`python -m dev.benchmarks.rotation` runs this file as a program, which prints the result as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import NamedTuple

from lambdas.rotation.versions import DAY
from lambdas.shared.redaction import Secret
from simulators.snowflake.authentication import authenticate
from simulators.snowflake.errors import CallRefused
from tests.support.rotation_environment import SERVICES, USER, RotationEnvironment, _load

HOUR = 3600.0
MONTH = 30 * DAY
NAMES = (*SERVICES, "snowflake", "admin")
#: One in so many logins to Snowflake uses a signed token; the others compare the key's fingerprint with the
#: slots.
SIGNED = 50


class Result(NamedTuple):
    """`oldest` is the greatest age, in days, of a value that logged in; `most` is the most keys of one
    credential at once.
    """

    rotations: int
    logins: int
    signed: int
    failures: int
    oldest: float
    most: int
    calls: int
    seconds: float


class Reader:
    def __init__(self, env, name, age):
        self.env = env
        self.name = name
        self.age = age
        self.value = None
        self.read_at = float("-inf")

    def use(self):
        """Log in. Return whether it was accepted, and the value's age."""
        now = self.env.clock.now
        if now - self.read_at > self.age:
            self.value = self.env.fields(self.name)
            self.read_at = now
        return self.env.accepts(self.value), now - self.read_at


class Years:
    def __init__(self, readers, every_hours, revoke_early=False):
        self.env = RotationEnvironment(services=SERVICES, delay=150.0)
        self.every = every_hours * HOUR
        self.revoke_early = revoke_early
        ages = [self.env.policy.grace * number / max(1, readers - 1) for number in range(readers)]
        self.readers = [Reader(self.env, NAMES[number % len(NAMES)], age) for number, age in enumerate(ages)]
        self.logins = self.signed = self.failures = self.rotations = self.most = 0
        self.oldest = 0.0

    def live(self, months):
        began = time.perf_counter()
        env = self.env
        for _ in range(months):
            end = env.clock.now + MONTH
            for number, name in enumerate(NAMES):
                self.pass_time(end - (len(NAMES) - number) * 4 * DAY)
                self.rotate(name)
            self.pass_time(end)
        result = Result(
            self.rotations, self.logins, self.signed, self.failures, self.oldest / DAY, self.most,
            env.steps.count, time.perf_counter() - began,
        )  # fmt: skip
        env.__exit__(None, None, None)
        return result

    def pass_time(self, until):
        while self.env.clock.now + self.every < until:
            self.env.clock.sleep(self.every)
            self.all_use(self.readers)
        self.env.clock.sleep(max(0.0, until - self.env.clock.now))

    def rotate(self, name):
        """Rotate.

        The credential's readers log in after every call of the rotation, all others at intervals.
        """
        mine = [reader for reader in self.readers if reader.name == name]
        self.env.steps.look = lambda: self.all_use(mine)
        self.env.rotate(name)
        if self.revoke_early and name != "admin":
            self.env.ask(operation="revoke", secret=name)
        self.env.steps.look = lambda: None
        self.rotations += 1

    def all_use(self, readers):
        for reader in readers:
            accepted, age = reader.use()
            self.logins += 1
            self.failures += not accepted
            self.oldest = max(self.oldest, age)
            if reader.name == "snowflake" and self.logins % SIGNED == 0:
                self.failures += not self.signed_in(reader.value)
                self.signed += 1
        for name in {reader.name for reader in readers} - {"admin"}:
            self.most = max(self.most, len(self.env.ours(name)))

    def signed_in(self, fields):
        account = self.env.snowflake.account
        token = _load(Secret(fields["privateKey"]), None).token(
            account.identifier, USER, now=account.clock.now(), seconds=600
        )
        try:
            return authenticate(account, f"Bearer {token.reveal()}", "KEYPAIR_JWT").label == USER
        except CallRefused:
            return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--years", type=float, default=3)
    parser.add_argument("--readers", type=int, default=100)
    parser.add_argument("--every-hours", type=float, default=2.5)
    parser.add_argument("--revoke-early", action="store_true", help="the planted defect")
    given = parser.parse_args()
    result = Years(given.readers, given.every_hours, given.revoke_early).live(round(given.years * 365 / 30))
    sys.stdout.write(json.dumps(result._asdict()))


if __name__ == "__main__":
    main()
