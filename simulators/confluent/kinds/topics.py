"""Kafka topics and their settings (kafka/v3): seen a moment after they are made, gone a moment after they are deleted."""

from __future__ import annotations

import re
from typing import Any, Final

from simulators.confluent import kafka_access
from simulators.confluent.calls import KAFKA, Answer, Call, Route
from simulators.confluent.kafka_log import DEFAULTS, READ_ONLY, KafkaTopic
from simulators.confluent.kinds.clusters import Cluster
from simulators.confluent.refusals import Refusal
from simulators.confluent.world import World
from simulators.tableflow.kafka import DEFAULT_PARTITIONS

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_REPLICAS: Final = 3
_NUMBERS: Final = tuple(name for name in DEFAULTS if name.endswith((".ms", ".bytes", ".replicas")))
_POLICIES: Final = ("delete", "compact", "compact,delete", "delete,compact")
_PATH: Final = "/kafka/v3/clusters/{cluster_id}/topics"


def document(call: Call, cluster: Cluster, topic: KafkaTopic) -> dict[str, Any]:
    own = f"{call.address}/kafka/v3/clusters/{cluster.id}/topics/{topic.name}"
    return {
        "kind": "KafkaTopic",
        "metadata": {"self": own, "resource_name": cluster.inside("topic", topic.name)},
        "cluster_id": cluster.id,
        "topic_name": topic.name,
        "is_internal": False,
        "replication_factor": _REPLICAS,
        "partitions_count": topic.partitions,
        "partitions": {"related": f"{own}/partitions"},
        "configs": {"related": f"{own}/configs"},
        "partition_reassignments": {"related": f"{own}/partitions/-/reassignment"},
        "authorized_operations": [],
    }


def make(world: World, cluster: Cluster, name: str, partitions: int, settings: dict[str, str]) -> KafkaTopic:
    """Raises Refusal where the name is taken, also by a topic that is on its way out."""
    if found := cluster.topics.get(name):
        taken = f"Topic '{name}' is marked for deletion." if found.deleting else f"Topic '{name}' already exists."
        raise Refusal(400, taken, code=40002)
    if len(cluster.topics) >= world.quotas.topics_per_cluster:
        raise Refusal(400, f"The cluster holds {world.quotas.topics_per_cluster} topics, which is its limit", code=40002)
    now = world.clock.now()
    cluster.topics[name] = KafkaTopic(name, partitions, settings, now, now + world.delays.topic)
    return cluster.topics[name]


def remove(world: World, cluster: Cluster, topic: KafkaTopic) -> None:
    topic.deleting = True
    world.clock.after(world.delays.topic_deletion, lambda: cluster.topics.pop(topic.name, None))


def visible(world: World, cluster: Cluster, name: str) -> KafkaTopic | None:
    topic = cluster.topics.get(name)
    return topic if topic and not topic.deleting and topic.visible <= world.clock.now() else None


def create(call: Call) -> Answer:
    cluster, body = kafka_access.addressed(call), call.body
    name = str(body.get("topic_name") or "")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise Refusal(400, f"Topic name '{name}' is invalid", code=40002)
    kafka_access.require(call, cluster, "create", topic=name)
    partitions = _partitions(body.get("partitions_count", DEFAULT_PARTITIONS))
    if body.get("replication_factor", _REPLICAS) != _REPLICAS:
        raise Refusal(400, f"Topic replication factor must be {_REPLICAS}", code=40002)
    settings = _settings({each["name"]: each.get("value") for each in body.get("configs", [])})
    if body.get("validate_only"):
        return Answer(200, document(call, cluster, KafkaTopic(name, partitions, settings, 0, 0)))
    return Answer(201, document(call, cluster, make(call.world, cluster, name, partitions, settings)))


