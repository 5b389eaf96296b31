"""Catalog integrations (tableflow/v1/catalog-integrations), which sync a cluster's tables to AWS Glue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulators.confluent.errors import bad_request, conflict
from simulators.confluent.fields import Fields
from simulators.confluent.http import TABLEFLOW, Call
from simulators.confluent.model import CatalogIntegration, Resource
from simulators.confluent.organization import Organization
from simulators.confluent.provider_integrations import end_usage
from simulators.confluent.resources import CLUSTER, Field, Kind
from simulators.confluent.tableflow import glue_sync
from simulators.confluent.tableflow.topics import require_integration
from simulators.confluent.tableflow_lake import LakeRefused

_PROVIDER: str = "/spec/config/provider_integration_id"


class CatalogIntegrations(Kind[CatalogIntegration]):
    api = TABLEFLOW
    api_version = "tableflow/v1"
    name = "CatalogIntegration"
    path = "/tableflow/v1/catalog-integrations"
    label = "Catalog integration"
    store = "catalog_integrations"
    record = CatalogIntegration
    id_prefix = "tci"
    parent = CLUSTER
    created_status = 202
    instead: ClassVar[Mapping[str, Mapping[int, int]]] = {"create": {404: 403}}
    fields = (
        Field("config.kind", required=True, choices=("AwsGlue",), not_simulated=("Snowflake", "Unity")),
        Field("display_name", "name", required=True),
        Field("config.provider_integration_id", "integration", required=True, immutable=True),
        Field("config.custom_database", "database", pattern=r"[a-z0-9_-]{0,255}", omit_empty=True),
    )

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.clusters[values['cluster']].scope}/catalog-integration={new_id}"

    def check(self, call: Call, values: dict[str, Any], current: CatalogIntegration | None) -> None:
        if current:
            return
        org = call.org
        require_integration(call, values["integration"], values["environment"], _PROVIDER)
        if any(integration.cluster == values["cluster"] for integration in org.catalog_integrations.values()):
            raise conflict("The cluster has a catalog integration of this kind")
        provider = org.provider_integrations[values["integration"]]
        region = org.clusters[values["cluster"]].region
        if org.lake:
            try:
                org.lake.assume(provider.vendor_role_arn, provider.role_arn, provider.external_id, region)
            except LakeRefused as error:
                raise bad_request(str(error), _PROVIDER) from None

    def start_lifecycle(self, org: Organization, record: CatalogIntegration) -> None:
        org.clock.call_later(org.delays.catalog_integration, lambda: glue_sync.begin(org, record))

    def act_on_update(self, org: Organization, record: CatalogIntegration, body: Fields) -> None:
        """Restart a failed integration when it is resumed."""
        if "suspended" in body and not body.read_flag("suspended") and record.phase == "FAILED":
            record.phase = "PENDING"
            record.message = ""
            record.suspended = False
            self.start_lifecycle(org, record)

    def read_only(self, org: Organization, record: CatalogIntegration) -> dict[str, Any]:
        return {"suspended": record.suspended}

    def describe_status(self, org: Organization, record: CatalogIntegration) -> dict[str, Any]:
        status = {"phase": record.phase}
        if record.message:
            status["error_message"] = record.message
        if record.last_sync:
            status["last_sync_at"] = org.clock.format_time(record.last_sync)
        return status

    def erase(self, org: Organization, record: CatalogIntegration) -> None:
        """Delete the integration. Its database and tables remain in Glue."""
        if not record.deleting:
            record.deleting = True
            org.clock.call_later(
                org.delays.tableflow_topic_deletion, lambda: self._finish_deletion(org, record)
            )

    def _finish_deletion(self, org: Organization, record: CatalogIntegration) -> None:
        if org.catalog_integrations.pop(record.id, None):
            end_usage(org, record.integration, record.crn)
