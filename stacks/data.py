"""Storage: buckets of Tableflow and exports, Glue database of aggregates, Athena's workgroup,
pseudonymisation key.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Fn, RemovalPolicy
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_s3 as s3
from constructs import Construct

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import to_pascal_case
from lambdas import contract
from stacks.base import LakeferryStack
from stacks.constructs.cleanup import CleanupOnDestroy, may_empty, may_read_own_stack
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.secrets import StackSecrets, name_secret_arn
from stacks.constructs.statements import acknowledge
from stacks.lake import ATHENA, EXPORTS, TEMPORARY, WAREHOUSE, Lake

#: Athena stops a query that reads more. Reading so much costs about five dollars.
_SCAN_LIMIT_BYTES: Final = 10**12
_QUERY_DAYS: Final = 30
_TEMPORARY_DAYS: Final = 7
_RECORD_DAYS: Final = 400


class DataStack(LakeferryStack):
    """The data stack. It depends on no other stack."""

    def __init__(self, scope: Construct, *, loaded: LoadedDeployment) -> None:
        super().__init__(
            scope,
            "data",
            loaded=loaded,
            purpose="buckets, catalog of aggregates, queries, pseudonymisation key",
        )
        source = self.deployment.source
        self.tableflow_bucket = None if source else self._create_tableflow_bucket()
        self.lake_bucket = self._create_lake_bucket()
        self.aggregates = self._create_aggregates()
        self.workgroup = self._create_workgroup()
        secret_arn, key_arn = self._create_pseudonym_secret()
        if not self.deployment.keeps_data:
            self._empty_on_destroy()
        glue_source = source.glue if source else None
        bucket_name = glue_source.bucket if glue_source else ""
        bucket_arn = f"arn:{self.partition}:s3:::{bucket_name}" if bucket_name else ""
        if self.tableflow_bucket:
            bucket_name = self.export_value(self.tableflow_bucket.bucket_name)
            bucket_arn = self.export_value(self.tableflow_bucket.bucket_arn)
        self.lake = Lake(
            tableflow_bucket=bucket_name,
            tableflow_arn=bucket_arn,
            tableflow_key_arn=(glue_source.kms_key or "") if glue_source else "",
            bucket=self.export_value(self.lake_bucket.bucket_name),
            arn=self.export_value(self.lake_bucket.bucket_arn),
            pseudonym_secret_arn=secret_arn,
            pseudonym_key_arn=key_arn,
            aggregates=self.export_value(self.aggregates.ref),
            workgroup=self.deployment.prefix,
        )
        self._add_outputs()

    @property
    def _removal(self) -> RemovalPolicy:
        """Return the removal policy of data.

        If the first deployment fails, nothing is kept: there is no data yet.
        """
        return (
            RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if self.deployment.keeps_data else RemovalPolicy.DESTROY
        )

    def _create_tableflow_bucket(self) -> s3.Bucket:
        """Create a bucket that only Tableflow writes to, as Confluent requires; so it has no access logs
        either.
        """
        return self._bucket("TableflowBucket", self.deployment.aws.tableflow_bucket, [])

    def _create_lake_bucket(self) -> s3.Bucket:
        """Create the bucket of exports.

        Files expire; manifests stay: a window without one counts as unpublished.
        """
        rules = [
            _expire(f"{ATHENA}/", _QUERY_DAYS),
            _expire(f"{TEMPORARY}/", _TEMPORARY_DAYS),
            _expire(f"{contract.NOTICES}/", _RECORD_DAYS),
        ]
        for export in self.deployment.exports:
            rules.append(_expire(f"{EXPORTS}/{export.contract}/data/", export.keep_days))
            rules.append(_expire(f"{EXPORTS}/{export.contract}/runs/", _RECORD_DAYS))
        return self._bucket("LakeBucket", self.deployment.aws.lake_bucket, rules)

    def _bucket(self, id: str, name: str | None, rules: list[s3.LifecycleRule]) -> s3.Bucket:
        """Create a bucket without public access.

        With a KMS key, Confluent, Snowflake and Athena would need access to it too.
        """
        # Old versions only protect against accidents: Iceberg keeps its own history.
        tidy = s3.LifecycleRule(
            id="tidy",
            abort_incomplete_multipart_upload_after=Duration.days(7),
            noncurrent_version_expiration=Duration.days(7),
            expired_object_delete_marker=True,
        )
        bucket = s3.Bucket(
            self,
            id,
            bucket_name=name,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            versioned=True,
            lifecycle_rules=[tidy, *rules],
            removal_policy=self._removal,
        )
        acknowledge(
            bucket,
            "Server access logs would need a third bucket that outlives this one. CloudTrail data events, "
            "which an account turns on for all buckets at once, contain the same and the caller.",
            "AwsSolutions-S1",
        )
        return bucket

    def _create_aggregates(self) -> glue.CfnDatabase:
        """Create the database. Its name has lower-case letters, digits and underscores: Athena needs quotes
        for other names.

        The name ends in eight digits of the stack's id. A database that an earlier deployment kept has
        another name, and its tables are in that deployment's bucket, which this deployment may not read.
        """
        stack_id = Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", self.stack_id))))
        name = f"{self.deployment.prefix}_aggregates_".replace("-", "_") + stack_id
        database = glue.CfnDatabase(
            self,
            "AggregateTables",  # not the id of earlier versions: CloudFormation can't rename their database
            catalog_id=self.account,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=name,
                description="Aggregates that exports keep as tables",
                location_uri=f"s3://{self.lake_bucket.bucket_name}/{WAREHOUSE}/{name}",
            ),
        )
        database.apply_removal_policy(self._removal)
        return database

    def _create_workgroup(self) -> athena.CfnWorkGroup:
        results = athena.CfnWorkGroup.ResultConfigurationProperty(
            output_location=f"s3://{self.lake_bucket.bucket_name}/{ATHENA}/",
            encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                encryption_option="SSE_S3"
            ),
        )
        return athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=self.deployment.prefix,
            description=f"Queries on the tables of {self.deployment.prefix}",
            recursive_delete_option=True,  # it holds queries and their history; the results are in the bucket
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                bytes_scanned_cutoff_per_query=_SCAN_LIMIT_BYTES,
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                result_configuration=results,
            ),
        )

    def _create_pseudonym_secret(self) -> tuple[str, str]:
        """Return the ARNs of the pseudonymisation key's secret and of its KMS key. They are kept if the data
        is.

        If the deployment file names an existing secret, the first is a pattern for IAM, and the second is "".
        """
        if known := self.deployment.aws.pseudonym_secret:
            return name_secret_arn(self, known), ""
        prefix = self.deployment.prefix
        keep = self.deployment.keeps_data
        secrets = StackSecrets(
            self, "Secrets", prefix=prefix, purpose="Encrypts the pseudonymisation key", keep=keep
        )
        arn = secrets.random_key("PseudonymKey", f"Pseudonymisation key of {prefix}")
        acknowledge(
            secrets,
            "With another key a person has another pseudonym, so earlier and later files could not be "
            "joined: the key is replaced by decision, not on schedule.",
            "AwsSolutions-SMG4",
        )
        return self.export_value(arn), self.export_value(secrets.key.key_arn)

    def _empty_on_destroy(self) -> None:
        """Empty the bucket of exports and aggregates on destroy; the tables are deleted with their
        database.
        """
        provider = WaitingProvider(
            self,
            "Cleanup",
            deployment=self.deployment,
            handler=contract.CLEANUP,
            purpose="Cleanup: empties the bucket when the stack is deleted",
            environment={},
            statements=[*may_empty(self.lake_bucket.bucket_arn), may_read_own_stack(self, "DescribeStacks")],
        )
        cleanup = CleanupOnDestroy(
            self, "EmptyLakeBucket", service_token=provider.service_token, bucket=self.lake_bucket.bucket_name
        )
        cleanup.node.add_dependency(self.lake_bucket, self.workgroup)

    def _add_outputs(self) -> None:
        if self.tableflow_bucket:
            self.output(
                "TableflowBucketName",
                self.tableflow_bucket.bucket_name,
                "Tableflow's bucket; only Tableflow may write to it",
            )
        self.output("LakeBucketName", self.lake_bucket.bucket_name, "Exports, query results and aggregates")
        for export in self.deployment.exports:
            prefix = f"s3://{self.lake_bucket.bucket_name}/{EXPORTS}/{export.contract}/"
            self.output(
                f"{to_pascal_case(export.contract)}Files", prefix, "Files and manifests of the export"
            )
        self.output(
            "AggregatesDatabase", self.aggregates.ref, "Glue database of aggregates that exports keep"
        )
        self.output("AthenaWorkgroup", self.workgroup.name, "Choose this workgroup in Athena")


def _expire(prefix: str, days: int) -> s3.LifecycleRule:
    return s3.LifecycleRule(id=f"expire-{prefix.strip('/')}", prefix=prefix, expiration=Duration.days(days))
