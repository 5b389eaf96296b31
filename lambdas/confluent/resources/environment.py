"""A Confluent environment with its Stream Governance package.

Its first Kafka cluster brings its Schema Registry with it.
"""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing
from lambdas.confluent.properties import STREAM_GOVERNANCE, EnvironmentProps
from lambdas.confluent.rest_client import build_path, get_text, require_text
from lambdas.shared.errors import DETAIL_LENGTH, Denied, LakeferryError, NotFound, Refused
from lambdas.shared.resource import Outputs

PROPERTIES: Final = EnvironmentProps
TIMEOUT_SECONDS: Final = 1200.0
_ROUTE: Final = "/org/v2/environments"
#: What Confluent deletes with an environment (org-v2.yaml, delete an environment): the list, and the field
#: with the name. Schema subjects aren't among them: a Cloud key can't list them.
_CONTENTS: Final = {
    "Kafka clusters": ("/cmk/v2/clusters", "spec", "display_name"),
    "Flink compute pools": ("/fcpm/v2/compute-pools", "spec", "display_name"),
    "provider integrations": ("/pim/v1/integrations", "display_name"),
}
#: The same, of APIs that not every organization has.
_CONTENTS_OF_NEW_APIS: Final = {
    "provider integrations of the second version": ("/pim/v2/integrations", "display_name"),
    "private networks": ("/networking/v1/networks", "spec", "display_name"),
    "private link attachments": ("/networking/v1/private-link-attachments", "spec", "display_name"),
}
#: Seconds for which a list may still show what was deleted just before.
_EMPTY_PATIENCE: Final = 120.0


def create(context: Ctx, spec: EnvironmentProps) -> str:
    body = {"display_name": context.name, "stream_governance_config": {"package": spec.stream_governance}}
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: EnvironmentProps, object_id: str) -> Outputs | None:
    actual = require_existing(context.vendor.cloud.read(_build_route(object_id)), f"environment {object_id}")
    return {
        "id": object_id,
        "name": get_text(actual, "display_name"),
        "resource_name": get_text(actual, "metadata", "resource_name"),
        "organization_id": context.vendor.organization_id,
        "stream_governance": get_text(actual, "stream_governance_config", "package"),
    }


def update(context: Ctx, spec: EnvironmentProps, object_id: str) -> None:
    """Update it. After a rollback, the environment may have a higher package than its properties."""
    actual = require_existing(context.vendor.cloud.read(_build_route(object_id)), f"environment {object_id}")
    before = context.previous
    is_lowered = isinstance(before, EnvironmentProps) and _get_rank(before) > _get_rank(spec)
    if is_lowered and not context.rolling_back():
        message = (
            f"Stream Governance of environment {object_id} can't be lowered from {before.stream_governance}"
        )
        raise Refused(confluent_errors.CANT_CHANGE, message)
    changes: dict[str, object] = {}
    if get_text(actual, "display_name") != context.name:
        changes["display_name"] = context.name
    package = get_text(actual, "stream_governance_config", "package")
    if package != spec.stream_governance and package != STREAM_GOVERNANCE[-1]:
        changes["stream_governance_config"] = {"package": spec.stream_governance}
    if changes:
        context.vendor.cloud.patch(_build_route(object_id), changes)


def delete(context: Ctx, spec: EnvironmentProps, object_id: str) -> None:
    """Delete it if it is empty. Raises LakeferryError while it holds anything, or may, because Confluent
    deletes that too.

    The lists are complete: who may delete an environment is an administrator of it or of the organization,
    and sees all in it. In a deployment that is destroyed, everything in it is gone by then. Confluent refuses
    to delete the organization's last environment.
    """
    for kind, (route, *name) in (_CONTENTS | _CONTENTS_OF_NEW_APIS).items():
        contents = _list_contents(context, kind, route, object_id)
        names = [f"{get_text(item, 'id')} ({get_text(item, *name)})" for item in contents]
        if names:
            shown_names = ", ".join(names)[:DETAIL_LENGTH]
            message = (
                f"environment {object_id} still holds {kind}, and would be deleted with everything in it: "
                f"{shown_names}"
            )
            raise LakeferryError(confluent_errors.ENVIRONMENT_NOT_EMPTY, message, patience=_EMPTY_PATIENCE)
    context.vendor.cloud.delete(_build_route(object_id))


def _list_contents(context: Ctx, kind: str, route: str, object_id: str) -> list[dict[str, Any]]:
    """List what the environment holds. Raises Denied if that isn't known.

    Confluent also answers 404 for objects that a login may not see. A 404 means that there are no objects
    only if the organization may not have the API at all.
    """
    try:
        return context.vendor.cloud.pages(route, environment=object_id)
    except (Denied, NotFound) as error:
        if isinstance(error, NotFound) and kind in _CONTENTS_OF_NEW_APIS:
            return []
        message = f"whether environment {object_id} holds {kind} can't be told: {error.what}"
        raise Denied(confluent_errors.ENVIRONMENT_NOT_EMPTY, message, patience=_EMPTY_PATIENCE) from None


def find_existing(context: Ctx, spec: EnvironmentProps, known_id: str | None) -> list[str]:
    """Search the whole list: there is no filter by name, and names need not be unique."""
    cloud = context.vendor.cloud

    def read_by_id(object_id: str) -> dict[str, Any] | None:
        return cloud.read(_build_route(object_id))

    return find_by_id_or_name(known_id, read_by_id, cloud.pages(_ROUTE), context.name, "display_name")


def _get_rank(spec: EnvironmentProps) -> int:
    return STREAM_GOVERNANCE.index(spec.stream_governance)


def _build_route(object_id: str) -> str:
    return _ROUTE + build_path(object_id)
