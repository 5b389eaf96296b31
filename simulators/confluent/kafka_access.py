"""Access to Kafka clusters: which one a call addresses, and what its caller may do there."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.authorization import is_allowed
from simulators.confluent.errors import ApiError
from simulators.confluent.http import Answer, Call
from simulators.confluent.model import Cluster
from simulators.confluent.organization import Organization

#: By action: the operations of an ACL that include it.
_INCLUDES: Final = {
    "describe": ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"),
    "read": ("READ",),
    "write": ("WRITE",),
    "create": ("CREATE",),
    "alter": ("ALTER", "ALTER_CONFIGS"),
    "delete": ("DELETE",),
}


def find_cluster(call: Call) -> Cluster:
    """Return the cluster in the path. Raises ApiError if the caller's API key is for another one."""
    name = call.parameters["cluster_id"]
    if call.key.resource != name:
        raise ApiError(401, "Unauthorized")
    cluster = call.org.clusters.get(name)
    if cluster is None or cluster.phase != "PROVISIONED":
        raise ApiError(404, f"Cluster {name} cannot be found.", code=404)
    return cluster


def may(org: Organization, cluster: Cluster, principal: str, action: str, *, topic: str = "") -> bool:
    """Return whether the principal may do the action on the topic, or on the cluster if `topic` is empty.

    Either an ACL or a role can allow it. An ACL with DENY overrides both.
    """
    permissions = [acl["permission"] for acl in cluster.acls if _is_applicable(acl, principal, action, topic)]
    if "DENY" in permissions:
        return False
    if "ALLOW" in permissions:
        return True
    resource = cluster.build_crn("topic", topic) if topic else cluster.scope
    return is_allowed(org, principal, action, resource)


def require_permission(call: Call, cluster: Cluster, action: str, *, topic: str = "") -> None:
    if not may(call.org, cluster, call.principal, action, topic=topic):
        kind = "Topic" if topic else "Cluster"
        raise ApiError(403, f"{kind} authorization failed.", code=40301)


def _is_applicable(acl: dict[str, str], principal: str, action: str, topic: str) -> bool:
    kind = "TOPIC" if topic else "CLUSTER"
    name = topic or "kafka-cluster"
    acl_name = acl["resource_name"]
    matches_name = name.startswith(acl_name) if acl["pattern_type"] == "PREFIXED" else acl_name in (name, "*")
    operations = (*_INCLUDES.get(action, ()), "ALL")
    return (
        acl["resource_type"] == kind
        and matches_name
        and acl["principal"] in (f"User:{principal}", "User:*")
        and acl["operation"] in operations
    )


def build_list(call: Call, kind: str, data: list[dict[str, Any]]) -> Answer:
    return Answer(200, {"kind": kind, "metadata": {"self": f"{call.address}{call.path}"}, "data": data})
