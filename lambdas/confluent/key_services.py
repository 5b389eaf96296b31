"""The services that API keys can be for: the resource of a key at Confluent, its connection, and a test of
the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from lambdas.confluent.client import Confluent, RestClient, bootstrap_servers, path, require_text, text
from lambdas.confluent.secret_fields import Connection
from lambdas.shared import errors
from lambdas.shared.errors import Denied, NotFound, Refused, ResourceMissing
from lambdas.shared.redaction import ApiKey


@attrs.frozen
class Target:
    """The service and the resource of a key. Ids that the service doesn't need are ""."""

    service: str
    service_account_id: str
    environment_id: str = ""
    cluster_id: str = ""
    region: str = ""
    compute_pool_id: str = ""


def target_of(stored: Mapping[str, str]) -> Target:
    """Return the target of the key in a secret, from the fields that AWS's managed external secrets use."""
    resource_id = stored.get("resourceId", "")
    common = Target(
        _service(resource_id), stored.get("serviceAccountId", ""), stored.get("environmentId", "")
    )
    if common.service == "kafka":
        return attrs.evolve(common, cluster_id=resource_id)
    if common.service == "flink":
        return attrs.evolve(
            common, region=resource_id.rpartition(".")[2], compute_pool_id=stored.get("compute.pool.id", "")
        )
    return common


def _service(resource_id: str) -> str:
    if resource_id.startswith("lkc-"):
        return "kafka"
    if resource_id.startswith("lsrc-"):
        return "schema_registry"
    if resource_id.lower() == "tableflow":
        return "tableflow"
    return "flink" if resource_id else "cloud"


def resource(vendor: Confluent, target: Target) -> dict[str, str] | None:
    """Return `spec.resource` of a new key, as Confluent's Terraform provider sends it.

    A Cloud key has none.
    """
    if target.service == "kafka":
        return {"id": target.cluster_id, "kind": "Cluster"}
    if target.service == "schema_registry":
        return {"id": require_text(vendor.schema_registry(target.environment_id), "id"), "kind": "Cluster"}
    if target.service == "flink":
        region = require_text(vendor.flink_region(target.region), "id")
        return {
            "id": region,
            "kind": "Region",
            "api_version": "fcpm/v2",
            "environment": target.environment_id,
        }
    if target.service == "tableflow":
        return {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"}
    return None


def is_for(key: dict[str, Any], wanted: dict[str, str] | None) -> bool:
    """Return whether a listed key is for `wanted`.

    Confluent returns kind and version in a different format than it accepts.
    """
    resource_id = text(key, "spec", "resource", "id").lower()
    if wanted is None:
        return resource_id in ("", "cloud")
    return resource_id == wanted["id"].lower() or resource_id.endswith("." + wanted["id"].lower())


def connection(vendor: Confluent, target: Target) -> Connection:
    """Return how a client connects.

    Raises ResourceMissing if the cluster is gone, InProgress if the service isn't ready.
    """
    wanted = resource(vendor, target)
    common = Connection(
        service_account_id=target.service_account_id,
        resource_id=wanted["id"] if wanted else "",
        environment_id=target.environment_id,
        organization_id=vendor.organization_id,
        cluster_id=target.cluster_id,
        compute_pool_id=target.compute_pool_id,
    )
    if target.service == "kafka":
        return attrs.evolve(common, endpoint=bootstrap_servers(_cluster(vendor, target)))
    if target.service == "schema_registry":
        endpoint = text(vendor.schema_registry(target.environment_id), "spec", "http_endpoint")
        return attrs.evolve(common, endpoint=endpoint)
    if target.service == "flink":
        return attrs.evolve(common, endpoint=text(vendor.flink_region(target.region), "http_endpoint"))
    if target.service == "tableflow":
        uri = vendor.catalog_url(target.region, target.environment_id)
        return attrs.evolve(common, resource_id="Tableflow", catalog_uri=uri)
    return common


def works(vendor: Confluent, target: Target, key: ApiKey) -> bool:
    """Return whether the service accepts the key now.

    A Flink gateway has four ways to report an unknown key.
    """
    plane, route = _test_call(vendor, target, key)
    try:
        plane.get(route)
    except (Denied, NotFound):
        return False
    except Refused:
        if target.service == "flink":
            return False
        raise
    return True


def _test_call(vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
    if target.service == "kafka":
        plane = vendor.kafka(target.environment_id, target.cluster_id, key)
        return plane, path("kafka", "v3", "clusters", target.cluster_id, "topics")
    if target.service == "schema_registry":
        return vendor.registry(target.environment_id, key), "/subjects"
    if target.service == "flink":
        parent = ("organizations", vendor.organization_id, "environments", target.environment_id)
        return vendor.flink(target.region, key), path("sql", "v1", *parent, "statements") + "?page_size=1"
    if target.service == "tableflow":
        return vendor.tableflow(key), "/tableflow/v1/regions"
    return vendor.with_key(key), "/org/v2/environments?page_size=1"


def _cluster(vendor: Confluent, target: Target) -> dict[str, Any]:
    cluster = vendor.cluster(target.environment_id, target.cluster_id)
    if cluster is None:
        raise ResourceMissing(errors.VANISHED, f"Kafka cluster {target.cluster_id} is gone")
    return cluster
