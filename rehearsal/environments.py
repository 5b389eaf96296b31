"""The three worlds of a rehearsal, started, with what their admins make by hand before a deployment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

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
from rehearsal import simulator
from simulators import serving
from simulators.aws import controls, settings
from simulators.aws.server import EmbeddedAws, EmbeddedAwsFailed

#: What takes Confluent minutes takes a few thousandths of it here.
_DELAYS: Final = 0.003
_ADMIN_SECONDS: Final = 120.0


@attrs.frozen
class SimulatedEnvironment:
    """`environment` is a user's, in these worlds; addresses are those of the vendors' APIs."""

    aws: EmbeddedAws
    confluent: Mapping[str, Any]
    snowflake: Mapping[str, Any]
    environment: dict[str, str]

    def ask_confluent(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> Any:
        """What the simulator's own controls answer."""
        return serving.control(self.confluent["url"], method, path, body)

    def ask_aws(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """What the embedded AWS's own controls answer."""
        return serving.control(self.aws.url, method, path, body, below=controls.PREFIX)

    def confluent_objects(self) -> dict[str, list[str]]:
        """Ids of everything there is, by kind."""
        found: dict[str, list[str]] = self.ask_confluent("GET")["objects"]
        return found

    def confluent_now(self) -> float:
        """Seconds since 1970, by the vendor's clock."""
        return datetime.fromisoformat(self.ask_confluent("GET")["now"]).timestamp()

    def advance_confluent(self, seconds: float) -> dict[str, Any]:
        return dict(self.ask_confluent("POST", "/clock", {"advance": seconds}))

    def advance_snowflake(self, seconds: float) -> dict[str, Any]:
        return dict(serving.control(self.snowflake["url"], "POST", "/clock", {"advance": seconds}))

    def addresses(self) -> dict[str, str]:
        return {
            "AWS": self.aws.url,
            "Confluent Cloud": self.confluent["url"],
            "Tableflow's catalog": self.confluent["iceberg_catalog_url"],
            "Snowflake": self.snowflake["url"],
        }


@contextmanager
def open_environment(
    account: str, begins: float, *, region: str = settings.REGION, flink: bool = True
) -> Iterator[SimulatedEnvironment]:
    """Empty ones; without Flink no row flows. `account` is Snowflake's name for itself.

    `begins` is the time at which Confluent's records begin, in seconds since 1970.
    """
    began = datetime.fromtimestamp(begins, UTC).isoformat()
    try:
        with EmbeddedAws(iam=True) as aws:
            shared = ["--aws", aws.url, "--region", region]
            options = [*shared, "--start", began, "--delays", str(_DELAYS), *(["--flink"] if flink else [])]
            with (
                simulator.running("simulators.confluent_cloud", options) as confluent,
                simulator.running("simulators.snowflake", [*shared, "--account", account]) as snowflake,
            ):
                yield SimulatedEnvironment(aws, confluent, snowflake, _environment(aws, confluent, snowflake))
    except EmbeddedAwsFailed as error:
        raise CommandFailed("EMBEDDED-AWS", str(error)) from None


def _environment(aws: EmbeddedAws, confluent: Mapping[str, Any], snowflake: Mapping[str, Any]) -> dict[str, str]:
    return aws.environment(os.environ) | {
        contract.CONFLUENT_URL: confluent["url"],
        contract.CATALOG_URL: confluent["iceberg_catalog_url"],
        contract.SNOWFLAKE_URL: snowflake["url"],
        FUNCTIONS: "here",
    }


def require_embedded(ctx: DeploymentContext) -> None:
    """Raises CommandFailed unless this is the embedded AWS: a rehearsal makes and destroys without asking."""
    if ctx.account != settings.ACCOUNT:
        message = f"AWS says that this is account {ctx.account}, and a rehearsal is for {settings.ACCOUNT} only"
        raise CommandFailed("NOT-EMBEDDED", message)


def prepare(ctx: DeploymentContext, worlds: SimulatedEnvironment) -> None:
    """What admins do once: the Cloud key, and Snowflake's deployer by the script of prepare-snowflake.md."""
    secrets = ctx.client("secretsmanager")
    key = {"apiKey": worlds.confluent["cloud_api_key"], "apiSecret": worlds.confluent["cloud_api_secret"]}
    _store(secrets, ctx.deployment.confluent.cloud_key_secret, key)
    wanted = ctx.deployment.snowflake
    if wanted is None or not wanted.enabled:
        return
    pair = make_deployer(worlds)
    fields = {"account": wanted.account, "user": wanted.user, "privateKey": pair.private_pem.reveal()}
    _store(secrets, wanted.key_secret, fields)


def make_deployer(worlds: SimulatedEnvironment) -> KeyPair:
    """By the script that an admin runs; the pair that its user has."""
    pair, by = keypair.make(), admin(worlds)
    for statement in snowflake_admin.script().replace(snowflake_admin.PUBLIC_KEY, pair.public).splitlines():
        by.run(sql.Sql(statement.rstrip(";")))
    return pair


def admin(worlds: SimulatedEnvironment) -> Snowflake:
    account = worlds.snowflake
    pair = keypair.load(Secret(Path(account["private_key_file"]).read_text(encoding="ascii")))
    login = Login(account["account"], account["user"], account["role"])
    clock = SystemClock()
    return Snowflake(Session(Deadline(clock, clock.time() + _ADMIN_SECONDS)), clock, login, pair, account["url"])


def _store(secrets: Any, name: str, fields: Mapping[str, str]) -> None:
    secrets.create_secret(Name=name, SecretString=json.dumps(fields))
