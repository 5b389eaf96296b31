"""Everything in Snowflake: a user that can only read, and Iceberg tables that show Tableflow's tables in
Glue.
"""

from __future__ import annotations

import hashlib
from typing import Final

import attrs
from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from config.deployments.confluent_model import Topic
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import to_pascal_case
from config.deployments.shown_columns import Shown, find_shown_columns
from config.deployments.snowflake_model import Snowflake
from lambdas import contract
from lambdas.shared.settings import RotationSettings, SnowflakeSettings
from lambdas.snowflake import sql
from lambdas.snowflake.properties import (
    CatalogIntegrationOutputs,
    CatalogIntegrationProps,
    DatabaseProps,
    ExternalVolumeOutputs,
    ExternalVolumeProps,
    GrantOutputs,
    GrantProps,
    IcebergTableProps,
    LinkedDatabaseProps,
    RoleProps,
    SchemaProps,
    TrustOutputs,
    TrustProps,
    UserProps,
    ViewProps,
    WarehouseProps,
)
from stacks.base import LakeferryStack
from stacks.confluent.stack import ConfluentStack, find_glue_database
from stacks.constructs.lake_formation import LakeFormationGrants
from stacks.constructs.rotation import KeyRotation
from stacks.constructs.secrets import StackSecrets, may_decrypt_tables, may_read_secret, name_secret_arn
from stacks.constructs.snowflake_aggregates import SnowflakeAggregates
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, allow, create_role, list_glue_table_arns
from stacks.constructs.synthesis import SynthOptions, build_own_arn
from stacks.constructs.vendor import VendorProvider, VendorResource
from stacks.data import DataStack
from stacks.lake import Lake

_READER_SECRET: Final = "snowflake/reader"  # noqa: S105  (the name of a secret)
_ON_LINKED: Final = (
    ("USAGE", "DATABASE"),
    ("USAGE", "SCHEMAS IN DATABASE"),
    ("SELECT", "ICEBERG TABLES IN DATABASE"),
)


@attrs.frozen
class Reader:
    """Values for other stacks: the schema of the tables, the secret of the user that may read them, and the
    table of states.
    """

    schema: str
    secret_arn: str
    key_arn: str
    state_table: str


