"""Environments (org/v2/environments), with their Stream Governance package."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simulators.confluent import access
from simulators.confluent.authorization import allowed
from simulators.confluent.calls import CONTROL, Answer, Call, Route
from simulators.confluent.fields import Fields
from simulators.confluent.kinds import clusters, provider_integrations
from simulators.confluent.refusals import conflict, over_quota
from simulators.confluent.resources import Kind, Resource
from simulators.confluent.world import World

KIND: Final = Kind("org/v2", "Environment", "/org/v2/environments")
_PACKAGES: Final = ("ESSENTIALS", "ADVANCED")


@attrs.define
class Environment(Resource):
    """`package` is empty where Stream Governance wasn't asked for."""

    name: str
    package: str


def make(world: World, name: str, package: str) -> Environment:
    """Names needn't be unique: they aren't at the vendor."""
    new, now = world.new_id("env"), world.clock.now()
    world.environments[new] = Environment(new, f"{world.crn}/environment={new}", now, now, name, package)
    return world.environments[new]


def document(world: World, environment: Environment) -> dict[str, Any]:
    package = {"stream_governance_config": {"package": environment.package}} if environment.package else {}
    return KIND.header(world, environment) | {"display_name": environment.name} | package


def create(call: Call) -> Answer:
    world, body = call.world, Fields(call.body)
    if len(world.environments) >= world.quotas.environments:
        raise over_quota("environments_per_org", world.quotas.environments)
    access.require(call, "admin", world.crn)
    return Answer(201, document(world, make(world, body.text("display_name", required=True), _package(body, ""))))


def _package(body: Fields, default: str) -> str:
    name = "stream_governance_config"
    return body.inside(name).choice("package", _PACKAGES) if name in body else default


def listing(call: Call) -> Answer:
    world = call.world
    seen = [each for each in world.environments.values() if allowed(world, call.principal, "admin", each.crn)]
    return KIND.page(call, seen, document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, access.environment(call, call.parameters["id"])))


def update(call: Call) -> Answer:
    environment, body = access.environment(call, call.parameters["id"]), Fields(call.body)
    package = _package(body, environment.package)
    if (environment.package, package) == ("ADVANCED", "ESSENTIALS"):
        raise conflict("A Stream Governance package can't be downgraded")
    environment.name, environment.package = body.text("display_name", environment.name), package
    environment.updated = call.world.clock.now()
    return Answer(200, document(call.world, environment))


def delete(call: Call) -> Answer:
    """Recursive: Kafka clusters and what is in them go too."""
    world, environment = call.world, access.environment(call, call.parameters["id"])
    if len(world.environments) == 1:
        raise conflict("An organization needs at least one environment")
    for cluster in clusters.within(world, environment.id):
        clusters.erase(world, cluster)
    for integration in [each for each in world.provider_integrations.values() if each.environment == environment.id]:
        provider_integrations.erase(world, integration)
    for objects in (world.compute_pools, world.schema_registries):
        for each in [each for each in objects.values() if each.environment == environment.id]:
            del objects[each.id]
    for key in [key for key in world.statements if key[0] == environment.id]:
        del world.statements[key]
    del world.environments[environment.id]
    return Answer(204)


ROUTES: Final = (
    Route(CONTROL, "POST", "/org/v2/environments", create),
    Route(CONTROL, "GET", "/org/v2/environments", listing),
    Route(CONTROL, "GET", "/org/v2/environments/{id}", read),
    Route(CONTROL, "PATCH", "/org/v2/environments/{id}", update),
    Route(CONTROL, "DELETE", "/org/v2/environments/{id}", delete),
)
