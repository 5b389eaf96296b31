"""Monitoring: on a schedule, takes each measurement once and writes the metrics."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs
from botocore.config import Config

from lambdas import contract
from lambdas.confluent import iceberg_catalog
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.confluent.iceberg_catalog import IcebergCatalog
from lambdas.confluent.rest_client import RestClient
from lambdas.confluent.telemetry import TELEMETRY
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers.runtime import LambdaContext, compute_deadline, entry_point, get_client
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.checks import OF_AWS, Clients, emit, list_checks, list_unmeasured, run_checks
from lambdas.monitoring.measurements import (
    Connection,
    ExportResults,
    GlueTables,
    KafkaTopics,
    ManagedTables,
    SecretKeys,
    SnowflakeTables,
    TableflowTables,
)
from lambdas.monitoring.settings import Monitored, combine
from lambdas.shared import deployment
from lambdas.shared.clock import Clock, Deadline, SystemClock
from lambdas.shared.errors import Denied, LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import SecretStore
from lambdas.shared.settings import MonitoringSettings
from lambdas.shared.tenants import require_tenant
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_QUICK_CALLS: Final = Config(
    connect_timeout=3, read_timeout=8, retries={"mode": "standard", "total_max_attempts": 3}
)
#: Seconds that are reserved for writing the metrics, and the share of the remaining time that each vendor may
#: use.
_MARGIN: Final = 15.0
_SHARE: Final = 0.4


@attrs.frozen
class Settings:
    deployment: str
    bucket: str
    prefix: str
    monitored: Monitored
    metrics_key: str
    telemetry_url: str
    tableflow_secret: str
    confluent_url: str
    snowflake_secret: str
    snowflake_url: str
    state_table: str = ""
    snowflake_state_table: str = ""
    table_reader_secret: str = ""
    catalog_uri: str = ""
    catalog_cluster: str = ""
    proxy: str = ""


def on_schedule(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Measure, and return the number of measurements.

    A failed measurement doesn't make the function fail: a metric counts these failures.
    """
    with entry_point() as log:
        clock = SystemClock()
        settings = read_settings(os.environ, _client("s3"))
        left = compute_deadline(context, _MARGIN).left()
        checks = list_checks(settings.monitored, build_clients(settings, clock, left))
        measured = run_checks(checks, log, time_left(clock, left))
        emit(_client("cloudwatch"), measured, settings.deployment, clock.time())
        failed = list_unmeasured(measured)
        return {"measured": len(measured) - sum(map(len, failed.values())), "unmeasured": failed}


def sessions(clock: Clock, left: float, proxy: str = "") -> Callable[[], Session]:
    """Return a function that starts a vendor's session with its share of `left`, the remaining seconds."""
    end = clock.time() + left
    return lambda: Session(Deadline(clock, min(clock.time() + left * _SHARE, end)), proxy=proxy)


def time_left(clock: Clock, left: float) -> Callable[[str], float]:
    """Return a function of a metric that returns the seconds in which its checks may begin, of `left`.

    AWS's checks share a part of the time: each may take half a minute if a service hangs, and they are the
    first.
    """
    began = clock.time()
    return lambda metric: began + left * (_SHARE if metric in OF_AWS else 1.0) - clock.time()


def build_clients(settings: Settings, clock: Clock, left: float) -> Clients:
    session = sessions(clock, left, settings.proxy)
    return Clients(
        lake=lambda database: GlueTables(_client("glue"), _client("s3"), database, clock.time),
        managed=ManagedTables(functools.cache(lambda: open_catalog(settings, session(), clock)), clock.time),
        tableflow=TableflowTables(lambda: open_tableflow(settings, session(), clock)),
        topics=KafkaTopics(
            lambda: open_telemetry(settings, session(), clock), settings.monitored.cluster, clock.time
        ),
        snowflake=SnowflakeTables(
            functools.cache(lambda: open_snowflake(settings, session(), clock)), clock.time
        ),
        exports=ExportResults(
            Objects(_client("s3"), settings.bucket), settings.prefix, _client("glue"), clock.time
        ),
        keys=SecretKeys(_client("secretsmanager"), clock.time),
        sns=_client("sns"),
        now=clock.time,
    )


