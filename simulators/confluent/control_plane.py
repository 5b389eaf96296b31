"""Organization, environments, Kafka clusters, Schema Registries, compute pools and regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulators.confluent import regions
from simulators.confluent.authorization import is_allowed, require
from simulators.confluent.environment_contents import Networks, PrivateLinkAttachments, ProviderIntegrationsV2
from simulators.confluent.errors import ApiError, conflict, forbidden, invalid
from simulators.confluent.http import TABLEFLOW, Call
from simulators.confluent.model import Cluster, ComputePool, Environment, Plane, Resource, SchemaRegistry
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.provider_integrations import PROVIDER_INTEGRATIONS
from simulators.confluent.resources import CLOUD_FIELD, ENVIRONMENT, Field, Kind

#: Addresses of a cluster in a private network, in a domain that can't exist (RFC 2606).
_PRIVATE_KAFKA: Final = "SASL_SSL://private.invalid:9092"
_PRIVATE_REST: Final = "https://private.invalid:443"


class Organizations(Kind[Resource]):
    api_version = "org/v2"
    name = "Organization"
    path = "/org/v2/organizations"
    label = "Organization"
    spec = ""
    verbs = ("list", "read")

    def list_objects(self, org: Organization) -> dict[str, Resource]:
        return {org.organization_id: Resource(org.organization_id, org.crn, 0, 0)}

    def read_only(self, org: Organization, record: Resource) -> dict[str, Any]:
        return {"display_name": "Simulated organization", "jit_enabled": False}


class Environments(Kind[Environment]):
    """Names need not be unique, as at the vendor."""

    api_version = "org/v2"
    name = "Environment"
    path = "/org/v2/environments"
    label = "Environment"
    store = "environments"
    record = Environment
    id_prefix = "env"
    spec = ""
    quota = ("environments_per_org", "environments")
    fields = (
        Field("display_name", "name", required=True),
        Field(
            "stream_governance_config.package",
            "package",
            required=True,
            optional_object=True,
            choices=("ESSENTIALS", "ADVANCED"),
            omit_empty=True,
        ),
    )

    def authorize(self, call: Call, verb: str, record: Environment | None) -> None:
        scope = record.crn if record else call.org.crn
        require(call, "admin", scope)

    def is_listed(self, call: Call, record: Environment) -> bool:
        return is_allowed(call.org, call.principal, "admin", record.crn)

    def check(self, call: Call, values: dict[str, Any], current: Environment | None) -> None:
        if current and (current.package, values["package"]) == ("ADVANCED", "ESSENTIALS"):
            raise conflict("A Stream Governance package can't be downgraded")

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.crn}/environment={new_id}"

    def check_deletable(self, org: Organization, record: Environment) -> None:
        if len(org.environments) == 1:
            raise conflict("An organization needs at least one environment")

    def erase(self, org: Organization, record: Environment) -> None:
        """Delete the environment with everything in it."""
        for cluster in org.list_clusters(record.id):
            erase_cluster(org, cluster)
        for integration in list(org.provider_integrations.values()):
            if integration.environment == record.id:
                PROVIDER_INTEGRATIONS.erase(org, integration)
        contents = (org.networks, org.private_link_attachments, org.provider_integrations_v2)
        for objects in (org.compute_pools, org.schema_registries, *contents):
            content_ids = [content.id for content in objects.values() if content.environment == record.id]
            for content_id in content_ids:
                del objects[content_id]
        for key in list(org.statements):
            if key[0] == record.id:
                del org.statements[key]
        del org.environments[record.id]


class Clusters(Kind[Cluster]):
    """Basic, Standard and Dedicated clusters on AWS. Reading a deleted cluster returns 403, as at the vendor.

    A Dedicated cluster with a network has no public endpoint, and nothing listens on its own.
    """

    api_version = "cmk/v2"
    name = "Cluster"
    path = "/cmk/v2/clusters"
    store = "clusters"
    record = Cluster
    id_prefix = "lkc"
    parent = ENVIRONMENT
    created_status = 202
    quota = ("clusters_per_environment", "clusters_per_environment")
    quota_within_parent = True
    fields = (
        CLOUD_FIELD,
        Field("region", "region", choices=regions.AWS, required=True, immutable=True),
        Field(
            "config.kind",
            "type",
            required=True,
            choices=("Basic", "Standard", "Dedicated"),
            not_simulated=("Enterprise", "Freight"),  # they have private endpoints only
        ),
        Field("config.cku", "cku", type=int, default=0, omit_empty=True),
        Field("network.id", "network", optional_object=True, omit_empty=True, immutable=True),
        Field("config.max_ecku", "max_ecku", type=int, default=0, omit_empty=True),
        Field("display_name", "name", required=True, pattern=r".{1,64}"),
        Field(  # the vendor answers LOW and HIGH
            "availability",
            "availability",
            required=True,
            choices=("LOW", "HIGH"),
            synonyms={"SINGLE_ZONE": "LOW", "MULTI_ZONE": "HIGH"},
            immutable=True,
        ),
        Field("deletion_protection", "protected", type=bool, default=False),
    )

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.environments[values['environment']].crn}/cloud-cluster={new_id}/kafka={new_id}"

    def check(self, call: Call, values: dict[str, Any], current: Cluster | None) -> None:
        if current and (current.type, values["type"]) == ("Standard", "Basic"):
            raise conflict("A Standard cluster can't become Basic")
        if values["network"] and (
            values["type"] != "Dedicated" or values["network"] not in call.org.networks
        ):
            raise invalid("/spec/network/id", "a network of the environment, for a Dedicated cluster only")
        if (values["type"] == "Dedicated") != bool(values["cku"]):
            raise invalid("/spec/config/cku", "only a Dedicated cluster has CKUs, and needs some")

    def start_lifecycle(self, org: Organization, record: Cluster) -> None:
        """Provision the cluster.

        The first one in an environment with Stream Governance also creates its Schema Registry.
        """

        def finish_provisioning() -> None:
            if record.id in org.clusters and record.environment in org.environments:
                record.phase = "PROVISIONED"
                _create_registry(org, org.environments[record.environment], record.region)

        org.clock.call_later(org.delays.cluster, finish_provisioning)

    def read_only(self, org: Organization, record: Cluster) -> dict[str, Any]:
        """Return the endpoints of a provisioned cluster.

        Nothing listens on the bootstrap address, as Kafka isn't simulated.
        """
        if record.phase != "PROVISIONED":
            return {}
        if record.network:
            private = {"kafka_bootstrap_endpoint": _PRIVATE_KAFKA, "http_endpoint": _PRIVATE_REST}
            return {**private, "endpoints": {"ap1": {**private, "connection_type": "PRIVATE_LINK"}}}
        endpoints = {
            "kafka_bootstrap_endpoint": "SASL_SSL://127.0.0.1:9092",
            "http_endpoint": org.addresses[Plane.KAFKA],
        }
        return {**endpoints, "endpoints": {"PUBLIC": {**endpoints, "connection_type": "PUBLIC"}}}

    def describe_status(self, org: Organization, record: Cluster) -> dict[str, Any]:
        return {"phase": record.phase}

    def is_gone(self, record: Cluster) -> bool:
        return record.deleting

    def is_listed(self, call: Call, record: Cluster) -> bool:
        return not record.deleting

    def build_missing_error(self, name: str) -> ApiError:
        return forbidden("Forbidden Access")

    def check_deletable(self, org: Organization, record: Cluster) -> None:
        if record.protected:
            raise conflict("Deletion protection is on")
        if any(connector.cluster == record.id for connector in org.connectors.values()):
            raise forbidden("The cluster has associated connect clusters")
        if any(key[0] == record.id for key in org.tableflow_topics):
            raise conflict("The cluster has topics with Tableflow enabled")

    def erase(self, org: Organization, record: Cluster) -> None:
        record.deleting = True
        org.clock.call_later(org.delays.cluster_deletion, lambda: erase_cluster(org, record))


def erase_cluster(org: Organization, cluster: Cluster) -> None:
    """Delete the cluster with everything in it. Its API keys remain but can't be used."""
    org.clusters.pop(cluster.id, None)
    for connector in list(org.connectors.values()):
        if connector.cluster == cluster.id:
            del org.connectors[connector.id]
    for key in list(org.tableflow_topics):
        if key[0] == cluster.id:
            del org.tableflow_topics[key]
    for integration in list(org.catalog_integrations.values()):
        if integration.cluster == cluster.id:
            del org.catalog_integrations[integration.id]


