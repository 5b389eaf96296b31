"""The Glue jobs of exports: one for each export, with the same script, zip and role."""

from __future__ import annotations

from typing import Final

import attrs
from aws_cdk import Stack
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from config.deployments.confluent_model import Topic
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import Export, to_pascal_case
from config.exports.contract import Contract
from glue_jobs.platform import spark_settings
from stacks import assets
from stacks.base import build_own_arn
from stacks.constructs.function import log_group
from stacks.constructs.lake_formation import LakeFormationGrants
from stacks.constructs.network import JobConnections
from stacks.constructs.secrets import (
    create_encryption_key,
    may_decrypt_tables,
    may_encrypt_files,
    may_read_secret,
    name_secret_arn,
    through,
)
from stacks.constructs.statements import (
    ITS_KEYS,
    ONE_DATABASE,
    ONE_PREFIX,
    Statement,
    acknowledge,
    allow,
    create_role,
    list_glue_table_arns,
)
from stacks.lake import Lake

#: Glue's timer also counts the start of Spark. A run that reaches its own limit still has to write its
#: record.
_MINUTES_TO_END: Final = 5
_WRITES_TABLES: Final = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")


@attrs.frozen
class TableflowKey:
    """The key for tables in Confluent's storage: the name of its secret, the ARN of the secret's KMS key (""
    if it isn't known), the Kafka cluster's id, which is the tables' database in Tableflow's catalog, and the
    catalog's address ("" if the secret has it).
    """

    secret: str
    kms_key_arn: str
    cluster_id: str
    catalog_uri: str = ""


