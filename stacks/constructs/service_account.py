"""Service accounts at Confluent, with their roles and their API keys."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

import attrs
from aws_cdk import Duration, Names
from constructs import Construct, IDependable

from lambdas.confluent.key_properties import KEY_SERVICES, ApiKeyProps
from lambdas.confluent.properties import (
    AclOutputs,
    RoleBindingOutputs,
    RoleBindingProps,
    ServiceAccountProps,
)
from stacks.constructs.confluent_provider import KEYS
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.vendor import VendorResource

Right: TypeAlias = VendorResource[RoleBindingOutputs] | VendorResource[AclOutputs]
_OF_RECORDS: Final = ("key", "value")


@attrs.frozen
class TopicAccess:
    """What reads a topic and turns on Tableflow: names or ARNs of the secrets with the keys, and the rights
    that must exist before a key is used.
    """

    kafka: str
    registry: str
    tableflow: str
    after: tuple[IDependable, ...] = ()


class TopicOwner(Protocol):
    """Something with keys for a topic: an account, or a deployment's several accounts."""

    def get_access(self, topic: str, *, becomes_table: bool) -> TopicAccess: ...


class ServiceAccount(Construct):
    """A service account with rights on one Kafka cluster. It has no rights but those that are bound."""

    def __init__(self, scope: Construct, id: str, *, cluster: KafkaCluster, description: str) -> None:
        super().__init__(scope, id)
        self.cluster = cluster
        self.provider = cluster.provider
        self.description = description
        props = ServiceAccountProps(description=description)
        self.id = self.provider.create(self, "Resource", props).outputs.id
        #: Its role bindings and ACLs.
        self.rights: list[Right] = []
        self._keys: dict[str, ApiKey] = {}
        self._bound: set[tuple[str, str]] = set()

    @property
    def keys(self) -> list[ApiKey]:
        """Return the keys that were needed so far."""
        return list(self._keys.values())

    def key(self, service: str) -> ApiKey:
        """Return the account's key for a service, which is created when it is needed first."""
        if service not in self._keys:
            self._keys[service] = ApiKey(
                self, f"{service.title().replace('_', '')}Key", account=self, service=service
            )
        return self._keys[service]

    def bind(self, id: str, *, role: str, scope: str, name: str = "") -> None:
        """Bind a role. `name` is that of the object, if the scope isn't the environment or the cluster."""
        cluster = self.cluster
        scope_ids: dict[str, str] = {}
        if scope != "service_account":
            scope_ids["environment_id"] = cluster.environment_id
        if scope in ("cluster", "topic", "transactional_id"):
            scope_ids["cluster_id"] = cluster.id
        if scope == "subject":
            scope_ids["schema_registry_id"] = cluster.outputs.schema_registry_id
        props = RoleBindingProps(service_account_id=self.id, role=role, scope=scope, name=name, **scope_ids)
        self.rights.append(self.provider.create(self, id, props))

    def get_access(self, topic: str, *, becomes_table: bool) -> TopicAccess:
        """Return the keys for a topic, after binding the roles that Tableflow needs of it: ResourceOwner
        (docs.confluent.io, "Grant Role-Based Access for Tableflow") and reading its schemas.
        """
        role = "ResourceOwner" if becomes_table else "DeveloperRead"
        if (role, topic) not in self._bound:
            self._bound.add((role, topic))
            self.bind(f"{role} {topic}", role=role, scope="topic", name=topic)
            for subject in [f"{topic}-{part}" for part in _OF_RECORDS] if becomes_table else []:
                self.bind(f"Subject {subject}", role="DeveloperRead", scope="subject", name=subject)
        return TopicAccess(
            kafka=self.key("kafka").credentials,
            registry=self.key("schema_registry").credentials if becomes_table else "",
            tableflow=self.key("tableflow").credentials if becomes_table else "",
            after=tuple(self.rights),
        )


class ApiKey(Construct):
    """An API key of an account, and the secret that holds it.

    `secret_id` and `secret_path` name the secret; by default, they come from the key's own path.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        account: ServiceAccount,
        service: str,
        compute_pool_id: str = "",
        description: str = "",
        secret_id: str = "",
        secret_path: str = "",
    ) -> None:
        super().__init__(scope, id)
        self._provider = account.provider
        cluster = account.cluster
        properties = KEY_SERVICES[service]
        name = Names.unique_resource_name(self, max_length=80, separator="-")
        self.secret = self._provider.secrets.empty(
            secret_id or f"{Names.unique_resource_name(self)}Secret",
            secret_path or f"{KEYS}/{name}",
            f"API key of {description or f'{account.description} for {service}'}",
        )
        self.resource = self._provider.create(
            self,
            "Resource",
            ApiKeyProps(
                service_account_id=account.id,
                service=service,
                secret=self.secret.arn,
                environment_id=cluster.environment_id,
                cluster_id=cluster.id if "cluster_id" in properties.needs else "",
                region=cluster.region if "region" in properties.needs else "",
                compute_pool_id=compute_pool_id if "compute_pool_id" in properties.optional else "",
                description=description or f"{account.description} for {service}",
            ),
        )
        if service == "schema_registry":
            # The registry exists with the first cluster of the environment.
            self.resource.after(cluster.resource)

    @property
    def credentials(self) -> str:
        """Return the secret's ARN as an output of the key, so that resources wait until the key works."""
        return self.resource.outputs.secret

    def rotate(self, *, every: Duration) -> None:
        """Replace the key on schedule. A replaced key works until its days of grace are over."""
        self._provider.rotation.rotate(self.secret, self.resource, every=every)
