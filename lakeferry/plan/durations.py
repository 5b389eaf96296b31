"""How long deployments take: what is usual for each kind, and what CloudFormation remembers of the last time.

What is usual are estimates, from what the vendors say and from experience with them. They are no promise and no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from lakeferry.output import format_duration
from lakeferry.plan.difference import Action, Change

#: Minutes, from and to, of kinds that take any.
USUAL: Final[Mapping[str, tuple[float, float]]] = {
    "kafka_cluster": (2, 5),
    "flink_compute_pool": (0, 1),
    "api_key": (1, 3),
    "connector": (1, 4),
    "flink_statement": (1, 3),
    "tableflow_topic": (3, 10),
    "catalog_integration": (1, 3),
    "snowflake_trust": (1, 5),
    "snowflake_iceberg_table": (0, 2),
}
#: Of a stack's own functions, roles and buckets: when they are made, and when they change.
_MADE: Final = (1, 3)
_CHANGED: Final = (0.5, 2)
_STACK: Final = "AWS::CloudFormation::Stack"
_BEGINNINGS: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")
_ENDS: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
_PAGES: Final = 10


@attrs.frozen
class Phase:
    """A stack's part in a deployment: minutes from `low` to `high`; `last` is seconds of the last time, None if not known."""

    stack: str
    low: float
    high: float
    last: float | None = None

    def __str__(self) -> str:
        usual = f"usual {_minutes(self.low)}–{_minutes(self.high)} min"
        return usual if self.last is None else f"{usual}, last time {format_duration(self.last)}"


def phase(stack: str, changes: Iterable[Change], last: float | None = None) -> Phase | None:
    """None for a stack in which nothing changes. What is slow comes one after the other."""
    mine = [change for change in changes if change.resource.stack == stack and change.action is not Action.RETAIN]
    if not mine:
        return None
    slow = [USUAL[kind] for kind in dict.fromkeys(change.resource.kind for change in mine) if kind in USUAL]
    low, high = _MADE if all(change.action is Action.CREATE for change in mine) else _CHANGED
    return Phase(stack, low + sum(one[0] for one in slow), high + sum(one[1] for one in slow), last)


def last(client: Any, stack_id: str) -> float | None:
    """Seconds that the last deployment of a stack took that ended well. Raises ClientError, BotoCoreError."""
    pages = client.get_paginator("describe_stack_events").paginate(
        StackName=stack_id, PaginationConfig={"MaxItems": _PAGES * 100}
    )
    return took(event for page in pages for event in page["StackEvents"])


def took(events: Iterable[Mapping[str, Any]]) -> float | None:
    """The same of events, the newest first. None where none ended well."""
    end = None
    for event in events:
        if event["ResourceType"] != _STACK or event.get("PhysicalResourceId") != event["StackId"]:
            continue
        if end is None and event["ResourceStatus"] in _ENDS:
            end = event["Timestamp"]
        elif end is not None and event["ResourceStatus"] in _BEGINNINGS:
            return float((end - event["Timestamp"]).total_seconds())
    return None


def _minutes(minutes: float) -> str:
    return f"{minutes:g}"
