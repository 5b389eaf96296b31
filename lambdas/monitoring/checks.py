"""Which measurements a deployment has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import attrs

from lambdas.confluent.telemetry import LOOKS_BACK
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring import exports
from lambdas.monitoring.exports import Results, Sns
from lambdas.monitoring.keys import Keys
from lambdas.monitoring.lake import Lake
from lambdas.monitoring.remembered import HOUR
from lambdas.monitoring.sights import Sight
from lambdas.monitoring.tables import Tables
from lambdas.monitoring.vendors import Shown, Topics
from lambdas.monitoring.watched import Watched
from lambdas.shared.errors import LakeferryError

_WEEK_HOURS = LOOKS_BACK.total_seconds() / HOUR


@attrs.frozen
class Places:
    """Where to look. `lake` makes the one of a Glue database."""

    lake: Callable[[str], Lake]
    tables: Tables
    topics: Topics
    shown: Shown
    results: Results
    keys: Keys
    sns: Sns
    now: Callable[[], float]


def sights(watched: Watched, places: Places) -> Iterator[Sight]:
    """What answers fast comes first: a vendor that hangs takes time from nobody but those after it."""
    yield from _keys(watched, places)
    yield from _exports(watched, places)
    for table in watched.tables:
        if table.database:
            lake = places.lake(table.database)
            yield _age(places, "GlueAgeHours", table.topic, functools.partial(lake.glue_age, table.topic))
            yield _age(places, "IcebergAgeHours", table.topic, functools.partial(lake.iceberg_age, table.topic))
    for table in watched.tables:
        yield Sight("TableflowStopped", table.topic, functools.partial(places.tables.stopped, table.topic))
    for table in watched.tables:
        yield _age(places, "TopicAgeHours", table.topic, functools.partial(places.topics.age, table.topic))
    if watched.tables:
        yield Sight("RowsSkipped", watched.cluster, places.topics.skipped)
    for error_log in watched.error_logs:
        yield Sight("RowsSkipped", error_log, functools.partial(places.topics.logged, error_log))
    for table in watched.tables:
        if table.snowflake:
            yield _age(places, "SnowflakeAgeHours", table.topic, functools.partial(places.shown.age, table.snowflake))


def _age(places: Places, metric: str, topic: str, look: Callable[[], float]) -> Sight:
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

    return Sight(metric, topic, age)


def _keys(watched: Watched, places: Places) -> Iterator[Sight]:
    for secret in watched.secrets:
        yield Sight("KeyAgeDays", secret, functools.partial(places.keys.age_days, secret))
        yield Sight("RotationOverdueDays", secret, functools.partial(places.keys.overdue_days, secret))
    for secret in watched.deployer_secrets:
        yield Sight("DeployerKeyAgeDays", secret, functools.partial(places.keys.age_days, secret))


def _exports(watched: Watched, places: Places) -> Iterator[Sight]:
    for export in watched.exports:
        yield Sight("ExportLateHours", export.export, functools.partial(places.results.late, export))
        if export.topic:
            yield Sight("RecipientsUnconfirmed", export.export, functools.partial(exports.unconfirmed, places.sns, export))
