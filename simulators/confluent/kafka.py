"""Kafka REST (kafka/v3): topics and their configuration, and producing a record.

A topic becomes visible shortly after it is created, and its name becomes free shortly after it is deleted.
Consuming records needs the Kafka protocol, which isn't simulated.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from simulators.confluent.errors import ApiError
from simulators.confluent.http import KAFKA, Answer, Call, Route
from simulators.confluent.kafka_access import build_list, find_cluster, may, require_permission
from simulators.confluent.kafka_log import DEFAULTS, READ_ONLY, KafkaTopic
from simulators.confluent.model import Cluster
from simulators.confluent.organization import Organization
from simulators.tableflow.kafka import DEFAULT_PARTITIONS

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_REPLICAS: Final = 3
_NUMBERS: Final = tuple(name for name in DEFAULTS if name.endswith((".ms", ".bytes", ".replicas")))
_POLICIES: Final = ("delete", "compact", "compact,delete", "delete,compact")
_TOPICS: Final = "/kafka/v3/clusters/{cluster_id}/topics"
_TOPIC: Final = _TOPICS + "/{topic}"


def _build_topic(call: Call, cluster: Cluster, topic: KafkaTopic) -> dict[str, Any]:
    address = f"{call.address}/kafka/v3/clusters/{cluster.id}/topics/{topic.name}"
    return {
        "kind": "KafkaTopic",
        "metadata": {"self": address, "resource_name": cluster.build_crn("topic", topic.name)},
        "cluster_id": cluster.id,
        "topic_name": topic.name,
        "is_internal": False,
        "replication_factor": _REPLICAS,
        "partitions_count": topic.partitions,
        "partitions": {"related": f"{address}/partitions"},
        "configs": {"related": f"{address}/configs"},
        "partition_reassignments": {"related": f"{address}/partitions/-/reassignment"},
        "authorized_operations": [],
    }


def create_topic(
    org: Organization, cluster: Cluster, name: str, partitions: int, settings: dict[str, str]
) -> KafkaTopic:
    """Create a topic.

    Raises ApiError if the name is in use, also by a topic that is being deleted, or the cluster is full.
    """
    if existing := cluster.topics.get(name):
        reason = "is marked for deletion" if existing.deleting else "already exists"
        raise ApiError(400, f"Topic '{name}' {reason}.", code=40002)
    if len(cluster.topics) >= org.quotas.topics_per_cluster:
        raise ApiError(
            400, f"The cluster holds {org.quotas.topics_per_cluster} topics, which is its limit", code=40002
        )
    now = org.clock.now()
    cluster.topics[name] = KafkaTopic(name, partitions, settings, now, now + org.delays.topic)
    return cluster.topics[name]


def delete_topic(org: Organization, cluster: Cluster, topic: KafkaTopic) -> None:
    topic.deleting = True
    org.clock.call_later(org.delays.topic_deletion, lambda: cluster.topics.pop(topic.name, None))


def find_visible_topic(org: Organization, cluster: Cluster, name: str) -> KafkaTopic | None:
    topic = cluster.topics.get(name)
    return topic if topic and not topic.deleting and topic.visible <= org.clock.now() else None


def create_topic_by_call(call: Call) -> Answer:
    cluster = find_cluster(call)
    body = call.body
    name = str(body.get("topic_name") or "")
    if not _TOPIC_NAME.fullmatch(name) or name in (".", ".."):
        raise ApiError(400, f"Topic name '{name}' is invalid", code=40002)
    require_permission(call, cluster, "create", topic=name)
    partitions = _check_partitions(body.get("partitions_count", DEFAULT_PARTITIONS))
    if body.get("replication_factor", _REPLICAS) != _REPLICAS:
        raise ApiError(400, f"Topic replication factor must be {_REPLICAS}", code=40002)
    settings = _check_settings({config["name"]: config.get("value") for config in body.get("configs", [])})
    if body.get("validate_only"):
        return Answer(200, _build_topic(call, cluster, KafkaTopic(name, partitions, settings, 0, 0)))
    return Answer(
        201, _build_topic(call, cluster, create_topic(call.org, cluster, name, partitions, settings))
    )


def _check_partitions(partitions: Any) -> int:
    if not isinstance(partitions, int) or isinstance(partitions, bool) or partitions < 1:
        raise ApiError(400, "Number of partitions must be larger than 0.", code=40002)
    return partitions


def _check_settings(settings: dict[str, Any]) -> dict[str, str]:
    for name, value in settings.items():
        if name not in DEFAULTS:
            raise ApiError(400, f"Unknown topic config name: {name}", code=40002)
        if name in READ_ONLY:
            raise ApiError(400, f"Config property '{name}' is read-only", code=40002)
        if not isinstance(value, str) or not _is_valid_setting(name, value):
            raise ApiError(400, f"Invalid value {value!r} for configuration {name}", code=40002)
    return dict(settings)


def _is_valid_setting(name: str, value: str) -> bool:
    if name in _NUMBERS:
        return re.fullmatch(r"-1|\d+", value) is not None
    if name == "cleanup.policy":
        return value in _POLICIES
    if DEFAULTS[name] in ("true", "false"):
        return value in ("true", "false")
    return bool(value)


def list_topics(call: Call) -> Answer:
    """List the topics that the caller may describe.

    Without a role or an ACL, the list is empty, and there is no error.
    """
    cluster = find_cluster(call)
    topics = []
    for name in sorted(cluster.topics):
        topic = find_visible_topic(call.org, cluster, name)
        if topic and may(call.org, cluster, call.principal, "describe", topic=name):
            topics.append(topic)
    return build_list(call, "KafkaTopicList", [_build_topic(call, cluster, topic) for topic in topics])


def read_topic(call: Call) -> Answer:
    return Answer(200, _build_topic(call, *_find_topic(call, "describe")))


def add_partitions(call: Call) -> Answer:
    cluster, topic = _find_topic(call, "alter")
    partitions = _check_partitions(call.body.get("partitions_count"))
    if partitions <= topic.partitions:
        reason = (
            f"Topic currently has {topic.partitions} partitions, "
            f"which is higher than the requested {partitions}."
        )
        raise ApiError(400, reason, code=40002)
    topic.partitions = partitions
    return Answer(200, _build_topic(call, cluster, topic))


def delete_topic_by_call(call: Call) -> Answer:
    """Delete a topic.

    One with Tableflow is refused: whether the vendor does so isn't known, but losing a table is worse.
    """
    cluster, topic = _find_topic(call, "delete")
    if (cluster.id, topic.name) in call.org.tableflow_topics:
        raise ApiError(400, f"Topic '{topic.name}' has Tableflow enabled. Disable it first", code=40002)
    delete_topic(call.org, cluster, topic)
    return Answer(204)


def list_settings(call: Call) -> Answer:
    cluster, topic = _find_topic(call, "describe")
    return build_list(
        call,
        "KafkaTopicConfigList",
        [_build_setting(call, cluster, topic, name) for name in sorted(DEFAULTS)],
    )


def read_setting(call: Call) -> Answer:
    cluster, topic = _find_topic(call, "describe")
    if call.parameters["name"] not in DEFAULTS:
        raise ApiError(
            404, f"Config {call.parameters['name']} cannot be found for TOPIC {topic.name}", code=404
        )
    return Answer(200, _build_setting(call, cluster, topic, call.parameters["name"]))


def alter_settings(call: Call) -> Answer:
    _, topic = _find_topic(call, "alter")
    changes = call.body.get("data")
    if not isinstance(changes, list):
        raise ApiError(400, "data must be a list", code=40002)
    removed_names = [change["name"] for change in changes if change.get("operation") == "DELETE"]
    settings = _check_settings(
        {change["name"]: change.get("value") for change in changes if change["name"] not in removed_names}
    )
    if not call.body.get("validate_only"):
        topic.settings = {
            name: value for name, value in topic.settings.items() if name not in removed_names
        } | settings
    return Answer(204)


def _build_setting(call: Call, cluster: Cluster, topic: KafkaTopic, name: str) -> dict[str, Any]:
    value = topic.get_setting(name)
    source = "DYNAMIC_TOPIC_CONFIG" if name in topic.settings else "DEFAULT_CONFIG"
    address = f"{call.address}/kafka/v3/clusters/{cluster.id}/topics/{topic.name}/configs/{name}"
    return {
        "kind": "KafkaTopicConfig",
        "metadata": {
            "self": address,
            "resource_name": f"{cluster.build_crn('topic', topic.name)}/config={name}",
        },
        "cluster_id": cluster.id,
        "topic_name": topic.name,
        "name": name,
        "value": value,
        "is_default": name not in topic.settings,
        "is_read_only": name in READ_ONLY,
        "is_sensitive": False,
        "source": source,
        "synonyms": [{"name": name, "value": value, "source": source}],
    }


def _find_topic(call: Call, action: str) -> tuple[Cluster, KafkaTopic]:
    cluster = find_cluster(call)
    name = call.parameters["topic"]
    require_permission(call, cluster, action, topic=name)
    topic = find_visible_topic(call.org, cluster, name)
    if topic is None:
        raise ApiError(404, "This server does not host this topic-partition.", code=40403)
    return cluster, topic


def produce(call: Call) -> Answer:
    cluster, topic = _find_topic(call, "write")
    partition = call.body.get("partition_id")
    if partition is not None and partition not in range(topic.partitions):
        raise ApiError(400, f"partition {partition} does not exist", code=40002)
    headers = tuple(
        (header["name"], _decode_base64(header.get("value") or "")) for header in call.body.get("headers", [])
    )
    key = _read_bytes(call.body.get("key"))
    value = _read_bytes(call.body.get("value"))
    now = call.org.clock.now()
    message = topic.append(int(now * 1000), key, value, headers, partition)
    sizes = {
        part: {"type": call.body[part]["type"], "size": len(data)}
        for part, data in (("key", key), ("value", value))
        if data
    }
    position = {
        "partition_id": message.partition,
        "offset": message.offset,
        "timestamp": call.org.clock.format_time(now),
    }
    head = {"error_code": 200, "cluster_id": cluster.id, "topic_name": topic.name}
    return Answer(200, head | position | sizes)


def _read_bytes(part: dict[str, Any] | None) -> bytes | None:
    if not part or part.get("data") is None:
        return None
    data = part["data"]
    match part.get("type"):
        case "BINARY":
            return _decode_base64(data)
        case "STRING":
            return str(data).encode()
        case "JSON":
            return json.dumps(data).encode()
    raise ApiError(400, f"type {part.get('type')!r} is not one of BINARY, JSON, STRING", code=40002)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise ApiError(400, "binary data and values of headers must be in base64", code=40002) from None


ROUTES: Final = (
    Route(KAFKA, "POST", _TOPICS, create_topic_by_call, {404: 403}),
    Route(KAFKA, "GET", _TOPICS, list_topics, {404: 403}),
    Route(KAFKA, "GET", _TOPIC, read_topic),
    Route(KAFKA, "PATCH", _TOPIC, add_partitions, {404: 400}),
    Route(KAFKA, "DELETE", _TOPIC, delete_topic_by_call),
    Route(KAFKA, "GET", _TOPIC + "/configs", list_settings),
    Route(KAFKA, "GET", _TOPIC + "/configs/{name}", read_setting),
    Route(KAFKA, "POST", _TOPIC + "/configs:alter", alter_settings),
    Route(KAFKA, "POST", _TOPIC + "/records", produce),
)
