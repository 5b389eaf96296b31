"""Cloud keys, which are for the control plane and for no single resource."""

from __future__ import annotations

from typing import ClassVar

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient
from lambdas.confluent.services.base import KeyService, Target
from lambdas.shared.redaction import ApiKey


class Cloud(KeyService):
    NAME: ClassVar[str] = "cloud"

    def is_service_of(self, resource_id: str) -> bool:
        return resource_id == ""

    def find_resource(self, vendor: Confluent, target: Target) -> None:
        return None

    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        return vendor.build_cloud_client(key), "/org/v2/environments?page_size=1"
