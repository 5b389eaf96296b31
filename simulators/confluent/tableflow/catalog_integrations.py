"""Catalog integrations (tableflow/v1/catalog-integrations): a cluster's tables in AWS Glue too."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access
from simulators.confluent.errors import bad_request, conflict, invalid, not_found
from simulators.confluent.fields import Fields
from simulators.confluent.http import TABLEFLOW, Answer, Call, Route
from simulators.confluent.kinds import provider_integrations
from simulators.confluent.model import CatalogIntegration, Cluster
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind, reference
from simulators.confluent.tableflow import glue_sync
from simulators.confluent.tableflow.topics import require_integration
from simulators.confluent.tableflow_lake import LakeRefused

KIND: Final = Kind("tableflow/v1", "CatalogIntegration", "/tableflow/v1/catalog-integrations")
_PATH: Final = "/tableflow/v1/catalog-integrations"


def document(org: Organization, integration: CatalogIntegration) -> dict[str, Any]:
    environment, cluster = org.environments[integration.environment], org.clusters[integration.cluster]
    custom = {"custom_database": integration.database} if integration.database else {}
    spec = {
        "display_name": integration.name,
        "suspended": integration.suspended,
        "config": {"kind": "AwsGlue", "provider_integration_id": integration.integration} | custom,
        "environment": reference(org, environment, "/org/v2/environments"),
        "kafka_cluster": reference(org, cluster, "/cmk/v2/clusters", environment.id),
    }
    status = {"phase": integration.phase} | ({"error_message": integration.message} if integration.message else {})
    if integration.last_sync:
        status["last_sync_at"] = org.clock.text(integration.last_sync)
    header = KIND.header(org, integration, f"?environment={environment.id}&spec.kafka_cluster={cluster.id}")
    return header | {"spec": spec, "status": status}


def create(call: Call) -> Answer:
    org, spec = call.org, Fields(call.body).inside("spec")
    cluster = access.cluster_of_body(call, spec)
    config = spec.inside("config")
    if (kind := config.choice("kind", ("AwsGlue", "Snowflake", "Unity"))) != "AwsGlue":
        raise invalid("/spec/config/kind", f"{kind} is not simulated")
    name = spec.text("display_name", required=True)
    provider = config.text("provider_integration_id", required=True)
    require_integration(call, provider, cluster.environment, "/spec/config/provider_integration_id")
    if any(each.cluster == cluster.id for each in org.catalog_integrations.values()):
        raise conflict("The cluster has a catalog integration of this kind")
    _require_trust(org, provider, cluster.region)
    new, now = org.new_id("tci"), org.clock.now()
    crn = f"{cluster.scope}/catalog-integration={new}"
    database = config.text("custom_database", pattern=r"[a-z0-9_-]{0,255}")
    integration = CatalogIntegration(new, crn, now, now, cluster.environment, cluster.id, name, provider, database)
    org.catalog_integrations[new] = integration
    org.clock.after(org.delays.catalog_integration, lambda: glue_sync.begin(org, integration))
    return Answer(202, document(org, integration))


def _require_trust(org: Organization, provider: str, region: str) -> None:
    found = org.provider_integrations[provider]
    if org.lake is None:
        return
    try:
        org.lake.assume(found.vendor_role_arn, found.role_arn, found.external_id, region)
    except LakeRefused as error:
        raise bad_request(str(error), "/spec/config/provider_integration_id") from None


def listing(call: Call) -> Answer:
    cluster = access.cluster_of_query(call)
    return KIND.page(call, [each for each in call.org.catalog_integrations.values() if each.cluster == cluster.id], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call, access.cluster_of_query(call))))


def update(call: Call) -> Answer:
    org, spec = call.org, Fields(call.body).inside("spec")
    cluster = access.cluster_of_body(call, spec)
    integration = _found(call, cluster)
    config = spec.inside("config", required=False)
    if "config" in spec:
        config.choice("kind", ("AwsGlue",))
        config.keep("provider_integration_id", integration.integration)
    integration.name = spec.text("display_name", integration.name)
    integration.database = config.text("custom_database", integration.database, pattern=r"[a-z0-9_-]{0,255}")
    if "suspended" in spec and not spec.flag("suspended") and integration.phase == "FAILED":
        integration.phase, integration.message, integration.suspended = "PENDING", "", False
        org.clock.after(org.delays.catalog_integration, lambda: glue_sync.begin(org, integration))
    integration.updated = org.clock.now()
    return Answer(200, document(org, integration))


def delete(call: Call) -> Answer:
    """Database and tables stay in Glue."""
    org = call.org
    integration = _found(call, access.cluster_of_query(call))
    if not integration.deleting:
        integration.deleting = True
        org.clock.after(org.delays.tableflow_topic_deletion, lambda: _gone(org, integration))
    return Answer(204)


def _gone(org: Organization, integration: CatalogIntegration) -> None:
    if org.catalog_integrations.pop(integration.id, None):
        provider_integrations.end_usage(org, integration.integration, integration.crn)


def _found(call: Call, cluster: Cluster) -> CatalogIntegration:
    found = call.org.catalog_integrations.get(call.parameters["id"])
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
