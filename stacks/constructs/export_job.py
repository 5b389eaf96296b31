"""The Glue jobs of exports: one script, one zip and one role for all, a job for each."""

from __future__ import annotations

from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from deployments.model import Export
from exports.contract import Contract
from glue_jobs.contract import spark_settings
from stacks import assets, data
from stacks.base import LakeferryStack
from stacks.constructs.acknowledged import acknowledge
from stacks.constructs.secrets import encryption_key, through
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, ONE_PREFIX, Statement, allow, glue_tables, role
from stacks.data import Lake

_WRITES_TABLES: Final = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")


class ExportJobs(Construct):
    def __init__(self, stack: LakeferryStack, name: str, lake: Lake, glue_database: str) -> None:
        super().__init__(stack, name)
        self._stack, self._lake, self._database = stack, lake, glue_database
        self._script = s3_assets.Asset(self, "Script", path=str(assets.glue_script()))
        self._zip = s3_assets.Asset(self, "Zip", path=str(assets.glue_zip()))
        self._log_prefix = f"/aws-glue/{stack.deployment.prefix}"
        self._log_key = self._encryption_key()
        self._logs = [self._log_group(part) for part in ("output", "error")]
        self._security = self._security_configuration()
        self.role = self._role()

    def job(self, name: str, export: Export) -> glue.CfnJob:
        """One run at a time: the next one has to wait, because it would find nothing more to do."""
        aws = self._stack.deployment.aws
        contract = self._contract(export)
        job = glue.CfnJob(
            self._stack,
            name,
            name=self.job_name(export),
            description=contract.title,
            role=self.role.role_arn,
            security_configuration=self._security.name,
            command=glue.CfnJob.JobCommandProperty(
                name="glueetl", python_version="3", script_location=self._script.s3_object_url
            ),
            default_arguments=self._arguments(export, contract),
            execution_property=glue.CfnJob.ExecutionPropertyProperty(max_concurrent_runs=1),
            glue_version=aws.glue_version,
            # A run that failed is not tried again at once: the mail about it comes first, and the next run catches up.
            max_retries=0,
            number_of_workers=aws.glue_workers,
            timeout=aws.glue_timeout_minutes,
            worker_type=aws.glue_worker_type,
        )
        acknowledge(job, "The job's log groups are encrypted with the deployment's key themselves.", "AwsSolutions-GL1")
        job.add_resource_dependency(self._security)
        return job

    def job_name(self, export: Export) -> str:
        return f"{self._stack.deployment.prefix}-{export.contract}"

    def _contract(self, export: Export) -> Contract:
        return self._stack.plan.sources.contract(export.contract, None)

    def _arguments(self, export: Export, contract: Contract) -> dict[str, str]:
        bucket = self._lake.bucket
        warehouse = f"s3://{bucket}/{data.WAREHOUSE}"
        settings = [f"{name}={value}" for name, value in spark_settings(warehouse).items()]
        given = {
            "--export": contract.name,
            "--database": self._database,
            "--bucket": bucket,
            "--prefix": data.EXPORTS,
            "--warehouse": warehouse,
            "--aggregates-database": self._lake.aggregates,
            "--time-limit-minutes": str(self._stack.deployment.aws.glue_timeout_minutes),
            "--conf": " --conf ".join(settings),
            "--datalake-formats": "iceberg",
            "--enable-auto-scaling": "true",
            "--extra-py-files": self._zip.s3_object_url,
            "--job-language": "python",
            "--custom-logGroup-prefix": self._log_prefix,
        }
        if export.first_day:
            given["--first-day"] = export.first_day.isoformat()
        return given | ({"--pseudonym-secret": self._lake.pseudonym_secret_arn} if contract.hashed else {})

    def _encryption_key(self) -> kms.Key:
        """Goes with the stack, and the logs that it encrypts go too."""
        stack = self._stack
        key = encryption_key(self, "Key", f"Encrypts logs and bookmarks of exports of {stack.deployment.prefix}")
        groups = stack.own_arn("logs", f"log-group:{self._log_prefix}/*")
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetLogsIn",
                actions=["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
                principals=[iam.ServicePrincipal(f"logs.{stack.region}.amazonaws.com")],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )
        return key

    def _security_configuration(self) -> glue.CfnSecurityConfiguration:
        """Bookmarks under the deployment's key, which the job's role may not use: the job keeps none. Logs are encrypted by
        their groups: where a security configuration does that, Glue writes to groups of other names, which nothing here would
        create or end (AWS Glue API, JobRun, LogGroupName). Files in S3 keep the encryption of their bucket, so that readers of a
        file need no key."""
        of = glue.CfnSecurityConfiguration
        return of(
            self,
            "Security",
            name=f"{self._stack.deployment.prefix}-exports",
            encryption_configuration=of.EncryptionConfigurationProperty(
                cloud_watch_encryption=of.CloudWatchEncryptionProperty(cloud_watch_encryption_mode="DISABLED"),
                job_bookmarks_encryption=of.JobBookmarksEncryptionProperty(
                    job_bookmarks_encryption_mode="CSE-KMS", kms_key_arn=self._log_key.key_arn
                ),
                s3_encryptions=[of.S3EncryptionProperty(s3_encryption_mode="SSE-S3")],
            ),
        )

    def _log_group(self, part: str) -> logs.LogGroup:
        group = logs.LogGroup(
            self,
            f"Logs{part.capitalize()}",
            encryption_key=self._log_key,
            log_group_name=f"{self._log_prefix}/{part}",
            removal_policy=RemovalPolicy.DESTROY,
        )
        bare = group.node.default_child
        assert isinstance(bare, logs.CfnLogGroup)
        bare.retention_in_days = self._stack.deployment.aws.log_retention_days
        return group

    def _role(self) -> iam.Role:
        stack = self._stack
        # Roles can't be handed on between accounts, and AWS doesn't say that Glue tells the job's ARN; the account it does.
        own = {"StringEquals": {"aws:SourceAccount": stack.account}}
        glue_service = iam.ServicePrincipal("glue.amazonaws.com", conditions=own)
        return role(
            self,
            "Role",
            trusts=glue_service,
            purpose="Exports: reads tables, writes files and aggregates",
            statements=[*self._reads(), *self._writes(), *self._key()],
        )

    def _reads(self) -> list[Statement]:
        """Nothing here may write to Tableflow's bucket: Tableflow loses tables whose files others change."""
        code = [f"arn:{self._stack.partition}:s3:::{one.s3_bucket_name}/{one.s3_object_key}" for one in (self._script, self._zip)]
        return [
            allow("ReadTablesGlue", ["glue:GetTable"], glue_tables(self._stack, self._database), why=ONE_DATABASE),
            allow("ReadTablesS3", ["s3:GetObject"], [f"{self._lake.tableflow_arn}/*"], why=ITS_KEYS),
            allow("ReadCode", ["s3:GetObject"], code),
        ]

    def _writes(self) -> list[Statement]:
        bucket_arn = self._lake.arn
        aggregates = glue_tables(self._stack, self._lake.aggregates)
        objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        return [
            allow("ListFiles", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], [bucket_arn]),
            allow("WriteFiles", [*objects, "s3:AbortMultipartUpload"], [f"{bucket_arn}/{data.EXPORTS}/*"], why=ONE_PREFIX),
            allow("KeepAggregatesGlue", _WRITES_TABLES, aggregates, why=ONE_DATABASE),
            allow("KeepAggregatesS3", objects, [f"{bucket_arn}/{data.WAREHOUSE}/*"], why=ONE_PREFIX),
            allow("WriteOwnLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [group.log_group_arn for group in self._logs]),
        ]

    def _key(self) -> list[Statement]:
        """Only where an export hashes columns."""
        if not any(self._contract(export).hashed for export in self._stack.deployment.exports):
            return []
        statements = [allow("ReadKey", ["secretsmanager:GetSecretValue"], [self._lake.pseudonym_secret_arn])]
        if key := self._lake.pseudonym_key_arn:
            statements.append(allow("DecryptKey", ["kms:Decrypt"], [key], through(self._stack, "secretsmanager")))
        return statements
