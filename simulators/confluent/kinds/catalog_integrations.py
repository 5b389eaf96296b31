"""Catalog integrations (tableflow/v1/catalog-integrations): a cluster's tables in AWS Glue too."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simulators.confluent import access, glue_sync
from simulators.confluent.calls import TABLEFLOW, Answer, Call, Route
from simulators.confluent.fields import Fields
from simulators.confluent.kinds import provider_integrations
from simulators.confluent.kinds.clusters import Cluster
from simulators.confluent.kinds.tableflow_topics import require_integration
from simulators.confluent.refusals import Refusal, conflict, invalid, not_found
from simulators.confluent.resources import Kind, Resource, reference
from simulators.confluent.tableflow_lake import LakeRefused
from simulators.confluent.world import World

KIND: Final = Kind("tableflow/v1", "CatalogIntegration", "/tableflow/v1/catalog-integrations")
_PATH: Final = "/tableflow/v1/catalog-integrations"


@attrs.define
class CatalogIntegration(Resource):
    """`database` is the custom one, empty for the cluster's id. `last_sync` is 0 before the first."""

    environment: str
    cluster: str
    name: str
    integration: str
    database: str
    phase: str = "PENDING"
    message: str = ""
    suspended: bool = False
    deleting: bool = False
    last_sync: float = 0


def document(world: World, integration: CatalogIntegration) -> dict[str, Any]:
    environment, cluster = world.environments[integration.environment], world.clusters[integration.cluster]
    custom = {"custom_database": integration.database} if integration.database else {}
    spec = {
        "display_name": integration.name,
        "suspended": integration.suspended,
        "config": {"kind": "AwsGlue", "provider_integration_id": integration.integration} | custom,
        "environment": reference(world, environment, "/org/v2/environments"),
        "kafka_cluster": reference(world, cluster, "/cmk/v2/clusters", environment.id),
    }
    status = {"phase": integration.phase} | ({"error_message": integration.message} if integration.message else {})
    if integration.last_sync:
        status["last_sync_at"] = world.clock.text(integration.last_sync)
    header = KIND.header(world, integration, f"?environment={environment.id}&spec.kafka_cluster={cluster.id}")
    return header | {"spec": spec, "status": status}


def create(call: Call) -> Answer:
    world, spec = call.world, Fields(call.body).inside("spec")
    cluster = access.cluster(call, spec.reference("kafka_cluster"), spec.reference("environment"))
    config = spec.inside("config")
    if (kind := config.choice("kind", ("AwsGlue", "Snowflake", "Unity"))) != "AwsGlue":
        raise invalid("/spec/config/kind", f"{kind} is not simulated")
    name = spec.text("display_name", required=True)
    provider = config.text("provider_integration_id", required=True)
    require_integration(call, provider, cluster.environment, "/spec/config/provider_integration_id")
    if any(each.cluster == cluster.id for each in world.catalog_integrations.values()):
        raise conflict("The cluster has a catalog integration of this kind")
    _require_trust(world, provider, cluster.region)
    new, now = world.new_id("tci"), world.clock.now()
    crn = f"{cluster.scope}/catalog-integration={new}"
    database = config.text("custom_database", pattern=r"[a-z0-9_-]{0,255}")
    integration = CatalogIntegration(new, crn, now, now, cluster.environment, cluster.id, name, provider, database)
    world.catalog_integrations[new] = integration
    world.clock.after(world.delays.catalog_integration, lambda: glue_sync.begin(world, integration))
    return Answer(202, document(world, integration))


def _require_trust(world: World, provider: str, region: str) -> None:
    found = world.provider_integrations[provider]
    if world.lake is None:
        return
    try:
        world.lake.assume(found.vendor_role_arn, found.role_arn, found.external_id, region)
    except LakeRefused as refused:
        raise Refusal(400, str(refused), code="bad_request", pointer="/spec/config/provider_integration_id") from None


def listing(call: Call) -> Answer:
    cluster = access.cluster_of_query(call)
    return KIND.page(call, [each for each in call.world.catalog_integrations.values() if each.cluster == cluster.id], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call, access.cluster_of_query(call))))


def update(call: Call) -> Answer:
    world, spec = call.world, Fields(call.body).inside("spec")
    cluster = access.cluster(call, spec.reference("kafka_cluster"), spec.reference("environment"))
    integration = _found(call, cluster)
    config = spec.inside("config", required=False)
    if "config" in spec:
        config.choice("kind", ("AwsGlue",))
        config.keep("provider_integration_id", integration.integration)
    integration.name = spec.text("display_name", integration.name)
    integration.database = config.text("custom_database", integration.database, pattern=r"[a-z0-9_-]{0,255}")
    if "suspended" in spec and not spec.flag("suspended") and integration.phase == "FAILED":
        integration.phase, integration.message, integration.suspended = "PENDING", "", False
        world.clock.after(world.delays.catalog_integration, lambda: glue_sync.begin(world, integration))
    integration.updated = world.clock.now()
    return Answer(200, document(world, integration))


def delete(call: Call) -> Answer:
    """Database and tables stay in Glue."""
    world = call.world
    integration = _found(call, access.cluster_of_query(call))
    if not integration.deleting:
        integration.deleting = True
        world.clock.after(world.delays.tableflow_topic_deletion, lambda: _gone(world, integration))
    return Answer(204)


def _gone(world: World, integration: CatalogIntegration) -> None:
    if world.catalog_integrations.pop(integration.id, None):
        provider_integrations.linger(world, integration.integration, integration.crn)


def _found(call: Call, cluster: Cluster) -> CatalogIntegration:
    found = call.world.catalog_integrations.get(call.parameters["id"])
    if found is None or found.cluster != cluster.id:
        raise not_found("Catalog integration", call.parameters["id"])
    return found


ROUTES: Final = (
    Route(TABLEFLOW, "POST", _PATH, create, {404: 403}),
    Route(TABLEFLOW, "GET", _PATH, listing),
    Route(TABLEFLOW, "GET", _PATH + "/{id}", read),
    Route(TABLEFLOW, "PATCH", _PATH + "/{id}", update),
    Route(TABLEFLOW, "DELETE", _PATH + "/{id}", delete),
)