def open_telemetry(settings: Settings, session: Session, clock: Clock) -> RestClient:
    if not settings.metrics_key or not settings.monitored.cluster:
        raise LakeferryError(monitoring_errors.NOT_SET, f"{contract.CLOUD_KEY_SECRET} or {contract.CLUSTER}")
    key = SecretStore(_client("secretsmanager")).read_key(settings.metrics_key)
    with suppress(
        Denied
    ):  # a key that may not read its organization: Confluent then refuses it for the cluster of another one
        require_tenant(
            Confluent(session, clock, key, settings.confluent_url), _read_tenants(settings.state_table, clock)
        )
    return RestClient(session, clock, settings.telemetry_url, key)


def open_tableflow(settings: Settings, session: Session, clock: Clock) -> Connection:
    """Connect with the key in the secret, to the environment that the secret names and the deployment's
    cluster.

    A Tableflow key can't read its organization. Confluent refuses it for a cluster of another one.
    """
    if not settings.tableflow_secret:
        raise LakeferryError(monitoring_errors.NOT_SET, contract.TABLEFLOW_SECRET)
    store = SecretStore(_client("secretsmanager"))
    key = store.read_key(settings.tableflow_secret)
    stored = store.read(settings.tableflow_secret)
    plane = Confluent(session, clock, key, settings.confluent_url).tableflow(key)
    return Connection(plane, stored["environment.id"].reveal(), settings.monitored.cluster)


def open_catalog(settings: Settings, session: Session, clock: Clock) -> IcebergCatalog:
    if not settings.table_reader_secret:
        raise LakeferryError(monitoring_errors.NOT_SET, contract.TABLE_READER_SECRET)
    store = SecretStore(_client("secretsmanager"))
    return iceberg_catalog.connect(
        session,
        clock,
        store,
        settings.table_reader_secret,
        uri=settings.catalog_uri,
        cluster_id=settings.catalog_cluster,
    )


def open_snowflake(settings: Settings, session: Session, clock: Clock) -> Snowflake:
    """Connect as the user whose key is in the secret, without a warehouse."""
    if not settings.snowflake_secret:
        raise LakeferryError(monitoring_errors.NOT_SET, contract.SNOWFLAKE_SECRET)
    store = SecretStore(_client("secretsmanager"))
    stored = store.read(settings.snowflake_secret)
    names = (secret_fields.ACCOUNT, secret_fields.USER, "role")
    values = {name: stored[name].reveal() for name in names if name in stored}
    role = sql.to_exact_name(values.get("role", ""))
    login = Login(values.get(secret_fields.ACCOUNT, ""), values.get(secret_fields.USER, ""), role)
    pair = secret_fields.read_pair(store, settings.snowflake_secret)
    vendor = Snowflake(session, clock, login, pair, settings.snowflake_url)
    require_tenant(vendor, _read_tenants(settings.snowflake_state_table, clock))
    return vendor


def _read_tenants(table: str, clock: Clock) -> frozenset[str]:
    """Return the organizations or accounts in which a stack's objects are. Raises LakeferryError."""
    if not table:
        raise LakeferryError(
            monitoring_errors.NOT_SET, f"{contract.STATE_TABLE} or {contract.SNOWFLAKE_STATE_TABLE}"
        )
    return StateStore(DynamoDocuments(_client("dynamodb"), table), clock).tenants()


def read_settings(environment: Mapping[str, str], s3: S3Client) -> Settings:
    """Raises LakeferryError that names all variables that are missing."""
    variables = MonitoringSettings.from_environment(environment)
    return Settings(
        deployment=f"{variables.project}-{variables.stage}",
        bucket=variables.bucket,
        prefix=variables.prefix.strip("/"),
        monitored=combine(
            deployment.read(s3, variables.settings),
            cluster=variables.cluster,
            snowflake_schema=variables.snowflake_schema,
            topic_arns=variables.topic_arns,
        ),
        metrics_key=variables.metrics_key,
        telemetry_url=variables.confluent_url or TELEMETRY,
        tableflow_secret=variables.tableflow_secret,
        confluent_url=variables.confluent_url or CONTROL_PLANE,
        snowflake_secret=variables.snowflake_secret,
        snowflake_url=variables.snowflake_url,
        state_table=variables.state_table,
        snowflake_state_table=variables.snowflake_state_table,
        table_reader_secret=variables.table_reader_secret,
        catalog_uri=variables.catalog_uri,
        catalog_cluster=variables.catalog_cluster,
        proxy=variables.proxy,
    )


def _client(service: str) -> Any:
    """Return a client with short timeouts, because every check has little time."""
    return get_client(service, _QUICK_CALLS)
