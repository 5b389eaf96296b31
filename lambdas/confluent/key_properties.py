"""Properties of an API key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

import attrs

from lambdas.shared.properties import Properties, prop, properties


@attrs.frozen
class KeyProperties:
    """The properties that keys of a service have besides the account."""

    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


#: One entry for each service in lambdas.confluent.services, which stacks can't import.
KEY_SERVICES: Final[Mapping[str, KeyProperties]] = {
    "kafka": KeyProperties(needs=("environment_id", "cluster_id")),
    "schema_registry": KeyProperties(needs=("environment_id",)),
    "flink": KeyProperties(needs=("environment_id", "region"), optional=("compute_pool_id",)),
    "tableflow": KeyProperties(needs=("environment_id", "cluster_id", "region")),
    "cloud": KeyProperties(),
}


class ApiKeyOutputs(NamedTuple):
    key_id: str
    secret: str


@properties
class ApiKeyProps(Properties[ApiKeyOutputs]):
    TYPE: ClassVar[str] = "api_key"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = (
        "service_account_id",
        "service",
        "secret",
        "environment_id",
        "cluster_id",
        "region",
    )

    service_account_id: str = prop("The account that owns the key, sa-….")
    service: str = prop("The service that accepts the key.", one_of=tuple(KEY_SERVICES))
    secret: str = prop("Name or ARN of the secret that gets the key. It must exist; its value is replaced.")
    environment_id: str = prop("The environment, for all but cloud.", default="")
    cluster_id: str = prop("The Kafka cluster, for kafka and tableflow.", default="")
    region: str = prop("The AWS region, for flink and tableflow.", default="")
    compute_pool_id: str = prop("The compute pool in the secret, for flink.", default="")
    description: str = prop("Description of the key.", default="Made by Lakeferry")

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in KEY_SERVICES[self.service].needs:
            if not getattr(self, name):
                yield name, f"is missing: a key for {self.service} needs it"