class ExportJobs(Construct):
    """The Glue jobs. `jobs` has them by the name of their contract.

    `glue_database` is that of the tables in Glue. `tableflow_key` is None if no table is in Confluent's
    storage.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        loaded: LoadedDeployment,
        lake: Lake,
        glue_database: str,
        tableflow_key: TableflowKey | None,
    ) -> None:
        super().__init__(scope, id)
        self._loaded = loaded
        self._deployment = loaded.deployment
        self._lake = lake
        self._database = glue_database
        self._tableflow_key = tableflow_key
        self._script = s3_assets.Asset(self, "Script", path=str(assets.locate_glue_script()))
        self._zip = s3_assets.Asset(self, "Zip", path=str(assets.build_glue_zip()))
        self._log_prefix = f"/aws-glue/{self._deployment.prefix}"
        self._key_arn = self._deployment.encryption.logs or self._create_encryption_key().key_arn
        self._connections = JobConnections(self, "Network", deployment=self._deployment)
        self._logs = [
            log_group(
                self,
                f"Logs{part.capitalize()}",
                deployment=self._deployment,
                name=f"{self._log_prefix}/{part}",
                key_arn=self._key_arn,
            )
            for part in ("output", "error")
        ]
        self._security = self._create_security_configuration()
        self.role = self._create_role()
        self._grant()
        self.jobs = {export.contract: self._create_job(export) for export in self._deployment.exports}

    def _create_job(self, export: Export) -> glue.CfnJob:
        """Create a job with one run at a time: a second one would find nothing to do."""
        aws = self._deployment.aws
        contract = self._find_contract(export)
        job = glue.CfnJob(
            self,
            f"{to_pascal_case(export.contract)}Job",
            name=f"{self._deployment.prefix}-{export.contract}",
            description=contract.title,
            role=self.role.role_arn,
            security_configuration=self._security.name,
            command=glue.CfnJob.JobCommandProperty(
                name="glueetl", python_version="3", script_location=self._script.s3_object_url
            ),
            default_arguments=self._build_arguments(export, contract),
            execution_property=glue.CfnJob.ExecutionPropertyProperty(max_concurrent_runs=1),
            glue_version=aws.glue_version,
            # A failed run is not retried: a mail is sent, and the next run catches up.
            max_retries=0,
            number_of_workers=aws.glue_workers,
            timeout=aws.glue_timeout_minutes,
            worker_type=aws.glue_worker_type,
        )
        acknowledge(
            job,
            "The job's log groups are encrypted with the deployment's key themselves.",
            "AwsSolutions-GL1",
        )
        job.add_resource_dependency(self._security)
        self._connections.attach(job)
        return job

    def _find_contract(self, export: Export) -> Contract:
        return self._loaded.sources.contract(export.contract, None)

    def _build_arguments(self, export: Export, contract: Contract) -> dict[str, str]:
        bucket = self._lake.bucket
        region = self._deployment.aws.region
        warehouse = f"s3://{bucket}/{self._lake.prefixes.warehouse}"
        settings = [f"{name}={value}" for name, value in spark_settings(warehouse, region).items()]
        values = {
            "--export": contract.name,
            "--database": self._database,
            "--bucket": bucket,
            "--prefix": self._lake.prefixes.exports,
            "--warehouse": warehouse,
            "--aggregates-database": self._lake.aggregates,
            "--region": region,
            "--time-limit-minutes": str(self._deployment.aws.glue_timeout_minutes - _MINUTES_TO_END),
            "--conf": " --conf ".join(settings),
            "--datalake-formats": "iceberg",
            "--enable-auto-scaling": "true",
            # By default, Glue writes the events of Spark's exceptions to a log, with the values that an
            # expression failed on.
            "--enable-job-insights": "false",
            # Without one, Glue creates a bucket of its own for the region.
            "--TempDir": f"s3://{bucket}/{self._lake.prefixes.temporary}/",
            "--extra-py-files": self._zip.s3_object_url,
            "--job-language": "python",
            "--custom-logGroup-prefix": self._log_prefix,
        }
        partitions = self._count_partitions(contract)
        if partitions:
            values["--partitions"] = str(partitions)
        if export.first_day:
            values["--first-day"] = export.first_day.isoformat()
        if self._connections.names:
            # Otherwise Glue calls S3, Glue and CloudWatch from its own network.
            values["--disable-proxy-v2"] = "true"
        if self._tableflow_key and self._find_topic(contract) in self._deployment.managed_tables:
            values["--tableflow-secret"] = self._tableflow_key.secret
            values["--database"] = self._tableflow_key.cluster_id
            if self._deployment.proxy:
                values["--proxy"] = self._deployment.proxy
            if self._tableflow_key.catalog_uri:
                values["--catalog-uri"] = self._tableflow_key.catalog_uri
        secret = self._deployment.aws.pseudonym_secret or self._lake.pseudonym_secret_arn
        return values | ({"--pseudonym-secret": secret} if contract.hashed else {})

    def _do_exports_read(self, tables: list[Topic]) -> bool:
        """Return whether an export reads one of these tables. All exports have one role."""
        contracts = [self._find_contract(export) for export in self._deployment.exports]
        return any(self._find_topic(contract) in tables for contract in contracts)

    def _find_topic(self, contract: Contract) -> Topic:
        topics = {topic.name: topic for topic in self._deployment.topics}
        return topics[contract.source.topic]

    def _count_partitions(self, contract: Contract) -> int | None:
        """Return the number of partitions of the contract's topic, which may not be known for a table that
        exists.
        """
        topic = self._find_topic(contract)
        exists = topic.existing or self._deployment.source is not None
        return topic.partitions if exists else self._loaded.sources.partitions(topic)

    def _create_encryption_key(self) -> kms.Key:
        """Create the key of logs and bookmarks. It is deleted with the stack, like the logs."""
        key = create_encryption_key(
            self, "Key", f"Encrypts logs and bookmarks of exports of {self._deployment.prefix}"
        )
        groups = build_own_arn(self, "logs", f"log-group:{self._log_prefix}/*")
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetLogsIn",
                actions=[
                    "kms:Encrypt",
                    "kms:Decrypt",
                    "kms:ReEncrypt*",
                    "kms:GenerateDataKey*",
                    "kms:Describe*",
                ],
                principals=[iam.ServicePrincipal(f"logs.{Stack.of(self).region}.amazonaws.com")],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )
        return key

    def _create_security_configuration(self) -> glue.CfnSecurityConfiguration:
        """Create the security configuration.

        Bookmarks use the deployment's key. The job has no permission for it, because it keeps no bookmarks.
        Logs are encrypted by their log groups: with encryption in this configuration, Glue would write to log
        groups with other names, without retention (AWS Glue API, JobRun, LogGroupName). Files in S3 have the
        encryption of their bucket.
        """
        of = glue.CfnSecurityConfiguration
        return of(
            self,
            "Security",
            name=f"{self._deployment.prefix}-exports",
            encryption_configuration=of.EncryptionConfigurationProperty(
                cloud_watch_encryption=of.CloudWatchEncryptionProperty(
                    cloud_watch_encryption_mode="DISABLED"
                ),
                job_bookmarks_encryption=of.JobBookmarksEncryptionProperty(
                    job_bookmarks_encryption_mode="CSE-KMS", kms_key_arn=self._key_arn
                ),
                s3_encryptions=[self._build_encryption_of_files()],
            ),
        )

    def _grant(self) -> None:
        """Grant what Lake Formation asks for, besides IAM."""
        governs = self._deployment.aws.lake_formation
        grants = LakeFormationGrants(self, "Grants", governs=governs, role_arn=self.role.role_arn)
        if self._do_exports_read(self._deployment.tables_in_glue):
            grants.grant_reading(self._database)
        grants.grant_on_database("KeepAggregates", self._lake.aggregates, ["CREATE_TABLE", "DESCRIBE"])
        grants.grant_on_tables(
            "WriteAggregates", self._lake.aggregates, ["ALTER", "DESCRIBE", "INSERT", "SELECT"]
        )

    def _build_encryption_of_files(self) -> glue.CfnSecurityConfiguration.S3EncryptionProperty:
        of = glue.CfnSecurityConfiguration
        if self._lake.key_arn:
            return of.S3EncryptionProperty(s3_encryption_mode="SSE-KMS", kms_key_arn=self._lake.key_arn)
        return of.S3EncryptionProperty(s3_encryption_mode="SSE-S3")

    def _create_role(self) -> iam.Role:
        # For Glue, AWS documents aws:SourceAccount, but not that aws:SourceArn is the job's ARN.
        own_account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        glue_service = iam.ServicePrincipal("glue.amazonaws.com", conditions=own_account)
        return create_role(
            self,
            "Role",
            trusts=glue_service,
            purpose="Exports: reads tables, writes files and aggregates",
            statements=[
                *self._list_reads(),
                *self._list_writes(),
                *self._may_read_pseudonym_key(),
                *self._may_read_tableflow_key(),
                *may_encrypt_files(self, self._lake),
                *self._connections.may_run_jobs(),
            ],
        )

    def _list_reads(self) -> list[Statement]:
        bucket = f"arn:{Stack.of(self).partition}:s3:::{self._script.s3_bucket_name}"
        code = [f"{bucket}/{asset.s3_object_key}" for asset in (self._script, self._zip)]
        tables = self._may_read_tables() if self._do_exports_read(self._deployment.tables_in_glue) else []
        return [*tables, allow("ReadCode", ["s3:GetObject"], code)]

    def _may_read_tables(self) -> list[Statement]:
        """Return what the job may do with tables in Glue.

        It may not write to Tableflow's bucket: changed files break Tableflow's tables.
        """
        return [
            allow(
                "ReadTablesGlue",
                ["glue:GetTable"],
                list_glue_table_arns(self, self._database),
                why=ONE_DATABASE,
            ),
            # Without ListBucket, S3 answers 403 instead of 404 for a file that Tableflow has removed.
            allow("ListTablesS3", ["s3:ListBucket"], [self._lake.tableflow_arn]),
            allow("ReadTablesS3", ["s3:GetObject"], [f"{self._lake.tableflow_arn}/*"], why=ITS_KEYS),
            *may_decrypt_tables(self, self._lake),
        ]

    def _list_writes(self) -> list[Statement]:
        bucket_arn = self._lake.arn
        prefixes = self._lake.prefixes
        aggregates = list_glue_table_arns(self, self._lake.aggregates)
        objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        return [
            allow("ListFiles", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], [bucket_arn]),
            allow(
                "WriteFiles",
                [*objects, "s3:AbortMultipartUpload"],
                [f"{bucket_arn}/{prefixes.exports}/*"],
                why=ONE_PREFIX,
            ),
            allow("UseTempDir", objects, [f"{bucket_arn}/{prefixes.temporary}/*"], why=ONE_PREFIX),
            allow("KeepAggregatesGlue", _WRITES_TABLES, aggregates, why=ONE_DATABASE),
            allow("KeepAggregatesS3", objects, [f"{bucket_arn}/{prefixes.warehouse}/*"], why=ONE_PREFIX),
            allow(
                "WriteOwnLog",
                ["logs:CreateLogStream", "logs:PutLogEvents"],
                [group.log_group_arn for group in self._logs],
            ),
        ]

    def _may_read_tableflow_key(self) -> list[Statement]:
        key = self._tableflow_key
        if key is None or not self._do_exports_read(self._deployment.managed_tables):
            return []
        secret = name_secret_arn(self, key.secret)
        if not key.kms_key_arn:
            return may_read_secret(self, "TableflowKey", secret)
        return [
            allow("ReadTableflowKey", ["secretsmanager:GetSecretValue"], [secret]),
            allow("DecryptTableflowKey", ["kms:Decrypt"], [key.kms_key_arn], through(self, "secretsmanager")),
        ]

    def _may_read_pseudonym_key(self) -> list[Statement]:
        """Allow reading the pseudonymisation key, if an export hashes columns."""
        if not any(self._find_contract(export).hashed for export in self._deployment.exports):
            return []
        secret = self._lake.pseudonym_secret_arn
        key = self._lake.pseudonym_key_arn
        if not key:
            return may_read_secret(self, "Key", secret)
        return [
            allow("ReadKey", ["secretsmanager:GetSecretValue"], [secret]),
            allow("DecryptKey", ["kms:Decrypt"], [key], through(self, "secretsmanager")),
        ]
