"""Topics as Iceberg tables: the provider integration, its role, the catalog integration with Glue,
Tableflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment, to_pascal_case
from lambdas import contract
from lambdas.confluent.properties import (
    CatalogIntegrationProps,
    ProviderIntegrationOutputs,
    ProviderIntegrationProps,
    TableflowTopicProps,
)
from stacks.base import build_own_arn
from stacks.confluent.access import KafkaCluster, Keys
from stacks.confluent.rights import TABLEFLOW
from stacks.constructs.lake_formation import LakeFormationGrants
from stacks.constructs.secrets import may_encrypt_tables
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, allow, create_role, list_glue_table_arns
from stacks.constructs.vendor import VendorProvider, VendorResource
from stacks.lake import Lake

_DAY_MS: Final = 86_400_000


class Tableflow(Construct):
    """The tables, and Confluent's access to the AWS account: the integration, and the role that trusts it.

    Without a table in the deployment's bucket, there is no access, and both are None.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        provider: VendorProvider,
        cluster: KafkaCluster,
        keys: Keys,
        lake: Lake,
    ) -> None:
        super().__init__(scope, id)
        self._provider = provider
        self._cluster = cluster
        self._keys = keys
        self._lake = lake
        self._has_catalog = deployment.existing_glue_database is not None
        self._is_cluster_shared = deployment.uses_existing_cluster
        self._is_governed = deployment.aws.lake_formation
        self.integration: VendorResource[ProviderIntegrationOutputs] | None = None
        self.role: iam.Role | None = None
        if deployment.uses_own_bucket:
            self.integration = self._create_integration(deployment)
            self.role = self._create_role(deployment.role_name("tableflow"), self.integration.outputs)

    @property
    def integration_id(self) -> str:
        """Return the id of the integration, "" if there is none."""
        return self.integration.outputs.id if self.integration else ""

    def _create_integration(self, deployment: Deployment) -> VendorResource[ProviderIntegrationOutputs]:
        props = ProviderIntegrationProps(
            environment_id=self._cluster.environment_id,
            role_arn=build_own_arn(self, "iam", deployment.role_resource("tableflow"), region=False),
        )
        return self._provider.create(self, "ProviderIntegration", props)

    def _create_role(self, name: str, outputs: ProviderIntegrationOutputs) -> iam.Role:
        """Create the role.

        It trusts the integration's principal with its external id; sts:TagSession has no external id.
        """
        needs = contract.TABLEFLOW_NEEDS
        tables = list_glue_table_arns(self, self._cluster.id)
        # An integration that exists registers tables with a role of its own.
        may_register = (
            [] if self._has_catalog else [allow("RegisterTables", needs["tables"], tables, why=ONE_DATABASE)]
        )
        confluent = iam.ArnPrincipal(outputs.confluent_role_arn)
        created = create_role(
            self,
            "Role",
            role_name=name,
            purpose="Confluent's Tableflow writes tables and shows them in Glue",
            trusts=confluent.with_conditions({"StringEquals": {"sts:ExternalId": outputs.external_id}}),
            statements=[
                allow("UseBucket", needs["bucket"], [self._lake.tableflow_arn]),
                allow("WriteTables", needs["objects"], [f"{self._lake.tableflow_arn}/*"], why=ITS_KEYS),
                *may_encrypt_tables(self, self._lake),
                *may_register,
            ],
        )
        trust = created.assume_role_policy
        assert trust is not None
        trust.add_statements(iam.PolicyStatement(actions=["sts:TagSession"], principals=[confluent]))
        return created

    def add_catalog(self, *after: IDependable) -> list[IDependable]:
        """Register the cluster's tables in Glue, unless an integration that exists does."""
        if self._has_catalog:
            return []
        created = self._provider.create(
            self,
            "CatalogIntegration",
            CatalogIntegrationProps(
                environment_id=self._cluster.environment_id,
                cluster_id=self._cluster.id,
                credentials=self._keys.credentials(TABLEFLOW),
                provider_integration_id=self.integration_id,
            ),
        )
        assert self.role is not None
        grants = LakeFormationGrants(self, "Grants", governs=self._is_governed, role_arn=self.role.role_arn)
        # The role then has all permissions on the database and the tables that it creates.
        grants.grant_on_catalog("CreateDatabase", ["CREATE_DATABASE"])
        return [created.after(*after, *grants.all)]

    def add_table(self, topic: Topic, after: Sequence[IDependable]) -> IDependable:
        table = topic.tableflow
        assert table is not None
        in_own_bucket = not table.is_managed
        props = TableflowTopicProps(
            environment_id=self._cluster.environment_id,
            cluster_id=self._cluster.id,
            credentials=self._keys.credentials(TABLEFLOW),
            topic=topic.name,
            storage=table.storage,
            bucket=self._lake.tableflow_bucket if in_own_bucket else "",
            provider_integration_id=self.integration_id if in_own_bucket else "",
            table_formats=list(table.formats),
            retention_ms=table.snapshots_days * _DAY_MS,
            data_retention_ms=table.rows_days * _DAY_MS if table.rows_days else None,
            error_handling=table.on_error,
            error_log_topic=table.error_log_topic,
            metadata_columns=table.metadata_columns,
            await_catalog=table.in_glue,
            adopt="tableflow" in topic.adopt,
            shared_cluster=self._is_cluster_shared,
        )
        return self._provider.create(self, f"{to_pascal_case(topic.name)}Table", props).after(*after)
