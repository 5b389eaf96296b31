"""Role-based access control: which actions a role allows, and at which scopes.

A role binding takes effect after a delay.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from simulators.confluent.errors import forbidden
from simulators.confluent.http import Call
from simulators.confluent.organization import Organization

_ALL: Final = frozenset(
    {"describe", "read", "write", "create", "alter", "delete", "grant", "assign", "flink", "admin"}
)
_ORGANIZATION: Final = r"/organization=[^/]+"
_ENVIRONMENT: Final = _ORGANIZATION + r"/environment=[^/]+"
_CLUSTER: Final = _ENVIRONMENT + r"/cloud-cluster=[^/]+"
_INSIDE_CLUSTER: Final = _CLUSTER + r"/(kafka=[^/]+/(topic|group|transactional-id)|connector)=.+"
_SUBJECT: Final = _ENVIRONMENT + r"/schema-registry=[^/]+/(subject|kek)=.+"
_PROVIDER_INTEGRATION: Final = _ENVIRONMENT + r"/provider-integration=[^/]+"
_SERVICE_ACCOUNT: Final = _ORGANIZATION + r"/service-account=[^/]+"
_RESOURCE: Final = rf"({_INSIDE_CLUSTER}|{_SUBJECT}|{_PROVIDER_INTEGRATION}|{_SERVICE_ACCOUNT})"
_FLINK: Final = rf"({_ORGANIZATION}|{_ENVIRONMENT}|{_ENVIRONMENT}/flink-region=[^/]+(/compute-pool=.+)?)"

#: By role: the actions that it allows, and a regular expression of the scopes at which it may be bound.
ROLES: Final[dict[str, tuple[frozenset[str], str]]] = {
    "OrganizationAdmin": (_ALL, _ORGANIZATION),
    "EnvironmentAdmin": (_ALL, _ENVIRONMENT),
    "CloudClusterAdmin": (_ALL - {"assign", "flink"}, _CLUSTER),
    "MetricsViewer": (frozenset({"metrics"}), rf"({_ORGANIZATION}|{_ENVIRONMENT}|{_CLUSTER})"),
    "Operator": (frozenset({"describe"}), rf"({_ORGANIZATION}|{_ENVIRONMENT}|{_CLUSTER})"),
    "ResourceOwner": (_ALL - {"flink", "admin"}, _RESOURCE),
    "DeveloperRead": (frozenset({"describe", "read"}), rf"({_RESOURCE}|{_CLUSTER})"),
    "DeveloperWrite": (frozenset({"describe", "write"}), rf"({_RESOURCE}|{_CLUSTER})"),
    "DeveloperManage": (frozenset({"describe", "create", "alter", "delete"}), rf"({_RESOURCE}|{_CLUSTER})"),
    "Assigner": (frozenset({"assign"}), _RESOURCE),
    "FlinkDeveloper": (frozenset({"flink"}), _FLINK),
    "FlinkAdmin": (frozenset({"flink", "flink-admin"}), _FLINK),
    "DataSteward": (frozenset({"describe", "read", "write", "create", "alter", "delete"}), _ENVIRONMENT),
    "DataDiscovery": (frozenset({"describe", "read"}), _ENVIRONMENT),
}


def may_bind(role: str, pattern: str) -> bool:
    """Return whether the role exists and can be bound at that scope."""
    return role in ROLES and re.fullmatch(r"crn://confluent\.cloud" + ROLES[role][1], pattern) is not None


def is_allowed(org: Organization, principal: str, action: str, resource: str) -> bool:
    """Return whether a role allows the action.

    `resource` is a CRN. The organization's owner may do everything.
    """
    if principal == org.owner:
        return True
    now = org.clock.now()
    return any(
        binding.principal == f"User:{principal}"
        and binding.effective <= now
        and action in ROLES[binding.role][0]
        and is_covered(binding.pattern, resource)
        for binding in org.role_bindings.values()
    )


def is_covered(pattern: str, name: str) -> bool:
    """Return whether `pattern` is the CRN of the resource or of something that contains it.

    A final `*` matches any suffix.
    """
    pattern = unquote(pattern)
    name = unquote(name)
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern or name.startswith(f"{pattern}/")


def require(call: Call, action: str, resource: str) -> None:
    if not is_allowed(call.org, call.principal, action, resource):
        raise forbidden()
