"""The state of one simulated organization."""

from __future__ import annotations

import random
import string
import uuid
from typing import Final

import attrs

from simulators.confluent import model
from simulators.confluent.regions import FLINK
from simulators.confluent.tableflow_lake import Lake
from simulators.core.clock import Clock

CLOUD: Final = "AWS"
_ALPHABET: Final = string.ascii_lowercase + string.digits


@attrs.frozen
class Delays:
    """How many seconds the vendor typically takes."""

    cluster: float = 240
    cluster_deletion: float = 60
    schema_registry: float = 30
    kafka_key: float = 150
    other_key: float = 15
    role_binding: float = 60
    topic: float = 3
    topic_deletion: float = 20
    tableflow_sees_topic: float = 10
    connector: float = 120
    compute_pool: float = 60
    statement: float = 10
    statement_deletion: float = 5
    #: How long an ended or stopped statement is kept: 30 days (terraform-provider-confluent, issue 687).
    statement_retention: float = 30 * 86400
    tableflow_topic: float = 60
    tableflow_topic_deletion: float = 10
    tableflow_commit: float = 300
    catalog_integration: float = 30
    usage: float = 20

    def scale(self, share: float) -> Delays:
        """Return the delays multiplied by `share`, except for the vendor's own intervals, which aren't
        delays.
        """
        return attrs.evolve(
            Delays(*(share * delay for delay in attrs.astuple(self))),
            tableflow_commit=self.tableflow_commit,
            statement_retention=self.statement_retention,
        )


@attrs.frozen
class Quotas:
    """How many objects an organization may have, or the object in the name of the limit."""

    environments: int = 25
    clusters_per_environment: int = 20
    service_accounts: int = 1000
    api_keys: int = 500
    provider_integrations: int = 100
    topics_per_cluster: int = 4096


class Organization:
    def __init__(
        self,
        clock: Clock,
        addresses: dict[model.Plane, str],
        *,
        engine: model.Engine,
        region: str,
        delays: Delays | None = None,
        quotas: Quotas | None = None,
        rng: random.Random,
        lake: Lake | None = None,
        organization_id: str = "",
    ) -> None:
        self.clock = clock
        self.addresses = addresses
        self.region = region
        self.lake = lake
        self.engine = engine
        #: Regions with Flink, which are also those with Tableflow.
        self.flink_regions = FLINK
        #: Groups of services that an IP filter keeps from every address.
        self.ip_filtered: set[model.Plane] = set()
        self.delays = delays or Delays()
        self.quotas = quotas or Quotas()
        self.random = rng
        self.organization_id = organization_id or str(self.create_uuid())
        self.owner = self.create_id("u")
        self.environments: dict[str, model.Environment] = {}
        self.clusters: dict[str, model.Cluster] = {}
        self.schema_registries: dict[str, model.SchemaRegistry] = {}
        self.service_accounts: dict[str, model.ServiceAccount] = {}
        self.role_bindings: dict[str, model.RoleBinding] = {}
        self.api_keys: dict[str, model.ApiKey] = {}
        self.compute_pools: dict[str, model.ComputePool] = {}
        self.provider_integrations: dict[str, model.ProviderIntegration] = {}
        self.networks: dict[str, model.Content] = {}
        self.private_link_attachments: dict[str, model.Content] = {}
        self.provider_integrations_v2: dict[str, model.Content] = {}
        self.connectors: dict[str, model.Connector] = {}
        self.statements: dict[tuple[str, str], model.Statement] = {}
        self.tableflow_topics: dict[tuple[str, str], model.TableflowTopic] = {}
        self.catalog_integrations: dict[str, model.CatalogIntegration] = {}
        #: By token of the Iceberg catalog: the id of the API key that it was issued for, and the time at
        #: which it expires.
        self.sessions: dict[str, tuple[str, float]] = {}

    @property
    def crn(self) -> str:
        return f"crn://confluent.cloud/organization={self.organization_id}"

    def create_id(self, prefix: str) -> str:
        return f"{prefix}-" + "".join(self.random.choices(_ALPHABET, k=6))

    def create_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def list_clusters(self, environment: str) -> list[model.Cluster]:
        return [cluster for cluster in self.clusters.values() if cluster.environment == environment]

    def find_registry(self, environment: str) -> model.SchemaRegistry | None:
        for registry in self.schema_registries.values():
            if registry.environment == environment:
                return registry
        return None
