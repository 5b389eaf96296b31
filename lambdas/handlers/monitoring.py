"""The watch: invoked on a schedule, looks at everything once and writes metrics."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent, RestClient
from lambdas.confluent.telemetry import TELEMETRY
from lambdas.handlers import runtime
from lambdas.handlers.runtime import LambdaContext
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring import metrics
from lambdas.monitoring.checks import CheckResults, Clients, checks_of, run_checks
from lambdas.monitoring.measurements import (
    Connection,
    ExportResults,
    GlueTables,
    KafkaTopics,
    SecretKeys,
    SnowflakeTables,
    TableflowTables,
)
from lambdas.monitoring.settings import Monitored, combine
from lambdas.shared import deployment, errors
from lambdas.shared.clock import Clock, Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AWS: Final = Config(connect_timeout=3, read_timeout=8, retries={"mode": "standard", "total_max_attempts": 3})
#: Seconds at the end, in which metrics are written, and the part of the rest that each vendor may use up.
_MARGIN: Final = 15.0
_SHARE: Final = 0.4


@attrs.frozen
class Settings:
    deployment: str
    bucket: str
    prefix: str
    watched: Monitored
    metrics_key: str
    telemetry_url: str
    tableflow_secret: str
    confluent_url: str
    snowflake_secret: str
    snowflake_url: str


def on_schedule(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """How much was measured. What could not be is no failure of the watch: it is counted, and the count has an alarm."""
    log = open_log()
    with runtime.told(log):
        clock, settings = SystemClock(), read(os.environ, _client("s3"))
        left = context.get_remaining_time_in_millis() / 1000 - _MARGIN
        seen = run_checks(checks_of(settings.watched, places(settings, clock, left)), log)
        metrics.emit(_client("cloudwatch"), seen, settings.deployment, clock.time())
        return told(seen)


def told(seen: CheckResults) -> dict[str, Any]:
    return {"seen": len(seen.values), "unseen": seen.unseen}


def places(settings: Settings, clock: Clock, left: float) -> Clients:
    """The composition: the only place that chooses what stands behind the ports."""

    def session() -> Session:
        return Session(Deadline(clock, clock.time() + left * _SHARE))

    return Clients(
        lake=lambda database: GlueTables(_client("glue"), _client("s3"), database, clock.time),
        tables=TableflowTables(lambda: tableflow(settings, session(), clock)),
        topics=KafkaTopics(lambda: telemetry(settings, session(), clock), settings.watched.cluster, clock.time),
        shown=SnowflakeTables(functools.cache(lambda: snowflake(settings, session(), clock)), clock.time),
        results=ExportResults(Objects(_client("s3"), settings.bucket), settings.prefix, _client("glue"), clock.time),
        keys=SecretKeys(_client("secretsmanager"), clock.time),
        sns=_client("sns"),
        now=clock.time,
    )


def telemetry(settings: Settings, session: Session, clock: Clock) -> RestClient:
    if not settings.metrics_key or not settings.watched.cluster:
        raise LakeferryError(monitoring_errors.NOT_SET, f"{contract.CLOUD_KEY_SECRET} or {contract.CLUSTER}")
    key = SecretStore(_client("secretsmanager")).read_key(settings.metrics_key)
    return RestClient(session, clock, settings.telemetry_url, key)


def tableflow(settings: Settings, session: Session, clock: Clock) -> Connection:
    """With the key, and of the environment and cluster, that the secret names."""
    if not settings.tableflow_secret:
        raise LakeferryError(monitoring_errors.NOT_SET, contract.TABLEFLOW_SECRET)
    store = SecretStore(_client("secretsmanager"))
    key, held = store.read_key(settings.tableflow_secret), store.read(settings.tableflow_secret)
    plane = Confluent(session, clock, key, settings.confluent_url).tableflow(key)
    return Connection(plane, held["environment.id"].reveal(), held["kafka.cluster.id"].reveal())


def snowflake(settings: Settings, session: Session, clock: Clock) -> Snowflake:
    """As the user whose key stands in the secret, without a warehouse."""
    if not settings.snowflake_secret:
        raise LakeferryError(monitoring_errors.NOT_SET, contract.SNOWFLAKE_SECRET)
    store = SecretStore(_client("secretsmanager"))
    held = store.read(settings.snowflake_secret)
    account, user, role = (
        held[name].reveal() if name in held else "" for name in (secret_fields.ACCOUNT, secret_fields.USER, "role")
    )
    login = Login(account, user, sql.named(role))
    return Snowflake(session, clock, login, secret_fields.read_pair(store, settings.snowflake_secret), settings.snowflake_url)


def read(environment: Mapping[str, str], s3: S3Client) -> Settings:
    """Raises LakeferryError that names all that is missing."""
    wanted = (contract.PROJECT, contract.STAGE, contract.LAKE_BUCKET, contract.LAKE_PREFIX, contract.SETTINGS)
    if missing := [name for name in wanted if not environment.get(name)]:
        raise LakeferryError(errors.SETTINGS, f"{', '.join(missing)} not set")
    return Settings(
        deployment=f"{environment[contract.PROJECT]}-{environment[contract.STAGE]}",
        bucket=environment[contract.LAKE_BUCKET],
        prefix=environment[contract.LAKE_PREFIX].strip("/"),
        watched=combine(
            deployment.read(s3, environment[contract.SETTINGS]),
            cluster=environment.get(contract.CLUSTER, ""),
            snowflake_schema=environment.get(contract.SNOWFLAKE_SCHEMA, ""),
            topic_arns=environment.get(contract.TOPIC_ARNS, ""),
        ),
        metrics_key=environment.get(contract.CLOUD_KEY_SECRET, ""),
        telemetry_url=environment.get(contract.CONFLUENT_URL) or TELEMETRY,
        tableflow_secret=environment.get(contract.TABLEFLOW_SECRET, ""),
        confluent_url=environment.get(contract.CONFLUENT_URL) or CONTROL_PLANE,
        snowflake_secret=environment.get(contract.SNOWFLAKE_SECRET, ""),
        snowflake_url=environment.get(contract.SNOWFLAKE_URL, ""),
    )


@functools.cache
def _client(service: str) -> Any:
    """Kept for as long as the function stays warm: making one takes a tenth of a second."""
    session: Any = boto3.session.Session()
    return session.client(service, config=_AWS)