class SchemaRegistries(Kind[SchemaRegistry]):
    """Read-only. A Schema Registry is created with the first Kafka cluster of an environment."""

    api_version = "srcm/v3"
    name = "Cluster"
    path = "/srcm/v3/clusters"
    label = "Schema Registry cluster"
    store = "schema_registries"
    record = SchemaRegistry
    parent = ENVIRONMENT
    verbs = ("list", "read")

    def read_only(self, org: Organization, record: SchemaRegistry) -> dict[str, Any]:
        address = org.addresses[Plane.REGISTRY]
        return {
            "display_name": "Stream Governance Package",
            "package": org.environments[record.environment].package,
            "http_endpoint": address,
            "catalog_http_endpoint": address,
            "cloud": CLOUD,
            "region": record.region,
        }

    def describe_status(self, org: Organization, record: SchemaRegistry) -> dict[str, Any]:
        return {"phase": record.phase}


def _create_registry(org: Organization, environment: Environment, region: str) -> None:
    """Create a Schema Registry, unless the environment already has one or has no Stream Governance."""
    if org.find_registry(environment.id) or not environment.package:
        return
    new = org.create_id("lsrc")
    now = org.clock.now()
    registry = SchemaRegistry(
        new, f"{environment.crn}/schema-registry={new}", now, now, environment.id, region
    )
    org.schema_registries[new] = registry
    org.clock.call_later(org.delays.schema_registry, lambda: setattr(registry, "phase", "PROVISIONED"))


