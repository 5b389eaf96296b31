"""The resource of a key at Confluent, its connection, and a test of the key, whatever service it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import get_text
from lambdas.confluent.services import SERVICES
from lambdas.confluent.services.base import Connection, Target
from lambdas.confluent.services.flink import Flink
from lambdas.shared.errors import Denied, NotFound, Refused
from lambdas.shared.redaction import ApiKey


def read_target(stored: Mapping[str, str]) -> Target:
    """Return the target of the key in a secret, from the fields that AWS's managed external secrets use."""
    service_name = _recognize_service(stored.get("resourceId", ""))
    target = Target(service_name, stored.get("serviceAccountId", ""), stored.get("environmentId", ""))
    return SERVICES[service_name].complete_target(target, stored)


def _recognize_service(resource_id: str) -> str:
    for service in SERVICES.values():
        if service.is_service_of(resource_id):
            return service.NAME
    return Flink.NAME


def find_resource(vendor: Confluent, target: Target) -> dict[str, str] | None:
    """Return `spec.resource` of a new key; None for a Cloud key."""
    return SERVICES[target.service].find_resource(vendor, target)


def is_key_for(key: dict[str, Any], expected_resource: dict[str, str] | None) -> bool:
    """Return whether a listed key is for this resource.

    Confluent returns kind and version in a different format than it accepts.
    """
    resource_id = get_text(key, "spec", "resource", "id").lower()
    if expected_resource is None:
        return resource_id in ("", "cloud")
    expected_id = expected_resource["id"].lower()
    return resource_id == expected_id or resource_id.endswith("." + expected_id)


def find_connection(vendor: Confluent, target: Target) -> Connection:
    """Return how a client connects.

    Raises ResourceMissing if the cluster is gone, InProgress if the service isn't ready.
    """
    key_resource = find_resource(vendor, target)
    resource_id = key_resource["id"] if key_resource else ""
    common = Connection(
        service_account_id=target.service_account_id,
        resource_id=resource_id,
        environment_id=target.environment_id,
        organization_id=vendor.organization_id,
        cluster_id=target.cluster_id,
        compute_pool_id=target.compute_pool_id,
    )
    return SERVICES[target.service].complete_connection(vendor, target, common)


def accepts_key(vendor: Confluent, target: Target, key: ApiKey) -> bool:
    """Return whether the service accepts the key now."""
    service = SERVICES[target.service]
    client, route = service.prepare_test(vendor, target, key)
    try:
        client.get(route)
    except (Denied, NotFound):
        return False
    except Refused:
        if service.REFUSES_UNKNOWN_KEYS:
            return False
        raise
    return True
