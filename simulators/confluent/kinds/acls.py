"""ACLs (kafka/v3): the same one twice is one; a filter of a deletion takes all that match."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import kafka_access
from simulators.confluent.calls import KAFKA, Answer, Call, Route
from simulators.confluent.kinds.clusters import Cluster
from simulators.confluent.refusals import Refusal

_FIELDS: Final = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
_VALUES: Final = {
    "resource_type": ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"),
    "pattern_type": ("LITERAL", "PREFIXED"),
    "permission": ("ALLOW", "DENY"),
    "operation": (
        *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    ),
}
#: A filter that names these takes anything.
_ANY: Final = ("", "ANY")
_REQUIRED_TO_DELETE: Final = ("resource_type", "pattern_type", "operation", "permission")
_PATH: Final = "/kafka/v3/clusters/{cluster_id}/acls"


def create(call: Call) -> Answer:
    cluster = _managed(call)
    _add(cluster, _checked(call, call.body))
    return Answer(201)


def create_batch(call: Call) -> Answer:
    cluster = _managed(call)
    wanted = [_checked(call, each) for each in call.body.get("data", [])]
    if not wanted:
        raise Refusal(400, "data must hold at least one ACL", code=40002)
    for each in wanted:
        _add(cluster, each)
    return Answer(201)


def _add(cluster: Cluster, acl: dict[str, str]) -> None:
    if acl not in cluster.acls:
        cluster.acls.append(acl)


def _checked(call: Call, given: dict[str, Any]) -> dict[str, str]:
    for name in _FIELDS:
        value = given.get(name)
        if not isinstance(value, str) or not value or (name in _VALUES and value not in _VALUES[name]):
            raise Refusal(400, f"{name} {value!r} is not valid", code=40002)
    kind, _, account = given["principal"].partition(":")
    if kind != "User" or account not in {"*", call.world.owner, *call.world.service_accounts}:
        raise Refusal(400, f"principal {given['principal']} does not exist", code=40002)
    if given["resource_type"] == "CLUSTER" and given["resource_name"] != "kafka-cluster":
        raise Refusal(400, "The only valid name for the CLUSTER resource is kafka-cluster", code=40002)
    return {name: given[name] for name in _FIELDS}


def listing(call: Call) -> Answer:
    cluster = kafka_access.addressed(call)
    kafka_access.require(call, cluster, "describe")
    return _answer(call, cluster, [each for each in cluster.acls if _matches(call, each)])


def delete(call: Call) -> Answer:
    cluster = _managed(call)
    if missing := [name for name in _REQUIRED_TO_DELETE if not call.query.get(name)]:
        raise Refusal(400, f"query parameters {', '.join(missing)} are required", code=40002)
    gone = [each for each in cluster.acls if _matches(call, each)]
    cluster.acls[:] = [each for each in cluster.acls if each not in gone]
    return _answer(call, cluster, gone)


def _matches(call: Call, acl: dict[str, str]) -> bool:
    wanted = {name: call.query.get(name, "") for name in _FIELDS}
    if wanted["pattern_type"] == "MATCH":
        wanted["pattern_type"] = ""
    return all(value in (*_ANY, acl[name]) for name, value in wanted.items())


def _managed(call: Call) -> Cluster:
    cluster = kafka_access.addressed(call)
    kafka_access.require(call, cluster, "alter")
    return cluster


def _answer(call: Call, cluster: Cluster, acls: list[dict[str, str]]) -> Answer:
    own = f"{call.address}{call.path}"
    data = [{"kind": "KafkaAcl", "metadata": {"self": own}, "cluster_id": cluster.id} | each for each in acls]
    return Answer(200, {"kind": "KafkaAclList", "metadata": {"self": own}, "data": data})


ROUTES: Final = (
    Route(KAFKA, "POST", _PATH, create, {404: 403}),
    Route(KAFKA, "POST", _PATH + ":batch", create_batch, {404: 403}),
    Route(KAFKA, "GET", _PATH, listing, {404: 403}),
    Route(KAFKA, "DELETE", _PATH, delete, {404: 403}),
)
