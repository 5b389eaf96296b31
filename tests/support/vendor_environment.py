"""A deployment's Lambda functions and a vendor's simulator on one virtual clock.

The state can be frozen and restored.
"""

from __future__ import annotations

import copy
import io
import json

import requests

from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.http import RetryPolicy
from simulators.core.faults import FaultInjector
from tests.support.resource_environment import Invocations, ManualClock, MemorySecrets, Resource
from tests.support.wire import InProcessWire

#: Always half of the longest wait, so that repeated lives are equal.
STEADY = RetryPolicy(spread=lambda: 0.5)
#: Seconds after which all asynchronous work of a vendor has ended.
LONG = 900.0


class VendorEnvironment:
    """What both vendors' environments share.

    A subclass has `url`, `connect`, `objects`, `state` and `take`.
    """

    checked = None
    settles = LONG

    def __init__(self, application, types=RESOURCE_TYPES):
        self.clock = ManualClock(self.pass_time)
        self.wire = InProcessWire(FaultInjector(application), self.clock.sleep)
        self._controls = requests.Session()
        self._controls.mount("http://", self.wire)
        self.secrets = MemorySecrets()
        self.log = io.StringIO()
        self.invocations = Invocations(
            self.connect, clock=self.clock, secrets=self.secrets, types=types, log=self.log
        )
        self.made = {}

    def close(self):
        self.wire.end()

    def resource(self, kind, logical_id, stack="lake", **properties):
        return Resource(self.invocations, kind, logical_id, stack, **properties)

    def make(self, kind, logical_id, **properties):
        self.made[logical_id] = self.resource(kind, logical_id, **properties).create()
        return self.made[logical_id]

    def new_secret(self, name):
        self.secrets.values.setdefault(name, None)
        return name

    def disturb(self, **rule):
        """Replace all rules of the fault injector by this one, or remove them."""
        self._controls.put(
            self.url + "/_simulator/faults", json={"rules": [rule] if rule else []}
        ).raise_for_status()

    def leaks(self):
        """Return every secret, of any time, that was written since the last `thaw`: to log, answers, ledger
        or addresses.

        Each is given by its first letters, and where it was written.
        """
        written = {
            "the log": self.log.getvalue(),
            "answers and exceptions": "\n".join(self.invocations.answers),
            "the ledger": json.dumps(self.invocations.documents.rows),
            "addresses": "\n".join(call.path for call in self.wire.calls),
        }
        return [
            f"{secret[:6]}… in {where}"
            for where, text in written.items()
            for secret in self.known()
            if secret in text
        ]

    def known(self):
        """Return every secret that exists or existed."""
        return {json.loads(value)[self.SECRET_FIELD] for value in self.secrets.ever}

    def settle(self):
        """Let the vendor end its asynchronous work."""
        self.clock.sleep(self.settles)

    def freeze(self):
        """Return the state for `thaw`. No asynchronous work may be pending, because it can't be copied."""
        self.settle()
        return copy.deepcopy(self._all(), self.uncopied())

    def thaw(self, frozen):
        self.clock.now, rows, self.secrets.values, self.secrets.tokens, self.made, state = copy.deepcopy(
            frozen, self.uncopied()
        )
        self.invocations.documents.rows = rows
        self.take(state)
        self.disturb()
        self.wire.calls.clear()
        self.invocations.answers.clear()
        self.log.seek(0)
        self.log.truncate()

    def uncopied(self):
        """Return deepcopy's memo with the objects that are not copied."""
        return {}

    def _all(self):
        secrets = self.secrets
        return (
            self.clock.now,
            self.invocations.documents.rows,
            secrets.values,
            secrets.tokens,
            self.made,
            self.state(),
        )
