"""The checks that a deployment has. Each runs by itself, so that one that fails hides no other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from lambdas.confluent.telemetry import LOOKS_BACK
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring import measurements
from lambdas.monitoring.measurements import (
    HOUR,
    ExportResults,
    GlueTables,
    KafkaTopics,
    SecretKeys,
    SnowflakeTables,
    TableflowTables,
)
from lambdas.monitoring.settings import Monitored
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import Log

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient


@attrs.frozen
class Check:
    """`look` gives the metric's value for one thing. Raises LakeferryError where it can't be seen."""

    metric: str
    of: str
    look: Callable[[], float]


@attrs.frozen
class CheckResults:
    """`values` by metric and thing; `unseen` are the metrics of which at least one thing could not be seen."""

    values: dict[tuple[str, str], float]
    unseen: dict[str, list[str]]

    def all_of(self, metric: str) -> list[float]:
        return [value for (name, _), value in self.values.items() if name == metric]

    @property
    def metrics(self) -> list[str]:
        """Those that were looked at, measured or not."""
        return sorted({metric for metric, _ in self.values} | set(self.unseen))


def run_checks(sights: Iterable[Check], log: Log) -> CheckResults:
    seen = CheckResults({}, {})
    for sight in sights:
        told = log.bind(metric=sight.metric, of=sight.of)
        try:
            value = round(max(0.0, sight.look()), 3)
        except LakeferryError as error:
            told.error("not seen", code=error.row.code, reason=str(error))
            seen.unseen.setdefault(sight.metric, []).append(sight.of)
        except Exception:  # a mistake of ours in one place must not end the watch of all others
            told.error("not seen", trace=True)
            seen.unseen.setdefault(sight.metric, []).append(sight.of)
        else:
            seen.values[sight.metric, sight.of] = value
            told.info("seen", value=value)
    return seen


_WEEK_HOURS = LOOKS_BACK.total_seconds() / HOUR


@attrs.frozen
class Clients:
    """Where to look. `lake` makes the one of a Glue database."""

    lake: Callable[[str], GlueTables]
    tables: TableflowTables
    topics: KafkaTopics
    shown: SnowflakeTables
    results: ExportResults
    keys: SecretKeys
    sns: SNSClient
    now: Callable[[], float]


def checks_of(watched: Monitored, places: Clients) -> Iterator[Check]:
    """What answers fast comes first: a vendor that hangs takes time from nobody but those after it."""
    yield from _keys(watched, places)
    yield from _exports(watched, places)
    for table in watched.tables:
        if table.database:
            lake = places.lake(table.database)
            yield _age(places, "GlueAgeHours", table.topic, functools.partial(lake.glue_age, table.topic))
            yield _age(places, "IcebergAgeHours", table.topic, functools.partial(lake.iceberg_age, table.topic))
    for table in watched.tables:
        yield Check("TableflowStopped", table.topic, functools.partial(places.tables.stopped, table.topic))
    for table in watched.tables:
        yield _age(places, "TopicAgeHours", table.topic, functools.partial(places.topics.age, table.topic))
    if watched.tables:
        yield Check("RowsSkipped", watched.cluster, places.topics.skipped)
    for error_log in watched.error_logs:
        yield Check("RowsSkipped", error_log, functools.partial(places.topics.logged, error_log))
    for table in watched.tables:
        if table.snowflake:
            yield _age(places, "SnowflakeAgeHours", table.topic, functools.partial(places.shown.age, table.snowflake))


def _age(places: Clients, metric: str, topic: str, look: Callable[[], float]) -> Check:
    """A table that nobody has written yet is as old as itself: a new deployment has no stale tables."""

    def age() -> float:
        try:
            hours = look()
        except LakeferryError as error:
            if error.row is not monitoring_errors.NO_COMMIT:
                raise
            hours = _WEEK_HOURS
        if hours < _WEEK_HOURS:
            return hours
        return min(hours, (places.now() - places.tables.created(topic)) / HOUR)

    return Check(metric, topic, age)


def _keys(watched: Monitored, places: Clients) -> Iterator[Check]:
    for secret in watched.secrets:
        yield Check("KeyAgeDays", secret, functools.partial(places.keys.age_days, secret))
        yield Check("RotationOverdueDays", secret, functools.partial(places.keys.overdue_days, secret))
    for secret in watched.deployer_secrets:
        yield Check("DeployerKeyAgeDays", secret, functools.partial(places.keys.age_days, secret))


def _exports(watched: Monitored, places: Clients) -> Iterator[Check]:
    for export in watched.exports:
        yield Check("ExportLateHours", export.export, functools.partial(places.results.late, export))
        if export.topic:
            yield Check("RecipientsUnconfirmed", export.export, functools.partial(measurements.unconfirmed, places.sns, export))
