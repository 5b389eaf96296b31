"""A role binding: a role of a service account on a scope.

These three values identify it, so there is nothing to update.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from lambdas.confluent import crn
from lambdas.confluent.client import find_container_of_role
from lambdas.confluent.lookup import Ctx, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import RoleBindingProps
from lambdas.confluent.rest_client import build_path, get_text, require_text
from lambdas.shared.resource import Outputs

PROPERTIES: Final = RoleBindingProps
TIMEOUT_SECONDS: Final = 1200.0
_ROUTE: Final = "/iam/v2/role-bindings"
#: Seconds for which Confluent may refuse to bind a role because the Cloud key owner's rights aren't effective
#: there yet.
_RIGHTS_PATIENCE: Final = 600.0


def create(context: Ctx, spec: RoleBindingProps) -> str:
    """Bind the role.

    It takes some minutes to become effective; callers that need the role retry until then.
    """
    cloud = attrs.evolve(context.vendor.cloud, denied_patience=_RIGHTS_PATIENCE)
    return require_text(cloud.post(_ROUTE, _build_binding(context, spec)), "id")


def is_ready(context: Ctx, spec: RoleBindingProps, object_id: str) -> Outputs | None:
    require_existing(_read(context, spec, object_id), f"role binding {object_id}")
    return {"id": object_id, "crn_pattern": _build_binding(context, spec)["crn_pattern"]}


def update(context: Ctx, spec: RoleBindingProps, object_id: str) -> None:
    require_existing(_read(context, spec, object_id), f"role binding {object_id}")


def delete(context: Ctx, spec: RoleBindingProps, object_id: str) -> None:
    context.vendor.cloud.delete(_build_route(object_id))


def find_existing(context: Ctx, spec: RoleBindingProps, known_id: str | None) -> list[str]:
    """Return the ids. Confluent's filters also match parts of names, so the results are compared here."""

    def find_objects() -> list[str]:
        binding = _build_binding(context, spec)
        ids = [known_id] if known_id and _read(context, spec, known_id) is not None else []
        bindings = context.vendor.cloud.pages(_ROUTE, **binding)
        ids += [get_text(actual, "id") for actual in bindings if _is_same(actual, binding)]
        return list(dict.fromkeys(ids))

    def is_gone() -> bool:
        if context.vendor.is_service_account_gone(spec.service_account_id):
            return True
        return bool(spec.environment_id) and context.vendor.is_environment_gone(spec.environment_id)

    return treat_gone_container_as_empty(context, is_gone, find_objects)


def _read(context: Ctx, spec: RoleBindingProps, object_id: str) -> dict[str, Any] | None:
    return context.vendor.cloud.read(_build_route(object_id), find_container_of_role(spec))


def _is_same(actual: dict[str, Any], binding: dict[str, str]) -> bool:
    if not crn.is_same(get_text(actual, "crn_pattern"), binding["crn_pattern"]):
        return False
    return all(get_text(actual, name) == binding[name] for name in ("principal", "role_name"))


def _build_binding(context: Ctx, spec: RoleBindingProps) -> dict[str, str]:
    scope = crn.CrnScope(
        context.vendor.organization_id,
        spec.environment_id,
        spec.cluster_id,
        spec.schema_registry_id,
        spec.name,
    )
    return {
        "principal": f"User:{spec.service_account_id}",
        "role_name": spec.role,
        "crn_pattern": crn.SCOPES[spec.scope](scope),
    }


def _build_route(object_id: str) -> str:
    return _ROUTE + build_path(object_id)
