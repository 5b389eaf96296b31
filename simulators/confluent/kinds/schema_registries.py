"""Schema Registry clusters (srcm/v3/clusters): there with an environment's first Kafka cluster, and only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from simulators.confluent import access
from simulators.confluent.calls import CONTROL, Answer, Call, Plane, Route
from simulators.confluent.refusals import not_found
from simulators.confluent.resources import Kind, Resource, reference
from simulators.confluent.schemas import Schemas
from simulators.confluent.world import CLOUD, World

if TYPE_CHECKING:
    from simulators.confluent.kinds.environments import Environment

KIND: Final = Kind("srcm/v3", "Cluster", "/srcm/v3/clusters")


@attrs.define
class SchemaRegistry(Resource):
    environment: str
    region: str
    phase: str = "PROVISIONING"
    schemas: Schemas = attrs.Factory(Schemas)

    def subject(self, name: str) -> str:
        return f"{self.crn}/subject={name}"


def of_environment(world: World, environment: str) -> SchemaRegistry | None:
    return next((each for each in world.schema_registries.values() if each.environment == environment), None)


def appear(world: World, environment: Environment, region: str) -> None:
    """Looks before it makes: an environment has one, and none without Stream Governance."""
    if of_environment(world, environment.id) or not environment.package:
        return
    new, now = world.new_id("lsrc"), world.clock.now()
    registry = SchemaRegistry(new, f"{environment.crn}/schema-registry={new}", now, now, environment.id, region)
    world.schema_registries[new] = registry

    def provisioned() -> None:
        registry.phase = "PROVISIONED"

    world.clock.after(world.delays.schema_registry, provisioned)


def document(world: World, registry: SchemaRegistry) -> dict[str, Any]:
    environment = world.environments[registry.environment]
    address = world.addresses[Plane.REGISTRY]
    spec = {
        "display_name": "Stream Governance Package",
        "package": environment.package,
        "http_endpoint": address,
        "catalog_http_endpoint": address,
        "cloud": CLOUD,
        "region": registry.region,
        "environment": reference(world, environment, "/org/v2/environments"),
    }
    header = KIND.header(world, registry, f"?environment={environment.id}")
    return header | {"spec": spec, "status": {"phase": registry.phase}}


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    return KIND.page(
        call, [each for each in call.world.schema_registries.values() if each.environment == environment.id], document
    )


def read(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    found = call.world.schema_registries.get(call.parameters["id"])
    if found is None or found.environment != environment.id:
        raise not_found("Schema Registry cluster", call.parameters["id"])
    return Answer(200, document(call.world, found))


ROUTES: Final = (
    Route(CONTROL, "GET", "/srcm/v3/clusters", listing),
    Route(CONTROL, "GET", "/srcm/v3/clusters/{id}", read),
)
