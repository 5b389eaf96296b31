"""The context of a command: a deployment, and clients for AWS, Confluent and Snowflake, or for their
simulators.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import attrs
import boto3
from botocore.config import Config

from config.deployments import deployment_file, validation
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import Deployment
from config.deployments.rules import RULES, RULES_WITHOUT_SCHEMAS, Rule
from config.exports.check import NOT_JUDGED, Judge, NotJudged
from config.toml_model import BadFile
from lakeferry.error_translation import as_failure, translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local.judge import open_judge
from lakeferry.output import find_program_name
from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.shared.clock import Clock, Deadline, SystemClock
from lambdas.shared.errors import LakeferryError, NotFound
from lambdas.shared.http import Session
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

#: Environment variable for rehearsals: "local" bundles the Lambda functions for this machine, where they run
#: then.
FUNCTIONS: Final = "LAKEFERRY_FUNCTIONS"
#: The parts of a deployment, in the order in which they are deployed; stacks/deployment.py composes them.
PARTS: Final = ("data", "confluent", "snowflake", "exports", "operations")
_AWS: Final = Config(
    connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5}
)

#: The Kafka key of the account that manages topics, which people may bring.
MANAGERS_KAFKA_KEY: Final = "kafka/app_manager"


@attrs.frozen
class Addresses:
    """URLs of the vendors' APIs; "" is the vendor's public URL.

    `functions` is "local" if the functions run on this machine.
    """

    confluent: str = ""
    catalog: str = ""
    snowflake: str = ""
    functions: str = ""
    registry: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Addresses:
        names = {
            "confluent": contract.CONFLUENT_URL,
            "catalog": contract.CATALOG_URL,
            "snowflake": contract.SNOWFLAKE_URL,
            "functions": FUNCTIONS,
            "registry": contract.REGISTRY_URL,
        }
        return cls(**{field: environment.get(name, "") for field, name in names.items()})

    def context(self) -> dict[str, str]:
        """Return the values of the CDK context that these addresses set."""
        settings = {
            "confluent_url": self.confluent,
            "catalog_url": self.catalog,
            "snowflake_url": self.snowflake,
            "functions": "local" if self.functions == "local" else "",
        }
        return {name: value for name, value in settings.items() if value}


@attrs.frozen
class DeploymentContext:
    """A deployment with its clients.

    AWS and the secrets are read when they are first needed; all members raise CommandFailed.
    """

    loaded: LoadedDeployment
    addresses: Addresses = Addresses()
    clock: Clock = attrs.field(factory=SystemClock)
    _clients: dict[tuple[str, Config], Any] = attrs.field(factory=dict, init=False, repr=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False, repr=False)

    @property
    def deployment(self) -> Deployment:
        return self.loaded.deployment

    @property
    def stage(self) -> str:
        return self.deployment.identity.stage

    @property
    def region(self) -> str:
        return self.deployment.aws.region

    @property
    def stacks(self) -> list[str]:
        """Names of the deployment's stacks, in the order in which they are deployed."""
        return [f"{self.deployment.prefix}-{part}" for part in PARTS if part in self.parts]

    @property
    def parts(self) -> frozenset[str]:
        """The parts that the deployment file asks for."""
        absent = set()
        if self.deployment.confluent is None:
            absent.add("confluent")
        if not self.deployment.uses_snowflake:
            absent.add("snowflake")
        return frozenset(PARTS) - absent

    @cached_property
    def account(self) -> str:
        """The AWS account that the user is logged in to.

        Raises CommandFailed if the file names another one.
        """
        with translate_aws_errors("reading the AWS identity"):
            account = str(self.client("sts").get_caller_identity()["Account"])
        expected = self.deployment.aws.account
        if expected and expected != account:
            message = f"you are logged in to account {account}, and the deployment is for account {expected}"
            raise CommandFailed(
                "AWS-ACCOUNT", message, f"Log in to account {expected}, or choose another stage"
            )
        return account

    def client(self, service: str, config: Config = _AWS) -> Any:
        """Return the boto3 client for the deployment's region."""
        with self._lock:
            if (service, config) not in self._clients:
                with translate_aws_errors(f"preparing {service}"):
                    self._clients[service, config] = self._session.client(service, config=config)
            return self._clients[service, config]

    @cached_property
    def _session(self) -> Any:
        """The session of all clients, so that AWS's configuration files are read only once."""
        return boto3.session.Session(region_name=self.region)

    @property
    def has_credentials(self) -> bool:
        """Return whether there are credentials for AWS, which may have expired.

        Raises CommandFailed if they can't be read.
        """
        with translate_aws_errors("looking for AWS credentials"):
            return self._session.get_credentials() is not None

    @property
    def secrets(self) -> SecretStore:
        return SecretStore(self.client("secretsmanager"))

    @property
    def deadline(self) -> Deadline:
        """Return a deadline without a limit, because users can interrupt a command themselves."""
        return Deadline(self.clock, math.inf)

    @property
    def cloud_key_secret(self) -> str:
        """The name of the secret with the Cloud key."""
        if self.deployment.confluent is None:
            raise CommandFailed("NO-CONFLUENT", f"the deployment of stage {self.stage} has no [confluent]")
        return self.deployment.confluent.cloud_key_secret

    def confluent(self) -> Confluent:
        """Return a client that uses the Cloud key in the secret that the deployment file names."""
        secret = self.cloud_key_secret
        key = self._read_secret("confluent", lambda: self.secrets.read_key(secret))
        return Confluent(
            Session(self.deadline, trust_environment=True),
            self.clock,
            key,
            self.addresses.confluent or CONTROL_PLANE,
            self.addresses.catalog,
        )

    def snowflake(self) -> Snowflake:
        """Return a client that logs in as the user of the deployment file and uses its warehouse for
        deploying.
        """
        settings = self.deployment.snowflake
        if settings is None:
            raise CommandFailed("NO-SNOWFLAKE", f"the deployment of stage {self.stage} has no [snowflake]")
        key = self._read_secret(
            "snowflake", lambda: secret_fields.read_pair(self.secrets, settings.key_secret)
        )
        login = Login(
            settings.account,
            settings.user,
            sql.to_exact_name(settings.role),
            sql.to_exact_name(settings.deployer_warehouse),
        )
        return Snowflake(
            Session(self.deadline, trust_environment=True), self.clock, login, key, self.addresses.snowflake
        )

    def object_name(self, stack: str, logical_id: str, generation: str) -> str:
        """Return the name of the vendor's object that belongs to a custom resource of a stack."""
        deployment = self.deployment.identity
        return contract.build_object_name(
            project=deployment.name, stage=deployment.stage, region=self.region, account=self.account,
            stack=stack, logical_id=logical_id, generation=generation,
        )  # fmt: skip

    def role_name(self, vendor: str) -> str:
        """Return the name of the IAM role that `tableflow` or `snowflake` assumes."""
        return self.deployment.role_name(vendor)

    def role_arn(self, vendor: str) -> str:
        return f"arn:aws:iam::{self.account}:{self.deployment.role_resource(vendor)}"

    def confluent_secret(self, name: str) -> str:
        """Return the name of the secret that holds one of the deployment's Confluent keys, or the key that
        somebody brings instead.
        """
        confluent = self.deployment.confluent
        brought = confluent.brought_keys if confluent else {}
        service = name.partition("/")[0] if name == MANAGERS_KAFKA_KEY else name
        return brought.get(service) or f"{self.deployment.prefix}/confluent/{name}"

    def context(self) -> dict[str, str]:
        """Return the CDK context with which the app synthesises this deployment."""
        return {"stage": self.stage, **self.addresses.context()}

    def _read_secret(self, vendor: str, read: Callable[[], Any]) -> Any:
        _ = self.account
        try:
            return read()
        except NotFound as error:
            hint = f"Run `lakeferry secrets set {vendor} --stage {self.stage}`"
            raise CommandFailed(error.kind.code, error.what, hint) from None
        except (
            LakeferryError
        ) as error:  # no hint to store the key again: AWS doesn't return it, but it may be valid
            raise as_failure(error) from None


