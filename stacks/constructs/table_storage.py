"""The bucket that Tableflow writes tables to: the provider integration, its role, and the tables in Glue."""

from __future__ import annotations

from typing import Final, Self

import attrs
from aws_cdk import Names, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from config.deployments import validation
from lambdas import contract
from lambdas.confluent.properties import (
    CatalogIntegrationOutputs,
    CatalogIntegrationProps,
    ProviderIntegrationOutputs,
    ProviderIntegrationProps,
)
from stacks.constructs.cleanup import CleanupOnDestroy, may_drop_tables
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.lake_formation import DROPS_TABLES, LakeFormationGrants, let_see_database
from stacks.constructs.runtime import BadProps, require_forms
from stacks.constructs.secrets import may_encrypt_tables
from stacks.constructs.service_account import ServiceAccount
from stacks.constructs.statements import (
    ITS_KEYS,
    ONE_DATABASE,
    allow,
    attach,
    create_role,
    list_glue_table_arns,
)
from stacks.constructs.synthesis import build_own_arn
from stacks.constructs.table import TablesInGlue
from stacks.constructs.vendor import VendorResource

#: The id of the role that lets an account use its integration.
_BINDING: Final = "ResourceOwnerIntegration"


@attrs.frozen
class Bucket:
    """`key_arn` is the KMS key that encrypts the bucket, "" if it has none that is named."""

    name: str
    arn: str
    key_arn: str = ""

    @classmethod
    def of(cls, bucket: s3.IBucket) -> Self:
        key = bucket.encryption_key
        return cls(bucket.bucket_name, bucket.bucket_arn, key.key_arn if key else "")


