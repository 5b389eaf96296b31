"""Confluent Resource Names.

A role binding's scope is one of SCOPES; NEEDS lists the ids that each scope needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

import attrs

_KAFKA: Final = ("environment_id", "cluster_id", "name")
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "organization": (),
    "environment": ("environment_id",),
    "cluster": ("environment_id", "cluster_id"),
    "service_account": ("name",),
    "topic": _KAFKA,
    "group": _KAFKA,
    "transactional_id": _KAFKA,
    "connector": _KAFKA,
    "subject": ("environment_id", "schema_registry_id", "name"),
    "provider_integration": ("environment_id", "name"),
}


@attrs.frozen
class CrnScope:
    """Ids of an object and its containers; "" if the scope doesn't need one.

    `name` may be a pattern such as `*`.
    """

    organization_id: str
    environment_id: str = ""
    cluster_id: str = ""
    schema_registry_id: str = ""
    name: str = ""


def build_organization_crn(scope: CrnScope) -> str:
    return f"crn://confluent.cloud/organization={scope.organization_id}"


def build_environment_crn(scope: CrnScope) -> str:
    return f"{build_organization_crn(scope)}/environment={scope.environment_id}"


def build_cluster_crn(scope: CrnScope) -> str:
    """Return the name as role bindings use it: without the `/kafka=` at the end of the cluster's resource
    name.
    """
    return f"{build_environment_crn(scope)}/cloud-cluster={scope.cluster_id}"


def _name_in_kafka(kind: str) -> Callable[[CrnScope], str]:
    return lambda scope: f"{build_cluster_crn(scope)}/kafka={scope.cluster_id}/{kind}={scope.name}"


SCOPES: Final[dict[str, Callable[[CrnScope], str]]] = {
    "organization": build_organization_crn,
    "environment": build_environment_crn,
    "cluster": build_cluster_crn,
    "service_account": lambda scope: f"{build_organization_crn(scope)}/service-account={scope.name}",
    "topic": _name_in_kafka("topic"),
    "group": _name_in_kafka("group"),
    "transactional_id": _name_in_kafka("transactional-id"),
    "connector": lambda scope: f"{build_cluster_crn(scope)}/connector={scope.name}",
    "subject": lambda scope: (
        f"{build_environment_crn(scope)}/schema-registry={scope.schema_registry_id}/subject={scope.name}"
    ),
    "provider_integration": lambda scope: f"{build_environment_crn(scope)}/provider-integration={scope.name}",
}


def is_same(first: str, second: str) -> bool:
    """Return whether two resource names are equal. Confluent may percent-encode one of them."""
    return unquote(first) == unquote(second)
