"""The rotation function with a strict Secrets Manager and both simulators, on one virtual clock in this
process.

Every call to any of them is an atomic step. Before and after a step, a test can check, kill the function, or
do something else.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import tempfile
from pathlib import Path

from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import rsa

from lambdas.confluent.client import Confluent
from lambdas.confluent.resources import api_key
from lambdas.handlers import rotation
from lambdas.rotation.snowflake import SnowflakeKeyPair
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import RetryPolicy, Session
from lambdas.shared.log import open_log
from lambdas.shared.properties import parse
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.resource import Context
from lambdas.shared.secrets import SecretStore, reveal_fields
from lambdas.snowflake import keypair, secret_fields
from lambdas.snowflake.client import Snowflake
from simulators.confluent.application import Application
from simulators.confluent.http import find_key
from simulators.confluent.model import Plane
from simulators.confluent.organization import Delays
from simulators.confluent.simulation import REGION, Simulation
from simulators.core.faults import FaultInjector
from simulators.snowflake import engine as sql_engine
from simulators.snowflake.application import Application as SnowflakeApplication
from simulators.snowflake.model import Domain
from simulators.snowflake.session import Session as SqlSession
from simulators.snowflake.simulation import Simulation as SnowflakeSimulation
from tests.support.resource_environment import START, ManualClock
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS, StagedSecrets
from tests.support.wire import InProcessWire, Killed

PORTS = dict(enumerate(Plane, start=7001))
ADDRESSES = {plane: f"http://127.0.0.1:{port}" for port, plane in PORTS.items()}
SNOWFLAKE_PORT = 7100
SNOWFLAKE_URL = f"http://127.0.0.1:{SNOWFLAKE_PORT}"
STEADY = RetryPolicy(attempts=2, spread=lambda: 0.5)
INVOCATION = 870.0
NAME = "lakeferry-test-eu-west-1-reader-0a1b2c3d"
USER = "READER"
ROTATION_ROLE = "READER_ROTATION"
SERVICES = ("kafka", "schema_registry", "flink", "tableflow", "cloud")


_known = {}


@functools.cache
def pool():
    """Return key pairs that are generated once, and short: generation takes longer than the rest of a
    rotation.
    """
    return [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(24)]


def pair_of(key):
    """Load a key pair without keeping its secret: each live secret makes every line of the log slower."""
    pair = keypair._pair(key)
    _known[pair.private_pem.reveal()] = key
    return pair


class Steps:
    """Counts atomic steps. `plan` has actions by the step's number: ("before" or "after", action)."""

    def __init__(self):
        self.count = 0
        self.log = []
        self.plan = {}
        self.look = lambda: None

    def take(self, what, call):
        self.count += 1
        moment, act = self.plan.pop(self.count, ("", None))
        self.log.append(what)
        if moment == "before":
            act()
        try:
            return call()
        finally:
            self.look()
            if moment == "after":
                act()


class SteppingWire(InProcessWire):
    """Counts the function's calls as steps. `blind` is true while somebody else calls."""

    def __init__(self, app, steps, on_hang):
        super().__init__(app, on_hang)
        self._steps = steps
        self.blind = False

    def send(self, request, **options):
        if self.blind or request.path_url.startswith("/_"):
            return super().send(request, **options)
        what = f"{request.method} {request.path_url.partition('?')[0]}"
        return self._steps.take(what, lambda: super(SteppingWire, self).send(request, **options))


