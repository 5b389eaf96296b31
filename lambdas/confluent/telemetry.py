"""When topics last got records, from Confluent's Metrics API: the only plane that tells without reading a topic.

It wants a Cloud key of an account with the role MetricsViewer, which can see numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lambdas.confluent.plane import MOST_PAGES, Plane
from lambdas.confluent.reading import objects, text

TELEMETRY: Final = "https://api.telemetry.confluent.cloud"
#: The Metrics API keeps a week, and counts by the hour over as long as that.
LOOKS_BACK: Final = timedelta(days=7)
_QUERY: Final = "/v2/metrics/cloud/query"
_RECEIVED: Final = "io.confluent.kafka.server/received_records"
_TOPIC: Final = "metric.topic"
_HOUR: Final = timedelta(hours=1)


def last_received(plane: Plane, cluster_id: str, now: float) -> Mapping[str, float]:
    """The end of the last hour in which each topic got records, in seconds since 1970 and not after `now`; nothing of a
    topic that got none in a week. Raises LakeferryError."""
    end = datetime.fromtimestamp(now, UTC)
    start = (end - LOOKS_BACK).replace(minute=0, second=0, microsecond=0)
    body = {
        "aggregations": [{"metric": _RECEIVED}],
        "filter": {"field": "resource.kafka.id", "op": "EQ", "value": cluster_id},
        "granularity": "PT1H",
        "group_by": [_TOPIC],
        "intervals": [f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%SZ}"],
        "limit": 1000,
    }
    found: dict[str, float] = {}
    for row in _rows(plane, body):
        if float(row.get("value") or 0) > 0:
            until = min(now, (datetime.fromisoformat(str(row["timestamp"])) + _HOUR).timestamp())
            topic = str(row.get(_TOPIC))
            found[topic] = max(until, found.get(topic, until))
    return found


def _rows(plane: Plane, body: dict[str, Any]) -> list[dict[str, Any]]:
    """All pages of the answer."""
    rows: list[dict[str, Any]] = []
    page: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        answer = plane.post(_QUERY, body, repeatable=True, **page)
        rows += objects(answer, "data")
        token = text(answer, "meta", "pagination", "next_page_token")
        if not token:
            break
        page = {"page_token": token}
    return rows
