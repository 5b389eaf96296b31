"""The checks of a deployment, which run one after the other, and the metrics of their results.

Metrics are written with PutMetricData, not with the embedded metric format, so that the function fails if a
metric can't be written. Otherwise only an alarm on missing data would show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from lambdas import contract
from lambdas.confluent.telemetry import RETENTION
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring import measurements
from lambdas.monitoring.measurements import (
    HOUR,
    ExportResults,
    GlueTables,
    KafkaTopics,
    ManagedTables,
    SecretKeys,
    SnowflakeTables,
    TableflowTables,
)
from lambdas.monitoring.settings import Monitored, MonitoredTable
from lambdas.shared import errors
from lambdas.shared.aws import translate_aws_errors
from lambdas.shared.errors import LakeferryError, OutOfTime
from lambdas.shared.log import Log

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_sns import SNSClient

#: CloudWatch accepts 1,000 metrics in one call.
_DATA_PER_CALL: Final = 500
_WEEK_HOURS: Final = RETENTION.total_seconds() / HOUR
#: Metrics that AWS's services answer.
OF_AWS: Final = frozenset(
    "KeyAgeDays RotationOverdueDays DeployerKeyAgeDays ExportLateHours RecipientsUnconfirmed GlueAgeHours "
    "IcebergAgeHours".split()
)
#: Values by metric and by what was measured; None if the measurement failed.
Measured = Mapping[tuple[str, str], float | None]


class Check(NamedTuple):
    """`measure` returns the metric's value for `of`, such as a table or a secret, or raises
    LakeferryError.
    """

    metric: str
    of: str
    measure: Callable[[], float]


@attrs.frozen
class Clients:
    """`lake` returns the tables of one Glue database."""

    lake: Callable[[str], GlueTables]
    managed: ManagedTables
    tableflow: TableflowTables
    topics: KafkaTopics
    snowflake: SnowflakeTables
    exports: ExportResults
    keys: SecretKeys
    sns: SNSClient
    now: Callable[[], float]


def list_checks(monitored: Monitored, clients: Clients) -> Iterator[Check]:
    """Yield all checks.

    Those of AWS come first, because AWS answers fast; a slow vendor delays only the checks after it.
    """
    for secret in monitored.secrets:
        yield Check("KeyAgeDays", secret, partial(clients.keys.age_days, secret))
        yield Check("RotationOverdueDays", secret, partial(clients.keys.overdue_days, secret))
    for secret in monitored.deployer_secrets:
        yield Check("DeployerKeyAgeDays", secret, partial(clients.keys.age_days, secret))
    for export in monitored.exports:
        yield Check("ExportLateHours", export.export, partial(clients.exports.late, export))
        if export.topic:
            count = partial(measurements.count_unconfirmed, clients.sns, export.topic, export.recipients)
            yield Check("RecipientsUnconfirmed", export.export, count)
    yield from _list_hop_checks(monitored, clients)


def _list_hop_checks(monitored: Monitored, clients: Clients) -> Iterator[Check]:
    """Yield the checks of tables, hop by hop."""
    for table in monitored.tables:
        if table.database:
            yield from _list_glue_checks(monitored, clients, table)
    for table in monitored.tables:
        if table.managed:
            age = partial(clients.managed.iceberg_age, table.topic)
            measure = _choose_measure(monitored, clients, table)
            yield Check("IcebergAgeHours", table.name, partial(measure, age))
    if not monitored.tables_exist:
        yield from _list_confluent_checks(monitored, clients)
    for table in monitored.tables:
        if table.snowflake:
            age = partial(clients.snowflake.age, table.snowflake)
            measure = _choose_measure(monitored, clients, table)
            yield Check("SnowflakeAgeHours", table.name, partial(measure, age))


def _list_glue_checks(monitored: Monitored, clients: Clients, table: MonitoredTable) -> Iterator[Check]:
    lake = clients.lake(table.database)
    name = table.name
    measure = _choose_measure(monitored, clients, table)
    yield Check("GlueAgeHours", name, partial(measure, partial(lake.glue_age, name)))
    yield Check("IcebergAgeHours", name, partial(measure, partial(lake.iceberg_age, name)))


def _choose_measure(
    monitored: Monitored, clients: Clients, table: MonitoredTable
) -> Callable[[Callable[[], float]], float]:
    """Return what measures an age: only Confluent knows how old a table itself is."""
    if monitored.tables_exist:
        return measure_age_of_existing
    return partial(measure_table_age, clients, table.topic)


def _list_confluent_checks(monitored: Monitored, clients: Clients) -> Iterator[Check]:
    topics = clients.topics
    for table in monitored.tables:
        yield Check("TableflowStopped", table.name, partial(clients.tableflow.stopped, table.topic))
    for table in monitored.tables:
        age = partial(topics.age, table.topic)
        yield Check("TopicAgeHours", table.name, partial(measure_table_age, clients, table.topic, age))
    if monitored.tables:
        yield Check("RowsSkipped", monitored.cluster, topics.skipped)
    for error_log in monitored.error_logs:
        yield Check("RowsSkipped", error_log, partial(topics.logged, error_log))


def measure_age_of_existing(measure: Callable[[], float]) -> float:
    """Return an age in hours; a week for a table without commits, whose own age isn't known."""
    try:
        return measure()
    except LakeferryError as error:
        if error.kind is not monitoring_errors.NO_COMMIT:
            raise
        return _WEEK_HOURS


