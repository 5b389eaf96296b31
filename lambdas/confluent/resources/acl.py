"""ACLs of a Kafka cluster: one, or one for each name in a list, which may change.

Confluent gives ACLs no id.
"""

from __future__ import annotations

from typing import Final

from lambdas.confluent.lookup import Ctx, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import AclProps
from lambdas.confluent.rest_client import RestClient, build_path, get_objects, get_text
from lambdas.shared.resource import Outputs

PROPERTIES: Final = AclProps
TIMEOUT_SECONDS: Final = 1800.0


def create(context: Ctx, spec: AclProps) -> str:
    """Create the ACLs. Creating one twice has no further effect."""
    _add(context, spec, _list_names(spec))
    return _build_id(spec)


def is_ready(context: Ctx, spec: AclProps, object_id: str) -> Outputs | None:
    existing_names = _list_existing_names(context, spec)
    missing = [name for name in _list_names(spec) if name not in existing_names]
    if len(missing) < len(_list_names(spec)):
        _add(context, spec, missing)
    else:
        require_existing(None, f"ACL {object_id}")
    return None if missing else {"id": object_id}


def update(context: Ctx, spec: AclProps, object_id: str) -> None:
    """Add the missing ACLs, and remove those of names that are no longer wanted."""
    before = _list_names(context.previous) if isinstance(context.previous, AclProps) else []
    existing_names = _list_existing_names(context, spec)
    names = _list_names(spec)
    if existing_names.isdisjoint({*names, *before}):
        require_existing(None, f"ACL {object_id}")
    _add(context, spec, [name for name in names if name not in existing_names])
    _remove(context, spec, [name for name in before if name not in names])


def delete(context: Ctx, spec: AclProps, object_id: str) -> None:
    _remove(context, spec, _list_names(spec))


def find_existing(context: Ctx, spec: AclProps, known_id: str | None) -> list[str]:
    def find_acls() -> list[str]:
        existing_names = _list_existing_names(context, spec)
        return [] if existing_names.isdisjoint(_list_names(spec)) else [_build_id(spec)]

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None, find_acls
    )


def _list_names(spec: AclProps) -> list[str]:
    return list(dict.fromkeys(spec.resource_names)) or [spec.resource_name]


def _list_existing_names(context: Ctx, spec: AclProps) -> set[str]:
    """Return the names that have such an ACL.

    Confluent filters by the principal, but its answer has a number for a service account instead of its id.
    """
    entry = _build_entry(spec, spec.resource_name)
    if spec.resource_names:
        del entry["resource_name"]
    answer = _connect(context, spec).read(_build_route(spec), **entry)
    compared_fields = ("resource_type", "pattern_type", "host", "operation", "permission")
    names = set()
    for acl in get_objects(answer, "data"):
        if all(get_text(acl, field) == entry[field] for field in compared_fields):
            names.add(get_text(acl, "resource_name"))
    return names


def _add(context: Ctx, spec: AclProps, names: list[str]) -> None:
    if len(names) == 1:
        _connect(context, spec).post(_build_route(spec), _build_entry(spec, names[0]), repeatable=True)
    elif names:
        body = {"data": [_build_entry(spec, name) for name in names]}
        _connect(context, spec).post(f"{_build_route(spec)}:batch", body, repeatable=True)


def _remove(context: Ctx, spec: AclProps, names: list[str]) -> None:
    """Remove ACLs. The filter has every field; otherwise it would match other ACLs too."""
    for name in names:
        _connect(context, spec).delete(_build_route(spec), **_build_entry(spec, name))


def _build_entry(spec: AclProps, name: str) -> dict[str, str]:
    return {
        "resource_type": spec.resource_type,
        "resource_name": name,
        "pattern_type": spec.pattern_type,
        "principal": f"User:{spec.service_account_id}",
        "host": "*",
        "operation": spec.operation,
        "permission": "ALLOW",
    }


def _build_id(spec: AclProps) -> str:
    """Return the id. It omits a list of names, because the list may change."""
    name = "" if spec.resource_names else spec.resource_name
    return "/".join(_build_entry(spec, name).values())


def _connect(context: Ctx, spec: AclProps) -> RestClient:
    return context.vendor.kafka(
        spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials)
    )


def _build_route(spec: AclProps) -> str:
    return build_path("kafka", "v3", "clusters", spec.cluster_id, "acls")
