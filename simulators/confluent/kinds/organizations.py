"""The organization (org/v2/organizations): one, and only read."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.errors import not_found
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import Resource
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("org/v2", "Organization", "/org/v2/organizations")


def document(org: Organization, organization: Resource) -> dict[str, Any]:
    return KIND.header(org, organization) | {"display_name": "Simulated organization", "jit_enabled": False}


def listing(call: Call) -> Answer:
    return KIND.page(call, [_only(call.org)], document)


def read(call: Call) -> Answer:
    if call.parameters["id"] != call.org.organization_id:
        raise not_found("Organization", call.parameters["id"])
    return Answer(200, document(call.org, _only(call.org)))


def _only(org: Organization) -> Resource:
    return Resource(org.organization_id, org.crn, 0, 0)


ROUTES: Final = (
    Route(CONTROL, "GET", "/org/v2/organizations", listing),
    Route(CONTROL, "GET", "/org/v2/organizations/{id}", read),
)
