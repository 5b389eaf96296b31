"""Which sights a deployment has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import attrs

from lambdas.watch import exports
from lambdas.watch.exports import Results, Sns
from lambdas.watch.keys import Keys, name_of
from lambdas.watch.lake import Lake
from lambdas.watch.sights import Sight
from lambdas.watch.vendors import Shown, Topics
from lambdas.watch.watched import Watched


@attrs.frozen
class Places:
    """Where to look. `lake` makes the one of a Glue database."""

    lake: Callable[[str], Lake]
    topics: Topics
    shown: Shown
    results: Results
    keys: Keys
    sns: Sns


def sights(watched: Watched, places: Places) -> Iterator[Sight]:
    """What answers fast comes first: a vendor that hangs takes time from nobody but those after it."""
    yield from _keys(watched, places)
    yield from _exports(watched, places)
    for table in watched.tables:
        if table.database:
            lake = places.lake(table.database)
            yield Sight("GlueAgeHours", table.topic, functools.partial(lake.glue_age, table.topic))
            yield Sight("IcebergAgeHours", table.topic, functools.partial(lake.iceberg_age, table.topic))
    for table in watched.tables:
        yield Sight("TopicAgeHours", table.topic, functools.partial(places.topics.age, table.topic))
    for table in watched.tables:
        if table.snowflake:
            yield Sight("SnowflakeAgeHours", table.topic, functools.partial(places.shown.age, table.snowflake))


def _keys(watched: Watched, places: Places) -> Iterator[Sight]:
    for arn in watched.secrets:
        yield Sight("KeyAgeDays", name_of(arn), functools.partial(places.keys.age_days, arn))


def _exports(watched: Watched, places: Places) -> Iterator[Sight]:
    for export in watched.exports:
        yield Sight("ExportLateHours", export.export, functools.partial(places.results.late, export))
        if export.topic:
            yield Sight("RecipientsUnconfirmed", export.export, functools.partial(exports.unconfirmed, places.sns, export))
