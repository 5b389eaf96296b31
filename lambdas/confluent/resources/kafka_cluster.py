"""A Kafka cluster of type Basic or Standard.

It counts as ready once the environment's Schema Registry is ready too.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from lambdas.confluent import crn
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CLOUD, read_bootstrap_servers
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import KafkaClusterProps
from lambdas.confluent.rest_client import build_path, get_path, get_text, require_text
from lambdas.shared.errors import LakeferryError, Refused, ResourceFailed
from lambdas.shared.resource import Outputs

PROPERTIES: Final = KafkaClusterProps
#: Creating takes minutes, deleting up to half an hour. CDK waits for at most an hour.
TIMEOUT_SECONDS: Final = 3300.0
_ROUTE: Final = "/cmk/v2/clusters"
_ID: Final = re.compile(r"lkc-[a-z0-9-]+")


def create(context: Ctx, spec: KafkaClusterProps) -> str:
    body = {
        "spec": {
            "display_name": context.name,
            "availability": spec.availability,
            "cloud": CLOUD,
            "region": spec.region,
            "config": _build_config(spec),
            "environment": {"id": spec.environment_id},
            "deletion_protection": spec.deletion_protection,
        }
    }
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: KafkaClusterProps, object_id: str) -> Outputs | None:
    """Return the outputs once cluster and Schema Registry are ready.

    The id is also a Glue database's name in IAM policies.
    """
    if not _ID.fullmatch(object_id):
        raise Refused(
            confluent_errors.UNEXPECTED, f"{object_id[:60]!r} is not the id of a Kafka cluster, lkc-…"
        )
    actual = require_existing(
        context.vendor.cluster(spec.environment_id, object_id), f"Kafka cluster {object_id}"
    )
    if not is_provisioned(actual):
        return None
    return build_outputs(context, spec.environment_id, actual)


def is_provisioned(actual: dict[str, Any]) -> bool:
    """Return whether the cluster is ready. Raises ResourceFailed if it has failed."""
    phase = get_text(actual, "status", "phase")
    if phase == "FAILED":
        raise ResourceFailed(
            confluent_errors.CLUSTER_FAILED,
            f"Kafka cluster {get_text(actual, 'id')} is FAILED",
            patience=300.0,
        )
    return phase == "PROVISIONED" and bool(get_text(actual, "spec", "http_endpoint"))


def build_outputs(context: Ctx, environment_id: str, actual: dict[str, Any]) -> Outputs:
    """Return the outputs of a cluster that works. Raises InProgress until its Schema Registry works too."""
    cluster_id = get_text(actual, "id")
    registry = context.vendor.schema_registry(environment_id)
    scope = crn.CrnScope(context.vendor.organization_id, environment_id, cluster_id)
    return {
        "id": cluster_id,
        "name": get_text(actual, "spec", "display_name"),
        "bootstrap_servers": read_bootstrap_servers(actual),
        "rest_endpoint": get_text(actual, "spec", "http_endpoint"),
        "resource_name": get_text(actual, "metadata", "resource_name"),
        "rbac_resource_name": crn.build_cluster_crn(scope),
        "schema_registry_id": get_text(registry, "id"),
        "schema_registry_endpoint": get_text(registry, "spec", "http_endpoint"),
    }


def update(context: Ctx, spec: KafkaClusterProps, object_id: str) -> None:
    actual = require_existing(
        context.vendor.cluster(spec.environment_id, object_id), f"Kafka cluster {object_id}"
    )
    refused_change = _find_refused_change(context.previous, spec, actual, object_id)
    if refused_change and not context.rolling_back():
        raise Refused(confluent_errors.CANT_CHANGE, refused_change)
    changes: dict[str, Any] = {}
    if get_text(actual, "spec", "display_name") != context.name:
        changes["display_name"] = context.name
    if bool(get_path(actual, "spec", "deletion_protection")) != spec.deletion_protection:
        changes["deletion_protection"] = spec.deletion_protection
    current_type = get_text(actual, "spec", "config", "kind")
    is_upgraded = current_type == "Basic" and spec.type == "Standard"
    is_resized = spec.max_ecku is not None and get_path(actual, "spec", "config", "max_ecku") != spec.max_ecku
    if is_upgraded:
        changes["config"] = _build_config(spec)
    elif is_resized:
        changes["config"] = {**_build_config(spec), "kind": current_type}
    if changes:
        changes["environment"] = {"id": spec.environment_id}
        context.vendor.cloud.patch(_ROUTE + build_path(object_id), {"spec": changes})


def _find_refused_change(before: Any, spec: KafkaClusterProps, actual: Any, object_id: str) -> str:
    """Return the change that Confluent can't make, or "".

    After a rollback, the cluster may exceed its properties.
    """
    if not isinstance(before, KafkaClusterProps):
        return ""
    is_standard = get_text(actual, "spec", "config", "kind") == "Standard" and before.type == "Standard"
    if is_standard and spec.type == "Basic":
        return f"Kafka cluster {object_id} is Standard, and Confluent can't make it Basic"
    limit = get_path(actual, "spec", "config", "max_ecku")
    if limit and before.max_ecku is not None and spec.max_ecku is None:
        return (
            f"max_ecku of Kafka cluster {object_id} is {limit}, and Confluent's API has no value that "
            "removes it"
        )
    return ""


def delete(context: Ctx, spec: KafkaClusterProps, object_id: str) -> None:
    """Delete it with its topics, ACLs and data. Confluent refuses while connectors run on the cluster.

    Deletion protection is for clusters in use. The rollback of a failed deployment deletes the cluster that
    it created anyway.
    """
    actual = context.vendor.cluster(spec.environment_id, object_id)
    if get_path(actual, "spec", "deletion_protection") is True:
        if not context.rolling_back():
            raise LakeferryError(
                confluent_errors.DELETION_PROTECTED, f"Kafka cluster {object_id} is protected"
            )
        unprotected = {"spec": {"deletion_protection": False, "environment": {"id": spec.environment_id}}}
        context.vendor.cloud.patch(_ROUTE + build_path(object_id), unprotected)
    context.vendor.cloud.delete(_ROUTE + build_path(object_id), environment=spec.environment_id)


def find_existing(context: Ctx, spec: KafkaClusterProps, known_id: str | None) -> list[str]:
    def find_objects() -> list[str]:
        clusters = context.vendor.cloud.pages(_ROUTE, environment=spec.environment_id)
        read_by_id = functools.partial(context.vendor.cluster, spec.environment_id)
        return find_by_id_or_name(known_id, read_by_id, clusters, context.name, "spec", "display_name")

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_environment_gone(spec.environment_id), find_objects
    )


def _build_config(spec: KafkaClusterProps) -> dict[str, Any]:
    config: dict[str, Any] = {"kind": spec.type}
    if spec.max_ecku is not None:
        config["max_ecku"] = spec.max_ecku
    return config
