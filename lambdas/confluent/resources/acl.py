"""ACLs of a Kafka cluster: one, or one for each name in a list, which may change.

Confluent gives ACLs no id.
"""

from __future__ import annotations

from typing import Final

from lambdas.confluent.lookup import Ctx, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import AclProps
from lambdas.confluent.rest_client import RestClient, objects, path, text
from lambdas.shared.resource import Outputs

PROPERTIES: Final = AclProps
TIMEOUT_SECONDS: Final = 1800.0


def create(context: Ctx, spec: AclProps) -> str:
    """Create the ACLs. Creating one twice has no further effect."""
    _add(context, spec, _list_names(spec))
    return _build_id(spec)


def is_ready(context: Ctx, spec: AclProps, object_id: str) -> Outputs | None:
    missing = _list_missing_names(context, spec)
    if len(missing) < len(_list_names(spec)):
        _add(context, spec, missing)
    else:
        require_existing(None, f"ACL {object_id}")
    return None if missing else {"id": object_id}


def update(context: Ctx, spec: AclProps, object_id: str) -> None:
    """Add the missing ACLs, and remove those of names that are no longer wanted."""
    before = _list_names(context.previous) if isinstance(context.previous, AclProps) else []
    listed = _list_existing_names(context, spec)
    require_existing(
        {name: name for name in {*_list_names(spec), *before} & listed} or None, f"ACL {object_id}"
    )
    _add(context, spec, [name for name in _list_names(spec) if name not in listed])
    _remove(context, spec, [name for name in before if name not in _list_names(spec)])


def delete(context: Ctx, spec: AclProps, object_id: str) -> None:
    _remove(context, spec, _list_names(spec))


def find_existing(context: Ctx, spec: AclProps, known: str | None) -> list[str]:
    return treat_gone_container_as_empty(
        context,
        lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None,
        lambda: [_build_id(spec)] if _list_existing_names(context, spec) & {*_list_names(spec)} else [],
    )


def _list_names(spec: AclProps) -> list[str]:
    return list(dict.fromkeys(spec.resource_names)) or [spec.resource_name]


def _list_missing_names(context: Ctx, spec: AclProps) -> list[str]:
    listed = _list_existing_names(context, spec)
    return [name for name in _list_names(spec) if name not in listed]


def _list_existing_names(context: Ctx, spec: AclProps) -> set[str]:
    """Return the names that have such an ACL.

    Confluent filters by the principal, but its answer has a number for a service account instead of its id.
    """
    wanted = _build_entry(spec, "")
    del wanted["resource_name"]
    named = {} if spec.resource_names else {"resource_name": spec.resource_name}
    listed = objects(_connect(context, spec).read(_build_route(spec), **wanted, **named) or {}, "data")
    del wanted["principal"]
    return {
        text(acl, "resource_name")
        for acl in listed
        if all(text(acl, name) == value for name, value in wanted.items())
    }


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
        "host": spec.host,
        "operation": spec.operation,
        "permission": spec.permission,
    }


def _build_id(spec: AclProps) -> str:
    """Return the id. It omits a list of names, because the list may change."""
    return "/".join(_build_entry(spec, "" if spec.resource_names else spec.resource_name).values())


def _connect(context: Ctx, spec: AclProps) -> RestClient:
    return context.vendor.kafka(
        spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials)
    )


def _build_route(spec: AclProps) -> str:
    return path("kafka", "v3", "clusters", spec.cluster_id, "acls")
