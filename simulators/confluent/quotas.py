"""The applied quotas of an organization (service-quota/v1), with their usage. Those of environments, clusters
and networks are not simulated.
"""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.authorization import require
from simulators.confluent.errors import bad_request
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.organization import Organization

_VERSION: Final = "service-quota/v1"


def list_applied_quotas(call: Call) -> Answer:
    if call.query.get("scope") != "organization":
        raise bad_request("Only the scope organization is simulated.", parameter="scope")
    require(call, "admin", call.org.crn)
    data = [
        {
            "api_version": _VERSION,
            "kind": "AppliedQuota",
            "id": quota_id,
            "scope": "ORGANIZATION",
            "display_name": display_name,
            "applied_limit": limit,
            "usage": usage,
            "organization": {"id": call.org.organization_id},
        }
        for quota_id, display_name, limit, usage in _count(call.org)
    ]
    metadata = {"first": "", "next": "", "total_size": len(data)}
    body: dict[str, Any] = {"api_version": _VERSION, "kind": "AppliedQuotaList"}
    return Answer(200, body | {"metadata": metadata, "data": data})


def _count(org: Organization) -> list[tuple[str, str, int, int]]:
    """Return the id, the name, the limit and the usage of each quota."""
    quotas = org.quotas
    return [
        (
            "iam.max_environments.per_org",
            "Max Environments per Organization",
            quotas.environments,
            len(org.environments),
        ),
        (
            "iam.max_service_accounts.per_org",
            "Max Service Accounts per Organization",
            quotas.service_accounts,
            len(org.service_accounts),
        ),
    ]


ROUTES: Final = (Route(CONTROL, "GET", "/service-quota/v1/applied-quotas", list_applied_quotas),)
