"""Kafka clusters (cmk/v2/clusters): Basic and Standard on AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from simulators.confluent import access, crn, regions
from simulators.confluent.calls import CONTROL, Answer, Call, Plane, Route
from simulators.confluent.fields import Fields
from simulators.confluent.kinds import schema_registries
from simulators.confluent.refusals import Refusal, conflict, forbidden, immutable, invalid, over_quota
from simulators.confluent.resources import Kind, Resource, reference
from simulators.confluent.world import CLOUD, World

if TYPE_CHECKING:
    from simulators.confluent.kafka_log import KafkaTopic

KIND: Final = Kind("cmk/v2", "Cluster", "/cmk/v2/clusters")
#: What the vendor may answer in place of what was asked for.
_AVAILABILITY: Final = {"SINGLE_ZONE": "LOW", "MULTI_ZONE": "HIGH", "LOW": "LOW", "HIGH": "HIGH"}
_TYPES: Final = ("Basic", "Standard")


@attrs.define
class Cluster(Resource):
    environment: str
    region: str
    name: str
    availability: str
    type: str
    max_ecku: int | None
    protected: bool
    phase: str = "PROVISIONING"
    deleting: bool = False
    topics: dict[str, KafkaTopic] = attrs.Factory(dict)
    acls: list[dict[str, str]] = attrs.Factory(list)

    @property
    def scope(self) -> str:
        """The CRN that roles on the cluster are bound at."""
        return crn.cluster_scope(self.crn)

    def inside(self, kind: str, name: str) -> str:
        return f"{self.crn}/{kind}={name}"


def within(world: World, environment: str) -> list[Cluster]:
    return [each for each in world.clusters.values() if each.environment == environment]


def document(world: World, cluster: Cluster) -> dict[str, Any]:
    environment = world.environments[cluster.environment]
    config = {"kind": cluster.type} | ({"max_ecku": cluster.max_ecku} if cluster.max_ecku else {})
    spec = {
        "display_name": cluster.name,
        "availability": cluster.availability,
        "cloud": CLOUD,
        "region": cluster.region,
        "config": config,
        "deletion_protection": cluster.protected,
        "environment": reference(world, environment, "/org/v2/environments"),
    }
    endpoints = _endpoints(world) if cluster.phase == "PROVISIONED" else {}
    header = KIND.header(world, cluster, f"?environment={environment.id}")
    return header | {"spec": spec | endpoints, "status": {"phase": cluster.phase}}


def _endpoints(world: World) -> dict[str, Any]:
    """Kafka's own protocol isn't simulated: nothing listens at the bootstrap address."""
    address = world.addresses[Plane.KAFKA]
    bootstrap = "SASL_SSL://127.0.0.1:9092"
    public = {"kafka_bootstrap_endpoint": bootstrap, "http_endpoint": address, "connection_type": "PUBLIC"}
    return {"kafka_bootstrap_endpoint": bootstrap, "http_endpoint": address, "endpoints": {"PUBLIC": public}}


def create(call: Call) -> Answer:
    world, spec = call.world, Fields(call.body).inside("spec")
    environment = access.environment_of_body(call, spec)
    if len(within(world, environment.id)) >= world.quotas.clusters_per_environment:
        raise over_quota("clusters_per_environment", world.quotas.clusters_per_environment)
    spec.choice("cloud", [CLOUD])
    region = spec.choice("region", regions.KAFKA)
    kind, max_ecku = _config(spec)
    name = spec.text("display_name", required=True, pattern=r".{1,64}")
    availability = _AVAILABILITY[spec.choice("availability", _AVAILABILITY)]
    new, now = world.new_id("lkc"), world.clock.now()
    own_crn = f"{environment.crn}/cloud-cluster={new}/kafka={new}"
    protected = spec.flag("deletion_protection")
    cluster = Cluster(new, own_crn, now, now, environment.id, region, name, availability, kind, max_ecku, protected)
    world.clusters[new] = cluster
    world.clock.after(world.delays.cluster, lambda: _provisioned(world, cluster))
    return Answer(202, document(world, cluster))


def _config(spec: Fields) -> tuple[str, int | None]:
    config = spec.inside("config")
    kind = config.choice("kind", (*_TYPES, "Dedicated", "Enterprise", "Freight"))
    if kind not in _TYPES:
        raise invalid("/spec/config/kind", f"{kind} clusters need private networking, which is not simulated")
    return kind, config.whole("max_ecku", 0) or None


def _provisioned(world: World, cluster: Cluster) -> None:
    """With its first cluster, an environment that asked for Stream Governance gets its Schema Registry."""
    if cluster.id in world.clusters and cluster.environment in world.environments:
        cluster.phase = "PROVISIONED"
        schema_registries.appear(world, world.environments[cluster.environment], cluster.region)


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    return KIND.page(call, [each for each in within(call.world, environment.id) if not each.deleting], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call, access.environment_of_query(call).id)))


def update(call: Call) -> Answer:
    spec = Fields(call.body).inside("spec")
    cluster = _found(call, access.environment_of_body(call, spec).id)
    if "availability" in spec and _AVAILABILITY.get(spec.text("availability")) != cluster.availability:
        raise immutable("/spec/availability")
    spec.keep("cloud", CLOUD)
    spec.keep("region", cluster.region)
    if "config" in spec:
        kind, max_ecku = _config(spec)
        if (cluster.type, kind) == ("Standard", "Basic"):
            raise conflict("A Standard cluster can't become Basic")
        cluster.type, cluster.max_ecku = kind, max_ecku or cluster.max_ecku
    cluster.name = spec.text("display_name", cluster.name)
    cluster.protected = spec.flag("deletion_protection", cluster.protected)
    cluster.updated = call.world.clock.now()
    return Answer(200, document(call.world, cluster))


def delete(call: Call) -> Answer:
    world = call.world
    cluster = _found(call, access.environment_of_query(call).id)
    if cluster.protected:
        raise conflict("Deletion protection is on")
    if any(each.cluster == cluster.id for each in world.connectors.values()):
        raise Refusal(403, "The cluster has associated connect clusters", code="forbidden_access")
    if any(key[0] == cluster.id for key in world.tableflow_topics):
        raise conflict("The cluster has topics with Tableflow enabled")
    cluster.deleting = True
    world.clock.after(world.delays.cluster_deletion, lambda: erase(world, cluster))
    return Answer(204)


def erase(world: World, cluster: Cluster) -> None:
    """The cluster with all that is in it. Its API keys stay, and open nothing."""
    world.clusters.pop(cluster.id, None)
    for connector in [each for each in world.connectors.values() if each.cluster == cluster.id]:
        del world.connectors[connector.id]
    for key in [key for key in world.tableflow_topics if key[0] == cluster.id]:
        del world.tableflow_topics[key]
    for integration in [each for each in world.catalog_integrations.values() if each.cluster == cluster.id]:
        del world.catalog_integrations[integration.id]


def _found(call: Call, environment: str) -> Cluster:
    """A cluster that is gone reads as forbidden: so it does at the vendor."""
    found = call.world.clusters.get(call.parameters["id"])
    if found is None or found.environment != environment or found.deleting:
        raise forbidden("Forbidden Access")
    return found


ROUTES: Final = (
    Route(CONTROL, "POST", "/cmk/v2/clusters", create),
    Route(CONTROL, "GET", "/cmk/v2/clusters", listing),
    Route(CONTROL, "GET", "/cmk/v2/clusters/{id}", read),
    Route(CONTROL, "PATCH", "/cmk/v2/clusters/{id}", update),
    Route(CONTROL, "DELETE", "/cmk/v2/clusters/{id}", delete),
)