class ComputePools(Kind[ComputePool]):
    api_version = "fcpm/v2"
    name = "ComputePool"
    path = "/fcpm/v2/compute-pools"
    label = "Compute pool"
    store = "compute_pools"
    record = ComputePool
    id_prefix = "lfcp"
    parent = ENVIRONMENT
    created_status = 202
    fields = (
        CLOUD_FIELD,
        Field("region", "region", choices=lambda org: org.flink_regions, required=True, immutable=True),
        Field("display_name", "name", required=True, pattern=r"[0-9A-Za-z\-][\w\.-]{0,63}"),
        Field("max_cfu", "max_cfu", type=int, required=True, choices=(5, 10, 20, 30, 40, 50)),
        Field("default_pool", "default", type=bool, default=False),
    )
    filters = (("spec.region", "region"),)

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        environment = org.environments[values["environment"]]
        return f"{environment.crn}/flink-region=aws.{values['region']}/compute-pool={new_id}"

    def check(self, call: Call, values: dict[str, Any], current: ComputePool | None) -> None:
        if current and values["max_cfu"] < current.max_cfu:
            raise conflict("max_cfu can only grow")
        environment = current.environment if current else values["environment"]
        for pool in call.org.compute_pools.values():
            is_in_region = (pool.environment, pool.region) == (environment, values["region"])
            if values["default"] and is_in_region and pool.default and pool is not current:
                raise conflict("The environment has a default compute pool in this region")

    def start_lifecycle(self, org: Organization, record: ComputePool) -> None:
        org.clock.call_later(org.delays.compute_pool, lambda: setattr(record, "phase", "PROVISIONED"))

    def describe_status(self, org: Organization, record: ComputePool) -> dict[str, Any]:
        running = sum(
            statement.pool == record.id and statement.phase == "RUNNING"
            for statement in org.statements.values()
        )
        return {"phase": record.phase, "current_cfu": min(running, record.max_cfu)}

    def erase(self, org: Organization, record: ComputePool) -> None:
        """Delete the pool. Its pending and running statements fail."""
        for statement in org.statements.values():
            if statement.pool == record.id and statement.phase in ("PENDING", "RUNNING"):
                statement.phase = "FAILED"
                statement.detail = "The compute pool was deleted"
        super().erase(org, record)


class _Regions(Kind[Resource]):
    spec = ""
    verbs = ("list",)
    scope: str

    def list_objects(self, org: Organization) -> dict[str, Resource]:
        names = [f"aws.{region}" for region in org.flink_regions]
        return {name: Resource(name, f"{org.crn}/{self.scope}={name}", 0, 0) for name in names}

    def is_listed(self, call: Call, record: Resource) -> bool:
        region = record.id.removeprefix("aws.")
        return call.query.get("cloud", CLOUD) == CLOUD and call.query.get("region_name", "") in ("", region)


class FlinkRegions(_Regions):
    api_version = "fcpm/v2"
    name = "Region"
    path = "/fcpm/v2/regions"
    scope = "flink-region"

    def read_only(self, org: Organization, record: Resource) -> dict[str, Any]:
        region = record.id.removeprefix("aws.")
        address = org.addresses[Plane.FLINK]
        return {
            "display_name": f"Simulated ({region})",
            "cloud": CLOUD,
            "region_name": region,
            "http_endpoint": address,
        }


class TableflowRegions(_Regions):
    """The same regions as Flink's. Clients list them to check whether a key works."""

    api = TABLEFLOW
    api_version = "tableflow/v1"
    name = "Region"
    path = "/tableflow/v1/regions"
    scope = "tableflow-region"

    def read_only(self, org: Organization, record: Resource) -> dict[str, Any]:
        return {"cloud": CLOUD, "region": record.id.removeprefix("aws.")}


KINDS: Final[tuple[Kind[Any], ...]] = (
    Organizations(),
    Environments(),
    Clusters(),
    SchemaRegistries(),
    ComputePools(),
    FlinkRegions(),
    TableflowRegions(),
    PROVIDER_INTEGRATIONS,
    Networks(),
    PrivateLinkAttachments(),
    ProviderIntegrationsV2(),
)


def create_environment(org: Organization, name: str) -> Environment:
    """Create an environment without Stream Governance."""
    new = org.create_id("env")
    now = org.clock.now()
    org.environments[new] = Environment(new, f"{org.crn}/environment={new}", now, now, name, "")
    return org.environments[new]
