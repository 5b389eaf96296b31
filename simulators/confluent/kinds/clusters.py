"""Kafka clusters (cmk/v2/clusters): Basic and Standard on AWS."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access, regions
from simulators.confluent.errors import ApiError, conflict, forbidden, immutable, invalid, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.kinds import schema_registries
from simulators.confluent.model import Cluster, Plane
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.resources import Kind, reference

KIND: Final = Kind("cmk/v2", "Cluster", "/cmk/v2/clusters")
#: What the vendor may answer in place of what was asked for.
_AVAILABILITY: Final = {"SINGLE_ZONE": "LOW", "MULTI_ZONE": "HIGH", "LOW": "LOW", "HIGH": "HIGH"}
_TYPES: Final = ("Basic", "Standard")


def within(org: Organization, environment: str) -> list[Cluster]:
    return [each for each in org.clusters.values() if each.environment == environment]


def document(org: Organization, cluster: Cluster) -> dict[str, Any]:
    environment = org.environments[cluster.environment]
    config = {"kind": cluster.type} | ({"max_ecku": cluster.max_ecku} if cluster.max_ecku else {})
    spec = {
        "display_name": cluster.name,
        "availability": cluster.availability,
        "cloud": CLOUD,
        "region": cluster.region,
        "config": config,
        "deletion_protection": cluster.protected,
        "environment": reference(org, environment, "/org/v2/environments"),
    }
    endpoints = _endpoints(org) if cluster.phase == "PROVISIONED" else {}
    header = KIND.header(org, cluster, f"?environment={environment.id}")
    return header | {"spec": spec | endpoints, "status": {"phase": cluster.phase}}


def _endpoints(org: Organization) -> dict[str, Any]:
    """Kafka's own protocol isn't simulated: nothing listens at the bootstrap address."""
    address = org.addresses[Plane.KAFKA]
    bootstrap = "SASL_SSL://127.0.0.1:9092"
    public = {"kafka_bootstrap_endpoint": bootstrap, "http_endpoint": address, "connection_type": "PUBLIC"}
    return {"kafka_bootstrap_endpoint": bootstrap, "http_endpoint": address, "endpoints": {"PUBLIC": public}}


def create(call: Call) -> Answer:
    org, spec = call.org, Fields(call.body).inside("spec")
    environment = access.environment_of_body(call, spec)
    if len(within(org, environment.id)) >= org.quotas.clusters_per_environment:
        raise over_quota("clusters_per_environment", org.quotas.clusters_per_environment)
    spec.choice("cloud", [CLOUD])
    region = spec.choice("region", regions.KAFKA)
    kind, max_ecku = _config(spec)
    name = spec.text("display_name", required=True, pattern=r".{1,64}")
    availability = _AVAILABILITY[spec.choice("availability", _AVAILABILITY)]
    new, now = org.new_id("lkc"), org.clock.now()
    own_crn = f"{environment.crn}/cloud-cluster={new}/kafka={new}"
    protected = spec.flag("deletion_protection")
    cluster = Cluster(new, own_crn, now, now, environment.id, region, name, availability, kind, max_ecku, protected)
    org.clusters[new] = cluster
    org.clock.after(org.delays.cluster, lambda: _provisioned(org, cluster))
    return Answer(202, document(org, cluster))


def _config(spec: Fields) -> tuple[str, int]:
    config = spec.inside("config")
    kind = config.choice("kind", (*_TYPES, "Dedicated", "Enterprise", "Freight"))
    if kind not in _TYPES:
        raise invalid("/spec/config/kind", f"{kind} clusters need private networking, which is not simulated")
    return kind, config.whole("max_ecku", 0)


def _provisioned(org: Organization, cluster: Cluster) -> None:
    """With its first cluster, an environment that asked for Stream Governance gets its Schema Registry."""
    if cluster.id in org.clusters and cluster.environment in org.environments:
        cluster.phase = "PROVISIONED"
        schema_registries.appear(org, org.environments[cluster.environment], cluster.region)


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    return KIND.page(call, [each for each in within(call.org, environment.id) if not each.deleting], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call, access.environment_of_query(call).id)))


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
    cluster.updated = call.org.clock.now()
    return Answer(200, document(call.org, cluster))


def delete(call: Call) -> Answer:
    org = call.org
    cluster = _found(call, access.environment_of_query(call).id)
    if cluster.protected:
        raise conflict("Deletion protection is on")
    if any(each.cluster == cluster.id for each in org.connectors.values()):
        raise ApiError(403, "The cluster has associated connect clusters", code="forbidden_access")
    if any(key[0] == cluster.id for key in org.tableflow_topics):
        raise conflict("The cluster has topics with Tableflow enabled")
    cluster.deleting = True
    org.clock.after(org.delays.cluster_deletion, lambda: erase(org, cluster))
    return Answer(204)


def erase(org: Organization, cluster: Cluster) -> None:
    """The cluster with all that is in it. Its API keys stay, and open nothing."""
    org.clusters.pop(cluster.id, None)
    for connector in [each for each in org.connectors.values() if each.cluster == cluster.id]:
        del org.connectors[connector.id]
    for key in [key for key in org.tableflow_topics if key[0] == cluster.id]:
        del org.tableflow_topics[key]
    for integration in [each for each in org.catalog_integrations.values() if each.cluster == cluster.id]:
        del org.catalog_integrations[integration.id]


def _found(call: Call, environment: str) -> Cluster:
    """A cluster that is gone reads as forbidden: so it does at the vendor."""
    found = call.org.clusters.get(call.parameters["id"])
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
