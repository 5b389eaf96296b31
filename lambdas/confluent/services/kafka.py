"""Keys for the Kafka API of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from lambdas.confluent.client import Confluent, read_bootstrap_servers
from lambdas.confluent.rest_client import RestClient, build_path
from lambdas.confluent.services.base import Connection, KeyService, Target
from lambdas.shared import errors
from lambdas.shared.errors import ResourceMissing
from lambdas.shared.redaction import ApiKey, Secret


class Kafka(KeyService):
    NAME: ClassVar[str] = "kafka"

    def is_service_of(self, resource_id: str) -> bool:
        return resource_id.startswith("lkc-")

    def complete_target(self, target: Target, stored: Mapping[str, str]) -> Target:
        return attrs.evolve(target, cluster_id=stored["resourceId"])

    def find_resource(self, vendor: Confluent, target: Target) -> dict[str, str]:
        return {"id": target.cluster_id, "kind": "Cluster"}

    def complete_connection(self, vendor: Confluent, target: Target, connection: Connection) -> Connection:
        cluster = vendor.cluster(target.environment_id, target.cluster_id)
        if cluster is None:
            raise ResourceMissing(errors.VANISHED, f"Kafka cluster {target.cluster_id} is gone")
        return attrs.evolve(connection, endpoint=read_bootstrap_servers(cluster))

    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        plane = vendor.kafka(target.environment_id, target.cluster_id, key)
        return plane, build_path("kafka", "v3", "clusters", target.cluster_id, "topics")

    def build_key_fields(self, key: ApiKey) -> dict[str, str | Secret]:
        return {"sasl.username": key.id, "sasl.password": key.secret}

    def build_fields(self, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
        return {
            "bootstrap.servers": connection.endpoint,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            **self.build_key_fields(key),
        }
