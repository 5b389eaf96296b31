"""Storage: buckets of Tableflow and exports, Glue database of aggregates, Athena's workgroup,
pseudonymisation key.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import to_pascal_case
from lambdas import contract
from stacks.base import LakeferryStack
from stacks.constructs.aggregates import create_aggregates_database
from stacks.constructs.cleanup import CleanupOnDestroy, may_empty, may_read_own_stack
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.secrets import StackSecrets, name_secret_arn
from stacks.constructs.statements import acknowledge
from stacks.constructs.synthesis import build_own_arn
from stacks.lake import Lake, Prefixes

#: Athena stops a query that reads more. Reading so much costs about five dollars.
SCAN_LIMIT_BYTES: Final = 10**12
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
        self._prefixes = Prefixes(self.deployment.lake_root)
        self.tableflow_bucket = self._provide_tableflow_bucket()
        self.lake_bucket = self._provide_lake_bucket()
        self.aggregates = self._create_aggregates()
        self.workgroup = self._create_workgroup()
        if isinstance(self.lake_bucket, s3.Bucket) and not self.deployment.keeps_data:
            self._empty_on_destroy(self.lake_bucket)
        self.lake = self._describe_lake()
        self._add_outputs()

    def _describe_lake(self) -> Lake:
        secret_arn, key_arn = self._create_pseudonym_secret()
        source = self.deployment.source
        tableflow_bucket = ""
        tableflow_arn = ""
        tableflow_key_arn = self.deployment.encryption.tables or ""
        if self.tableflow_bucket:
            tableflow_bucket, tableflow_arn = self._export_bucket(self.tableflow_bucket)
        elif source and source.glue:
            tableflow_bucket = source.glue.bucket
            tableflow_arn = f"arn:{self.partition}:s3:::{tableflow_bucket}"
            tableflow_key_arn = source.glue.kms_key or ""
        bucket, arn = self._export_bucket(self.lake_bucket)
        return Lake(
            tableflow_bucket=tableflow_bucket,
            tableflow_arn=tableflow_arn,
            tableflow_key_arn=tableflow_key_arn,
            bucket=bucket,
            arn=arn,
            key_arn=self.deployment.encryption.data or "",
            prefixes=self._prefixes,
            pseudonym_secret_arn=secret_arn,
            pseudonym_key_arn=key_arn,
            aggregates=self.export_value(self.aggregates.ref),
            workgroup=self.deployment.prefix,
        )

    def _export_bucket(self, bucket: s3.IBucket) -> tuple[str, str]:
        """Return the name and the ARN for other stacks. Those of a bucket that exists need no export."""
        if isinstance(bucket, s3.Bucket):
            return self.export_value(bucket.bucket_name), self.export_value(bucket.bucket_arn)
        return bucket.bucket_name, f"arn:{self.partition}:s3:::{bucket.bucket_name}"

    @property
    def _removal(self) -> RemovalPolicy:
        """Return the removal policy of data.

        If the first deployment fails, nothing is kept: there is no data yet.
        """
        return (
            RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if self.deployment.keeps_data else RemovalPolicy.DESTROY
        )

    def _provide_tableflow_bucket(self) -> s3.IBucket | None:
        """Return the bucket that only Tableflow writes to, as Confluent requires; so it has no access logs
        either. Return None if the tables are somebody else's.
        """
        if self.deployment.source:
            return None
        if name := self.deployment.aws.existing_tableflow_bucket:
            return s3.Bucket.from_bucket_name(self, "TableflowBucket", name)
        bucket = self._create_bucket(
            "TableflowBucket", self.deployment.aws.tableflow_bucket, self.deployment.encryption.tables, []
        )
        tableflow_role = build_own_arn(self, "iam", self.deployment.role_resource("tableflow"), region=False)
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetOnlyTableflowWrite",
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"],
                resources=[bucket.arn_for_objects("*")],
                conditions={"ArnNotEquals": {"aws:PrincipalArn": tableflow_role}},
            )
        )
        return bucket

    def _provide_lake_bucket(self) -> s3.IBucket:
        """Return the bucket of exports.

        Files expire; manifests stay: a window without one counts as unpublished. In a bucket that exists,
        its owner decides what expires.
        """
        if name := self.deployment.aws.existing_lake_bucket:
            return s3.Bucket.from_bucket_name(self, "LakeBucket", name)
        prefixes = self._prefixes
        rules = [
            _expire(f"{prefixes.athena}/", _QUERY_DAYS),
            _expire(f"{prefixes.temporary}/", _TEMPORARY_DAYS),
            _expire(f"{prefixes.notices}/", _RECORD_DAYS),
        ]
        if self.deployment.aws.athena_readers:
            rules.append(_expire(f"{prefixes.people}/", _QUERY_DAYS))
        if self.deployment.exports_with_links:
            rules.append(_expire(f"{prefixes.links}/", _RECORD_DAYS))
        for export in self.deployment.exports:
            rules.append(_expire(f"{prefixes.exports}/{export.contract}/data/", export.keep_days))
            rules.append(_expire(f"{prefixes.exports}/{export.contract}/runs/", _RECORD_DAYS))
        return self._create_bucket(
            "LakeBucket", self.deployment.aws.lake_bucket, self.deployment.encryption.data, rules
        )

    def _create_bucket(
        self, id: str, name: str | None, key_arn: str | None, rules: list[s3.LifecycleRule]
    ) -> s3.Bucket:
        """Create a bucket without public access. Without a KMS key, S3 encrypts it with its own."""
        key = kms.Key.from_key_arn(self, f"{id}Key", key_arn) if key_arn else None
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
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
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
            "NIST.800.53.R5-S3BucketLoggingEnabled",
        )
        acknowledge(
            bucket,
            "Iceberg's metadata names files with their bucket, so a replica's tables can't be read. This one "
            "keeps old versions. The deployment file can name existing buckets that their owner replicates.",
            "NIST.800.53.R5-S3BucketReplicationEnabled",
        )
        if key is None:
            acknowledge(
                bucket,
                "S3 encrypts with its own key; `tables` and `data` in [encryption] name KMS keys.",
                "NIST.800.53.R5-S3DefaultEncryptionKMS",
            )
        return bucket

    def _create_aggregates(self) -> glue.CfnDatabase:
        database = create_aggregates_database(
            self,
            "AggregateTables",  # not the id of earlier versions: CloudFormation can't rename their database
            prefix=self.deployment.prefix,
            bucket=self.lake_bucket.bucket_name,
            warehouse=self._prefixes.warehouse,
        )
        database.apply_removal_policy(self._removal)
        return database

    def _create_workgroup(self) -> athena.CfnWorkGroup:
        of = athena.CfnWorkGroup
        key_arn = self.deployment.encryption.data
        results = of.ResultConfigurationProperty(
            output_location=f"s3://{self.lake_bucket.bucket_name}/{self._prefixes.athena}/",
            encryption_configuration=of.EncryptionConfigurationProperty(
                encryption_option="SSE_KMS" if key_arn else "SSE_S3", kms_key=key_arn
            ),
        )
        return of(
            self,
            "Workgroup",
            name=self.deployment.prefix,
            description=f"Queries on the tables of {self.deployment.prefix}",
            recursive_delete_option=True,  # it holds queries and their history; the results are in the bucket
            work_group_configuration=of.WorkGroupConfigurationProperty(
                bytes_scanned_cutoff_per_query=SCAN_LIMIT_BYTES,
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
            self,
            "Secrets",
            runtime=self.runtime,
            purpose="Encrypts the pseudonymisation key",
            keep=keep,
        )
        arn = secrets.random_key("PseudonymKey", f"Pseudonymisation key of {prefix}")
        acknowledge(
            secrets,
            "With another key a person has another pseudonym, so earlier and later files could not be "
            "joined: the key is replaced by decision, not on schedule.",
            "AwsSolutions-SMG4",
            "NIST.800.53.R5-SecretsManagerRotationEnabled",
        )
        return self.export_value(arn), self.export(secrets.key_arn)

    def _empty_on_destroy(self, bucket: s3.Bucket) -> None:
        """Empty the bucket of exports and aggregates on destroy; the tables are deleted with their
        database.
        """
        provider = WaitingProvider(
            self,
            "Cleanup",
            runtime=self.runtime,
            handler=contract.CLEANUP,
            purpose="Cleanup: empties the bucket when the stack is deleted",
            environment={},
            statements=[*may_empty(bucket.bucket_arn), may_read_own_stack(self, "DescribeStacks")],
        )
        cleanup = CleanupOnDestroy(
            self, "EmptyLakeBucket", service_token=provider.service_token, bucket=bucket.bucket_name
        )
        cleanup.node.add_dependency(bucket, self.workgroup)

    def _add_outputs(self) -> None:
        if self.tableflow_bucket:
            self.output(
                "TableflowBucketName",
                self.tableflow_bucket.bucket_name,
                "Tableflow's bucket; only Tableflow may write to it",
            )
        self.output("LakeBucketName", self.lake_bucket.bucket_name, "Exports, query results and aggregates")
        for export in self.deployment.exports:
            prefix = f"s3://{self.lake_bucket.bucket_name}/{self._prefixes.exports}/{export.contract}/"
            self.output(
                f"{to_pascal_case(export.contract)}Files", prefix, "Files and manifests of the export"
            )
        self.output(
            "AggregatesDatabase", self.aggregates.ref, "Glue database of aggregates that exports keep"
        )
        self.output("AthenaWorkgroup", self.workgroup.name, "Choose this workgroup in Athena")


def _expire(prefix: str, days: int) -> s3.LifecycleRule:
    return s3.LifecycleRule(id=f"expire-{prefix.strip('/')}", prefix=prefix, expiration=Duration.days(days))