def _partitions(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise Refusal(400, "Number of partitions must be larger than 0.", code=40002)
    return given


def _settings(given: dict[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if name not in DEFAULTS:
            raise Refusal(400, f"Unknown topic config name: {name}", code=40002)
        if name in READ_ONLY:
            raise Refusal(400, f"Config property '{name}' is read-only", code=40002)
        if not isinstance(value, str) or not _fits(name, value):
            raise Refusal(400, f"Invalid value {value!r} for configuration {name}", code=40002)
    return dict(given)


def _fits(name: str, value: str) -> bool:
    if name in _NUMBERS:
        return re.fullmatch(r"-1|\d+", value) is not None
    if name == "cleanup.policy":
        return value in _POLICIES
    return value in ("true", "false") if DEFAULTS[name] in ("true", "false") else bool(value)


def listing(call: Call) -> Answer:
    """Topics that the caller may describe: without any role, none, and no error."""
    cluster = kafka_access.addressed(call)
    seen = [
        name for name in sorted(cluster.topics) if kafka_access.may(call.world, cluster, call.principal, "describe", topic=name)
    ]
    found = [visible(call.world, cluster, name) for name in seen]
    return _list(call, "KafkaTopicList", [document(call, cluster, each) for each in found if each])


def read(call: Call) -> Answer:
    return Answer(200, document(call, *_found(call, "describe")))


def grow(call: Call) -> Answer:
    cluster, topic = _found(call, "alter")
    wanted = _partitions(call.body.get("partitions_count"))
    if wanted <= topic.partitions:
        told = f"Topic currently has {topic.partitions} partitions, which is higher than the requested {wanted}."
        raise Refusal(400, told, code=40002)
    topic.partitions = wanted
    return Answer(200, document(call, cluster, topic))


def delete(call: Call) -> Answer:
    """A topic with Tableflow on it stays: whether the vendor refuses too isn't known, and losing a table is worse."""
    cluster, topic = _found(call, "delete")
    if (cluster.id, topic.name) in call.world.tableflow_topics:
        raise Refusal(400, f"Topic '{topic.name}' has Tableflow enabled. Disable it first", code=40002)
    remove(call.world, cluster, topic)
    return Answer(204)


def settings_of(call: Call) -> Answer:
    cluster, topic = _found(call, "describe")
    return _list(call, "KafkaTopicConfigList", [_setting(call, cluster, topic, name) for name in sorted(DEFAULTS)])


def setting_of(call: Call) -> Answer:
    cluster, topic = _found(call, "describe")
    if call.parameters["name"] not in DEFAULTS:
        raise Refusal(404, f"Config {call.parameters['name']} cannot be found for TOPIC {topic.name}", code=404)
    return Answer(200, _setting(call, cluster, topic, call.parameters["name"]))


def alter(call: Call) -> Answer:
    _, topic = _found(call, "alter")
    changes = call.body.get("data")
    if not isinstance(changes, list):
        raise Refusal(400, "data must be a list", code=40002)
    gone = [each["name"] for each in changes if each.get("operation") == "DELETE"]
    settings = _settings({each["name"]: each.get("value") for each in changes if each["name"] not in gone})
    if not call.body.get("validate_only"):
        topic.settings = {name: value for name, value in topic.settings.items() if name not in gone} | settings
    return Answer(204)


def _setting(call: Call, cluster: Cluster, topic: KafkaTopic, name: str) -> dict[str, Any]:
    value, source = topic.setting(name), "DYNAMIC_TOPIC_CONFIG" if name in topic.settings else "DEFAULT_CONFIG"
    own = f"{call.address}/kafka/v3/clusters/{cluster.id}/topics/{topic.name}/configs/{name}"
    return {
        "kind": "KafkaTopicConfig",
        "metadata": {"self": own, "resource_name": f"{cluster.inside('topic', topic.name)}/config={name}"},
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


def _list(call: Call, kind: str, data: list[dict[str, Any]]) -> Answer:
    return Answer(200, {"kind": kind, "metadata": {"self": f"{call.address}{call.path}"}, "data": data})


def _found(call: Call, action: str) -> tuple[Cluster, KafkaTopic]:
    cluster, name = kafka_access.addressed(call), call.parameters["topic"]
    kafka_access.require(call, cluster, action, topic=name)
    topic = visible(call.world, cluster, name)
    if topic is None:
        raise Refusal(404, "This server does not host this topic-partition.", code=40403)
    return cluster, topic


ROUTES: Final = (
    Route(KAFKA, "POST", _PATH, create, {404: 403}),
    Route(KAFKA, "GET", _PATH, listing, {404: 403}),
    Route(KAFKA, "GET", _PATH + "/{topic}", read),
    Route(KAFKA, "PATCH", _PATH + "/{topic}", grow, {404: 400}),
    Route(KAFKA, "DELETE", _PATH + "/{topic}", delete),
    Route(KAFKA, "GET", _PATH + "/{topic}/configs", settings_of),
    Route(KAFKA, "GET", _PATH + "/{topic}/configs/{name}", setting_of),
    Route(KAFKA, "POST", _PATH + "/{topic}/configs:alter", alter),
)
