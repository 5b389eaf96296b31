"""The properties of Confluent Cloud's resource types. Stacks set them, and handlers read them.

TYPE is the name in a stack, the outputs are for `Fn::GetAtt`, and a change of a CREATE_ONLY property replaces
the object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from lambdas.confluent import crn
from lambdas.shared.properties import Properties, prop, properties

STREAM_GOVERNANCE: Final = ("ESSENTIALS", "ADVANCED")
MAX_CFU: Final = (5, 10, 20, 30, 40, 50)
CLUSTER_TYPES: Final = ("Basic", "Standard")
#: The resource name of ACLs on the cluster itself.
CLUSTER_NAME: Final = "kafka-cluster"
COMPATIBILITY_LEVELS: Final = (
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE",
)  # fmt: skip
_DAY_MS: Final = 86_400_000
#: The text of a property of the types whose deletion a protected cluster prevents.
SHARED_CLUSTER: Final = (
    "Whether somebody else owns the cluster. Its deletion protection then doesn't apply to what the "
    "deployment created in it."
)


class EnvironmentOutputs(NamedTuple):
    id: str
    name: str
    resource_name: str
    organization_id: str
    stream_governance: str


@properties
class EnvironmentProps(Properties[EnvironmentOutputs]):
    TYPE: ClassVar[str] = "environment"

    stream_governance: str = prop(
        "Stream Governance package. It can be raised; a lower one is refused.",
        default="ESSENTIALS",
        one_of=STREAM_GOVERNANCE,
    )


class KafkaClusterOutputs(NamedTuple):
    id: str
    name: str
    bootstrap_servers: str
    rest_endpoint: str
    resource_name: str
    rbac_resource_name: str
    schema_registry_id: str
    schema_registry_endpoint: str


@properties
class KafkaClusterProps(Properties[KafkaClusterOutputs]):
    TYPE: ClassVar[str] = "kafka_cluster"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "region", "availability")

    environment_id: str = prop("The environment, env-….")
    region: str = prop("The AWS region.")
    type: str = prop(
        "Basic or Standard. Basic can become Standard; Standard stays Standard.", default="Standard"
    )
    availability: str = prop(
        "Availability zones. Confluent may show it as LOW or HIGH.",
        default="SINGLE_ZONE",
        one_of=("SINGLE_ZONE", "MULTI_ZONE"),
    )
    max_ecku: int | None = prop(
        "Maximum number of elastic units (eCKU). Without it, Confluent's limit applies.", default=None
    )
    deletion_protection: bool = prop("Whether Confluent refuses to delete the cluster.", default=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.type not in CLUSTER_TYPES:
            reason = "its topics are reached over a private network, which the functions don't have"
            yield "type", f"{self.type!r} can't be used: {reason}. Use type Basic or Standard."


class ServiceAccountOutputs(NamedTuple):
    id: str
    name: str
    principal: str


@properties
class ServiceAccountProps(Properties[ServiceAccountOutputs]):
    TYPE: ClassVar[str] = "service_account"

    description: str = prop("Purpose of the account.", default="Made by Lakeferry")


class RoleBindingOutputs(NamedTuple):
    id: str
    crn_pattern: str


@properties
class RoleBindingProps(Properties[RoleBindingOutputs]):
    TYPE: ClassVar[str] = "role_binding"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = (
        "service_account_id", "role", "scope", "environment_id", "cluster_id", "schema_registry_id", "name",
    )  # fmt: skip

    service_account_id: str = prop("The account, sa-….")
    role: str = prop("Name of the role, such as CloudClusterAdmin.")
    scope: str = prop("Scope of the role.", one_of=tuple(crn.SCOPES))
    environment_id: str = prop("The environment, if the scope is in one.", default="")
    cluster_id: str = prop("The Kafka cluster, if the scope is in one.", default="")
    schema_registry_id: str = prop("The Schema Registry, for the scope subject.", default="")
    name: str = prop("Name or id of the object in the scope; names may be `*` or end in `*`.", default="")

    def problems(self) -> Iterator[tuple[str, str]]:
        for needed_for_scope in crn.NEEDS[self.scope]:
            if not getattr(self, needed_for_scope):
                yield needed_for_scope, f"is missing: scope {self.scope} needs it"


class AclOutputs(NamedTuple):
    id: str


@properties
class AclProps(Properties[AclOutputs]):
    TYPE: ClassVar[str] = "acl"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = (
        "environment_id", "cluster_id", "service_account_id", "resource_type", "resource_name",
        "pattern_type", "operation",
    )  # fmt: skip

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Kafka key that may administer the cluster.")
    service_account_id: str = prop("The account of the ACL, sa-….")
    resource_type: str = prop(
        "Type of the resource.", one_of=("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID")
    )
    resource_name: str = prop(f"Name of the resource; {CLUSTER_NAME} for CLUSTER.", default=CLUSTER_NAME)
    resource_names: list[str] = prop("Several names instead of one: an ACL for each.", default=list)
    pattern_type: str = prop(
        "Whether the name is complete or a prefix.", default="LITERAL", one_of=("LITERAL", "PREFIXED")
    )
    operation: str = prop(
        "The operation.",
        one_of=(
            "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
        ),
    )  # fmt: skip


class TopicOutputs(NamedTuple):
    name: str
    partitions: str


@properties
class TopicProps(Properties[TopicOutputs]):
    TYPE: ClassVar[str] = "topic"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id", "topic")

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Kafka key that may administer the cluster.")
    topic: str = prop("The topic's name.")
    partitions: int = prop("Number of partitions. It can be raised; a lower one is refused.", default=6)
    config: dict[str, str] = prop(
        "Settings of the topic, such as retention.ms. Others have Confluent's defaults.", default=dict
    )
    adopt: bool = prop(
        "Whether an existing topic is taken over. It is then the resource's own: deleting the resource "
        "deletes its records.",
        default=False,
    )
    shared_cluster: bool = prop(SHARED_CLUSTER, default=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.partitions < 1:
            yield "partitions", "must be at least 1"


class SchemaOutputs(NamedTuple):
    subject: str
    schema_id: str
    version: str


@properties
class SchemaProps(Properties[SchemaOutputs]):
    TYPE: ClassVar[str] = "schema"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "subject")

    environment_id: str = prop("The environment of the Schema Registry, env-….")
    credentials: str = prop(
        "Name or ARN of the secret with a Schema Registry key that may write the subject."
    )
    subject: str = prop("The subject, such as orders-value.")
    schema: str = prop("The schema's text.")
    schema_type: str = prop("Language of the schema.", default="AVRO", one_of=("AVRO", "JSON", "PROTOBUF"))
    compatibility: str = prop(
        "The subject's compatibility level. Without it, the registry's level applies.",
        default="",
        one_of=("", *COMPATIBILITY_LEVELS),
    )
    delete_permanently: bool = prop(
        "Whether deleting the resource deletes the subject permanently. Otherwise it can be restored.",
        default=False,
    )
    adopt: bool = prop(
        "Whether an existing subject is taken over, such as one that a connector registered. It is never "
        "deleted permanently.",
        default=False,
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.schema_type != "PROTOBUF":
            try:
                json.loads(self.schema)
            except ValueError as error:
                yield "schema", f"is not JSON, as {self.schema_type} requires: {error}"


class ConnectorOutputs(NamedTuple):
    name: str
    id: str


@properties
class ConnectorProps(Properties[ConnectorOutputs]):
    TYPE: ClassVar[str] = "connector"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id")

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    service_account_id: str = prop("The account with which the connector writes to the topic, sa-….")
    topic: str = prop("The topic that the connector writes to.")
    quickstart: str = prop(
        "A quickstart of Datagen, such as STOCK_TRADES. Set either this or `schema`.", default=""
    )
    schema: str = prop("An Avro schema with Datagen's annotations, for your own data.", default="")
    schema_key_field: str = prop("The field that becomes the record's key. Only with `schema`.", default="")
    max_interval_ms: int | None = prop(
        "Maximum pause between two records of Datagen, in milliseconds.", default=None
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if bool(self.quickstart) == bool(self.schema):
            yield "quickstart", "set either quickstart or schema"


class FlinkComputePoolOutputs(NamedTuple):
    id: str
    name: str
    resource_name: str
    rest_endpoint: str


@properties
class FlinkComputePoolProps(Properties[FlinkComputePoolOutputs]):
    TYPE: ClassVar[str] = "flink_compute_pool"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "region")

    environment_id: str = prop("The environment, env-….")
    region: str = prop("The AWS region.")
    max_cfu: int = prop(
        "Maximum number of Flink units (CFU). It can be raised; a lower one is refused.",
        default=10,
        one_of=MAX_CFU,
    )


class ProviderIntegrationOutputs(NamedTuple):
    id: str
    name: str
    confluent_role_arn: str
    external_id: str


@properties
class ProviderIntegrationProps(Properties[ProviderIntegrationOutputs]):
    TYPE: ClassVar[str] = "provider_integration"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "role_arn")

    environment_id: str = prop("The environment, env-….")
    role_arn: str = prop(
        "ARN of the customer's role, which need not exist yet. Only one integration of an environment can "
        "use the role."
    )


class TableflowTopicOutputs(NamedTuple):
    topic: str
    table_path: str
    table_base: str
    write_mode: str


@properties
class TableflowTopicProps(Properties[TableflowTopicOutputs]):
    TYPE: ClassVar[str] = "tableflow_topic"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id", "topic")

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Tableflow key.")
    topic: str = prop("The topic. Its values need a schema.")
    storage: str = prop("Storage of the table.", default="own_bucket", one_of=("own_bucket", "managed"))
    bucket: str = prop(
        "The bucket, for own_bucket. It must be empty at first, and nobody else may write to it.", default=""
    )
    provider_integration_id: str = prop(
        "The provider integration for the bucket's account, for own_bucket: cspi-….", default=""
    )
    table_formats: list[str] = prop("Formats of the table.", default=list)
    retention_ms: int | None = prop(
        "Milliseconds for which old snapshots are kept; at least a day.", default=None
    )
    data_retention_ms: int | None = prop(
        "Milliseconds for which rows are kept; at least 30 days.", default=None
    )
    error_handling: str = prop(
        "What Tableflow does with a record that it can't write.",
        default="SUSPEND",
        one_of=("SUSPEND", "SKIP", "LOG"),
    )
    error_log_topic: str = prop("The topic for these records, for LOG.", default="error_log")
    metadata_columns: str = prop(
        "Naming scheme of metadata columns.", default="DEFAULT", one_of=("DEFAULT", "PORTABLE")
    )
    await_catalog: bool = prop("Whether to wait until every catalog shows the table.", default=False)
    adopt: bool = prop(
        "Whether Tableflow that is enabled already is taken over. It is then the resource's own, and "
        "deleting disables it.",
        default=False,
    )
    shared_cluster: bool = prop(SHARED_CLUSTER, default=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in ("bucket", "provider_integration_id"):
            if bool(getattr(self, name)) != (self.storage == "own_bucket"):
                yield name, "must be set for storage own_bucket, and only then"
        for name, days in (("retention_ms", 1), ("data_retention_ms", 30)):
            value = getattr(self, name)
            if value is not None and value < days * _DAY_MS:
                yield name, f"{value} is less than {days} days"
        unknown_formats = set(self.table_formats) - {"ICEBERG", "DELTA"}
        if unknown_formats:
            yield "table_formats", f"{', '.join(sorted(unknown_formats))} is neither ICEBERG nor DELTA"


class CatalogIntegrationOutputs(NamedTuple):
    id: str
    name: str
    database: str


@properties
class CatalogIntegrationProps(Properties[CatalogIntegrationOutputs]):
    TYPE: ClassVar[str] = "catalog_integration"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id")

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Tableflow key.")
    provider_integration_id: str = prop(
        "The provider integration for the account of the Glue catalog, cspi-…."
    )
    database: str = prop("The Glue database. By default, it has the cluster's id as its name.", default="")
