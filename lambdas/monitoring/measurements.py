"""How the metrics are measured: for tables in AWS, Confluent and Snowflake, for exports, and for keys."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import attrs
from botocore.exceptions import ClientError

from config.exports import contracts, cron
from config.exports.contract import WindowRule
from config.exports.windows import list_closed_windows
from config.toml_model import BadFile
from lambdas.confluent import telemetry
from lambdas.confluent.iceberg_catalog import IcebergCatalog
from lambdas.confluent.rest_client import RestClient, get_objects, get_path, get_text, require_text
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.settings import MonitoredExport
from lambdas.shared.aws import read_error_code, translate_aws_errors
from lambdas.shared.errors import LakeferryError, NotFound
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import CURRENT
from lambdas.snowflake import sql
from lambdas.snowflake.client import Snowflake

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient

T = TypeVar("T")
HOUR = 3600.0
DAY = 24 * HOUR


def run_once(call: Callable[[], T]) -> Callable[[], T]:
    """Return a function that runs `call` only once, even with several threads.

    All callers get its result or LakeferryError.
    """
    outcomes: list[T | LakeferryError] = []
    lock = threading.Lock()

    def result() -> T:
        with lock:
            if not outcomes:
                try:
                    outcomes.append(call())
                except LakeferryError as error:
                    outcomes.append(error)
        (outcome,) = outcomes
        if isinstance(outcome, LakeferryError):
            raise outcome
        return outcome

    return result


_METADATA: Final = ".metadata.json"
_COUNTED: Final = re.compile(r"\d{5,}-")


@attrs.frozen
class GlueTables:
    """The tables of one Glue database. An age is that of the current snapshot, in hours."""

    glue: GlueClient
    s3: S3Client
    database: str
    now: Callable[[], float]

    def glue_age(self, table: str) -> float:
        return self._compute_age(*self._find_metadata(table))

    def iceberg_age(self, table: str) -> float:
        """Return the age of the newest metadata in the bucket, whether or not Glue refers to it.

        A failed commit may leave metadata behind too; the next commit then corrects the age.
        """
        bucket, key = self._find_metadata(table)
        return self._compute_age(bucket, self._find_newest(bucket, key))

    def _find_metadata(self, table: str) -> tuple[str, str]:
        """Return the bucket and the key of the metadata that Glue refers to."""
        with translate_aws_errors(f"reading {self.database}.{table} in Glue"):
            try:
                parameters = self.glue.get_table(DatabaseName=self.database, Name=table)["Table"].get(
                    "Parameters"
                )
            except ClientError as error:
                if read_error_code(error) != "EntityNotFoundException":
                    raise
                parameters = None
        parts = urlsplit((parameters or {}).get("metadata_location", ""))
        if not parts.netloc:
            raise LakeferryError(monitoring_errors.NO_TABLE, f"{self.database}.{table}")
        return parts.netloc, parts.path.removeprefix("/")

    def _find_newest(self, bucket: str, key: str) -> str:
        """Return the key of the newest metadata: by the number in its name, or else by its modification
        time.
        """
        folder, name = key.rsplit("/", 1)
        counted = bool(_COUNTED.match(name))
        listed = Objects(self.s3, bucket).list(f"{folder}/", after=key if counted else "")
        files = [file for file in listed if file.key.endswith(_METADATA)]
        if not files:
            return key
        return files[-1].key if counted else max(files, key=lambda file: file.modified).key

    def _compute_age(self, bucket: str, key: str) -> float:
        read = Objects(self.s3, bucket).read(key)
        return _compute_snapshot_age(read.document if read else {}, self.now(), f"s3://{bucket}/{key}")


def _compute_snapshot_age(metadata: Mapping[str, Any], now: float, table: str) -> float:
    """Return the hours since the current snapshot was committed. Raises LakeferryError if there is none."""
    current = metadata.get("current-snapshot-id")
    for snapshot in metadata.get("snapshots") or []:
        if snapshot["snapshot-id"] == current:
            return (now - float(snapshot["timestamp-ms"]) / 1000) / HOUR
    raise LakeferryError(monitoring_errors.NO_COMMIT, table)


@attrs.frozen
class ManagedTables:
    """Tables in Confluent's storage, as Tableflow's Iceberg REST catalog has them."""

    connect: Callable[[], IcebergCatalog]
    now: Callable[[], float]

    def iceberg_age(self, topic: str) -> float:
        """Return the age of the current snapshot, in hours."""
        table = f"{topic} in Tableflow's catalog"
        try:
            metadata = self.connect().load_metadata(topic)
        except NotFound:
            raise LakeferryError(monitoring_errors.NOT_SHOWN, table) from None
        return _compute_snapshot_age(metadata, self.now(), table)


ROUTE: Final = "/tableflow/v1/tableflow-topics"


class Connection(NamedTuple):
    plane: RestClient
    environment_id: str
    cluster_id: str


class TableflowTables:
    """The Tableflow tables of one Kafka cluster, which are listed once."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._listed = run_once(self._list)

    def stopped(self, topic: str) -> float:
        """Return 1 if Tableflow has stopped writing the table, 0 while it runs or starts."""
        table = self._read_table(topic)
        failed = get_text(table, "status", "phase") == "FAILED" or bool(
            get_objects(table, "status", "failing_table_formats")
        )
        return float(failed or get_path(table, "spec", "suspended") is True)

    def created(self, topic: str) -> float:
        """Return the time when Tableflow was enabled, in seconds since 1970."""
        return datetime.fromisoformat(
            require_text(self._read_table(topic), "metadata", "created_at")
        ).timestamp()

    def _read_table(self, topic: str) -> Mapping[str, Any]:
        table = self._listed().get(topic)
        if table is None:
            raise LakeferryError(monitoring_errors.NO_TABLEFLOW, f"topic {topic}")
        return table

    def _list(self) -> Mapping[str, Mapping[str, Any]]:
        plane, environment, cluster = self._connect()
        listed = plane.pages(ROUTE, **{"environment": environment, "spec.kafka_cluster": cluster})
        return {get_text(table, "spec", "display_name"): table for table in listed}


