"""Two hourly queries of the Metrics API: records received, by topic, and records that Tableflow skipped, by
cluster.

The vendor serves the Metrics API at an address of its own. The names of the metrics are those of its
descriptors for resource type `kafka`.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from simulators.confluent.authorization import require
from simulators.confluent.errors import bad_request, forbidden
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import Cluster
from simulators.confluent.organization import Organization

_RECEIVED: Final = "io.confluent.kafka.server/received_records"
_SKIPPED: Final = "io.confluent.tableflow/rows_skipped"
_BY_TOPIC: Final = ["metric.topic"]
_HOUR: Final = 3600
_MOST_ROWS: Final = 1000


def query_metrics(call: Call) -> Answer:
    body = call.body
    metrics = [aggregation.get("metric") for aggregation in body.get("aggregations", [])]
    if metrics not in ([_RECEIVED], [_SKIPPED]) or body.get("granularity") != "PT1H":
        raise bad_request(f"Only {_RECEIVED} and {_SKIPPED} with granularity PT1H are simulated.")
    condition = body.get("filter", {})
    grouped = _BY_TOPIC if metrics == [_RECEIVED] else []
    is_by_cluster = (condition.get("field"), condition.get("op")) == ("resource.kafka.id", "EQ")
    if not is_by_cluster or body.get("group_by", []) != grouped:
        by = f"group by {grouped[0]}" if grouped else "have no group_by"
        raise bad_request(f"The query must filter by one resource.kafka.id (EQ) and {by}.")
    cluster = call.org.clusters.get(condition.get("value"))
    if cluster is None:
        raise forbidden()
    require(call, "metrics", cluster.scope)
    start, end = _read_interval(body)
    events = _list_received(cluster) if grouped else _list_skipped(call.org, cluster)
    counts: Counter[tuple[int, str]] = Counter()
    for instant, topic in events:
        hour = int(instant) // _HOUR * _HOUR
        if start <= hour and instant < end:
            counts[hour, topic] += 1
    rows = []
    for (hour, topic), count in sorted(counts.items()):
        timestamp = f"{datetime.fromtimestamp(hour, UTC):%Y-%m-%dT%H:%M:%SZ}"
        row: dict[str, Any] = {"timestamp": timestamp, "value": float(count)}
        if topic:
            row["metric.topic"] = topic
        rows.append(row)
    return Answer(200, {"data": rows[: min(_MOST_ROWS, body.get("limit", 100))], "meta": {"pagination": {}}})


def _list_received(cluster: Cluster) -> list[tuple[float, str]]:
    """Return the time and the topic of each record."""
    events: list[tuple[float, str]] = []
    for topic in cluster.topics.values():
        events += [(message.timestamp / 1000, topic.name) for message in topic.messages]
    return events


def _list_skipped(org: Organization, cluster: Cluster) -> list[tuple[float, str]]:
    """Return the time of each record that Tableflow skipped. Their metric has no topic."""
    events: list[tuple[float, str]] = []
    for topic in org.tableflow_topics.values():
        if topic.cluster == cluster.id:
            events += [(instant, "") for instant in topic.skipped]
    return events


def _read_interval(body: dict[str, Any]) -> tuple[float, float]:
    try:
        (interval,) = body["intervals"]
        start, end = (datetime.fromisoformat(instant).timestamp() for instant in interval.split("/"))
    except (KeyError, ValueError, TypeError):
        raise bad_request("intervals must hold one interval, start/end") from None
    return start, end


ROUTES: Final = (Route(CONTROL, "POST", "/v2/metrics/cloud/query", query_metrics),)
