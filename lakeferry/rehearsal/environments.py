"""Start the embedded AWS and the simulators of both vendors, and prepare them as admins do before a
deployment.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

from config.deployments.snowflake_model import Snowflake as SnowflakeSettings
from lakeferry.deployment import snowflake_admin
from lakeferry.deployment.context import FUNCTIONS, DeploymentContext
from lakeferry.errors import CommandFailed
from lambdas import contract
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake
from lambdas.snowflake.keypair import KeyPair
from simulators.aws import settings
from simulators.aws.server import EmbeddedAws, EmbeddedAwsFailed
from simulators.core import control, processes
from simulators.core.processes import NotStarted

#: The simulator's delays as a fraction of Confluent's.
_DELAYS: Final = 0.003
_ADMIN_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 10.0


@attrs.frozen
class SimulatedEnvironment:
    """The running simulators. `variables` are the environment variables of a user who works in them."""

    aws: EmbeddedAws
    confluent: Mapping[str, Any]
    snowflake: Mapping[str, Any]
    variables: dict[str, str]

    def ask_confluent(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> Any:
        """Call the controls of the Confluent simulator."""
        return control.call(self.confluent["url"], method, path, body)

    def ask_aws(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Call the controls of the embedded AWS."""
        return control.call(self.aws.url, method, path, body)

    def confluent_objects(self) -> dict[str, list[str]]:
        """Return the ids of all objects, by kind."""
        objects: dict[str, list[str]] = self.ask_confluent("GET")["objects"]
        return objects

    def confluent_now(self) -> float:
        """Return the vendor's time in seconds since 1970."""
        return datetime.fromisoformat(self.ask_confluent("GET")["now"]).timestamp()

    def advance_confluent(self, seconds: float) -> dict[str, Any]:
        return dict(self.ask_confluent("POST", "/clock", {"advance": seconds}))

    @contextmanager
    def stop_confluent_time(self) -> Iterator[None]:
        """Let no time pass at Confluent, so that no connector and no statement writes meanwhile."""
        self.ask_confluent("POST", "/clock", {"scale": 0})
        try:
            yield
        finally:
            self.ask_confluent("POST", "/clock", {"scale": 1})

    def advance_snowflake(self, seconds: float) -> dict[str, Any]:
        return dict(control.call(self.snowflake["url"], "POST", "/clock", {"advance": seconds}))

    def addresses(self) -> dict[str, str]:
        return {
            "AWS": self.aws.url,
            "Confluent Cloud": self.confluent["url"],
            "Tableflow's catalog": self.confluent["iceberg_catalog_url"],
            "Snowflake": self.snowflake["url"],
        }


