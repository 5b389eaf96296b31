"""Keys for Tableflow and its Iceberg catalog."""

from __future__ import annotations

from typing import ClassVar

import attrs

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient
from lambdas.confluent.services.base import Connection, KeyService, Target
from lambdas.shared.redaction import ApiKey, Secret


class Tableflow(KeyService):
    NAME: ClassVar[str] = "tableflow"

    def is_service_of(self, resource_id: str) -> bool:
        return resource_id.lower() == "tableflow"

    def find_resource(self, vendor: Confluent, target: Target) -> dict[str, str]:
        return {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"}

    def complete_connection(self, vendor: Confluent, target: Target, connection: Connection) -> Connection:
        catalog_uri = vendor.catalog_url(target.region, target.environment_id)
        return attrs.evolve(connection, resource_id="Tableflow", catalog_uri=catalog_uri)

    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        return vendor.tableflow(key), "/tableflow/v1/regions"

    def build_key_fields(self, key: ApiKey) -> dict[str, str | Secret]:
        return {"api.key": key.id, "api.key.secret": key.secret}

    def build_fields(self, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
        return {
            **self.build_key_fields(key),
            "organization.id": connection.organization_id,
            "environment.id": connection.environment_id,
            "kafka.cluster.id": connection.cluster_id,
            "catalog.uri": connection.catalog_uri,
        }
