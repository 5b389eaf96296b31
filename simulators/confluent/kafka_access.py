"""Who may do what in a Kafka cluster: by role, or by ACL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulators.confluent.authorization import allowed
from simulators.confluent.calls import Call
from simulators.confluent.refusals import Refusal

if TYPE_CHECKING:
    from simulators.confluent.kinds.clusters import Cluster
    from simulators.confluent.world import World

#: Operations of an ACL that include an action.
_INCLUDES: Final = {
    "describe": ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"),
    "read": ("READ",),
    "write": ("WRITE",),
    "create": ("CREATE",),
    "alter": ("ALTER", "ALTER_CONFIGS"),
    "delete": ("DELETE",),
}


def addressed(call: Call) -> Cluster:
    """The cluster of the path, which the caller's key must be for."""
    name = call.parameters["cluster_id"]
    if call.key.resource != name:
        raise Refusal(401, "Unauthorized")
    cluster = call.world.clusters.get(name)
    if cluster is None or cluster.phase != "PROVISIONED":
        raise Refusal(404, f"Cluster {name} cannot be found.", code=404)
    return cluster


def may(world: World, cluster: Cluster, principal: str, action: str, *, topic: str = "") -> bool:
    """On the topic, or without one on the cluster itself. An ACL that denies goes before everything that allows."""
    matching = [acl["permission"] for acl in cluster.acls if _applies(acl, principal, action, topic)]
    if "DENY" in matching:
        return False
    return "ALLOW" in matching or allowed(world, principal, action, cluster.inside("topic", topic) if topic else cluster.scope)


def require(call: Call, cluster: Cluster, action: str, *, topic: str = "") -> None:
    if not may(call.world, cluster, call.principal, action, topic=topic):
        raise Refusal(403, f"{'Topic' if topic else 'Cluster'} authorization failed.", code=40301)


def _applies(acl: dict[str, str], principal: str, action: str, topic: str) -> bool:
    kind, name, named = ("TOPIC", topic, acl["resource_name"]) if topic else ("CLUSTER", "kafka-cluster", acl["resource_name"])
    fits = name.startswith(named) if acl["pattern_type"] == "PREFIXED" else named in (name, "*")
    operations = (*_INCLUDES.get(action, ()), "ALL")
    return (
        acl["resource_type"] == kind
        and fits
        and acl["principal"] in (f"User:{principal}", "User:*")
        and acl["operation"] in operations
    )
