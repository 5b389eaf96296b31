"""Kafka REST (kafka/v3): ACLs."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.errors import ApiError
from simulators.confluent.http import KAFKA, Answer, Call, Route
from simulators.confluent.kafka_access import build_list, find_cluster, require_permission
from simulators.confluent.model import Cluster

_ACL_FIELDS: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission",
)
_ACL_VALUES: Final = {
    "resource_type": ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"),
    "pattern_type": ("LITERAL", "PREFIXED"),
    "permission": ("ALLOW", "DENY"),
    "operation": (
        *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
    ),
}
#: Values of a query parameter that match every ACL.
_ANY: Final = ("", "ANY")
#: With this prefix of the query parameter `principal`, answers have the ids of service accounts; otherwise
#: their numeric ids.
_WITH_IDS: Final = "UserV2:"
_SERVICE_ACCOUNT: Final = "User:sa-"
_REQUIRED_TO_DELETE: Final = ("resource_type", "pattern_type", "operation", "permission")
_ACLS: Final = "/kafka/v3/clusters/{cluster_id}/acls"


def create_acl(call: Call) -> Answer:
    cluster = _find_alterable_cluster(call)
    _add_acl(cluster, _check_acl(call, call.body))
    return Answer(201)


def create_acls(call: Call) -> Answer:
    cluster = _find_alterable_cluster(call)
    data = call.body.get("data")
    if not isinstance(data, list) or not data or not all(isinstance(entry, dict) for entry in data):
        raise ApiError(400, "data must be a list of at least one ACL", code=40002)
    acls = [_check_acl(call, entry) for entry in data]
    for acl in acls:
        _add_acl(cluster, acl)
    return Answer(201)


def _add_acl(cluster: Cluster, acl: dict[str, str]) -> None:
    if acl not in cluster.acls:
        cluster.acls.append(acl)


def _check_acl(call: Call, acl: dict[str, Any]) -> dict[str, str]:
    for name in _ACL_FIELDS:
        value = acl.get(name)
        if (
            not isinstance(value, str)
            or not value
            or (name in _ACL_VALUES and value not in _ACL_VALUES[name])
        ):
            raise ApiError(400, f"{name} {value!r} is not valid", code=40002)
    kind, _, account = acl["principal"].partition(":")
    if kind != "User" or account not in {"*", call.org.owner, *call.org.service_accounts}:
        raise ApiError(400, f"principal {acl['principal']} does not exist", code=40002)
    if acl["resource_type"] == "CLUSTER" and acl["resource_name"] != "kafka-cluster":
        raise ApiError(400, "The only valid name for the CLUSTER resource is kafka-cluster", code=40002)
    return {name: acl[name] for name in _ACL_FIELDS}


def list_acls(call: Call) -> Answer:
    cluster = find_cluster(call)
    require_permission(call, cluster, "describe")
    return _build_acl_list(call, cluster, [acl for acl in cluster.acls if _matches_query(call, acl)])


def delete_acls(call: Call) -> Answer:
    cluster = _find_alterable_cluster(call)
    if missing := [name for name in _REQUIRED_TO_DELETE if not call.query.get(name)]:
        raise ApiError(400, f"query parameters {', '.join(missing)} are required", code=40002)
    deleted = [acl for acl in cluster.acls if _matches_query(call, acl)]
    cluster.acls[:] = [acl for acl in cluster.acls if acl not in deleted]
    return _build_acl_list(call, cluster, deleted)


def _matches_query(call: Call, acl: dict[str, str]) -> bool:
    filters = {name: call.query.get(name, "") for name in _ACL_FIELDS}
    if filters["pattern_type"] == "MATCH":
        filters["pattern_type"] = ""
    principal = filters.pop("principal")
    return _is_for_principal(acl, principal) and all(
        value in (*_ANY, acl[name]) for name, value in filters.items()
    )


def _is_for_principal(acl: dict[str, str], principal: str) -> bool:
    if principal.startswith(_WITH_IDS):
        return principal in (f"{_WITH_IDS}*", acl["principal"].replace("User:", _WITH_IDS, 1))
    return principal in (*_ANY, acl["principal"], _to_numeric_principal(acl["principal"]))


def _to_numeric_principal(principal: str) -> str:
    """Return the principal with the numeric id of a service account.

    It is computed from the id, so it is stable and unique.
    """
    if not principal.startswith(_SERVICE_ACCOUNT):
        return principal
    return f"User:{int(principal.removeprefix(_SERVICE_ACCOUNT), 36)}"


def _find_alterable_cluster(call: Call) -> Cluster:
    cluster = find_cluster(call)
    require_permission(call, cluster, "alter")
    return cluster


def _build_acl_list(call: Call, cluster: Cluster, acls: list[dict[str, str]]) -> Answer:
    """Answer with ACLs.

    Whether principals are numeric ids or ids follows the vendor's OpenAPI file on getKafkaAcls.
    """
    head = {"kind": "KafkaAcl", "metadata": {"self": f"{call.address}{call.path}"}, "cluster_id": cluster.id}
    with_ids = call.query.get("principal", "").startswith(_WITH_IDS)
    if not with_ids:
        acls = [acl | {"principal": _to_numeric_principal(acl["principal"])} for acl in acls]
    return build_list(call, "KafkaAclList", [head | acl for acl in acls])


ROUTES: Final = (
    Route(KAFKA, "POST", _ACLS, create_acl, {404: 403}),
    Route(KAFKA, "POST", _ACLS + ":batch", create_acls, {404: 403}),
    Route(KAFKA, "GET", _ACLS, list_acls, {404: 403}),
    Route(KAFKA, "DELETE", _ACLS, delete_acls, {404: 403}),
)
