"""Tables that exports and others read: where they are, and what reading them needs."""

from __future__ import annotations

import attrs
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from config.deployments.confluent_model import Tableflow
from stacks.constructs.lake_formation import READS_TABLES, LakeFormationGrants, let_see_database
from stacks.constructs.reading import find_principal, find_principal_arn, grant_statements
from stacks.constructs.secrets import may_decrypt_tables, may_read_secret, name_secret_arn, through
from stacks.constructs.statements import (
    ITS_KEYS,
    ONE_DATABASE,
    Statement,
    allow,
    list_glue_table_arns,
)
from stacks.constructs.synthesis import build_own_arn


@attrs.frozen
class TablesInGlue:
    """The tables of a Glue database and the bucket with their files. `key_arn` is the bucket's KMS key, "" if
    it has none that is named.
    """

    database: str
    bucket_arn: str
    key_arn: str = ""

    def list_reads(self, scope: Construct) -> list[Statement]:
        """Return what reading all tables needs.

        Nobody but Tableflow writes to its bucket: changed files break its tables.
        """
        return self._list_reads(scope, list_glue_table_arns(scope, self.database), f"{self.bucket_arn}/*")

    def list_reads_of(self, scope: Construct, table: str, path: str) -> list[Statement]:
        """Return what reading one table needs. `path` is that of its files, with the bucket."""
        arns = [
            build_own_arn(scope, "glue", name)
            for name in ("catalog", f"database/{self.database}", f"table/{self.database}/{table}")
        ]
        return self._list_reads(scope, arns, f"arn:{Stack.of(scope).partition}:s3:::{path}*")

    def _list_reads(self, scope: Construct, tables: list[str], objects: str) -> list[Statement]:
        return [
            allow("ReadTablesGlue", ["glue:GetTable"], tables, why=ONE_DATABASE),
            # Without ListBucket, S3 answers 403 instead of 404 for a file that Tableflow has removed.
            allow("ListTablesS3", ["s3:ListBucket"], [self.bucket_arn]),
            allow("ReadTablesS3", ["s3:GetObject"], [objects], why=ITS_KEYS),
            *may_decrypt_tables(scope, self.key_arn),
        ]


@attrs.frozen
class TablesAtConfluent:
    """Tables in Confluent's storage, and the key that reads them: the name of its secret, the ARN of the
    secret's KMS key ("" if it isn't known), the Kafka cluster's id, which is the tables' database in
    Tableflow's catalog, and the catalog's address ("" if the secret has it).
    """

    secret: str
    kms_key_arn: str
    cluster_id: str
    catalog_uri: str = ""

    def list_reads(self, scope: Construct) -> list[Statement]:
        secret = name_secret_arn(scope, self.secret)
        if not self.kms_key_arn:
            return may_read_secret(scope, "TableflowKey", secret)
        return [
            allow("ReadTableflowKey", ["secretsmanager:GetSecretValue"], [secret]),
            allow(
                "DecryptTableflowKey", ["kms:Decrypt"], [self.kms_key_arn], through(scope, "secretsmanager")
            ),
        ]


@attrs.frozen
class Table:
    """The Iceberg table of a topic.

    `partitions` is the number of the topic's partitions, None if it isn't known. `path` is that of the
    table's files, with the bucket, "" if it isn't known: then whoever reads it may read all tables of the
    database.
    `resource` creates the table; it is None for a table that exists. `settings` are those of Tableflow, its
    defaults if nobody knows them. `lake_formation` says whether Lake Formation governs the catalog.
    """

    topic: str
    name: str
    location: TablesInGlue | TablesAtConfluent
    partitions: int | None = None
    path: str = ""
    resource: Construct | None = None
    settings: Tableflow = Tableflow()
    lake_formation: bool = False

    def list_reads(self, scope: Construct) -> list[Statement]:
        """Return what reading the table needs."""
        if isinstance(self.location, TablesInGlue) and self.path:
            return self.location.list_reads_of(scope, self.name, self.path)
        return self.location.list_reads(scope)

    @property
    def created_by(self) -> list[IDependable]:
        return [self.resource] if self.resource else []

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role, user or function read the table with Spark, Athena or another reader of Iceberg."""
        principal = find_principal(grantee)
        # A role that exists can't be the scope of others.
        stack = Stack.of(principal)
        scope = self.resource or stack
        granted = grant_statements(scope, grantee, self.list_reads(scope))
        id = f"Read{self.name}{scope.node.addr}{principal.node.addr}"
        if not stack.node.try_find_child(id):
            arn = find_principal_arn(principal)
            self.grant_in_lake_formation(stack, id, governs=self.lake_formation, arn=arn)
        return granted

    def grant_in_lake_formation(
        self, scope: Construct, id: str, *, governs: bool, arn: str
    ) -> list[IDependable]:
        """Grant what Lake Formation asks for, besides IAM, to the principal with this ARN. `scope` is in its
        stack. Return the grants, none unless Lake Formation `governs` the catalog.
        """
        if not isinstance(self.location, TablesInGlue) or not governs:
            return []
        database = self.location.database
        of_database = let_see_database(
            Stack.of(scope), role_arn=arn, database=database, created_by=self.created_by
        )
        grants = LakeFormationGrants(scope, id, governs=True, role_arn=arn)
        grants.grant_on_table("Table", database, self.name, READS_TABLES)
        for grant in grants.all:
            grant.node.add_dependency(*self.created_by)
        return [*of_database.all, *grants.all]
