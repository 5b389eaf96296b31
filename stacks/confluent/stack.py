"""Everything in Confluent Cloud: environment, cluster, accounts, keys, topics, statements, tables."""

from __future__ import annotations

import attrs
from aws_cdk import App, Fn
from aws_cdk import aws_iam as iam
from constructs import IDependable

from deployments.check import Plan
from lambdas import contract
from lambdas.confluent.properties import FlinkComputePoolProps
from stacks.base import LakeferryStack, Surroundings
from stacks.confluent import tables
from stacks.confluent.access import FLINK, MANAGER, Accounts, Keys, Place, empty_secrets, place, subjects_of
from stacks.confluent.streams import Streams
from stacks.constructs.purge import Purge, may_drop_tables, may_empty
from stacks.constructs.rotation import Rotation
from stacks.constructs.secrets import SecretsOfStack, named_secret
from stacks.constructs.statements import allow
from stacks.constructs.vendor_resources import Made, VendorResources
from stacks.data import DataStack


@attrs.frozen
class Cluster:
    """What other stacks take: the Glue database of the tables, the keys' secrets, and the key that these are encrypted with."""

    glue_database: str
    secret_arns: list[str]
    watcher_secret_arn: str
    table_watcher_secret_arn: str
    key_arn: str


class ConfluentStack(LakeferryStack):
    """Needs the bucket of the data stack. The order within: who may do what, streams, the handshake with AWS, tables."""

    def __init__(self, app: App, plan: Plan, surroundings: Surroundings, data: DataStack) -> None:
        super().__init__(app, "confluent", plan, surroundings, purpose="Kafka, Flink and Tableflow, with their keys")
        self.add_stack_dependency(data)
        self.secrets = SecretsOfStack(self, "Secrets", purpose="Encrypts the keys of Confluent Cloud")
        empty_secrets(self.secrets)
        self.resources = self._resources()
        self.where = place(self.resources, self.deployment)
        self.pool = self._pool()
        self.accounts = Accounts.make(self.resources)
        self.keys = Keys.make(
            self.resources,
            self.secrets,
            accounts=self.accounts,
            where=self.where,
            pool=self.pool,
            region=self.deployment.aws.region,
        )
        self.integration = tables.integration(self.resources, self, self.where)
        self._bind()
        self.streams = Streams.make(
            self.resources, plan, where=self.where, accounts=self.accounts, keys=self.keys, pool=self.pool
        )
        self._tables(data)
        self._rotate()
        self.cluster = Cluster(
            glue_database=self.offer(self.glue_database),
            secret_arns=[self.offer(arn) for arn in self.secrets.arns],
            watcher_secret_arn=self.offer(self.secrets.by_path["confluent/cloud/watcher"]),
            table_watcher_secret_arn=self.offer(self.secrets.by_path["confluent/tableflow/watcher"]),
            key_arn=self.offer(self.secrets.key.key_arn),
        )
        self._tell()

    @property
    def glue_database(self) -> str:
        """Tableflow calls it by the cluster's id."""
        return self.where.cluster["id"]

    def _resources(self) -> VendorResources:
        cloud_key = self.deployment.confluent.cloud_key_secret
        return VendorResources(
            self,
            "Confluent",
            environment=_addresses(self.surroundings) | {contract.CLOUD_KEY_SECRET: cloud_key},
            statements=[
                allow("ReadCloudKey", ["secretsmanager:GetSecretValue"], [named_secret(self, cloud_key)]),
                allow("KeepKeys", ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"], self.secrets.arns),
                self.secrets.may_use_key(),
            ],
        )

    def _pool(self) -> Made:
        confluent, region = self.deployment.confluent, self.deployment.aws.region
        return self.resources.make(
            FlinkComputePoolProps,
            "FlinkPool",
            environment_id=self.where.environment_id,
            region=region,
            max_cfu=confluent.flink_max_cfu,
        )

    def _bind(self) -> None:
        """Roles on one object are on what only this stack knows: the integration, and Flink's own account."""
        named = {"provider_integration": self.integration["id"], "service_account": self.accounts.id(FLINK)}
        for role in contract.ROLES:
            names = subjects_of(role, self.deployment) if role.scope == "subject" else [named.get(role.scope, "")]
            for name in names:
                self.accounts.bind(self.resources, role, self.where, name)

    def _tables(self, data: DataStack) -> None:
        lake = data.lake
        role = tables.role(self, self.integration, lake.tableflow_arn, self.glue_database)
        before = [role, *self._purge_tables(data, role), *self.accounts.bound[MANAGER]]
        if self.deployment.tables_in_glue:
            before.append(tables.catalog(self.resources, self.where, self.keys, self.integration).after(*before))
        for topic in self.deployment.tables:
            made = tables.table(
                self.resources,
                topic,
                where=self.where,
                keys=self.keys,
                integration_id=self.integration["id"],
                bucket=lake.tableflow_bucket,
            )
            made.after(*before, *self.streams.ready[topic.name])

    def _purge_tables(self, data: DataStack, role: iam.Role) -> list[Made | IDependable]:
        """What Tableflow leaves goes after its tables and catalog, and before the role by which Confluent gets in."""
        if self.deployment.keeps_data:
            return []
        purge = Purge(self, "Purge", *may_empty(data.lake.tableflow_arn), may_drop_tables(self, self.glue_database))
        return [
            purge.on_destroy("EmptyTableflowBucket", "bucket", data.lake.tableflow_bucket, after=[role]),
            purge.on_destroy("DropTables", "glue_database", self.glue_database, after=[role]),
        ]

    def _rotate(self) -> None:
        cloud_key = self.deployment.confluent.cloud_key_secret
        rotation = Rotation(
            self,
            "KeyRotation",
            self.secrets,
            environment=_addresses(self.surroundings) | {contract.CLOUD_KEY_SECRET: cloud_key},
            statements=[allow("ReadCloudKey", ["secretsmanager:GetSecretValue"], [named_secret(self, cloud_key)])],
        )
        for key, secret in zip(self.keys.all, self.secrets.arns, strict=True):
            rotation.follow(f"{key.resource.node.id}Rotation", secret, key)

    def _tell(self) -> None:
        cluster = self.where.cluster
        self.tell("EnvironmentId", self.where.environment_id, "Environment in Confluent Cloud")
        self.tell("KafkaClusterId", cluster["id"], "Kafka cluster, and the Glue database of its tables")
        self.tell("BootstrapServers", cluster["bootstrap_servers"], "Where Kafka clients connect")
        self.tell("SchemaRegistryUrl", cluster["schema_registry_endpoint"], "Where Schema Registry answers")
        self.tell("FlinkComputePoolId", self.pool["id"], "Flink compute pool")
        self.tell("FlinkUrl", self.pool["rest_endpoint"], "Where Flink answers")
        self.tell("ClusterPage", _page(self.where), "The cluster in Confluent's console")
        for key, secret in zip(self.keys.all, self.secrets.arns, strict=True):
            self.tell(f"{key.resource.node.id}SecretArn", secret, "Secret with all that a client of this account needs")
        self.tell("CatalogUri", _catalog(self.deployment.aws.region, self.where), "Tableflow's Iceberg REST catalog")


def _page(where: Place) -> str:
    return f"https://confluent.cloud/environments/{where.environment_id}/clusters/{where.cluster['id']}"


def _catalog(region: str, where: Place) -> str:
    """The organization's id is a part of the cluster's CRN, also where the environment was not created here:
    crn://confluent.cloud/organization=…/environment=…/cloud-cluster=…"""
    organization = Fn.select(0, Fn.split("/", Fn.select(1, Fn.split("organization=", where.cluster["rbac_resource_name"]))))
    place = f"organizations/{organization}/environments/{where.environment_id}"
    return f"https://tableflow.{region}.aws.confluent.cloud/iceberg/catalog/{place}"


def _addresses(surroundings: Surroundings) -> dict[str, str]:
    given = {contract.CONFLUENT_URL: surroundings.confluent_url, contract.CATALOG_URL: surroundings.catalog_url}
    return {name: value for name, value in given.items() if value}
