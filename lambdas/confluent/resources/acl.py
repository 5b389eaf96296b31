"""ACLs of a Kafka cluster: one, or one for each name in a list, which may change.

Confluent gives ACLs no id.
"""

from __future__ import annotations

from typing import Final

from lambdas.confluent.lookup import Ctx, existing, in_container
from lambdas.confluent.properties import AclProps
from lambdas.confluent.rest_client import RestClient, objects, path, text
from lambdas.shared.resource import Outputs

PROPERTIES: Final = AclProps
TIMEOUT_SECONDS: Final = 1800.0


def create(context: Ctx, spec: AclProps) -> str:
    """Create the ACLs. Creating one twice has no further effect."""
    _add(context, spec, _names(spec))
    return _id(spec)


def is_ready(context: Ctx, spec: AclProps, object_id: str) -> Outputs | None:
    missing = _missing(context, spec)
    if len(missing) < len(_names(spec)):
        _add(context, spec, missing)
    else:
        existing(None, f"ACL {object_id}")
    return None if missing else {"id": object_id}


def update(context: Ctx, spec: AclProps, object_id: str) -> None:
    """Add the missing ACLs, and remove those of names that are no longer wanted."""
    before = _names(context.previous) if isinstance(context.previous, AclProps) else []
    listed = _listed(context, spec)
    existing({name: name for name in {*_names(spec), *before} & listed} or None, f"ACL {object_id}")
    _add(context, spec, [name for name in _names(spec) if name not in listed])
    _remove(context, spec, [name for name in before if name not in _names(spec)])


def delete(context: Ctx, spec: AclProps, object_id: str) -> None:
    _remove(context, spec, _names(spec))


def find_existing(context: Ctx, spec: AclProps, known: str | None) -> list[str]:
    return in_container(
        context,
        lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None,
        lambda: [_id(spec)] if _listed(context, spec) & {*_names(spec)} else [],
    )


def _names(spec: AclProps) -> list[str]:
    return list(dict.fromkeys(spec.resource_names)) or [spec.resource_name]


def _missing(context: Ctx, spec: AclProps) -> list[str]:
    listed = _listed(context, spec)
    return [name for name in _names(spec) if name not in listed]


def _listed(context: Ctx, spec: AclProps) -> set[str]:
    """Return the names that have such an ACL.

    Confluent filters by the principal, but its answer has a number for a service account instead of its id.
    """
    wanted = _entry(spec, "")
    del wanted["resource_name"]
    named = {} if spec.resource_names else {"resource_name": spec.resource_name}
    listed = objects(_plane(context, spec).read(_route(spec), **wanted, **named) or {}, "data")
    del wanted["principal"]
    return {
        text(acl, "resource_name")
        for acl in listed
        if all(text(acl, name) == value for name, value in wanted.items())
    }


def _add(context: Ctx, spec: AclProps, names: list[str]) -> None:
    if len(names) == 1:
        _plane(context, spec).post(_route(spec), _entry(spec, names[0]), repeatable=True)
    elif names:
        body = {"data": [_entry(spec, name) for name in names]}
        _plane(context, spec).post(f"{_route(spec)}:batch", body, repeatable=True)


def _remove(context: Ctx, spec: AclProps, names: list[str]) -> None:
    """Remove ACLs. The filter has every field; otherwise it would match other ACLs too."""
    for name in names:
        _plane(context, spec).delete(_route(spec), **_entry(spec, name))


def _entry(spec: AclProps, name: str) -> dict[str, str]:
    return {
        "resource_type": spec.resource_type,
        "resource_name": name,
        "pattern_type": spec.pattern_type,
        "principal": f"User:{spec.service_account_id}",
        "host": spec.host,
        "operation": spec.operation,
        "permission": spec.permission,
    }


def _id(spec: AclProps) -> str:
    """Return the id. It omits a list of names, because the list may change."""
    return "/".join(_entry(spec, "" if spec.resource_names else spec.resource_name).values())


def _plane(context: Ctx, spec: AclProps) -> RestClient:
    return context.vendor.kafka(
        spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials)
    )


def _route(spec: AclProps) -> str:
    return path("kafka", "v3", "clusters", spec.cluster_id, "acls")
