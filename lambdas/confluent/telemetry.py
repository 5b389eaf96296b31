"""Metrics of a cluster from Confluent's Metrics API: which topics received records, and how many records
Tableflow skipped.

The key is a Cloud key of an account with the role MetricsViewer, which can read metrics and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lambdas.confluent.rest_client import MAX_PAGES, RestClient, get_objects, get_text

TELEMETRY: Final = "https://api.telemetry.confluent.cloud"
#: The Metrics API keeps hourly metrics for a week.
RETENTION: Final = timedelta(days=7)
_QUERY: Final = "/v2/metrics/cloud/query"
_RECEIVED: Final = "io.confluent.kafka.server/received_records"
#: Records that Tableflow couldn't write and left out (docs.confluent.io, "Configure Tableflow":
#: rows_skipped). They are counted for the whole cluster, because Confluent doesn't document a label for the
#: topic.
_SKIPPED: Final = "io.confluent.tableflow/rows_skipped"
_TOPIC: Final = "metric.topic"
_HOUR: Final = timedelta(hours=1)


def find_last_received(plane: RestClient, cluster_id: str, now: float) -> Mapping[str, float]:
    """Return the end of the last hour in which each topic received records, in seconds since 1970 and not
    after `now`.

    Topics without records in a week are left out. Raises LakeferryError.
    """
    times: dict[str, float] = {}
    # The query begins at a full hour, which must not be older than the metrics that Confluent keeps.
    for row in _query_rows(plane, _RECEIVED, cluster_id, RETENTION - _HOUR + timedelta(seconds=1), now):
        if float(row.get("value") or 0) > 0:
            end_of_hour = datetime.fromisoformat(str(row["timestamp"])) + _HOUR
            last_time = min(now, end_of_hour.timestamp())
            topic = str(row.get(_TOPIC))
            times[topic] = max(last_time, times.get(topic, last_time))
    return times


def count_recently_received(plane: RestClient, cluster_id: str, now: float) -> Mapping[str, float]:
    """Return the number of records in this hour and the one before, by topic. Raises LakeferryError."""
    sums: defaultdict[str, float] = defaultdict(float)
    for row in _query_rows(plane, _RECEIVED, cluster_id, _HOUR, now):
        sums[str(row.get(_TOPIC))] += float(row.get("value") or 0)
    return sums


def count_recently_skipped(plane: RestClient, cluster_id: str, now: float) -> float:
    """Return how many records Tableflow skipped in this hour and the one before, in all topics.

    Raises LakeferryError.
    """
    rows = _query_rows(plane, _SKIPPED, cluster_id, _HOUR, now, by_topic=False)
    return sum(float(row.get("value") or 0) for row in rows)


def _query_rows(
    plane: RestClient, metric: str, cluster_id: str, period: timedelta, now: float, *, by_topic: bool = True
) -> list[dict[str, Any]]:
    """Return the hourly rows of all pages, from the start of the hour in which `period` began."""
    end = datetime.fromtimestamp(now, UTC)
    start = (end - period).replace(minute=0, second=0, microsecond=0)
    body: dict[str, Any] = {
        "aggregations": [{"metric": metric}],
        "filter": {"field": "resource.kafka.id", "op": "EQ", "value": cluster_id},
        "granularity": "PT1H",
        "intervals": [f"{start:%Y-%m-%dT%H:%M:%SZ}/{end:%Y-%m-%dT%H:%M:%SZ}"],
        "limit": 1000,
    }
    if by_topic:
        body["group_by"] = [_TOPIC]
    rows: list[dict[str, Any]] = []
    page: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        answer = plane.post(_QUERY, body, repeatable=True, **page)
        rows += get_objects(answer, "data")
        token = get_text(answer, "meta", "pagination", "next_page_token")
        if not token:
            break
        page = {"page_token": token}
    return rows
