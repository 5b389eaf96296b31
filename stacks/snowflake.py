"""Everything in Snowflake: a user who can only read, and tables that follow those of Tableflow through Glue."""

from __future__ import annotations

from typing import Final

import attrs
from aws_cdk import App
from aws_cdk import aws_iam as iam

from deployments.check import Plan
from deployments.model import Snowflake
from lambdas import contract
from lambdas.snowflake.properties import (
    CatalogIntegrationProps,
    DatabaseProps,
    ExternalVolumeProps,
    GrantProps,
    IcebergTableProps,
    LinkedDatabaseProps,
    RoleProps,
    SchemaProps,
    TrustProps,
    UserProps,
    WarehouseProps,
)
from stacks.base import LakeferryStack, Surroundings, words
from stacks.confluent.stack import ConfluentStack
from stacks.constructs.rotation import Rotation
from stacks.constructs.secrets import SecretsOfStack, named_secret
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, allow, glue_tables, role
from stacks.constructs.vendor_resources import Made, VendorResources
from stacks.data import DataStack

_READER_SECRET: Final = "snowflake/reader"  # noqa: S105  (the name of a secret)
_ON_LINKED: Final = (("USAGE", "DATABASE"), ("USAGE", "SCHEMAS IN DATABASE"), ("SELECT", "ICEBERG TABLES IN DATABASE"))


@attrs.frozen
class Reader:
    """What other stacks take: where the tables are, and the secret of the user who may read them."""

    schema: str
    secret_arn: str
    key_arn: str