class RotationEnvironment:
    """Has a secret for each of SERVICES, by its name, and `snowflake`."""

    def __init__(self, keep=2, services=("kafka",), snowflake=True, delay=5.0):
        self.clock = ManualClock(self._pass)
        self.steps = Steps()
        self.log = io.StringIO()
        self.result = []
        self.under_way = {}
        #: Where the states say that the objects are; without states, nothing is compared, and no call is made
        #: for it.
        self.tenants = frozenset
        self.policy = Policy(keep, 7 * DAY)
        self.secrets = StagedSecrets(self.clock, self.steps.take)
        self._folder = tempfile.TemporaryDirectory()
        self.confluent = Simulation(
            ADDRESSES, time_scale=0.0, start=START, seed=1, delays=Delays(kafka_key=delay, other_key=delay)
        )
        self.snowflake = (
            SnowflakeSimulation(Path(self._folder.name), time_scale=0.0, start=START, seed=1)
            if snowflake
            else None
        )
        apps = {SNOWFLAKE_PORT: SnowflakeApplication(self.snowflake)} if snowflake else {}
        cloud = Application(self.confluent, PORTS)
        self.faults = FaultInjector(_Router(apps, cloud))
        self.wire = SteppingWire(self.faults, self.steps, self.clock.sleep)
        self._pairs = map(pair_of, itertools.cycle(pool()))
        self.wire.blind = True
        self._build(services)
        self.wire.blind = False
        self.steps.count = 0
        self.steps.log = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """Check that nothing that was written has a secret."""
        self.wire.end()
        self._folder.cleanup()
        assert kind or not self.leaks()

    def _pass(self, seconds):
        self.confluent.organization.clock.advance(seconds)
        if self.snowflake:
            self.snowflake.account.clock.advance(seconds)

    # --- the deployment

    def _build(self, services):
        admin = self.confluent.cloud_key
        fields = {"apiKey": admin.id, "apiSecret": admin.secret}
        self.secrets.new("admin", json.dumps(fields))
        if services:
            self._build_confluent(services)
        if self.snowflake:
            self._build_snowflake()
        self.clock.sleep(3600)

    def _build_confluent(self, services):
        vendor = self.client()
        lake = {"display_name": "lake", "stream_governance_config": {"package": "ESSENTIALS"}}
        environment = vendor.cloud.post("/org/v2/environments", lake)["id"]
        wanted = {
            "display_name": "c",
            "cloud": "AWS",
            "region": REGION,
            "availability": "SINGLE_ZONE",
            "config": {"kind": "Basic"},
        }
        cluster = vendor.cloud.post(
            "/cmk/v2/clusters", {"spec": {**wanted, "environment": {"id": environment}}}
        )["id"]
        for _ in range(2):  # the cluster becomes ready, and then its Schema Registry
            self.clock.sleep(600)
            self.confluent.organization.clock.run_due()
        vendor = self.client()
        self.owner = vendor.cloud.post("/iam/v2/service-accounts", {"display_name": "reader"})["id"]
        scope = f"crn://confluent.cloud/organization={vendor.organization_id}/environment={environment}"
        role = {"principal": f"User:{self.owner}", "role_name": "FlinkDeveloper", "crn_pattern": scope}
        vendor.cloud.post("/iam/v2/role-bindings", role)
        for service in services:
            self.secrets.new(service)
            given = {"service_account_id": self.owner, "service": service, "secret": service}
            where = (
                {"environment_id": environment, "cluster_id": cluster, "region": REGION}
                if service != "cloud"
                else {}
            )
            spec = parse(api_key.PROPERTIES, {**given, **where}, strict=True)
            api_key.create(
                Context(vendor, f"{NAME}-{service}", SecretStore(self.secrets), self.clock, {}), spec
            )

    def _build_snowflake(self):
        pair = next(self._pairs)
        account = self.snowflake.account
        for statement in (
            f"CREATE ROLE {ROTATION_ROLE}",
            "CREATE ROLE READS",
            f"CREATE USER {USER} TYPE=SERVICE DEFAULT_ROLE=READS RSA_PUBLIC_KEY='{pair.public}'",
            f"ALTER USER {USER} SET DEFAULT_SECONDARY_ROLES=()",
            f"GRANT MODIFY PROGRAMMATIC AUTHENTICATION METHODS ON USER {USER} TO ROLE {ROTATION_ROLE}",
            f"GRANT ROLE {ROTATION_ROLE} TO USER {USER}",
            f"GRANT ROLE READS TO USER {USER}",
        ):
            self.run_sql(statement)
        to = secret_fields.Connection(account.identifier, USER, "127.0.0.1", "READS")
        tags = {"lakeferry:rotation-role": ROTATION_ROLE}
        self.secrets.new("snowflake", json.dumps(reveal_fields(secret_fields.build_fields(pair, to))), **tags)

    def run_sql(self, statement):
        """Run a statement as the account's administrator."""
        account = self.snowflake.account
        admin = account.find(Domain.USER, ("ADMIN",))
        return sql_engine.execute(SqlSession(account, admin, "ACCOUNTADMIN"), statement, {})

    def client(self):
        key = self.confluent.cloud_key
        return Confluent(
            self._session(), self.clock, ApiKey(key.id, Secret(key.secret)), ADDRESSES[Plane.CLOUD]
        )

    # --- the function

    def _session(self):
        return Session(Deadline(self.clock, self.clock.time() + INVOCATION), retry=STEADY, adapter=self.wire)

    def engine(self):
        """Return the rotation of a new invocation."""
        deadline = Deadline(self.clock, self.clock.time() + INVOCATION)
        session = Session(deadline, retry=STEADY, adapter=self.wire)
        settings = rotation.Settings("admin", ADDRESSES[Plane.CLOUD], SNOWFLAKE_URL, self.policy)
        built = rotation.build(
            settings, self.secrets, session, deadline, open_log(self.log), tenants=self.tenants
        )

        def connect(kind):
            if kind == "snowflake":
                vendor = functools.partial(Snowflake, session, self.clock, url=SNOWFLAKE_URL)
                return SnowflakeKeyPair(vendor, self.tenants, lambda: next(self._pairs), _load)
            return built.connect(kind)

        return rotation.Rotation(self.secrets, connect, self.policy, deadline, built.log)

    def ask(self, **event):
        """Call the function's health check. Raises what it would fail with, or Killed."""
        try:
            return rotation.answer(self.engine(), event)
        except LakeferryError as error:
            self.result.append(str(error))
            raise

    def step(self, name, step, version):
        return self.ask(Step=step, SecretId=self.secrets.all[name].arn, ClientRequestToken=version)["outcome"]

    def rotate(self, name, version=None):
        """Run the four steps as AWS does, for the rotation in progress if there is one.

        Raises the error of a step.
        """
        labels = self.secrets.all[name].versions.get(self.under_way.get(name), (None, (), 0))[1]
        version = version or (self.under_way[name] if labels else self.secrets.start(name))
        self.under_way[name] = version
        for step in STEPS:
            self.step(name, step, version)
        self.secrets.ended(name, self.under_way.pop(name))
        return version

    def try_rotating(self, name, tries=4, wait=900.0):
        """Rotate until it succeeds, as AWS retries. Return the error of the last try, or None."""
        error = None
        for _ in range(tries):
            try:
                self.rotate(name)
                return None
            except (LakeferryError, Killed) as failed:
                error = failed
                self.clock.sleep(wait)
        return error

    def disturb(self, **rule):
        """Replace all rules of the fault injector by this one, or remove them."""
        self.faults._obey("PUT", json.dumps({"rules": [rule] if rule else []}).encode())

    # --- the state

    def fields(self, name, label=CURRENT):
        value = self.secrets.all[name].value(label)
        return json.loads(value) if value else None

    def accepts(self, fields):
        """Return whether the vendor accepts this credential now.

        The call is not counted as the function's.
        """
        if "privateKey" in fields:
            return _fingerprint(fields["privateKey"]) in self.slots().values()
        return find_key(self.confluent.organization, fields["apiKey"], fields["apiSecret"]) is not None

    def exists(self, fields):
        """Return whether the key exists, even if it is not yet in effect."""
        if "privateKey" in fields:
            return self.accepts(fields)
        return fields["apiKey"] in self.confluent.organization.api_keys

    def slots(self):
        user = self.snowflake.account.find(Domain.USER, (USER,))
        return {slot: key.fingerprint for slot, key in user.keys.items()}

    def ours(self, name):
        """Return the ids of the secret's live keys, as the vendor has them."""
        if name == "snowflake":
            return set(self.slots().values())
        base = f"{NAME}-{name}"
        keys = self.confluent.organization.api_keys.values()
        return {key.id for key in keys if key.name == base or key.name.startswith(f"{base}/")}

    def id_of(self, fields):
        return _fingerprint(fields["privateKey"]) if "privateKey" in fields else fields["apiKey"]

    def held(self, name):
        """Return the ids of the keys in labelled versions."""
        found = (self.fields(name, label) for label in (CURRENT, PREVIOUS, PENDING))
        return {self.id_of(fields) for fields in found if fields}

    def leaks(self):
        """Return the secrets in everything that was written: their first letters, and where."""
        written = {
            "the log": self.log.getvalue(),
            "errors": "\n".join(self.result),
            "addresses": "\n".join(self.steps.log),
        }
        known = {key.secret for key in self.confluent.organization.api_keys.values()}
        for value in self.secrets.ever:
            fields = json.loads(value) if value.startswith("{") else {}
            known |= (
                {fields["apiSecret"]}
                if "apiSecret" in fields
                else set(fields.get("privateKey", "").splitlines()[1:-1])
            )
        return [
            f"{secret[:6]}… in {where}"
            for where, text in written.items()
            for secret in known
            if secret in text
        ]


class _Router:
    def __init__(self, apps, other):
        self._apps = apps
        self._other = other

    async def __call__(self, scope, receive, send):
        await self._apps.get(scope["server"][1], self._other)(scope, receive, send)


def _load(text, passphrase):
    """Load a key of the pool from a cache, because checking its numbers takes 50 ms."""
    known = _known.get(text.reveal())
    return pair_of(known or keypair.load(text, passphrase)._key)


@functools.lru_cache(maxsize=1024)
def _fingerprint(pem):
    return _load(Secret(pem), None).fingerprint


def aws_error(code="InternalServiceError"):
    return ClientError({"Error": {"Code": code, "Message": "canary"}}, "Operation")
