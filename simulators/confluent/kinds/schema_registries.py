"""Schema Registry clusters (srcm/v3/clusters): there with an environment's first Kafka cluster, and only read."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access
from simulators.confluent.errors import not_found
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import Environment, Plane, SchemaRegistry
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.resources import Kind, reference

KIND: Final = Kind("srcm/v3", "Cluster", "/srcm/v3/clusters")


def of_environment(org: Organization, environment: str) -> SchemaRegistry | None:
    return next((each for each in org.schema_registries.values() if each.environment == environment), None)


def appear(org: Organization, environment: Environment, region: str) -> None:
    """Looks before it makes: an environment has one, and none without Stream Governance."""
    if of_environment(org, environment.id) or not environment.package:
        return
    new, now = org.new_id("lsrc"), org.clock.now()
    registry = SchemaRegistry(new, f"{environment.crn}/schema-registry={new}", now, now, environment.id, region)
    org.schema_registries[new] = registry

    def provisioned() -> None:
        registry.phase = "PROVISIONED"

    org.clock.after(org.delays.schema_registry, provisioned)


def document(org: Organization, registry: SchemaRegistry) -> dict[str, Any]:
    environment = org.environments[registry.environment]
    address = org.addresses[Plane.REGISTRY]
    spec = {
        "display_name": "Stream Governance Package",
        "package": environment.package,
        "http_endpoint": address,
        "catalog_http_endpoint": address,
        "cloud": CLOUD,
        "region": registry.region,
        "environment": reference(org, environment, "/org/v2/environments"),
    }
    header = KIND.header(org, registry, f"?environment={environment.id}")
    return header | {"spec": spec, "status": {"phase": registry.phase}}


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    return KIND.page(call, [each for each in call.org.schema_registries.values() if each.environment == environment.id], document)


def read(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    found = call.org.schema_registries.get(call.parameters["id"])
    if found is None or found.environment != environment.id:
        raise not_found("Schema Registry cluster", call.parameters["id"])
    return Answer(200, document(call.org, found))


ROUTES: Final = (
    Route(CONTROL, "GET", "/srcm/v3/clusters", listing),
    Route(CONTROL, "GET", "/srcm/v3/clusters/{id}", read),
)
