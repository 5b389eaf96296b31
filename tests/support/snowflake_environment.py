"""A simulated Snowflake account that an admin has prepared with the script of the guide."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lakeferry.deployment import snowflake_admin
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake
from simulators.snowflake.application import Application
from simulators.snowflake.simulation import Simulation
from tests.support import snowflake_contract
from tests.support.checked import Checked
from tests.support.resource_environment import START
from tests.support.vendor_environment import STEADY, VendorEnvironment

DEPLOYER = "LAKEFERRY"


@cache
def deployer_key():
    """Make a key of 2,000 bits only: each of thousands of invocations signs a login."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return keypair.load(
        Secret(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
    )


class Account(VendorEnvironment):
    """A new account. `lake` is the embedded AWS, if tables are read."""

    url = "http://127.0.0.1:7011"
    SECRET_FIELD = "privateKey"

    def __init__(self, seed=1, types=RESOURCE_TYPES, lake=None):
        self._folder = tempfile.TemporaryDirectory()
        self.simulation = Simulation(
            Path(self._folder.name), time_scale=0.0, start=START, seed=seed, aws=lake
        )
        self.lake = lake
        self.checked = Checked(Application(self.simulation), snowflake_contract)
        super().__init__(self.checked, types)
        self._prepare()

    @property
    def account(self):
        return self.simulation.account

    def _prepare(self):
        """Run the script of docs/how-to/prepare-snowflake.md as an admin."""
        result = self.simulation.credentials
        key = keypair.load(Secret(Path(result["private_key_file"]).read_text()))
        login = Login(result["account"], result["user"], result["role"])
        lifecycle = self.invocations.lifecycle()
        admin = Snowflake(
            Session(lifecycle.deadline, retry=STEADY, adapter=self.wire), self.clock, login, key, self.url
        )
        for line in (
            snowflake_admin.script().replace(snowflake_admin.PUBLIC_KEY, deployer_key().public).splitlines()
        ):
            admin.run(sql.statement(line.removesuffix(";")))

    def connect(self, deadline, clock, store):
        login = Login(self.account.identifier, DEPLOYER, DEPLOYER, DEPLOYER)
        session = Session(deadline, retry=STEADY, adapter=self.wire)
        return Snowflake(session, clock, login, deployer_key(), self.url)

    def close(self):
        super().close()
        self._folder.cleanup()

    def pass_time(self, seconds):
        self.account.clock.advance(seconds)

    def objects(self):
        """Return (kind, name) of each object and of each grant, as the simulator has them."""
        self.account.clock.run_due()
        return {(kind, name) for kind, names in self.account.objects().items() for name in names}

    def known(self):
        return super().known() | {deployer_key().private_pem.reveal()}

    def state(self):
        return self.simulation.account, self.simulation.statements

    def take(self, state):
        self.simulation.account, self.simulation.statements = state

    def uncopied(self):
        return {id(self.lake): self.lake} if self.lake else {}