@contextmanager
def open_environment(
    account: str,
    begins: float,
    *,
    region: str = settings.REGION,
    flink: bool = True,
    organization: str = "",
) -> Iterator[SimulatedEnvironment]:
    """Start empty simulators; without Flink no statement runs. `account` is the name of the Snowflake
    account.

    Confluent's records begin at `begins`, in seconds since 1970. `organization` is the id of Confluent's
    organization, if that matters.
    """
    start = datetime.fromtimestamp(begins, UTC).isoformat()
    try:
        with EmbeddedAws(iam=True) as aws:
            shared = ["--aws", aws.url, "--region", region]
            options = [*shared, "--start", start, "--delays", str(_DELAYS), "--organization", organization]
            if flink:
                options.append("--flink")
            with (
                _run_simulator("simulators.confluent", options) as confluent,
                _run_simulator("simulators.snowflake", [*shared, "--account", account]) as snowflake,
            ):
                variables = _build_variables(aws, confluent, snowflake)
                variables |= {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
                yield SimulatedEnvironment(aws, confluent, snowflake, variables)
    except EmbeddedAwsFailed as error:
        raise CommandFailed("EMBEDDED-AWS", str(error)) from None


@contextmanager
def _run_simulator(module: str, options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Run a simulator in its own process and yield the addresses and credentials that it announces.

    Raises CommandFailed.
    """
    command = [sys.executable, "-m", module, "--port", "0", "--json", "--stop-with-stdin", *options]
    with tempfile.TemporaryFile() as log:
        process = processes.start(command, log)
        try:
            yield processes.read_announcement(process, log)
        except NotStarted as reason:
            message = "\n".join([f"{module} {reason.what}. Its last lines:", *reason.last])
            raise CommandFailed("SIMULATOR", message) from None
        finally:
            processes.stop(process, _STOP_SECONDS)


def _build_variables(
    aws: EmbeddedAws, confluent: Mapping[str, Any], snowflake: Mapping[str, Any]
) -> dict[str, str]:
    return aws.environment(os.environ) | {
        contract.CONFLUENT_URL: confluent["url"],
        contract.CATALOG_URL: confluent["iceberg_catalog_url"],
        contract.REGISTRY_URL: confluent["schema_registry_url"],
        contract.SNOWFLAKE_URL: snowflake["url"],
        FUNCTIONS: "local",
    }


def require_embedded(ctx: DeploymentContext) -> None:
    """Raise CommandFailed unless this is the embedded AWS: a rehearsal creates and deletes without asking."""
    if ctx.account != settings.ACCOUNT:
        message = f"the AWS account is {ctx.account}, and a rehearsal only runs in {settings.ACCOUNT}"
        raise CommandFailed("NOT-EMBEDDED", message)


def prepare(ctx: DeploymentContext, simulators: SimulatedEnvironment) -> None:
    """Do what admins do once: store the Cloud key, and create Snowflake's deployer by the script of
    prepare-snowflake.md.
    """
    store_secret(ctx, ctx.deployment.created_confluent.cloud_key_secret, get_cloud_key(simulators))
    prepare_snowflake(ctx, simulators)


def get_cloud_key(simulators: SimulatedEnvironment) -> dict[str, str]:
    """Return the key of the organization's owner as a secret has it."""
    announced = simulators.confluent
    return {"apiKey": announced["cloud_api_key"], "apiSecret": announced["cloud_api_secret"]}


def prepare_snowflake(ctx: DeploymentContext, simulators: SimulatedEnvironment) -> None:
    """Create the deployer, and store its key pair. Do nothing for a deployment without Snowflake."""
    snowflake = ctx.deployment.snowflake
    if snowflake is None or not snowflake.enabled:
        return
    pair = make_deployer(simulators, snowflake)
    fields = {"account": snowflake.account, "user": snowflake.user, "privateKey": pair.private_pem.reveal()}
    store_secret(ctx, snowflake.key_secret, fields)


def make_deployer(simulators: SimulatedEnvironment, snowflake: SnowflakeSettings) -> KeyPair:
    """Run the admin's script, with the names of the deployment file, and return the key pair of the user that
    it creates.
    """
    pair = keypair.make()
    names = {"USER": snowflake.user, "ROLE": snowflake.role, "WAREHOUSE": snowflake.deployer_warehouse}
    script = snowflake_admin.script()
    for kind, name in names.items():
        pattern = rf"\b({kind}(?: IF NOT EXISTS |=| )){contract.SNOWFLAKE_DEPLOYER}\b"
        script = re.sub(pattern, rf"\g<1>{name}", script)
    connection = open_admin(simulators)
    for statement in script.replace(snowflake_admin.PUBLIC_KEY, pair.public).splitlines():
        connection.run(sql.Sql(statement.rstrip(";")))
    return pair


def open_admin(simulators: SimulatedEnvironment) -> Snowflake:
    announced = simulators.snowflake
    pair = keypair.load(Secret(Path(announced["private_key_file"]).read_text(encoding="ascii")))
    login = Login(announced["account"], announced["user"], announced["role"])
    clock = SystemClock()
    return Snowflake(
        Session(Deadline(clock, clock.time() + _ADMIN_SECONDS)), clock, login, pair, announced["url"]
    )


def store_secret(ctx: DeploymentContext, name: str, fields: Mapping[str, str]) -> None:
    ctx.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(fields))