_STATUS: Final = "SELECT SYSTEM$AUTO_REFRESH_STATUS({table}) AS RESULT"
_RUNNING: Final = "RUNNING"


class KafkaTopics:
    """Topics of one Kafka cluster. The Metrics API is called once for each metric."""

    def __init__(self, connect: Callable[[], RestClient], cluster_id: str, now: Callable[[], float]) -> None:
        self._now = now
        plane = run_once(connect)
        self._received = run_once(lambda: telemetry.find_last_received(plane(), cluster_id, now()))
        self._skipped = run_once(lambda: telemetry.count_recently_skipped(plane(), cluster_id, now()))
        self._logged = run_once(lambda: telemetry.count_recently_received(plane(), cluster_id, now()))

    def age(self, topic: str) -> float:
        """Return the hours since the last record, or a week if there was none in the last week."""
        now = self._now()
        return (now - self._received().get(topic, now - telemetry.RETENTION.total_seconds())) / HOUR

    def skipped(self) -> float:
        """Return how many records Tableflow skipped in this hour and the one before."""
        return self._skipped()

    def logged(self, error_log: str) -> float:
        """Return how many records Tableflow wrote to `error_log` instead of a table, in this hour and the one
        before.
        """
        return self._logged().get(error_log, 0.0)


@attrs.frozen
class AutoRefresh:
    """What Snowflake reports about a table's automatic refresh. `state` is "" if it is off."""

    state: str
    reason: str
    last_snapshot: object

    @property
    def is_running(self) -> bool:
        return self.state == _RUNNING


def read_auto_refresh(vendor: Snowflake, path: Sequence[str]) -> AutoRefresh:
    """Return the state of a table's automatic refresh. Raises LakeferryError."""
    status = vendor.document(sql.statement(_STATUS, table=sql.reference(*path)))
    document: Mapping[str, Any] = status if isinstance(status, dict) else {}
    reason = document.get("invalidExecutionStateReason") or "no reason given"
    return AutoRefresh(
        str(document.get("executionState") or ""), str(reason), document.get("lastSnapshotTime")
    )


@attrs.frozen
class SnowflakeTables:
    """Tables in Snowflake. Reading their status needs no warehouse."""

    connect: Callable[[], Snowflake]
    now: Callable[[], float]

    def age(self, table: str) -> float:
        """Return the age of the snapshot that Snowflake uses, in hours."""
        refresh = read_auto_refresh(self.connect(), sql.split(table))
        if not refresh.is_running:
            raise LakeferryError(
                monitoring_errors.NOT_REFRESHING, f"{table} is {refresh.state or 'frozen'}: {refresh.reason}"
            )
        instant = _parse_time(refresh.last_snapshot)
        if instant is None:
            raise LakeferryError(monitoring_errors.NO_COMMIT, f"{table} in Snowflake")
        return (self.now() - instant) / HOUR


def _parse_time(time: object) -> float | None:
    """Return a time in seconds since 1970.

    Snowflake documents no format: milliseconds since 1970 and ISO 8601 are accepted.
    """
    try:
        return float(str(time)) / 1000 or None
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except ValueError:
        return None


