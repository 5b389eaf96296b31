"""Durations of deployments: estimates by kind of resource, and the duration of a stack's last deployment from
its events.

The estimates come from the vendors' documentation and from experience.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.stacks import Event
from lakeferry.output import format_duration
from lakeferry.plan.difference import Action, Change

#: The shortest and longest duration in minutes of kinds of resources that are slow.
ESTIMATES: Final[Mapping[str, tuple[float, float]]] = {
    "kafka_cluster": (2, 5),
    "existing_topic": (0, 5),
    "flink_compute_pool": (0, 1),
    "api_key": (1, 3),
    "connector": (1, 4),
    "flink_statement": (1, 3),
    "tableflow_topic": (3, 10),
    "catalog_integration": (1, 3),
    "snowflake_trust": (1, 5),
    "snowflake_iceberg_table": (0, 2),
}
#: The shortest and longest duration in minutes of all other resources of a stack together.
_CREATE: Final = (1, 3)
_UPDATE: Final = (0.5, 2)
_BEGIN_STATES: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")
_END_STATES: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
_MAX_EVENTS: Final = 1000


@attrs.frozen
class Phase:
    """The deployment of one stack. `low` and `high` are in minutes; `last`, the duration of the last time, is
    in seconds, None if it is unknown."""

    stack: str
    low: float
    high: float
    last: float | None = None

    def __str__(self) -> str:
        estimate = f"estimated {self.low:g}–{self.high:g} min"
        return estimate if self.last is None else f"{estimate}, last time {format_duration(self.last)}"


def expect_phase(stack: str, changes: Iterable[Change], last: float | None = None) -> Phase | None:
    """Return the expected duration of a stack's deployment, None if the stack doesn't change.

    Kinds are assumed to be deployed one after the other, resources of the same kind at the same time.
    """
    mine = [
        change for change in changes if change.resource.stack == stack and change.action is not Action.RETAIN
    ]
    if not mine:
        return None
    kinds = dict.fromkeys(change.resource.kind for change in mine)
    slow = [ESTIMATES[kind] for kind in kinds if kind in ESTIMATES]
    is_new = all(change.action is Action.CREATE for change in mine)
    shortest, longest = _CREATE if is_new else _UPDATE
    low = shortest + sum(minutes[0] for minutes in slow)
    high = longest + sum(minutes[1] for minutes in slow)
    return Phase(stack, low, high, last)


def find_last(client: Any, stack_id: str) -> float | None:
    """Return the duration in seconds of a stack's last successful deployment, None if there is none.

    Only the newest 1000 events are read. Raises ClientError, BotoCoreError.
    """
    return measure(islice(stacks.read_newest_events(client, stack_id), _MAX_EVENTS))


def measure(events: Iterable[Event]) -> float | None:
    """Return the duration in seconds of the last successful deployment, from events, the newest first; None
    if there is none.
    """
    end = None
    for event in events:
        if event.is_of_stack and end is None and event.status in _END_STATES:
            end = event.at
        elif event.is_of_stack and end is not None and event.status in _BEGIN_STATES:
            return end - event.at
    return None
