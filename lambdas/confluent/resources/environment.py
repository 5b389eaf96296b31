"""A Confluent environment with its Stream Governance package. Schema Registry comes with the first Kafka cluster in it."""

from __future__ import annotations

from typing import Final

import attrs

from lambdas.confluent.client import path, require_text, text
from lambdas.confluent.lookup import Ctx, existing, known_and_named
from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs

OUTPUTS: Final = ("id", "name", "resource_name", "organization_id", "stream_governance")
PATIENCE: Final = 1200.0
_ROUTE: Final = "/org/v2/environments"
_PACKAGES: Final = ("ESSENTIALS", "ADVANCED")


@attrs.frozen
class Spec(Properties):
    stream_governance: str = prop(
        "Stream Governance package. It can be raised, never lowered: a lower one leaves the environment as it is.",
        default="ESSENTIALS",
        one_of=_PACKAGES,
    )


def create(context: Ctx, spec: Spec) -> str:
    body = {"display_name": context.name, "stream_governance_config": {"package": spec.stream_governance}}
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    found = existing(context.vendor.cloud.read(_route(object_id)), f"environment {object_id}")
    return {
        "id": object_id,
        "name": text(found, "display_name"),
        "resource_name": text(found, "metadata", "resource_name"),
        "organization_id": context.vendor.organization_id,
        "stream_governance": text(found, "stream_governance_config", "package"),
    }


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    found = existing(context.vendor.cloud.read(_route(object_id)), f"environment {object_id}")
    changes: dict[str, object] = {}
    if text(found, "display_name") != context.name:
        changes["display_name"] = context.name
    package = text(found, "stream_governance_config", "package")
    if package != spec.stream_governance and package != _PACKAGES[-1]:
        changes["stream_governance_config"] = {"package": spec.stream_governance}
    if changes:
        context.vendor.cloud.patch(_route(object_id), changes)


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    """Confluent removes what is still in the environment too; the organization's last one it refuses to remove."""
    context.vendor.cloud.delete(_route(object_id))


REPLACE_ON: Final[tuple[str, ...]] = ()


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    """There is no filter by name, and names need not be unique."""
    cloud = context.vendor.cloud
    return known_and_named(known, lambda one: cloud.read(_route(one)), cloud.pages(_ROUTE), context.name, "display_name")


def _route(object_id: str) -> str:
    return _ROUTE + path(object_id)
