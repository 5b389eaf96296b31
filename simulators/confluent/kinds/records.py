"""Producing a record (kafka/v3 …/records). Reading needs Kafka's own protocol, which isn't simulated."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from simulators.confluent import kafka_access
from simulators.confluent.calls import KAFKA, Answer, Call, Route
from simulators.confluent.kinds.topics import visible
from simulators.confluent.refusals import Refusal


def produce(call: Call) -> Answer:
    cluster, name = kafka_access.addressed(call), call.parameters["topic"]
    kafka_access.require(call, cluster, "write", topic=name)
    topic = visible(call.world, cluster, name)
    if topic is None:
        raise Refusal(404, "This server does not host this topic-partition.", code=40403)
    partition = call.body.get("partition_id")
    if partition is not None and partition not in range(topic.partitions):
        raise Refusal(400, f"partition {partition} does not exist", code=40002)
    headers = tuple((each["name"], base64.b64decode(each.get("value") or "")) for each in call.body.get("headers", []))
    key, value = _bytes(call.body.get("key")), _bytes(call.body.get("value"))
    now = call.world.clock.now()
    message = topic.append(int(now * 1000), key, value, headers, partition)
    sizes = {
        part: {"type": call.body[part]["type"], "size": len(data)} for part, data in (("key", key), ("value", value)) if data
    }
    placed = {"partition_id": message.partition, "offset": message.offset, "timestamp": call.world.clock.text(now)}
    return Answer(200, {"error_code": 200, "cluster_id": cluster.id, "topic_name": name} | placed | sizes)


def _bytes(given: dict[str, Any] | None) -> bytes | None:
    if not given or given.get("data") is None:
        return None
    data = given["data"]
    match given.get("type"):
        case "BINARY":
            return base64.b64decode(data)
        case "STRING":
            return str(data).encode()
        case "JSON":
            return json.dumps(data).encode()
    raise Refusal(400, f"type {given.get('type')!r} is not one of BINARY, JSON, STRING", code=40002)


ROUTES: Final = (Route(KAFKA, "POST", "/kafka/v3/clusters/{cluster_id}/topics/{topic}/records", produce),)
