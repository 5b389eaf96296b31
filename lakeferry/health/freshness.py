"""Each table at every hop: the topic, Tableflow, Iceberg, Glue, Snowflake."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from lakeferry.health.observations import Seen, State, look
from lakeferry.health.places import Places
from lakeferry.health.tableflow import Tableflow
from lambdas.monitoring.settings import MonitoredTable

#: In the order in which records pass them.
HOPS: Final = ("topic", "tableflow", "iceberg", "glue", "snowflake")
_AT_ONCE: Final = 6


@attrs.frozen
class Hops:
    """One table's. A hop that the table doesn't have is missing. Ages are in hours."""

    table: str
    seen: dict[str, Seen]

    @property
    def is_there(self) -> bool:
        """Whether there is something to read in the Glue catalog."""
        found = self.seen.get("glue") or self.seen.get("iceberg")
        return found is not None and found.value is not None


def look_at(places: Places, tableflow: Tableflow, stale_hours: float) -> list[Hops]:
    """One that can't be seen hides no other."""
    asked = [
        (table.topic, hop, ask) for table in places.settings.monitored.tables for hop, ask in _asks(places, tableflow, table)
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda one: _seen(one[2], stale_hours), asked))
    found: dict[str, dict[str, Seen]] = {}
    for (table, hop, _), seen in zip(asked, answers, strict=True):
        found.setdefault(table, {})[hop] = seen
    return [Hops(table, seen) for table, seen in found.items()]


def _asks(places: Places, tableflow: Tableflow, table: MonitoredTable) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "topic", functools.partial(places.topics.age, table.topic)
    yield "tableflow", functools.partial(tableflow.seen, table.topic)
    if table.database:
        lake = places.lake(table.database)
        yield "iceberg", functools.partial(lake.iceberg_age, table.topic)
        yield "glue", functools.partial(lake.glue_age, table.topic)
    if table.snowflake:
        yield "snowflake", functools.partial(places.shown.age, table.snowflake)


def _seen(ask: Callable[[], Any], stale_hours: float) -> Seen:
    answer = look(ask)
    if isinstance(answer, Seen):
        return answer
    hours = max(0.0, float(answer))
    if hours > stale_hours:
        return Seen(State.WRONG, hours, f"nothing new for longer than {stale_hours:g} hours")
    return Seen(State.OK, hours)
