"""Everything in Confluent Cloud: environment, cluster, accounts, keys, topics, statements, tables."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from aws_cdk import Duration, Fn
from constructs import Construct, IDependable

from config.deployments.confluent_model import Topic
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import Deployment, to_pascal_case
from lambdas.confluent.properties import FlinkComputePoolProps
from stacks.base import LakeferryStack
from stacks.confluent.access import (
    Accounts,
    Keys,
    Pool,
    build_secret_path,
    list_brought_keys,
    provide_kafka_cluster,
)
from stacks.confluent.rights import (
    FLINK,
    FLINK_KEY,
    KEYS,
    MANAGER,
    METRICS,
    TABLEFLOW,
    TABLES,
    KeyUse,
    list_accounts_with_work,
    list_key_uses,
    list_names,
    list_roles,
)
from stacks.confluent.streams import Streams
from stacks.constructs.cleanup import CleanupOnDestroy, may_drop_tables, may_empty
from stacks.constructs.confluent_provider import ConfluentProvider
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.lake_formation import DROPS_TABLES, READS_DATABASE, LakeFormationGrants
from stacks.constructs.secrets import StackSecrets
from stacks.constructs.statements import attach
from stacks.constructs.table_storage import Bucket, TableStorage
from stacks.data import DataStack
from stacks.lake import Lake


@attrs.frozen
class Cluster:
    """Values for other stacks: the cluster's id, monitoring's own keys ("" on an existing cluster), the KMS
    key of the secrets, and the table of states.

    Other keys are not among them: a key goes with the last work of its account, and CloudFormation refuses to
    remove what another stack imports.
    """

    id: str
    watcher_secret_arn: str
    table_watcher_secret_arn: str
    key_arn: str
    state_table: str


def find_glue_database(deployment: Deployment, confluent: ConfluentStack | None) -> str:
    """Return the name of the Glue database of the tables: one that exists, or that of the stack's cluster; ""
    if somebody else's tables are in Confluent's storage.
    """
    if deployment.existing_glue_database:
        return deployment.existing_glue_database
    return confluent.cluster.id if confluent else ""


class ConfluentStack(LakeferryStack):
    """The Confluent stack: accounts and keys, the provider integration with AWS, streams, tables."""

    def __init__(self, scope: Construct, *, loaded: LoadedDeployment, data: DataStack) -> None:
        super().__init__(
            scope, "confluent", loaded=loaded, purpose="Kafka, Flink and Tableflow, with their keys"
        )
        self.add_stack_dependency(data)
        deployment = loaded.deployment
        self.secrets = StackSecrets(
            self, "Secrets", runtime=self.runtime, purpose="Encrypts the keys of Confluent Cloud"
        )
        confluent = deployment.created_confluent
        self.provider = self._create_provider()
        self.kafka = provide_kafka_cluster(self, provider=self.provider, confluent=confluent)
        self.pool = self._create_pool() if deployment.statements else None
        accounts = list_accounts_with_work(deployment)
        self.accounts = Accounts(self, "Access", cluster=self.kafka, names=accounts)
        self.keys = Keys(
            self,
            "Keys",
            uses=list_key_uses(deployment),
            accounts=self.accounts,
            pool=self.pool,
            confluent=confluent,
        )
        self.storage = self._create_storage(data.lake) if deployment.uses_own_bucket else None
        self._bind()
        self.streams = Streams(
            self,
            "Streams",
            loaded=loaded,
            cluster=self.kafka,
            accounts=self.accounts,
            keys=self.keys,
            pool=self.pool,
        )
        self._create_tables(data.lake)
        self._rotate()
        self.cluster = self._export_cluster()
        self._add_outputs()

    @property
    def glue_database(self) -> str:
        """Return the name of the Glue database: one that exists, or the cluster's id."""
        return self.deployment.existing_glue_database or self.kafka.id

    def _export_cluster(self) -> Cluster:
        for key in self.keys.all.values():
            # An operations stack of an earlier version imports it until it is updated, after this stack.
            self.export_value(key.secret.arn)
        return Cluster(
            id=self.export_value(self.kafka.id),
            watcher_secret_arn=self._export_secret(METRICS),
            table_watcher_secret_arn=self._export_secret(TABLES),
            key_arn=self.export(self.secrets.key_arn),
            state_table=self.export_value(self.provider.states.table_name),
        )

    def _export_secret(self, use: KeyUse) -> str:
        """Return the ARN of a key's secret for other stacks, "" if there is no such key."""
        return self.export_value(self.keys[use].secret.arn) if use in self.keys else ""

    def _create_provider(self) -> ConfluentProvider:
        confluent = self.deployment.created_confluent
        rotation = self.deployment.rotation
        return ConfluentProvider(
            self,
            "Confluent",
            runtime=self.runtime,
            cloud_key_secret=confluent.cloud_key_secret,
            brought_keys=list_brought_keys(confluent),
            secrets=self.secrets,
            # All keys: after an update, a statement is deleted with a key that the stack no longer has.
            key_secrets=[build_secret_path(use) for use in KEYS],
            rotation_scope=self,
            keep=rotation.keep,
            grace_days=rotation.grace_days,
            fixed_ids=True,
        )

    def _create_storage(self, lake: Lake) -> TableStorage:
        return TableStorage(
            self,
            "Tableflow",
            cluster=self.kafka,
            bucket=Bucket(lake.tableflow_bucket, lake.tableflow_arn, lake.tableflow_key_arn),
            glue_database=self.deployment.existing_glue_database,
            role_name=self.deployment.role_name("tableflow"),
            role_path=self.deployment.aws.iam_path or "/",
        )

    def _create_pool(self) -> Pool:
        props = FlinkComputePoolProps(
            environment_id=self.kafka.environment_id,
            region=self.deployment.aws.region,
            max_cfu=self.deployment.created_confluent.flink_max_cfu,
        )
        return self.provider.create(self, "FlinkPool", props)

    def _bind(self) -> None:
        """Bind the roles.

        Two are bound to objects that only this stack knows, if there are any: the integration, and Flink's
        own account.
        """
        named: dict[str, list[str]] = {"provider_integration": [], "service_account": []}
        if self.storage:
            named["provider_integration"] = [self.storage.integration_id]
        if FLINK in self.accounts:
            named["service_account"] = [self.accounts[FLINK].id]
        for role in list_roles(self.deployment):
            if role.account not in self.accounts:
                continue
            names = named[role.scope] if role.scope in named else list_names(role, self.deployment)
            for name in names:
                self.accounts.add_role_binding(role, name)
        if FLINK_KEY in self.keys:
            # Flink's gateway answers 403 for a key whose owner has no role, so the key would never be ready.
            self.keys[FLINK_KEY].resource.after(*self.accounts.rights[FLINK])

    def _create_tables(self, lake: Lake) -> None:
        before: list[IDependable] = [*self._cleanup(lake), *self.accounts.rights[MANAGER]]
        if self.storage:
            before.append(self.storage.role)
            if self.deployment.tables_in_glue and not self.storage.has_catalog:
                catalog = self.storage.add_catalog(self.keys.credentials(TABLEFLOW))
                before.append(catalog.after(*before))
        tables = [self._create_table(topic, before) for topic in self.deployment.tables]
        if self._drops_tables:
            self._grant_dropping(tables)

    def _create_table(self, topic: Topic, before: Sequence[IDependable]) -> IDependable:
        settings = topic.tableflow
        assert settings is not None
        is_managed = settings.is_managed
        return self.streams.topics[topic.name].turn_on_tableflow(
            None if is_managed else self.storage,
            settings=settings,
            id=f"{to_pascal_case(topic.name)}Table",
            adopt="tableflow" in topic.adopt,
            after=before,
        )

    @property
    def _drops_tables(self) -> bool:
        """Return whether the tables go on destroy.

        A protected cluster protects its tables too: CloudFormation would remove them before it finds that it
        can't delete topics.
        """
        return not (self.deployment.keeps_data or self.deployment.created_confluent.deletion_protection)

    def _grant_dropping(self, tables: Sequence[IDependable]) -> None:
        """Let the cleanup drop the tables, where Lake Formation governs them.

        A grant needs a database, which exists with `tables`. So CloudFormation would revoke it before the
        cleanup, and it is kept.
        """
        grants = LakeFormationGrants(
            self,
            "CleanupGrants",
            governs=self.deployment.aws.lake_formation and bool(self.deployment.tables_in_glue),
            role_arn=self.provider.role.role_arn,
        )
        grants.grant_on_database("ReadDatabase", self.glue_database, READS_DATABASE)
        grants.grant_on_tables("DropTables", self.glue_database, DROPS_TABLES)
        grants.keep_until_dropped()
        for grant in grants.all:
            grant.node.add_dependency(*tables)

    def _cleanup(self, lake: Lake) -> list[IDependable]:
        """Remove on destroy what Tableflow leaves: after its tables and catalog, and before the role that
        Confluent assumes.

        The bucket may have tables of an earlier version of the file, even if Confluent stores all that there
        are now. A bucket that exists may have tables of others, so only the tables of the file go, and their
        files stay.
        """
        if not self._drops_tables:
            return []
        keeps_database = self.deployment.existing_glue_database is not None
        is_bucket_ours = self.deployment.aws.existing_tableflow_bucket is None
        # A separate policy, because the database's name is the id of a cluster that this function creates.
        rights = attach(
            self,
            "CleanupRights",
            self.provider.role,
            [
                *(may_empty(lake.tableflow_arn, delete_policy=True) if is_bucket_ours else []),
                *may_drop_tables(self, self.glue_database, keep_database=keeps_database),
            ],
        )
        token = self.provider.service_token
        tables_in_glue = [topic.table for topic in self.deployment.tables_in_glue]
        cleanups = [
            CleanupOnDestroy(
                self,
                "DropTables",
                service_token=token,
                glue_database=self.glue_database,
                table_bucket=lake.tableflow_bucket,
                only_tables=None if is_bucket_ours else tables_in_glue,
                keep_database=keeps_database,
            ),
        ]
        if is_bucket_ours:
            emptying = CleanupOnDestroy(
                self,
                "EmptyTableflowBucket",
                service_token=token,
                bucket=lake.tableflow_bucket,
                delete_policy=True,
            )
            cleanups.append(emptying)
        for cleanup in cleanups:
            cleanup.node.add_dependency(rights)
            if self.storage:
                cleanup.node.add_dependency(self.storage.role)
        return list(cleanups)

    def _rotate(self) -> None:
        """Rotate the keys that the deployment creates. The owners of others replace them."""
        every = Duration.days(self.deployment.rotation.every_days)
        for key in self.keys.all.values():
            key.rotate(every=every)

    def _add_outputs(self) -> None:
        cluster = self.kafka.resource.outputs
        self.output("EnvironmentId", self.kafka.environment_id, "Environment in Confluent Cloud")
        if database := self.deployment.existing_glue_database:
            self.output("KafkaClusterId", cluster.id, "Kafka cluster")
            self.output("GlueDatabase", database, "Glue database of the tables")
        else:
            is_database = ", and the Glue database of its tables" if self.deployment.tables_in_glue else ""
            self.output("KafkaClusterId", cluster.id, f"Kafka cluster{is_database}")
        self.output("BootstrapServers", cluster.bootstrap_servers, "Bootstrap servers for Kafka clients")
        self.output("SchemaRegistryUrl", cluster.schema_registry_endpoint, "URL of Schema Registry")
        if self.pool:
            self.output("FlinkComputePoolId", self.pool.outputs.id, "Flink compute pool")
            self.output("FlinkUrl", self.pool.outputs.rest_endpoint, "URL of Flink's REST API")
        page = f"https://confluent.cloud/environments/{self.kafka.environment_id}/clusters/{cluster.id}"
        self.output("ClusterPage", page, "The cluster in Confluent's console")
        for use, key in self.keys.all.items():
            self.output(
                f"{use.id}SecretArn",
                key.secret.arn,
                "Secret with the connection of this account's clients",
            )
        self.output(
            "CatalogUri",
            _build_catalog_url(self.deployment.aws.region, self.kafka),
            "Tableflow's Iceberg REST catalog",
        )


def _build_catalog_url(region: str, kafka: KafkaCluster) -> str:
    """Return the URL of the catalog. The organization's id is read from the cluster's CRN:
    crn://confluent.cloud/organization=…/environment=…/cloud-cluster=…"""
    crn = kafka.resource.outputs.rbac_resource_name
    organization = Fn.select(0, Fn.split("/", Fn.select(1, Fn.split("organization=", crn))))
    path = f"organizations/{organization}/environments/{kafka.environment_id}"
    return f"https://tableflow.{region}.aws.confluent.cloud/iceberg/catalog/{path}"
