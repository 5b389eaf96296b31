"""A deployment's Lambdas and a vendor's simulator on one virtual clock, which can be frozen and thawed."""

from __future__ import annotations

import copy
import io
import json

import requests
from resource_environment import Invocations, ManualClock, MemorySecrets, Resource
from wire import InProcessWire

from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.http import RetryPolicy
from simulators.core.faults import FaultInjector

#: Half of the longest wait each time, so that a life is the same life whenever it is lived.
STEADY = RetryPolicy(spread=lambda: 0.5)
#: Seconds after which everything that a vendor takes its time for is done.
LONG = 900.0


class VendorEnvironment:
    """What both vendors' worlds have. A vendor's own tells `url`, `connect`, `objects`, `state` and `take`."""

    checked = None
    settles = LONG

    def __init__(self, application, types=RESOURCE_TYPES):
        self.clock = ManualClock(self.pass_time)
        self.wire = InProcessWire(FaultInjector(application), self.clock.sleep)
        self._controls = requests.Session()
        self._controls.mount("http://", self.wire)
        self.secrets = MemorySecrets()
        self.log = io.StringIO()
        self.invocations = Invocations(self.connect, clock=self.clock, secrets=self.secrets, types=types, log=self.log)
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
        """Put this rule of the fault injector in place of all that were there; without one, none is."""
        self._controls.put(self.url + "/_simulator/faults", json={"rules": [rule] if rule else []}).raise_for_status()

    def leaks(self):
        """Secrets that were ever known and stand in what was written since the last `thaw`: log, answers, ledger, requests'
        addresses. Each by its first letters, and where."""
        written = {
            "the log": self.log.getvalue(),
            "answers and exceptions": "\n".join(self.invocations.answers),
            "the ledger": json.dumps(self.invocations.documents.rows),
            "addresses": "\n".join(call.path for call in self.wire.calls),
        }
        return [f"{secret[:6]}… in {where}" for where, text in written.items() for secret in self.known() if secret in text]

    def known(self):
        """Every secret that there is or was."""
        return {json.loads(value)[self.SECRET_FIELD] for value in self.secrets.ever}

    def settle(self):
        """Let the vendor end what it has begun."""
        self.clock.sleep(self.settles)

    def freeze(self):
        """What `thaw` goes back to. Nothing may be under way: what is due later can't be copied."""
        self.settle()
        return copy.deepcopy(self._all(), self.uncopied())

    def thaw(self, frozen):
        self.clock.now, rows, self.secrets.values, self.secrets.tokens, self.made, state = copy.deepcopy(frozen, self.uncopied())
        self.invocations.documents.rows = rows
        self.take(state)
        self.disturb()
        self.wire.calls.clear()
        self.invocations.answers.clear()
        self.log.seek(0)
        self.log.truncate()

    def uncopied(self):
        """What stays the same, as deepcopy wants to be told."""
        return {}

    def _all(self):
        secrets = self.secrets
        return self.clock.now, self.invocations.documents.rows, secrets.values, secrets.tokens, self.made, self.state()
