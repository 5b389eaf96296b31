"""Environments (org/v2/environments), with their Stream Governance package."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access, authorization
from simulators.confluent.authorization import allowed
from simulators.confluent.errors import conflict, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.kinds import clusters, provider_integrations
from simulators.confluent.model import Environment
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("org/v2", "Environment", "/org/v2/environments")
_PACKAGES: Final = ("ESSENTIALS", "ADVANCED")


def make(org: Organization, name: str, package: str) -> Environment:
    """Names needn't be unique: they aren't at the vendor."""
    new, now = org.new_id("env"), org.clock.now()
    org.environments[new] = Environment(new, f"{org.crn}/environment={new}", now, now, name, package)
    return org.environments[new]


def document(org: Organization, environment: Environment) -> dict[str, Any]:
    package = {"stream_governance_config": {"package": environment.package}} if environment.package else {}
    return KIND.header(org, environment) | {"display_name": environment.name} | package


def create(call: Call) -> Answer:
    org, body = call.org, Fields(call.body)
    if len(org.environments) >= org.quotas.environments:
        raise over_quota("environments_per_org", org.quotas.environments)
    authorization.require(call, "admin", org.crn)
    return Answer(201, document(org, make(org, body.text("display_name", required=True), _package(body, ""))))


def _package(body: Fields, default: str) -> str:
    name = "stream_governance_config"
    return body.inside(name).choice("package", _PACKAGES) if name in body else default


def listing(call: Call) -> Answer:
    org = call.org
    seen = [each for each in org.environments.values() if allowed(org, call.principal, "admin", each.crn)]
    return KIND.page(call, seen, document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, access.environment(call, call.parameters["id"])))


def update(call: Call) -> Answer:
    environment, body = access.environment(call, call.parameters["id"]), Fields(call.body)
    package = _package(body, environment.package)
    if (environment.package, package) == ("ADVANCED", "ESSENTIALS"):
        raise conflict("A Stream Governance package can't be downgraded")
    environment.name, environment.package = body.text("display_name", environment.name), package
    environment.updated = call.org.clock.now()
    return Answer(200, document(call.org, environment))


def delete(call: Call) -> Answer:
    """Recursive: Kafka clusters and what is in them go too."""
    org, environment = call.org, access.environment(call, call.parameters["id"])
    if len(org.environments) == 1:
        raise conflict("An organization needs at least one environment")
    for cluster in clusters.within(org, environment.id):
        clusters.erase(org, cluster)
    for integration in [each for each in org.provider_integrations.values() if each.environment == environment.id]:
        provider_integrations.erase(org, integration)
    for objects in (org.compute_pools, org.schema_registries):
        for each in [each for each in objects.values() if each.environment == environment.id]:
            del objects[each.id]
    for key in [key for key in org.statements if key[0] == environment.id]:
        del org.statements[key]
    del org.environments[environment.id]
    return Answer(204)


ROUTES: Final = (
    Route(CONTROL, "POST", "/org/v2/environments", create),
    Route(CONTROL, "GET", "/org/v2/environments", listing),
    Route(CONTROL, "GET", "/org/v2/environments/{id}", read),
    Route(CONTROL, "PATCH", "/org/v2/environments/{id}", update),
    Route(CONTROL, "DELETE", "/org/v2/environments/{id}", delete),
)
