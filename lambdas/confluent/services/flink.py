"""Keys for the Flink SQL gateway of a region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient, build_path, get_text, require_text
from lambdas.confluent.services.base import Connection, KeyService, Target
from lambdas.shared.redaction import ApiKey, Secret


class Flink(KeyService):
    NAME: ClassVar[str] = "flink"
    #: A gateway has four ways to report an unknown key.
    REFUSES_UNKNOWN_KEYS: ClassVar[bool] = True

    def is_service_of(self, resource_id: str) -> bool:
        """Return False: the ids of regions have no prefix, so an id of no other service is one of Flink."""
        return False

    def complete_target(self, target: Target, stored: Mapping[str, str]) -> Target:
        _, _, region = stored["resourceId"].rpartition(".")
        return attrs.evolve(target, region=region, compute_pool_id=stored.get("compute.pool.id", ""))

    def find_resource(self, vendor: Confluent, target: Target) -> dict[str, str]:
        region = vendor.flink_region(target.region)
        return {
            "id": require_text(region, "id"),
            "kind": "Region",
            "api_version": "fcpm/v2",
            "environment": target.environment_id,
        }

    def complete_connection(self, vendor: Confluent, target: Target, connection: Connection) -> Connection:
        region = vendor.flink_region(target.region)
        return attrs.evolve(connection, endpoint=get_text(region, "http_endpoint"))

    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        plane = vendor.flink(target.region, key)
        parent = ("organizations", vendor.organization_id, "environments", target.environment_id)
        return plane, build_path("sql", "v1", *parent, "statements") + "?page_size=1"

    def build_key_fields(self, key: ApiKey) -> dict[str, str | Secret]:
        return {"api.key": key.id, "api.key.secret": key.secret}

    def build_fields(self, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
        return {
            **self.build_key_fields(key),
            "principal.id": connection.service_account_id,
            "compute.pool.id": connection.compute_pool_id,
            "organization.id": connection.organization_id,
            "environment.id": connection.environment_id,
            "endpoint": connection.endpoint,
        }
