"""Keys for the Schema Registry of an environment."""

from __future__ import annotations

from typing import ClassVar

import attrs

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient, get_text, require_text
from lambdas.confluent.services.base import Connection, KeyService, Target
from lambdas.shared.redaction import ApiKey, Secret


class SchemaRegistry(KeyService):
    NAME: ClassVar[str] = "schema_registry"

    def is_service_of(self, resource_id: str) -> bool:
        return resource_id.startswith("lsrc-")

    def find_resource(self, vendor: Confluent, target: Target) -> dict[str, str]:
        registry = vendor.schema_registry(target.environment_id)
        return {"id": require_text(registry, "id"), "kind": "Cluster"}

    def complete_connection(self, vendor: Confluent, target: Target, connection: Connection) -> Connection:
        registry = vendor.schema_registry(target.environment_id)
        return attrs.evolve(connection, endpoint=get_text(registry, "spec", "http_endpoint"))

    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        return vendor.registry(target.environment_id, key), "/subjects"

    def build_key_fields(self, key: ApiKey) -> dict[str, str | Secret]:
        user_info = Secret(f"{key.id}:{key.secret.reveal()}")
        return {"schema.registry.basic.auth.user.info": user_info}

    def build_fields(self, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
        return {
            "schema.registry.url": connection.endpoint,
            "schema.registry.basic.auth.credentials.source": "USER_INFO",
            **self.build_key_fields(key),
        }