@attrs.frozen
class ExportResults:
    """What exports have published below `prefix`."""

    objects: Objects
    prefix: str
    glue: GlueClient
    now: Callable[[], float]

    def late(self, export: MonitoredExport) -> float:
        """Return for how many hours windows have been missing.

        The hours count from the due time of the oldest window of an unbroken series of missing windows that
        ends with the newest due one. Returns 0 if the newest due window is published, and until the first run
        after the deployment is due.
        """
        hours = self._measure_missing(export)
        if hours == 0:
            return 0.0
        first = self.first_run(export)
        due = first + timedelta(hours=export.late_after_hours) if first else None
        return hours if due and self.now() >= due.timestamp() else 0.0

    def first_run(self, export: MonitoredExport) -> datetime | None:
        """Return the first scheduled time after the export's job was created, or None."""
        with translate_aws_errors(f"reading job {export.job} in Glue"):
            created = self.glue.get_job(JobName=export.job)["Job"]["CreatedOn"]
        return cron.parse(export.cron, export.zone).after(created.astimezone(UTC))

    def _measure_missing(self, export: MonitoredExport) -> float:
        now = datetime.fromtimestamp(self.now(), UTC)
        grace = timedelta(hours=export.late_after_hours)
        schedule = cron.parse(export.cron, export.zone)
        due = schedule.until(now - grace)
        closed_windows = list(list_closed_windows(_build_rule(export), due)) if due else []
        published = self._list_labels(export.export, "manifests")
        published |= self._list_labels(export.export, "skipped")
        missing = None
        for window in reversed(closed_windows):
            if window.label in published:
                break
            missing = window.end
        wanted = schedule.after(missing - timedelta(seconds=1)) if missing else None
        return (now - grace - wanted).total_seconds() / HOUR if wanted else 0.0

    def _list_labels(self, export: str, folder: str) -> set[str]:
        prefix = f"{self.prefix}/{export}/{folder}/"
        return {listed.key.removeprefix(prefix).removesuffix(".json") for listed in self.objects.list(prefix)}


class Unreached(NamedTuple):
    """Recipients that get no mail: those that can still confirm AWS's first mail, and those that are not
    subscribed any more.

    A subscription ends if somebody, or a scanner of mails, opens the link in a mail that ends it, or if
    nobody confirms it in two days. Nothing subscribes the recipient again.
    """

    pending: int
    ended: int


def find_unreached(sns: SNSClient, topic: str, recipients: int) -> Unreached:
    with translate_aws_errors(f"reading topic {topic}"):
        attributes = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    missing = max(0, recipients - int(attributes.get("SubscriptionsConfirmed") or 0))
    pending = min(missing, int(attributes.get("SubscriptionsPending") or 0))
    return Unreached(pending, missing - pending)


def count_unconfirmed(sns: SNSClient, topic: str, recipients: int) -> float:
    """Return how many recipients get no mail, for whatever reason."""
    return float(sum(find_unreached(sns, topic, recipients)))


def _build_rule(export: MonitoredExport) -> WindowRule:
    try:
        rule = contracts.load(export.export).window
    except BadFile as bad:
        raise LakeferryError(monitoring_errors.CONTRACT, str(bad)) from None
    if not export.first_day:
        return rule
    return attrs.evolve(rule, first=date.fromisoformat(export.first_day))


@attrs.frozen
class SecretKeys:
    """Ages of secrets. Each secret is given by its name or its ARN."""

    client: SecretsManagerClient
    now: Callable[[], float]

    def age_days(self, secret: str) -> float:
        with translate_aws_errors(f"listing the versions of secret {secret}"):
            versions = self.client.list_secret_version_ids(SecretId=secret)["Versions"]
        for version in versions:
            if CURRENT in version.get("VersionStages", []):
                return (self.now() - float(version["CreatedDate"].timestamp())) / DAY
        raise LakeferryError(monitoring_errors.NO_VALUE, f"secret {secret}")

    def overdue_days(self, secret: str) -> float:
        """Return the days for which a rotation has been due; 0 if none is due.

        While rotation keeps failing, NextRotationDate of DescribeSecret remains in the past.
        """
        with translate_aws_errors(f"describing secret {secret}"):
            described = self.client.describe_secret(SecretId=secret)
        due = described.get("NextRotationDate") if described.get("RotationEnabled") else None
        return max(0.0, self.now() - float(due.timestamp())) / DAY if due else 0.0


def read_name(arn: str) -> str:
    """Return the name in a secret's ARN, without the six characters that Secrets Manager adds."""
    name = arn.rsplit(":secret:", 1)[-1]
    return name[:-7] if len(name) > 7 and name[-7] == "-" else name
