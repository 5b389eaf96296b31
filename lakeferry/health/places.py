"""Where status looks: with the settings of the deployed watch, and the clients of the operator."""

from __future__ import annotations

import functools
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas import contract
from lambdas.confluent.client import RestClient
from lambdas.handlers import monitoring
from lambdas.handlers.monitoring import Settings
from lambdas.monitoring.measurements import ExportResults, GlueTables, KafkaTopics, SnowflakeTables
from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session
from lambdas.shared.s3 import Objects
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

#: Seconds that one vendor may take to answer everything.
_PATIENCE: Final = 60.0


@attrs.frozen
class Places:
    ctx: DeploymentContext
    settings: Settings

    def lake(self, database: str) -> GlueTables:
        return GlueTables(self.ctx.client("glue"), self.ctx.client("s3"), database, self.ctx.clock.time)

    @functools.cached_property
    def topics(self) -> KafkaTopics:
        return KafkaTopics(self._telemetry, self.settings.monitored.cluster, self.ctx.clock.time)

    @functools.cached_property
    def shown(self) -> SnowflakeTables:
        return SnowflakeTables(functools.cache(self._snowflake), self.ctx.clock.time)

    @property
    def results(self) -> ExportResults:
        return ExportResults(self.objects, self.settings.prefix, self.ctx.client("glue"), self.ctx.clock.time)

    @property
    def objects(self) -> Objects:
        return Objects(self.ctx.client("s3"), self.settings.bucket)

    def _telemetry(self) -> RestClient:
        key = self.ctx.secrets.read_key(self.settings.metrics_key)
        return RestClient(self._session(), self.ctx.clock, self.settings.telemetry_url, key)

    def _snowflake(self) -> Snowflake:
        """As the reader whom the deployment has made, without a warehouse."""
        store, secret = self.ctx.secrets, self.settings.snowflake_secret
        held = store.read(secret)
        account, user, role = (
            held[name].reveal() if name in held else "" for name in (secret_fields.ACCOUNT, secret_fields.USER, "role")
        )
        login, key = Login(account, user, sql.named(role)), secret_fields.read_pair(store, secret)
        return Snowflake(self._session(), self.ctx.clock, login, key, self.settings.snowflake_url)

    def _session(self) -> Session:
        return Session(Deadline(self.ctx.clock, self.ctx.clock.time() + _PATIENCE))


def of(ctx: DeploymentContext) -> Places:
    """Raises CommandFailed where the watch isn't deployed."""
    stack = stacks.require_part(ctx, "operations")
    for function in stacks.functions(ctx, stack, contract.WATCH):
        with translate_aws_errors(f"looking at function {function.name}"):
            found: dict[str, Any] = ctx.client("lambda").get_function_configuration(FunctionName=function.name)
            return Places(ctx, monitoring.read_settings(found.get("Environment", {}).get("Variables", {}), ctx.client("s3")))
    raise CommandFailed("NOT-DEPLOYED", f"stack {stack.name} has no watch", f"`lakeferry deploy --stage {ctx.stage}`")
