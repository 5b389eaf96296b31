"""The age of each table at every hop: topic, Tableflow, Iceberg, Glue, Snowflake.

Uses the code of the monitoring function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health.model import Observation, State, observe
from lakeferry.health.tableflow import Tableflow, TableflowTopic
from lambdas import contract
from lambdas.confluent import iceberg_catalog
from lambdas.confluent.iceberg_catalog import IcebergCatalog
from lambdas.confluent.rest_client import RestClient
from lambdas.handlers import monitoring
from lambdas.handlers.monitoring import Settings
from lambdas.monitoring.measurements import (
    ExportResults,
    GlueTables,
    KafkaTopics,
    ManagedTables,
    SnowflakeTables,
)
from lambdas.monitoring.settings import MonitoredTable
from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.shared.s3 import Objects
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

#: In the order in which records pass through them.
HOPS: Final = ("topic", "tableflow", "iceberg", "glue", "snowflake")
_IN_PARALLEL: Final = 6
#: Seconds for all requests to one vendor together.
_PATIENCE: Final = 60.0


@attrs.frozen
class Readers:
    """Reads with the settings of the deployed monitoring function and the operator's AWS clients."""

    ctx: DeploymentContext
    settings: Settings

    def drop_cache(self) -> Readers:
        """Return readers without cached data: readers cache the answers of the Metrics API and a session with
        Snowflake.
        """
        return attrs.evolve(self)

    def glue(self, database: str) -> GlueTables:
        return GlueTables(self.ctx.client("glue"), self.ctx.client("s3"), database, self.ctx.clock.time)

    @functools.cached_property
    def managed(self) -> ManagedTables:
        return ManagedTables(functools.cache(self._open_catalog), self.ctx.clock.time)

    @functools.cached_property
    def topics(self) -> KafkaTopics:
        return KafkaTopics(self._open_telemetry, self.settings.monitored.cluster, self.ctx.clock.time)

    @functools.cached_property
    def snowflake(self) -> SnowflakeTables:
        return SnowflakeTables(functools.cache(self._open_snowflake), self.ctx.clock.time)

    @property
    def results(self) -> ExportResults:
        return ExportResults(self.objects, self.settings.prefix, self.ctx.client("glue"), self.ctx.clock.time)

    @property
    def objects(self) -> Objects:
        return Objects(self.ctx.client("s3"), self.settings.bucket)

    def _open_telemetry(self) -> RestClient:
        key = self.ctx.secrets.read_key(self.settings.metrics_key)
        return RestClient(self._open_session(), self.ctx.clock, self.settings.telemetry_url, key)

    def _open_catalog(self) -> IcebergCatalog:
        return iceberg_catalog.connect(
            self._open_session(),
            self.ctx.clock,
            self.ctx.secrets,
            self.settings.table_reader_secret,
            uri=self.settings.catalog_uri,
            cluster_id=self.settings.catalog_cluster,
        )

    def _open_snowflake(self) -> Snowflake:
        """Log in as the deployment's reader, without a warehouse."""
        store = self.ctx.secrets
        secret = self.settings.snowflake_secret
        fields = store.read(secret)
        absent = Secret("", redacted=False)
        account = fields.get(secret_fields.ACCOUNT, absent).reveal()
        user = fields.get(secret_fields.USER, absent).reveal()
        role = fields.get("role", absent).reveal()
        login = Login(account, user, sql.to_exact_name(role))
        key = secret_fields.read_pair(store, secret)
        return Snowflake(self._open_session(), self.ctx.clock, login, key, self.settings.snowflake_url)

    def _open_session(self) -> Session:
        return Session(Deadline(self.ctx.clock, self.ctx.clock.time() + _PATIENCE), trust_environment=True)