def measure_table_age(clients: Clients, topic: str, measure: Callable[[], float]) -> float:
    """Return an age in hours.

    A week or more is limited to the table's own age, so a new table without commits isn't stale.
    """
    try:
        hours = measure()
    except LakeferryError as error:
        if error.kind is not monitoring_errors.NO_COMMIT:
            raise
        hours = _WEEK_HOURS
    if hours < _WEEK_HOURS:
        return hours
    return min(hours, (clients.now() - clients.tableflow.created(topic)) / HOUR)


def run_checks(
    checks: Iterable[Check], log: Log, left: Callable[[str], float] = lambda metric: math.inf
) -> dict[tuple[str, str], float | None]:
    """Run every check for whose metric there are seconds left. A check that fails doesn't stop the others."""
    measured: dict[tuple[str, str], float | None] = {}
    for metric, of, measure in checks:
        bound = log.bind(metric=metric, of=of)
        measured[metric, of] = None
        try:
            if left(metric) <= 0:
                raise OutOfTime(errors.OUT_OF_TIME, "the checks before it took all the time")
            measured[metric, of] = value = round(max(0.0, measure()), 3)
        except LakeferryError as error:
            bound.error("not measured", code=error.kind.code, reason=str(error))
        except Exception:  # a bug in one check must not stop the others
            bound.error("not measured", trace=True)
        else:
            bound.info("measured", value=value)
    return measured


def list_unmeasured(measured: Measured) -> dict[str, list[str]]:
    """Return what could not be measured, by metric."""
    failed: dict[str, list[str]] = {}
    for (metric, of), value in measured.items():
        if value is None:
            failed.setdefault(metric, []).append(of)
    return failed


def emit(client: CloudWatchClient, measured: Measured, deployment: str, now: float) -> None:
    """Write the metrics. Raises LakeferryError if CloudWatch doesn't accept them."""
    data = list(_build_metric_data(measured, deployment, datetime.fromtimestamp(now, UTC)))
    for start in range(0, len(data), _DATA_PER_CALL):
        with translate_aws_errors("writing metrics"):
            client.put_metric_data(
                Namespace=contract.METRICS, MetricData=data[start : start + _DATA_PER_CALL]
            )


def _build_metric_data(measured: Measured, deployment: str, now: datetime) -> Iterator[Any]:
    """Yield each value.

    Then, for the deployment, yield statistics of each metric and the number of failed measurements.
    """
    whole = {"Name": contract.DEPLOYMENT_DIMENSION, "Value": deployment}
    for (metric, of), value in measured.items():
        if value is not None:
            dimension = {"Name": contract.METRIC_DIMENSIONS[metric], "Value": of}
            yield {"MetricName": metric, "Dimensions": [whole, dimension], "Timestamp": now, "Value": value}
    failed = list_unmeasured(measured)
    missing = []
    for metric in sorted({metric for metric, _ in measured}):
        missing.append(float(len(failed.get(metric, []))))
        dimension = {"Name": contract.UNMEASURED_DIMENSION, "Value": metric}
        yield {
            "MetricName": contract.UNMEASURED,
            "Dimensions": [whole, dimension],
            "Timestamp": now,
            "Value": missing[-1],
        }
        if values := [value for (name, _), value in measured.items() if name == metric and value is not None]:
            yield {
                "MetricName": metric,
                "Dimensions": [whole],
                "Timestamp": now,
                "StatisticValues": _compute_statistics(values),
            }
    if missing:
        statistics = _compute_statistics(missing)
        yield {
            "MetricName": contract.UNMEASURED,
            "Dimensions": [whole],
            "Timestamp": now,
            "StatisticValues": statistics,
        }


def _compute_statistics(values: list[float]) -> dict[str, float]:
    return {"SampleCount": len(values), "Sum": sum(values), "Minimum": min(values), "Maximum": max(values)}
