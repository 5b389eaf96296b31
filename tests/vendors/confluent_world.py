"""The client and its simulator on one virtual clock: a deployment's Lambdas, and an organization with what a kind needs."""

from __future__ import annotations

import copy
import io
import json

import confluent_contract
import requests
from checked import Checked
from resource_world import ACCOUNT, START, Invocations, MemorySecrets, Resource, TurnedClock
from wire import InProcessWire

from lambdas.confluent.client import Confluent
from lambdas.core.http import Session
from lambdas.core.redaction import ApiKey, Secret
from lambdas.core.retry import RetryPolicy
from lambdas.resources.registry import KINDS
from simulators.confluent_cloud import controls
from simulators.confluent_cloud.application import Application
from simulators.confluent_cloud.calls import Plane
from simulators.confluent_cloud.simulation import Simulation
from simulators.nemesis import Nemesis

ADDRESSES = {plane: f"http://127.0.0.1:{port}" for port, plane in enumerate(Plane, start=7001)}
#: Half of the longest wait each time, so that a life is the same life whenever it is lived.
STEADY = RetryPolicy(spread=lambda: 0.5)
#: Seconds after which everything that the vendor takes its time for is done.
LONG = 900.0
ROLE = f"arn:aws:iam::{ACCOUNT}:role/lake"
_FIELD = '{"name": "id", "type": "string"}'
_NEW_FIELD = '{"name": "n", "type": ["null", "int"], "default": null}'
SCHEMA = f'{{"type": "record", "name": "Order", "fields": [{_FIELD}]}}'
WIDER = f'{{"type": "record", "name": "Order", "fields": [{_FIELD}, {_NEW_FIELD}]}}'


class Organization:
    """One that is new. `nemesis` stands before it."""

    def __init__(self, seed=1, kinds=KINDS):
        self.clock = TurnedClock(lambda seconds: self.simulation.world.clock.advance(seconds))  # noqa: PLW0108  (the world is replaced)
        self.simulation = Simulation(ADDRESSES, time_scale=0.0, start=START, seed=seed)
        ports = {port: plane for port, plane in enumerate(Plane, start=7001)}
        application = Application(self.simulation, ports)
        self.checked = Checked(application) if confluent_contract.present() else None
        self.nemesis = Nemesis(self.checked or application)
        self.wire = InProcessWire(self.nemesis, self.clock.sleep)
        self._controls = requests.Session()
        self._controls.mount("http://", self.wire)
        self.secrets = MemorySecrets()
        self.url = ADDRESSES[Plane.CLOUD]
        self.said = io.StringIO()
        self.invocations = Invocations(self.connect, clock=self.clock, secrets=self.secrets, kinds=kinds, said=self.said)
        self.made = {}

    def connect(self, deadline, clock, store):
        key = self.simulation.cloud_key
        session = Session(deadline, retry=STEADY, wire=self.wire)
        return Confluent(session, clock, ApiKey(key.id, Secret(key.secret)), self.url)

    def close(self):
        self.wire.end()

    def disturb(self, **rule):
        """Put this rule of the nemesis in place of all that were there; without one, none is."""
        self._controls.put(self.url + "/_nemesis", json={"rules": [rule] if rule else []}).raise_for_status()

    def leaks(self):
        """Secrets that were ever known and stand in what was written since the last `thaw`: log, answers, ledger, requests'
        addresses. Each by its first letters, and where."""
        invocations = self.invocations
        written = {
            "the log": self.said.getvalue(),
            "answers and exceptions": "\n".join(invocations.answers),
            "the ledger": json.dumps(invocations.documents.rows),
            "addresses": "\n".join(call.path for call in self.wire.calls),
        }
        known = {json.loads(value)["apiSecret"] for value in self.secrets.ever}
        known |= {key.secret for key in self.simulation.world.api_keys.values()}
        return [f"{secret[:6]}… in {where}" for where, text in written.items() for secret in known if secret in text]

    def objects(self):
        """The simulator's own word for what there is: (kind, id) of each object."""
        return {(kind, each) for kind, ids in controls.state(self.simulation)["objects"].items() for each in ids}

    def settle(self):
        """Let the vendor end what it has begun."""
        self.clock.sleep(LONG)
        self.simulation.world.clock.run_due()

    def freeze(self):
        """What `thaw` goes back to. Nothing may be under way: what is due later can't be copied."""
        self.settle()
        assert self.simulation.world.clock.is_idle
        return copy.deepcopy(self._state())

    def thaw(self, frozen):
        state = copy.deepcopy(frozen)
        self.simulation.world, self.simulation.cloud_key, self.clock.now = state[:3]
        self.invocations.documents.rows, self.secrets.values, self.secrets.tokens, self.made = state[3:]
        self.disturb()
        self.wire.calls.clear()
        self.invocations.answers.clear()
        self.said.seek(0)
        self.said.truncate()

    def _state(self):
        simulation, secrets = self.simulation, self.secrets
        held = self.invocations.documents.rows, secrets.values, secrets.tokens, self.made
        return simulation.world, simulation.cloud_key, self.clock.now, *held

    def resource(self, kind, logical_id, stack="lake", **properties):
        return Resource(self.invocations, kind, logical_id, stack, **properties)

    def make(self, kind, logical_id, **properties):
        resource = self.resource(kind, logical_id, **properties)
        self.made[logical_id] = resource.create()
        return self.made[logical_id]

    def new_secret(self, name):
        self.secrets.values.setdefault(name, None)
        return name