class SnowflakeStack(LakeferryStack):
    """Needs the tables of the Confluent stack. Volume and integration come before the role that trusts them by value."""

    def __init__(self, app: App, plan: Plan, surroundings: Surroundings, data: DataStack, confluent: ConfluentStack) -> None:
        super().__init__(app, "snowflake", plan, surroundings, purpose="tables, reader and their keys in Snowflake")
        assert self.deployment.snowflake is not None
        self.wanted: Snowflake = self.deployment.snowflake
        self.add_stack_dependency(confluent)
        self.secrets = SecretsOfStack(self, "Secrets", purpose="Encrypts the keys of Snowflake's users")
        self.resources = self._resources()
        self._places()
        self._reader()
        self._tables(data, confluent)
        self.reader = Reader(
            schema=self.offer(self.schema["full_name"]),
            secret_arn=self.offer(self.secrets.arns[0]),
            key_arn=self.offer(self.secrets.key.key_arn),
        )
        self._tell()

    def _resources(self) -> VendorResources:
        given = self.wanted
        return VendorResources(
            self,
            "Snowflake",
            environment={
                contract.SNOWFLAKE_ACCOUNT: given.account,
                contract.SNOWFLAKE_USER: given.user,
                contract.SNOWFLAKE_ROLE: given.role,
                contract.SNOWFLAKE_WAREHOUSE: given.deployer_warehouse,
                contract.SNOWFLAKE_SECRET: given.key_secret,
                **self._address(),
            },
            statements=[
                allow("ReadDeployerKey", ["secretsmanager:GetSecretValue"], [named_secret(self, given.key_secret)]),
                # By its name: the secret has a tag with the name of a role that this function creates.
                allow(
                    "KeepKeys",
                    ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"],
                    [named_secret(self, f"{self.deployment.prefix}/{_READER_SECRET}")],
                ),
                self.secrets.may_use_key(),
            ],
        )

    def _address(self) -> dict[str, str]:
        return {contract.SNOWFLAKE_URL: self.surroundings.snowflake_url} if self.surroundings.snowflake_url else {}

    def _places(self) -> None:
        given = self.wanted
        self.warehouse = self.resources.make(
            WarehouseProps,
            "Warehouse",
            name=given.warehouse,
            size=given.warehouse_size,
            auto_suspend_seconds=given.auto_suspend_seconds,
        )
        self.database = self.resources.make(DatabaseProps, "Database", name=given.database)
        self.schema = self.resources.make(SchemaProps, "Schema", database=self.database["name"], name=given.schema)

    def _reader(self) -> None:
        """The user reads in one role, and in another, which may nothing else, its keys are replaced."""
        self.roles = {name: self.resources.make(RoleProps, f"{words(name)}Role") for name in contract.SNOWFLAKE_ROLES}
        roles = self.roles
        tags = {contract.ROTATION_ROLE_TAG: roles["rotation"]["name"]}
        secret = self.secrets.empty("ReaderKeySecret", _READER_SECRET, "Key pair of Snowflake's reader", tags)
        self.user = self.resources.make(
            UserProps,
            "Reader",
            secret=secret,
            name=self.wanted.user_name,
            role=roles["reader"]["name"],
            warehouse=self.warehouse["name"],
            namespace=self.schema["full_name"],
        )
        memberships = [
            self.resources.make(GrantProps, f"{words(name)}RoleOfReader", on="ROLE", name=role["name"], to_user=self.user["name"])
            for name, role in roles.items()
        ]
        self.grants = [self._grant(grant, roles[grant.role]) for grant in contract.SNOWFLAKE_GRANTS]
        rotation = Rotation(self, "KeyRotation", self.secrets, environment=self._address())
        rotation.follow("ReaderKeyRotation", secret, self.user, *memberships, *self.grants)

    def _grant(self, grant: contract.SnowflakeGrant, role: Made) -> Made:
        names = {
            "WAREHOUSE": self.warehouse["name"],
            "DATABASE": self.database["name"],
            "SCHEMA": self.schema["full_name"],
            "ICEBERG TABLES IN SCHEMA": self.schema["full_name"],
            "USER": self.user["name"],
        }
        return self.resources.make(
            GrantProps,
            f"{words(grant.role)}On{words(grant.on.lower().replace(' ', '_'))}",
            privilege=grant.privilege,
            on=grant.on,
            name=names[grant.on],
            to_role=role["name"],
        )

    def _tables(self, data: DataStack, confluent: ConfluentStack) -> None:
        role_arn = self.own_arn("iam", f"role/{self._role_name}", region=False)
        bucket, database = data.lake.tableflow_bucket, confluent.cluster.glue_database
        volume = self.resources.make(ExternalVolumeProps, "Volume", base_url=f"s3://{bucket}/", role_arn=role_arn)
        catalog = self.resources.make(
            CatalogIntegrationProps,
            "Catalog",
            role_arn=role_arn,
            region=self.deployment.aws.region,
            account_id=self.account,
            namespace=database,
            refresh_seconds=self.wanted.refresh_seconds,
        )
        trust = self._trust(volume, catalog, self._role(volume, catalog, data, database), database)
        for topic in self.deployment.tables_in_glue:
            if topic.tableflow and topic.tableflow.snowflake_table:
                self.resources.make(
                    IcebergTableProps,
                    f"{words(topic.name)}Table",
                    database=self.database["name"],
                    schema=self.schema["name"],
                    name=topic.tableflow.snowflake_table,
                    volume=volume["name"],
                    integration=catalog["name"],
                    table=topic.name,
                    write_mode=topic.tableflow.write_mode,
                ).after(trust, *self.grants)
        if self.wanted.linked_database:
            linked = self.resources.make(
                LinkedDatabaseProps,
                "LinkedDatabase",
                volume=volume["name"],
                integration=catalog["name"],
                namespaces=[database],
            ).after(trust)
            self._let_read(linked)

    def _let_read(self, linked: Made) -> None:
        """The reader may select from all tables that the linked database has when it is deployed."""
        for privilege, on in _ON_LINKED:
            self.resources.make(
                GrantProps,
                f"ReaderOnLinked{words(on.lower().replace(' ', '_'))}",
                privilege=privilege,
                on=on,
                name=linked["name"],
                to_role=self.roles["reader"]["name"],
            )

    @property
    def _role_name(self) -> str:
        """Known before the role is there, because volume and integration are made with its ARN."""
        return f"{self.deployment.regional_prefix}-snowflake"

    def _role(self, volume: Made, catalog: Made, data: DataStack, database: str) -> iam.Role:
        """Two principals, each with the external id of its own object, all four by value. It can only read."""
        bucket_arn, needs = data.lake.tableflow_arn, contract.SNOWFLAKE_NEEDS
        made = role(
            self,
            "SnowflakeRole",
            role_name=self._role_name,
            purpose="Snowflake reads the tables that Tableflow writes",
            trusts=_comes_as(volume),
            statements=[
                allow("FindBucket", needs["bucket"], [bucket_arn]),
                allow("ReadTables", needs["objects"], [f"{bucket_arn}/*"], why=ITS_KEYS),
                allow("ReadCatalog", needs["tables"], glue_tables(self, database), why=ONE_DATABASE),
            ],
        )
        trust = made.assume_role_policy
        assert trust is not None
        trust.add_statements(
            iam.PolicyStatement(
                actions=["sts:AssumeRole"],
                principals=[iam.ArnPrincipal(catalog["iam_user_arn"])],
                conditions={"StringEquals": {"sts:ExternalId": catalog["external_id"]}},
            )
        )
        return made

    def _trust(self, volume: Made, catalog: Made, role: iam.Role, database: str) -> Made:
        """Proves that Snowflake is let in before any table asks for it."""
        return self.resources.make(
            TrustProps,
            "Trust",
            volume=volume["name"],
            integration=catalog["name"],
            namespace=database,
            volume_principal=volume["iam_user_arn"],
            volume_external_id=volume["external_id"],
            integration_principal=catalog["iam_user_arn"],
            integration_external_id=catalog["external_id"],
        ).after(role)

    def _tell(self) -> None:
        self.tell("WarehouseName", self.warehouse["name"], "The readers' warehouse")
        self.tell("SchemaName", self.schema["full_name"], "Where the tables are")
        self.tell("ReaderName", self.user["name"], "The user that reads")
        self.tell("ReaderSecretArn", self.secrets.arns[0], "Secret with all that the reader needs to connect")


def _comes_as(made: Made) -> iam.IPrincipal:
    return iam.ArnPrincipal(made["iam_user_arn"]).with_conditions({"StringEquals": {"sts:ExternalId": made["external_id"]}})
