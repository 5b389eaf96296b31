"""What Lakeferry must know about a service that accepts API keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import attrs

from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import RestClient
from lambdas.shared.redaction import ApiKey, Secret


@attrs.frozen
class Target:
    """The service and the resource of a key. Ids that the service doesn't need are ""."""

    service: str
    service_account_id: str
    environment_id: str = ""
    cluster_id: str = ""
    region: str = ""
    compute_pool_id: str = ""


@attrs.frozen
class Connection:
    """Where a key is used, and its owner. Values that the service doesn't have are ""."""

    service_account_id: str
    resource_id: str
    environment_id: str = ""
    organization_id: str = ""
    cluster_id: str = ""
    compute_pool_id: str = ""
    endpoint: str = ""
    catalog_uri: str = ""
    #: Prefix of the names of this resource's keys, by which rotation finds them.
    display_name: str = ""


class KeyService(ABC):
    """A service that accepts API keys. `KEY_SERVICES` lists the properties that its keys need."""

    NAME: ClassVar[str]
    #: Whether a test call with an unknown key may be answered as if the request were wrong.
    REFUSES_UNKNOWN_KEYS: ClassVar[bool] = False

    @abstractmethod
    def is_service_of(self, resource_id: str) -> bool:
        """Return whether the id in a secret has the form of this service's resources."""

    def complete_target(self, target: Target, stored: Mapping[str, str]) -> Target:
        """Add the ids that only this service needs, from the fields of a secret."""
        return target

    @abstractmethod
    def find_resource(self, vendor: Confluent, target: Target) -> dict[str, str] | None:
        """Return `spec.resource` of a new key, as Confluent's Terraform provider sends it; None if a key of
        this service has none.
        """

    def complete_connection(self, vendor: Confluent, target: Target, connection: Connection) -> Connection:
        """Add the addresses.

        Raises ResourceMissing if the cluster is gone, InProgress if the service isn't ready.
        """
        return connection

    @abstractmethod
    def prepare_test(self, vendor: Confluent, target: Target, key: ApiKey) -> tuple[RestClient, str]:
        """Return a client that uses the key, and a path that every valid key may read."""

    def build_key_fields(self, key: ApiKey) -> dict[str, str | Secret]:
        """Return the fields of a secret that contain a part of the key."""
        return {}

    def build_fields(self, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
        """Return the fields of a secret that clients of this service read."""
        return {}
