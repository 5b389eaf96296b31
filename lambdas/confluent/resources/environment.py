"""A Confluent environment with its Stream Governance package. Its first Kafka cluster brings its Schema Registry with it."""

from __future__ import annotations

from typing import Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import path, require_text, text
from lambdas.confluent.lookup import Ctx, existing, known_and_named
from lambdas.confluent.properties import STREAM_GOVERNANCE, EnvironmentProps
from lambdas.shared.errors import Refused
from lambdas.shared.resource import Outputs

PROPERTIES: Final = EnvironmentProps
TIMEOUT_SECONDS: Final = 1200.0
_ROUTE: Final = "/org/v2/environments"


def create(context: Ctx, spec: EnvironmentProps) -> str:
    body = {"display_name": context.name, "stream_governance_config": {"package": spec.stream_governance}}
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: EnvironmentProps, object_id: str) -> Outputs | None:
    actual = existing(context.vendor.cloud.read(_route(object_id)), f"environment {object_id}")
    return {
        "id": object_id,
        "name": text(actual, "display_name"),
        "resource_name": text(actual, "metadata", "resource_name"),
        "organization_id": context.vendor.organization_id,
        "stream_governance": text(actual, "stream_governance_config", "package"),
    }


def update(context: Ctx, spec: EnvironmentProps, object_id: str) -> None:
    """Update it. After a rollback, the environment may have a higher package than its properties."""
    actual = existing(context.vendor.cloud.read(_route(object_id)), f"environment {object_id}")
    before = context.previous
    if isinstance(before, EnvironmentProps) and _rank(before) > _rank(spec) and not context.rolling_back():
        what = f"Stream Governance of environment {object_id} can't be lowered from {before.stream_governance}"
        raise Refused(confluent_errors.CANT_CHANGE, what)
    changes: dict[str, object] = {}
    if text(actual, "display_name") != context.name:
        changes["display_name"] = context.name
    package = text(actual, "stream_governance_config", "package")
    if package != spec.stream_governance and package != STREAM_GOVERNANCE[-1]:
        changes["stream_governance_config"] = {"package": spec.stream_governance}
    if changes:
        context.vendor.cloud.patch(_route(object_id), changes)


def delete(context: Ctx, spec: EnvironmentProps, object_id: str) -> None:
    """Delete it and everything in it. Confluent refuses to delete the organization's last environment."""
    context.vendor.cloud.delete(_route(object_id))


def find_existing(context: Ctx, spec: EnvironmentProps, known: str | None) -> list[str]:
    """Search the whole list: there is no filter by name, and names need not be unique."""
    cloud = context.vendor.cloud
    return known_and_named(known, lambda one: cloud.read(_route(one)), cloud.pages(_ROUTE), context.name, "display_name")


def _rank(spec: EnvironmentProps) -> int:
    return STREAM_GOVERNANCE.index(spec.stream_governance)


def _route(object_id: str) -> str:
    return _ROUTE + path(object_id)
