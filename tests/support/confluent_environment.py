"""A simulated Confluent organization with the objects that a resource type needs."""

from __future__ import annotations

from lambdas.confluent.client import Confluent
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from simulators.confluent.application import Application
from simulators.confluent.model import Plane
from simulators.confluent.simulation import Simulation
from tests.support.checked import Checked
from tests.support.resource_environment import ACCOUNT, START
from tests.support.vendor_environment import STEADY, VendorEnvironment

ADDRESSES = {plane: f"http://127.0.0.1:{port}" for port, plane in enumerate(Plane, start=7001)}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/lake"
_FIELD = '{"name": "id", "type": "string"}'
_NEW_FIELD = '{"name": "n", "type": ["null", "int"], "default": null}'
SCHEMA = f'{{"type": "record", "name": "Order", "fields": [{_FIELD}]}}'
WIDER = f'{{"type": "record", "name": "Order", "fields": [{_FIELD}, {_NEW_FIELD}]}}'


class Organization(VendorEnvironment):
    """A new organization."""

    url = ADDRESSES[Plane.CLOUD]
    SECRET_FIELD = "apiSecret"

    def __init__(self, seed=1, types=RESOURCE_TYPES, engine=None):
        self.simulation = Simulation(ADDRESSES, time_scale=0.0, start=START, seed=seed, engine=engine)
        application = Application(
            self.simulation, {port: plane for port, plane in enumerate(Plane, start=7001)}
        )
        self.checked = Checked(application)
        super().__init__(self.checked, types)

    def connect(self, deadline, clock, store):
        key = self.simulation.cloud_key
        session = Session(deadline, retry=STEADY, adapter=self.wire)
        return Confluent(session, clock, ApiKey(key.id, Secret(key.secret)), self.url)

    def pass_time(self, seconds):
        self.simulation.organization.clock.advance(seconds)

    def objects(self):
        """Return (kind, id) of each object, as the simulator has them."""
        return {(kind, id_) for kind, ids in self.simulation.state()["objects"].items() for id_ in ids}

    def known(self):
        return super().known() | {key.secret for key in self.simulation.organization.api_keys.values()}

    def state(self):
        self.simulation.organization.clock.run_due()
        assert self.simulation.organization.clock.is_idle
        return self.simulation.organization, self.simulation.cloud_key

    def take(self, state):
        self.simulation.organization, self.simulation.cloud_key = state
