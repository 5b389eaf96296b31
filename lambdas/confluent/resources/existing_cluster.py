"""A Kafka cluster that somebody else owns. It is looked up, never changed and never deleted.

It has the same outputs as a cluster that Lakeferry creates.
"""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.existing_properties import ExistingClusterProps
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.resources import kafka_cluster
from lambdas.confluent.rest_client import get_path, get_text
from lambdas.shared.errors import Refused
from lambdas.shared.resource import Outputs

PROPERTIES: Final = ExistingClusterProps
#: There is nothing that could be left.
ABSENCE_IS_SHOWN: Final = True
TIMEOUT_SECONDS: Final = 900.0
#: Seconds for which Confluent may answer as if something that exists didn't exist.
ABSENCE_PATIENCE: Final = 120.0
_PUBLIC: Final = "PUBLIC"


def create(context: Ctx, spec: ExistingClusterProps) -> str:
    return spec.cluster_id


def is_ready(context: Ctx, spec: ExistingClusterProps, object_id: str) -> Outputs | None:
    """Return the outputs of the cluster once it is ready. Raises Refused if a deployment can't use it, and
    ResourceFailed if it has failed.
    """
    actual = context.vendor.cluster(spec.environment_id, object_id)
    if actual is None:
        message = f"Kafka cluster {object_id} does not exist in environment {spec.environment_id}"
        raise Refused(confluent_errors.NO_CLUSTER, message, patience=ABSENCE_PATIENCE)
    if problem := find_problem(actual, spec.region):
        raise Refused(confluent_errors.UNFIT_CLUSTER, f"Kafka cluster {object_id} {problem}")
    if not kafka_cluster.is_provisioned(actual):
        return None
    return kafka_cluster.build_outputs(context, spec.environment_id, actual)


def update(context: Ctx, spec: ExistingClusterProps, object_id: str) -> None:
    """Do nothing: `is_ready` looks it up again."""


def delete(context: Ctx, spec: ExistingClusterProps, object_id: str) -> None:
    """Do nothing: somebody else owns it."""


def find_existing(context: Ctx, spec: ExistingClusterProps, known_id: str | None) -> list[str]:
    return [] if context.deleting else [spec.cluster_id]


def find_problem(cluster: dict[str, Any], region: str) -> str:
    """Return why a deployment in `region` can't use the cluster, or ""."""
    if get_text(cluster, "spec", "region") != region or get_text(cluster, "spec", "cloud") != "AWS":
        place = f"{get_text(cluster, 'spec', 'cloud')} {get_text(cluster, 'spec', 'region')}"
        return (
            f"is in {place}, and the deployment in AWS {region}: Tableflow writes to a bucket of its region"
        )
    if get_text(cluster, "spec", "config", "kind") == "Basic":
        return "is of type Basic, and Confluent has no roles on single topics of such a cluster"
    if not _has_public_endpoint(cluster):
        return "has no public endpoint, and Lakeferry's functions run outside of its private network"
    return ""


def _has_public_endpoint(cluster: dict[str, Any]) -> bool:
    """Return whether a cluster can be reached over the internet.

    `spec.endpoints` has one entry for each way (cmk/v2). A cluster without that field has a network if it is
    private.
    """
    endpoints = get_path(cluster, "spec", "endpoints")
    if isinstance(endpoints, dict) and endpoints:
        return any(get_text(endpoint, "connection_type") == _PUBLIC for endpoint in endpoints.values())
    return not get_text(cluster, "spec", "network", "id")