def open_readers(ctx: DeploymentContext) -> Readers:
    """Raises CommandFailed if the monitoring function isn't deployed."""
    stack = stacks.require_part(ctx, "operations")
    for function in stacks.list_functions(ctx, stack, contract.WATCH):
        with translate_aws_errors(f"looking at function {function.name}"):
            answer: dict[str, Any] = ctx.client("lambda").get_function_configuration(
                FunctionName=function.name
            )
            variables = answer.get("Environment", {}).get("Variables", {})
            return Readers(ctx, monitoring.read_settings(variables, ctx.client("s3")))
    message = f"stack {stack.name} has no monitoring function"
    raise CommandFailed("NOT-DEPLOYED", message, f"`lakeferry deploy --stage {ctx.stage}`")


@attrs.frozen
class TableStatus:
    """A table's observations, by hop. A table doesn't have every hop. Ages are in hours."""

    table: str
    hops: dict[str, Observation]

    @property
    def is_readable(self) -> bool:
        """Return whether the table has a snapshot in its catalog."""
        observation = self.hops.get("glue") or self.hops.get("iceberg")
        return observation is not None and observation.value is not None

    @property
    def is_wrong(self) -> bool:
        return any(observation.state is State.WRONG for observation in self.hops.values())


def read_tables(readers: Readers, stale_hours: float) -> list[TableStatus]:
    """Read each hop by itself, so that one that can't be read doesn't hide the others."""
    tableflow = Tableflow(readers.ctx)
    reads = []
    for table in readers.settings.monitored.tables:
        of_table = [*_list_confluent_reads(readers, tableflow, table), *_list_reads(readers, table)]
        reads += [(table.name, hop, read) for hop, read in of_table]
    with ThreadPoolExecutor(_IN_PARALLEL) as pool:
        observations = list(pool.map(lambda read: _observe(read[2], stale_hours), reads))
    tables: dict[str, dict[str, Observation]] = {}
    for (table_name, hop, _), observation in zip(reads, observations, strict=True):
        tables.setdefault(table_name, {})[hop] = observation
    return [TableStatus(table_name, hops) for table_name, hops in tables.items()]


def _list_confluent_reads(
    readers: Readers, tableflow: Tableflow, table: MonitoredTable
) -> Iterator[tuple[str, Callable[[], Any]]]:
    if readers.settings.monitored.tables_exist:
        return
    yield "topic", functools.partial(readers.topics.age, table.topic)
    yield "tableflow", lambda: observe_topic(tableflow.topics.get(table.topic))


def _list_reads(readers: Readers, table: MonitoredTable) -> Iterator[tuple[str, Callable[[], Any]]]:
    if table.database:
        glue = readers.glue(table.database)
        yield "iceberg", functools.partial(glue.iceberg_age, table.name)
        yield "glue", functools.partial(glue.glue_age, table.name)
    if table.managed:
        yield "iceberg", functools.partial(readers.managed.iceberg_age, table.topic)
    if table.snowflake:
        yield "snowflake", functools.partial(readers.snowflake.age, table.snowflake)


def _observe(read: Callable[[], Any], stale_hours: float) -> Observation:
    answer = observe(read)
    if isinstance(answer, Observation):
        return answer
    hours = max(0.0, float(answer))
    if hours > stale_hours:
        return Observation(State.WRONG, hours, f"nothing new for longer than {stale_hours:g} hours")
    return Observation(State.OK, hours)


def observe_topic(table: TableflowTopic | None) -> Observation:
    if table is None:
        off = "Tableflow is off for this topic; `lakeferry deploy --repair` turns it on again"
        return Observation(State.WRONG, message=off)
    if table.suspended:
        return Observation(State.WRONG, message=f"suspended: {table.reason}", code="CFL-TABLEFLOW-SUSPENDED")
    if table.failing_formats:
        reasons = "; ".join(table.failing_formats)
        return Observation(
            State.WRONG, message=f"{table.phase.lower()}: {reasons}", code="CFL-TABLEFLOW-FAILED"
        )
    if table.phase == "FAILED":
        return Observation(State.WRONG, message=f"failed: {table.reason}", code="CFL-TABLEFLOW-FAILED")
    return Observation(
        State.OK if table.phase == "RUNNING" else State.WAITING, message=table.phase.lower() or "pending"
    )
