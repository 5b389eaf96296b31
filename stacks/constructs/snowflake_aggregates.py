"""Aggregates in Snowflake: a table for each that an export keeps, and a view of it for people.

A table of aggregates has the columns of the export's files. People see those that have nothing to do with a
person: who gets the files was chosen for each export, and people in Snowflake see all views. A treatment that
is added to a column doesn't change older windows in the table, so no personal column is shown, whatever its
treatment is now.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CustomResource, Duration
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from config.deployments.model import to_pascal_case
from config.exports.contract import Contract
from config.exports.contract_rules import KEPT_WITH
from lambdas import contract
from lambdas.snowflake.properties import (
    CatalogIntegrationOutputs,
    ExternalVolumeOutputs,
    ExternalVolumeProps,
    IcebergTableProps,
    SchemaOutputs,
    TrustProps,
    ViewProps,
)
from stacks.constructs.aggregate_tables import may_create_tables, name_table_job
from stacks.constructs.lake_formation import LakeFormationGrants
from stacks.constructs.secrets import may_decrypt_files
from stacks.constructs.statements import (
    ONE_DATABASE,
    ONE_PREFIX,
    Statement,
    allow,
    attach,
    list_glue_table_arns,
)
from stacks.constructs.vendor import VendorProvider
from stacks.lake import Lake


class SnowflakeAggregates(Construct):
    """The way from Snowflake to the tables of aggregates.

    They have a volume of their own, because their files are in another bucket than Tableflow's. `role` gets
    the rights to read them, and trusts Snowflake for this volume too. `role_arn` is its ARN in text, because
    the role depends on the volume: its trust policy contains the volume's values.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: VendorProvider,
        lake: Lake,
        catalog: CatalogIntegrationOutputs,
        role: iam.Role,
        role_arn: str,
    ) -> None:
        super().__init__(scope, id)
        self._provider = provider
        self._lake = lake
        self._catalog = catalog
        location = f"s3://{lake.bucket}/{lake.prefixes.warehouse}/"
        self._volume = provider.create(
            self, "AggregatesVolume", ExternalVolumeProps(base_url=location, role_arn=role_arn)
        ).outputs
        _trust_volume(role, self._volume)
        rights = attach(self, "Rights", role, self._list_rights())
        grants = LakeFormationGrants(
            self, "Grants", governs=provider.runtime.lake_formation, role_arn=role.role_arn
        )
        grants.grant_reading(lake.aggregates)
        self._trust = provider.create(
            self,
            "AggregatesTrust",
            TrustProps(
                volume=self._volume.name,
                integration=catalog.name,
                namespace=lake.aggregates,
                volume_principal=self._volume.iam_user_arn,
                volume_external_id=self._volume.external_id,
                integration_principal=catalog.iam_user_arn,
                integration_external_id=catalog.external_id,
            ),
        ).after(role, rights, *grants.all)
        prefix = provider.runtime.prefix
        self._may_create = attach(self, "MayCreate", provider.role, [may_create_tables(self, prefix)])

    def show(
        self,
        kept: Contract,
        *,
        database: str,
        tables: SchemaOutputs,
        views: SchemaOutputs,
        grants: Sequence[IDependable],
    ) -> None:
        """Create the table in the schema `tables` and its view in the schema `views`, after `grants`."""
        table = IcebergTableProps(
            database=database,
            schema=tables.name,
            name=kept.name.upper(),
            volume=self._volume.name,
            integration=self._catalog.name,
            table=kept.name,
            namespace=self._lake.aggregates,
            columns=[*KEPT_WITH, *(column.name for column in kept.columns)],
        )
        created = self._provider.create(self, f"{to_pascal_case(kept.name)}Aggregates", table)
        created.after(self._create_in_glue(kept), self._trust, *grants)
        seen = [column.name for column in kept.columns if not column.is_personal]
        view = ViewProps(
            database=database,
            schema=views.name,
            name=table.name,
            table=created.outputs.full_name,
            columns=[*KEPT_WITH, *seen],
        )
        self._provider.create(self, f"{to_pascal_case(kept.name)}AggregatesShown", view)

    def _create_in_glue(self, kept: Contract) -> CustomResource:
        """Create the table in Glue, where Snowflake finds it. Other columns are another request."""
        table = CustomResource(
            self,
            f"{to_pascal_case(kept.name)}InGlue",
            resource_type=contract.AGGREGATE_TABLE_TYPE,
            service_token=self._provider.service_token,
            service_timeout=Duration.seconds(contract.TOTAL_TIMEOUT_SECONDS),
            properties={
                "job": name_table_job(self._provider.runtime.prefix),
                "export": kept.name,
                "columns": [f"{column.name} {column.type}" for column in kept.columns],
            },
        )
        table.node.add_dependency(self._may_create)
        return table

    def _list_rights(self) -> list[Statement]:
        """Allow reading the files of aggregates, which share their bucket with the exports' files."""
        needs = contract.SNOWFLAKE_NEEDS
        bucket_arn = self._lake.arn
        folder = f"{self._lake.prefixes.warehouse}/*"
        return [
            # Without a condition on the prefix: with one, S3 answers 403 instead of 404 for a file that
            # doesn't exist, and Snowflake's check of the volume reads one.
            allow("FindAggregates", needs["bucket"], [bucket_arn]),
            allow("ReadAggregates", needs["objects"], [f"{bucket_arn}/{folder}"], why=ONE_PREFIX),
            *may_decrypt_files(self, self._lake.key_arn),
            allow(
                "ReadAggregatesCatalog",
                needs["tables"],
                list_glue_table_arns(self, self._lake.aggregates),
                why=ONE_DATABASE,
            ),
        ]


def _trust_volume(role: iam.Role, volume: ExternalVolumeOutputs) -> None:
    assert role.assume_role_policy is not None
    role.assume_role_policy.add_statements(
        iam.PolicyStatement(
            actions=["sts:AssumeRole"],
            principals=[iam.ArnPrincipal(volume.iam_user_arn)],
            conditions={"StringEquals": {"sts:ExternalId": volume.external_id}},
        )
    )