def load_deployment(stage: str) -> LoadedDeployment:
    """Load a stage's file, without asking Spark about the contracts.

    Raises CommandFailed with every mistake.
    """
    return _load(stage, NOT_JUDGED)


def _load(stage: str, judge: Judge | NotJudged, rules: Sequence[Rule] = RULES) -> LoadedDeployment:
    try:
        return deployment_file.load_stage(stage, judge=judge, rules=rules)
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        hint = "Correct the deployment file; docs/reference/deployment-file.md has all keys"
        if validation.is_stage(stage) and not (deployment_file.FOLDER / f"{stage}.toml").is_file():
            hint = f"Create one with `{find_program_name()} init --stage {stage}`, or choose another stage"
        raise CommandFailed("DEPLOYMENT-FILE", str(bad), hint, details=mistakes) from None


@contextmanager
def open_context(stage: str) -> Iterator[DeploymentContext]:
    """Load `project/deployments/<stage>.toml`, and read the vendors' addresses from environment variables.
    Raises CommandFailed.

    For commands that deploy nothing: Spark isn't asked about the contracts.
    """
    yield DeploymentContext(load_deployment(stage), Addresses.read(os.environ))


@contextmanager
def open_unchecked_context(stage: str) -> Iterator[DeploymentContext]:
    """Do the same for commands that write schemas, without checking contracts against them. Raises
    CommandFailed.
    """
    loaded = _load(stage, NOT_JUDGED, RULES_WITHOUT_SCHEMAS)
    yield DeploymentContext(loaded, Addresses.read(os.environ))


@contextmanager
def open_judged_context(stage: str) -> Iterator[DeploymentContext]:
    """Do the same for a deployment, with all checks of the contracts. Raises CommandFailed."""
    with open_judge() as judge:
        loaded = _load(stage, judge)
    yield DeploymentContext(loaded, Addresses.read(os.environ))