class TableStorage(Construct):
    """Confluent's access to a bucket: the provider integration, and the role that trusts it.

    `glue_database` is one that an integration of the cluster's owner fills already; without it, this one
    registers the tables in Glue. `role_name` is the role's name and `role_path` its IAM path.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: KafkaCluster,
        bucket: Bucket,
        glue_database: str | None = None,
        role_name: str = "",
        role_path: str = "/",
    ) -> None:
        super().__init__(scope, id)
        self.cluster = cluster
        self.bucket = bucket
        self.has_catalog = glue_database is not None
        self._provider = cluster.provider
        self._glue_database = glue_database
        #: The account whose tables it has; None if a deployment's several accounts use it.
        self.account: ServiceAccount | None = None
        #: The names of its tables in Glue.
        self.tables: list[str] = []
        self._drops_tables = False
        #: What must exist before a table is switched on.
        self.ready: list[IDependable] = []
        self._role_name = (
            role_name or f"{Names.unique_resource_name(self, max_length=40)}-{Stack.of(self).region}"
        )
        self._role_arn = build_own_arn(self, "iam", f"role{role_path}{self._role_name}", region=False)
        self.integration = self._provider.create(
            self,
            "ProviderIntegration",
            ProviderIntegrationProps(environment_id=cluster.environment_id, role_arn=self._role_arn),
        )
        self.role = self._create_role(self.integration.outputs)

    @classmethod
    def of_account(
        cls,
        scope: Construct,
        id: str,
        *,
        account: ServiceAccount,
        bucket: s3.IBucket,
        glue_database: str,
        drop_tables_on_destroy: bool = False,
    ) -> TableStorage:
        """Return the storage of an account's tables.

        `glue_database` is the one that the cluster's integration with Glue fills: creating an integration
        needs rights on the whole cluster, which the account doesn't have. With `drop_tables_on_destroy`, the
        tables are dropped from Glue when the whole stack is deleted. Their files stay in any case.
        """
        require_forms(glue_database=(validation.GLUE_DATABASE, glue_database))
        if account.node.try_find_child(_BINDING):
            raise BadProps(
                f"account: {account.node.path} has a TableStorage already. Use that one, or give this one a "
                "ServiceAccount of its own"
            )
        cluster = account.cluster
        storage = cls(scope, id, cluster=cluster, bucket=Bucket.of(bucket), glue_database=glue_database)
        storage.account = account
        account.bind(
            _BINDING,
            role="ResourceOwner",
            scope="provider_integration",
            name=storage.integration_id,
        )
        storage.ready += [storage.role, *account.rights]
        if drop_tables_on_destroy:
            storage.ready.append(storage._drop_tables())
            storage._drops_tables = True
        return storage

    def let_drop(self, created: Construct, table: str) -> None:
        """Let the cleanup drop a table that `created` turns on, where Lake Formation governs the catalog.

        A grant needs the table, so CloudFormation would revoke it before the cleanup. It is kept, and Lake
        Formation removes it with the table.
        """
        provider = self._provider
        if not (self._drops_tables and provider.runtime.lake_formation):
            return
        role_arn = provider.role.role_arn
        database = self.in_glue.database
        of_database = let_see_database(
            Stack.of(self), role_arn=role_arn, database=database, created_by=[created]
        )
        of_database.keep_until_dropped()
        grants = LakeFormationGrants(self, f"DropGrants{table}", governs=True, role_arn=role_arn)
        grants.grant_on_table("Table", database, table, DROPS_TABLES)
        grants.keep_until_dropped()
        for grant in grants.all:
            grant.node.add_dependency(created)

    @property
    def integration_id(self) -> str:
        return self.integration.outputs.id

    @property
    def in_glue(self) -> TablesInGlue:
        """Return where the tables are in Glue. Tableflow names its database like the cluster."""
        return TablesInGlue(self._glue_database or self.cluster.id, self.bucket.arn, self.bucket.key_arn)

    def _create_role(self, outputs: ProviderIntegrationOutputs) -> iam.Role:
        """Create the role.

        It trusts the integration's principal with its external id; sts:TagSession has no external id.
        """
        needs = contract.TABLEFLOW_NEEDS
        tables = list_glue_table_arns(self, self.cluster.id)
        # An integration that exists registers tables with a role of its own.
        may_register = (
            [] if self.has_catalog else [allow("RegisterTables", needs["tables"], tables, why=ONE_DATABASE)]
        )
        confluent = iam.ArnPrincipal(outputs.confluent_role_arn)
        created = create_role(
            self,
            "Role",
            role_name=self._role_name,
            purpose="Confluent's Tableflow writes tables and shows them in Glue",
            trusts=confluent.with_conditions({"StringEquals": {"sts:ExternalId": outputs.external_id}}),
            statements=[
                allow("UseBucket", needs["bucket"], [self.bucket.arn]),
                allow("WriteTables", needs["objects"], [f"{self.bucket.arn}/*"], why=ITS_KEYS),
                *may_encrypt_tables(self, self.bucket.key_arn),
                *may_register,
            ],
        )
        trust = created.assume_role_policy
        assert trust is not None
        trust.add_statements(iam.PolicyStatement(actions=["sts:TagSession"], principals=[confluent]))
        return created

    def add_catalog(self, credentials: str) -> VendorResource[CatalogIntegrationOutputs]:
        """Register the cluster's tables in Glue. `credentials` names the secret with a Tableflow key."""
        created = self._provider.create(
            self,
            "CatalogIntegration",
            CatalogIntegrationProps(
                environment_id=self.cluster.environment_id,
                cluster_id=self.cluster.id,
                credentials=credentials,
                provider_integration_id=self.integration_id,
            ),
        )
        grants = LakeFormationGrants(
            self,
            "Grants",
            governs=self._provider.runtime.lake_formation,
            role_arn=self.role.role_arn,
        )
        # The role then has all permissions on the database and the tables that it creates.
        grants.grant_on_catalog("CreateDatabase", ["CREATE_DATABASE"])
        return created.after(*grants.all)

    def _drop_tables(self) -> IDependable:
        """Drop this storage's tables, and the database that its integration registers."""
        database = self.in_glue.database
        rights = attach(
            self,
            "CleanupRights",
            self._provider.role,
            may_drop_tables(self, database, keep_database=self.has_catalog),
        )
        cleanup = CleanupOnDestroy(
            self,
            "DropTables",
            service_token=self._provider.service_token,
            glue_database=database,
            table_bucket=self.bucket.name,
            only_tables=self.tables,
            keep_database=self.has_catalog,
        )
        cleanup.node.add_dependency(rights, self.role)
        return cleanup
