"""People who query tables with Athena and see some columns only.

With IAM alone, Athena reads the files with the rights of who asks, so that a person who may query a table may
read all of it. Here Lake Formation decides: the location of the files is registered with a role that reads
them for Athena, people have SELECT on single columns, and no right on the files. Source: Athena's user guide,
"Use Athena to query data registered with Lake Formation".

They ask in a workgroup of their own: results of others, which may have all columns, are under another prefix,
and the history of a workgroup has the texts of queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from aws_cdk import aws_athena as athena
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct

from stacks.constructs.lake_formation import READS_DATABASE, LakeFormationGrants
from stacks.constructs.secrets import may_decrypt_tables, may_encrypt_files
from stacks.constructs.statements import (
    ITS_KEYS,
    ONE_DATABASE,
    ONE_PREFIX,
    Statement,
    acknowledge_policy,
    allow,
    create_role,
    list_glue_table_arns,
)
from stacks.constructs.synthesis import build_own_arn

_SERVICE: Final = "lakeformation.amazonaws.com"


@attrs.frozen
class PeoplesTables:
    """`columns` has those that people may see of each table. `key_arn` is "" without a KMS key."""

    database: str
    bucket_arn: str
    key_arn: str
    columns: Mapping[str, Sequence[str]]


@attrs.frozen
class Results:
    """Where Athena writes the results of people's queries. `prefix` has no slash at the end."""

    bucket: str
    bucket_arn: str
    prefix: str
    key_arn: str


class AthenaPeople(Construct):
    """`readers` are ARNs of roles or users that exist. They aren't changed: their owner attaches `policy` to
    them.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        tables: PeoplesTables,
        results: Results,
        readers: Sequence[str],
        scan_limit_bytes: int,
    ) -> None:
        super().__init__(scope, id)
        self._tables = tables
        self._results = results
        self.workgroup = self._create_workgroup(name, scan_limit_bytes)
        self.location = self._register_location()
        for reader in readers:
            self._grant(reader)
        self.policy = self._create_policy(name)

    def _create_workgroup(self, name: str, scan_limit_bytes: int) -> athena.CfnWorkGroup:
        of = athena.CfnWorkGroup
        key_arn = self._results.key_arn
        place = of.ResultConfigurationProperty(
            output_location=f"s3://{self._results.bucket}/{self._results.prefix}/",
            encryption_configuration=of.EncryptionConfigurationProperty(
                encryption_option="SSE_KMS" if key_arn else "SSE_S3", kms_key=key_arn or None
            ),
        )
        return of(
            self,
            "Workgroup",
            name=name,
            description="Queries of people who see some columns only",
            recursive_delete_option=True,
            work_group_configuration=of.WorkGroupConfigurationProperty(
                bytes_scanned_cutoff_per_query=scan_limit_bytes,
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                result_configuration=place,
            ),
        )

    def _register_location(self) -> lakeformation.CfnResource:
        tables = self._tables
        role = create_role(
            self,
            "LocationRole",
            purpose="Lake Formation reads the tables for Athena",
            trusts=iam.ServicePrincipal(_SERVICE),
            statements=[
                allow("FindBucket", ["s3:ListBucket"], [tables.bucket_arn]),
                allow("ReadTables", ["s3:GetObject"], [f"{tables.bucket_arn}/*"], why=ITS_KEYS),
                *may_decrypt_tables(self, tables.key_arn),
            ],
        )
        return lakeformation.CfnResource(
            self,
            "Location",
            resource_arn=tables.bucket_arn,
            role_arn=role.role_arn,
            use_service_linked_role=False,
        )

    def _grant(self, reader: str) -> None:
        grants = LakeFormationGrants(self, f"Grants{_hash(reader)}", governs=True, role_arn=reader)
        grants.grant_on_database("Database", self._tables.database, READS_DATABASE)
        for table, columns in self._tables.columns.items():
            grants.grant_on_columns(f"Columns{_hash(table)}", self._tables.database, table, columns)
        for grant in grants.all:
            grant.node.add_dependency(self.location)

    def _create_policy(self, name: str) -> iam.ManagedPolicy:
        statements = self._list_statements(name)
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"Asking Athena in workgroup {name}; attach it to those who may",
            statements=[statement.policy_statement() for statement in statements],
        )
        acknowledge_policy(policy, statements)
        return policy

    def _list_statements(self, name: str) -> list[Statement]:
        results = self._results
        ask = [
            "athena:GetQueryExecution",
            "athena:GetQueryResults",
            "athena:GetWorkGroup",
            "athena:StartQueryExecution",
            "athena:StopQueryExecution",
        ]
        catalog = ["glue:GetDatabase", "glue:GetTable", "glue:GetTables"]
        files = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
        tables = list_glue_table_arns(self, self._tables.database)
        return [
            allow("Ask", ask, [build_own_arn(self, "athena", f"workgroup/{name}")]),
            allow("SeeTables", catalog, tables, why=ONE_DATABASE),
            allow(
                "ReadThroughLakeFormation",
                ["lakeformation:GetDataAccess"],
                ["*"],
                why="The action has no resources: Lake Formation's permissions decide on columns.",
            ),
            allow("FindResults", ["s3:GetBucketLocation"], [results.bucket_arn]),
            allow("KeepResults", files, [f"{results.bucket_arn}/{results.prefix}/*"], why=ONE_PREFIX),
            *may_encrypt_files(self, results.key_arn),
        ]


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
