"""The one query of the Metrics API that is asked here: records received, by topic and hour. The vendor serves it elsewhere."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from simulators.confluent_cloud import access
from simulators.confluent_cloud.calls import CONTROL, Answer, Call, Route
from simulators.confluent_cloud.refusals import Refusal, forbidden

_RECEIVED: Final = "io.confluent.kafka.server/received_records"
_HOUR: Final = 3600
_MOST_ROWS: Final = 1000


def query(call: Call) -> Answer:
    body = call.body
    if [each.get("metric") for each in body.get("aggregations", [])] != [_RECEIVED] or body.get("granularity") != "PT1H":
        raise Refusal(400, "Only received records by the hour are simulated.", code="bad_request")
    told = body.get("filter", {})
    if (told.get("field"), told.get("op")) != ("resource.kafka.id", "EQ") or body.get("group_by") != ["metric.topic"]:
        raise Refusal(400, "The query must be of one Kafka cluster, by topic.", code="bad_request")
    cluster = call.world.clusters.get(told.get("value"))
    if cluster is None:
        raise forbidden()
    access.require(call, "metrics", cluster.scope)
    start, end = _interval(body)
    counts: Counter[tuple[int, str]] = Counter()
    for topic in cluster.topics.values():
        for message in topic.messages:
            if start <= (hour := message.timestamp // 1000 // _HOUR * _HOUR) and message.timestamp < end * 1000:
                counts[hour, topic.name] += 1
    rows = [_row(hour, name, count) for (hour, name), count in sorted(counts.items())]
    return Answer(200, {"data": rows[: min(_MOST_ROWS, body.get("limit", 100))], "meta": {"pagination": {}}})


def _interval(body: dict[str, Any]) -> tuple[float, float]:
    try:
        (told,) = body["intervals"]
        start, end = (datetime.fromisoformat(each).timestamp() for each in told.split("/"))
    except (KeyError, ValueError, TypeError):
        raise Refusal(400, "intervals must hold one interval, start/end", code="bad_request") from None
    return start, end


def _row(hour: int, topic: str, count: int) -> dict[str, Any]:
    return {"timestamp": f"{datetime.fromtimestamp(hour, UTC):%Y-%m-%dT%H:%M:%SZ}", "value": float(count), "metric.topic": topic}


ROUTES: Final = (Route(CONTROL, "POST", "/v2/metrics/cloud/query", query),)
