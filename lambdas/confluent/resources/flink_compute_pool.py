"""A Flink compute pool in a region."""

from __future__ import annotations

import functools
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CLOUD
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import FlinkComputePoolProps
from lambdas.confluent.rest_client import build_path, get_path, get_text, require_text
from lambdas.shared.errors import Refused, ResourceFailed
from lambdas.shared.resource import Outputs

PROPERTIES: Final = FlinkComputePoolProps
TIMEOUT_SECONDS: Final = 2400.0
_ROUTE: Final = "/fcpm/v2/compute-pools"


def create(context: Ctx, spec: FlinkComputePoolProps) -> str:
    body = {
        "spec": {
            "display_name": context.name,
            "cloud": CLOUD,
            "region": spec.region,
            "max_cfu": spec.max_cfu,
            "environment": {"id": spec.environment_id},
        }
    }
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: FlinkComputePoolProps, object_id: str) -> Outputs | None:
    actual = require_existing(_read(context, spec, object_id), f"compute pool {object_id}")
    if get_text(actual, "status", "phase") == "FAILED":
        raise ResourceFailed(
            confluent_errors.POOL_FAILED, f"compute pool {object_id} is FAILED", patience=300.0
        )
    if get_text(actual, "status", "phase") != "PROVISIONED":
        return None
    return {
        "id": object_id,
        "name": get_text(actual, "spec", "display_name"),
        "resource_name": get_text(actual, "metadata", "resource_name"),
        "rest_endpoint": get_text(context.vendor.flink_region(spec.region), "http_endpoint"),
    }


def update(context: Ctx, spec: FlinkComputePoolProps, object_id: str) -> None:
    """Update it. After a rollback, the pool may have more units than its properties."""
    actual = require_existing(_read(context, spec, object_id), f"compute pool {object_id}")
    before = context.previous
    lowered = isinstance(before, FlinkComputePoolProps) and before.max_cfu > spec.max_cfu
    if lowered and not context.rolling_back():
        message = (
            f"max_cfu of compute pool {object_id} can't be lowered from {before.max_cfu} to {spec.max_cfu}"
        )
        raise Refused(confluent_errors.CANT_CHANGE, message)
    changes: dict[str, Any] = {}
    if get_text(actual, "spec", "display_name") != context.name:
        changes["display_name"] = context.name
    current_cfu = get_path(actual, "spec", "max_cfu")
    if isinstance(current_cfu, int) and current_cfu < spec.max_cfu:
        changes["max_cfu"] = spec.max_cfu
    if changes:
        changes["environment"] = {"id": spec.environment_id}
        context.vendor.cloud.patch(_ROUTE + build_path(object_id), {"spec": changes})


def delete(context: Ctx, spec: FlinkComputePoolProps, object_id: str) -> None:
    context.vendor.cloud.delete(_ROUTE + build_path(object_id), environment=spec.environment_id)


def find_existing(context: Ctx, spec: FlinkComputePoolProps, known_id: str | None) -> list[str]:
    def find_objects() -> list[str]:
        pools = context.vendor.cloud.pages(_ROUTE, environment=spec.environment_id)
        read_by_id = functools.partial(_read, context, spec)
        return find_by_id_or_name(known_id, read_by_id, pools, context.name, "spec", "display_name")

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_environment_gone(spec.environment_id), find_objects
    )


def _read(context: Ctx, spec: FlinkComputePoolProps, object_id: str) -> dict[str, Any] | None:
    return context.vendor.cloud.read(_ROUTE + build_path(object_id), environment=spec.environment_id)