class SnowflakeStack(LakeferryStack):
    """The Snowflake stack.

    Volume and integration come before the IAM role, because its trust policy contains their values.
    """

    def __init__(
        self, scope: Construct, *, loaded: LoadedDeployment, data: DataStack, confluent: ConfluentStack
    ) -> None:
        super().__init__(
            scope, "snowflake", loaded=loaded, purpose="tables, reader and their keys in Snowflake"
        )
        assert self.deployment.snowflake is not None
        self.settings: Snowflake = self.deployment.snowflake
        self.add_stack_dependency(confluent)
        self.secrets = StackSecrets(
            self, "Secrets", runtime=self.runtime, purpose="Encrypts the keys of Snowflake's users"
        )
        self.provider = self._create_provider()
        self._create_containers()
        self._create_reader()
        self._grant_to_people()
        self._create_tables(data, confluent)
        self.reader = Reader(
            schema=self.export_value(self.schema.full_name),
            secret_arn=self.export_value(self.reader_secret.arn),
            key_arn=self.export(self.secrets.key_arn),
            state_table=self.export_value(self.provider.states.table_name),
        )
        self._add_outputs()

    def _create_provider(self) -> VendorProvider:
        settings = self.settings
        return VendorProvider(
            self,
            "Snowflake",
            runtime=self.runtime,
            settings=SnowflakeSettings(
                account=settings.account,
                user=settings.user,
                role=settings.role,
                warehouse=settings.deployer_warehouse,
                key_secret=settings.key_secret,
                proxy=self.deployment.proxy,
                snowflake_url=SynthOptions.of(self).snowflake_url,
            ),
            statements=[
                *may_read_secret(self, "DeployerKey", name_secret_arn(self, settings.key_secret)),
                # By name: the ARN would be a circular dependency, as a tag of the secret names a role that
                # this function creates.
                allow(
                    "WriteKeys",
                    ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"],
                    [name_secret_arn(self, f"{self.deployment.prefix}/{_READER_SECRET}")],
                ),
                self.secrets.may_use_key(),
            ],
            fixed_ids=True,
        )

    def _create_containers(self) -> None:
        settings = self.settings
        warehouse = WarehouseProps(
            name=settings.warehouse or "",
            size=settings.warehouse_size,
            auto_suspend_seconds=settings.auto_suspend_seconds,
        )
        self.warehouse = self.provider.create(self, "Warehouse", warehouse).outputs.name
        self.database = self.provider.create(
            self, "Database", DatabaseProps(name=settings.database or "")
        ).outputs.name
        self.schema = self.provider.create(
            self, "Schema", SchemaProps(database=self.database, name=settings.schema or "")
        ).outputs
        self.views_schema = self.provider.create(
            self, "ViewsSchema", SchemaProps(database=self.database, name=settings.views_schema)
        ).outputs

    def _create_reader(self) -> None:
        """Create the user with two roles: one to read, and one that can only replace the user's keys."""
        self.roles = {
            name: self.provider.create(self, f"{to_pascal_case(name)}Role", role).outputs.name
            for name, role in self._list_roles().items()
        }
        tags = {contract.ROTATION_ROLE_TAG: self.roles["rotation"]}
        self.reader_secret = self.secrets.empty(
            "ReaderKeySecret", _READER_SECRET, "Key pair of Snowflake's reader", tags
        )
        user = self.provider.create(
            self,
            "Reader",
            UserProps(
                secret=self.reader_secret.arn,
                name=self.settings.user_name or "",
                role=self.roles["reader"],
                warehouse=self.warehouse,
                namespace=self.schema.full_name,
                network_policy=self.settings.network_policy or "",
                account=self.settings.account,
            ),
        )
        self.user = user.outputs.name
        memberships = [
            self.provider.create(
                self,
                f"{to_pascal_case(name)}RoleOfReader",
                GrantProps(on="ROLE", name=role, to_user=self.user),
            )
            for name, role in self.roles.items()
            if name in contract.SNOWFLAKE_READER_ROLES
        ]
        self.grants = [self._grant(grant) for grant in contract.SNOWFLAKE_GRANTS]
        policy = self.deployment.rotation
        rotation = KeyRotation(
            self,
            "KeyRotation",
            runtime=self.runtime,
            secrets=self.secrets,
            provider=self.provider,
            keep=policy.keep,
            grace_days=policy.grace_days,
            settings=RotationSettings(
                proxy=self.deployment.proxy, snowflake_url=SynthOptions.of(self).snowflake_url
            ),
        )
        every = Duration.days(policy.every_days)
        rotation.rotate(self.reader_secret, user, *memberships, *self.grants, every=every)

    def _list_roles(self) -> dict[str, RoleProps]:
        chosen_names = {"people": self.settings.people_role, "raw": self.settings.raw_role}
        return {name: RoleProps(name=chosen_names.get(name) or "") for name in contract.SNOWFLAKE_ROLES}

    def _grant(self, grant: contract.SnowflakeGrant) -> VendorResource[GrantOutputs]:
        schema = self.views_schema if grant.role == "people" else self.schema
        names = {
            "WAREHOUSE": self.warehouse,
            "DATABASE": self.database,
            "SCHEMA": schema.full_name,
            "ICEBERG TABLES IN SCHEMA": schema.full_name,
            "VIEWS IN SCHEMA": schema.full_name,
            "USER": self.user,
        }
        return self.provider.create(
            self,
            f"{to_pascal_case(grant.role)}On{to_pascal_case(grant.on.lower().replace(' ', '_'))}",
            GrantProps(
                privilege=grant.privilege, on=grant.on, name=names[grant.on], to_role=self.roles[grant.role]
            ),
        )

    def _create_tables(self, data: DataStack, confluent: ConfluentStack) -> None:
        role_arn = build_own_arn(self, "iam", self.deployment.role_resource("snowflake"), region=False)
        bucket = data.lake.tableflow_bucket
        database = find_glue_database(self.deployment, confluent)
        volume = self.provider.create(
            self, "Volume", ExternalVolumeProps(base_url=f"s3://{bucket}/", role_arn=role_arn)
        ).outputs
        catalog = self.provider.create(
            self,
            "Catalog",
            CatalogIntegrationProps(
                role_arn=role_arn,
                region=self.deployment.aws.region,
                account_id=self.account,
                namespace=database,
                refresh_seconds=self.settings.refresh_seconds,
            ),
        ).outputs
        role = self._create_role(volume, catalog, data.lake, database)
        if self.deployment.shows_aggregates:
            self._show_aggregates(data.lake, catalog, role, role_arn)
        grants = LakeFormationGrants(
            self, "Grants", governs=self.deployment.aws.lake_formation, role_arn=role.role_arn
        )
        grants.grant_reading(database)
        trust = self._check_trust(volume, catalog, database).after(role, *grants.all)
        for topic in self.deployment.tables_in_glue:
            if topic.tableflow and topic.tableflow.snowflake_table:
                table = IcebergTableProps(
                    database=self.database,
                    schema=self.schema.name,
                    name=topic.tableflow.snowflake_table,
                    volume=volume.name,
                    integration=catalog.name,
                    table=topic.table,
                    write_mode=topic.tableflow.write_mode,
                )
                created = self.provider.create(self, f"{to_pascal_case(topic.name)}Table", table)
                created.after(trust, *self.grants)
                self._create_view(topic, table.name, created.outputs.full_name)
        if self.settings.linked_database:
            linked = LinkedDatabaseProps(volume=volume.name, integration=catalog.name, namespaces=[database])
            self._grant_on_linked(
                self.provider.create(self, "LinkedDatabase", linked).after(trust).outputs.name
            )

    def _show_aggregates(
        self, lake: Lake, catalog: CatalogIntegrationOutputs, role: iam.Role, role_arn: str
    ) -> None:
        aggregates = SnowflakeAggregates(
            self,
            "Aggregates",
            provider=self.provider,
            lake=lake,
            catalog=catalog,
            role=role,
            role_arn=role_arn,
        )
        for export in self.deployment.exports:
            kept = self.loaded.sources.contract(export.contract, None)
            if kept.keeps_table:
                aggregates.show(
                    kept,
                    database=self.database,
                    tables=self.schema,
                    views=self.views_schema,
                    grants=self.grants,
                )

    def _create_view(self, topic: Topic, name: str, table: str) -> None:
        """Create the view that people use instead of the table.

        A table of which nobody knows what is personal gets none.
        """
        shown = find_shown_columns(topic, self.loaded.sources, self.deployment)
        if isinstance(shown, Shown):
            view = ViewProps(
                database=self.database,
                schema=self.views_schema.name,
                name=name,
                table=table,
                columns=list(shown.columns),
            )
            self.provider.create(self, f"{to_pascal_case(topic.name)}View", view)

    def _grant_to_people(self) -> None:
        """Grant the people's role to the users and roles that the file names."""
        people = self.roles["people"]
        for user in self.settings.grant_to_users:
            grant = GrantProps(on="ROLE", name=people, to_user=user, named_by="snowflake.grant_to_users")
            self.provider.create(self, f"PeopleRoleOfUser{_hash_name(user)}", grant)
        for role in self.settings.grant_to_roles:
            grant = GrantProps(on="ROLE", name=people, to_role=role, named_by="snowflake.grant_to_roles")
            self.provider.create(self, f"PeopleRoleOfRole{_hash_name(role)}", grant)

    def _grant_on_linked(self, linked: str) -> None:
        """Let the reader select from all tables that the linked database has at the time of the
        deployment.
        """
        for privilege, on in _ON_LINKED:
            self.provider.create(
                self,
                f"ReaderOnLinked{to_pascal_case(on.lower().replace(' ', '_'))}",
                GrantProps(privilege=privilege, on=on, name=linked, to_role=self.roles["reader"]),
            )

    def _create_role(
        self,
        volume: ExternalVolumeOutputs,
        catalog: CatalogIntegrationOutputs,
        lake: Lake,
        database: str,
    ) -> iam.Role:
        """Create the role.

        It can only read, and trusts two principals, each with the external id of its own object.
        """
        needs = contract.SNOWFLAKE_NEEDS
        bucket_arn = lake.tableflow_arn
        created = create_role(
            self,
            "SnowflakeRole",
            role_name=self.deployment.role_name("snowflake"),
            purpose="Snowflake reads tables in Glue",
            trusts=iam.ArnPrincipal(volume.iam_user_arn).with_conditions(
                {"StringEquals": {"sts:ExternalId": volume.external_id}}
            ),
            statements=[
                allow("FindBucket", needs["bucket"], [bucket_arn]),
                allow("ReadTables", needs["objects"], [f"{bucket_arn}/*"], why=ITS_KEYS),
                *may_decrypt_tables(self, lake.tableflow_key_arn),
                allow("ReadCatalog", needs["tables"], list_glue_table_arns(self, database), why=ONE_DATABASE),
            ],
        )
        trust = created.assume_role_policy
        assert trust is not None
        trust.add_statements(
            iam.PolicyStatement(
                actions=["sts:AssumeRole"],
                principals=[iam.ArnPrincipal(catalog.iam_user_arn)],
                conditions={"StringEquals": {"sts:ExternalId": catalog.external_id}},
            )
        )
        return created

    def _check_trust(
        self, volume: ExternalVolumeOutputs, catalog: CatalogIntegrationOutputs, database: str
    ) -> VendorResource[TrustOutputs]:
        """Check that Snowflake can assume the role, before tables need it."""
        return self.provider.create(
            self,
            "Trust",
            TrustProps(
                volume=volume.name,
                integration=catalog.name,
                namespace=database,
                volume_principal=volume.iam_user_arn,
                volume_external_id=volume.external_id,
                integration_principal=catalog.iam_user_arn,
                integration_external_id=catalog.external_id,
            ),
        )

    def _add_outputs(self) -> None:
        self.output("WarehouseName", self.warehouse, "The readers' warehouse")
        self.output("SchemaName", self.schema.full_name, "Schema of the tables")
        self.output("ViewsSchemaName", self.views_schema.full_name, "Schema of the views that people use")
        self.output("PeopleRoleName", self.roles["people"], "The role that people get")
        self.output("RawRoleName", self.roles["raw"], "The role that reads all columns, granted to nobody")
        self.output("ReaderName", self.user, "The user that can read")
        self.output("ReaderSecretArn", self.reader_secret.arn, "Secret with the connection of the reader")


def _hash_name(name: str) -> str:
    """Return the part of a logical id that stands for a name which may have any characters."""
    return hashlib.sha256(sql.to_exact_name(name).encode()).hexdigest()[:8]
