"""The Glue jobs of exports: what they share, their role, and one job for each export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from config.exports.contract import Contract
from glue_jobs.platform import spark_settings
from stacks import assets
from stacks.constructs.function import log_group
from stacks.constructs.lake_formation import LakeFormationGrants
from stacks.constructs.network import JobConnections
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.secrets import (
    create_encryption_key,
    may_encrypt_files,
    may_read_secret,
    through,
)
from stacks.constructs.statements import (
    ONE_DATABASE,
    ONE_PREFIX,
    Statement,
    acknowledge,
    allow,
    create_role,
    list_glue_table_arns,
)
from stacks.constructs.synthesis import build_own_arn
from stacks.constructs.table import Table, TablesInGlue
from stacks.lake import Lake

#: Glue's timer also counts the start of Spark. A run that reaches its own limit still has to write its
#: record.
_MINUTES_TO_END: Final = 5
_OBJECTS: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
_WRITES_TABLES: Final = ("glue:GetDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable")


class ExportJobs(Construct):
    """What the jobs of several exports share: script, logs, connections, and the lake that they write to.

    `pseudonym_secret` is the name or ARN of the secret with the pseudonymisation key, "" if there is none. If
    each job `has_own_folders`, its role writes to nothing else; otherwise, jobs have one role.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        lake: Lake,
        pseudonym_secret: str,
        has_own_folders: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self.runtime = runtime
        self.has_own_folders = has_own_folders
        self.lake = lake
        self.pseudonym_secret = pseudonym_secret
        #: The beginning of the names of jobs and logs.
        self.prefix = runtime.prefix
        self.script = s3_assets.Asset(self, "Script", path=str(assets.locate_glue_script()))
        self.log_prefix = f"/aws-glue/{self.prefix}"
        self._key_arn = runtime.logs_key_arn or self._create_encryption_key().key_arn
        self.connections = JobConnections(self, "Network", runtime=runtime)
        self._logs = [
            log_group(
                self,
                f"Logs{part.capitalize()}",
                runtime=runtime,
                name=f"{self.log_prefix}/{part}",
                key_arn=self._key_arn,
            )
            for part in ("output", "error")
        ]
        self.security = self._create_security_configuration()
        self._exports: set[str] = set()

    def claim(self, export: str) -> None:
        """Raises BadProps if there is an export of this name: the job and the files have it too."""
        if export in self._exports:
            raise BadProps(
                f"export {export} exists already in {self.node.path}: its job and its files have the name of "
                "the contract, so give one of the two contracts another `name`"
            )
        self._exports.add(export)

    def grant(self, scope: Construct, id: str, role: iam.IRole, databases: Sequence[str]) -> None:
        """Grant what Lake Formation asks for, besides IAM: of `databases`, the jobs read all tables."""
        grants = LakeFormationGrants(scope, id, governs=self.runtime.lake_formation, role_arn=role.role_arn)
        for database in databases:
            grants.grant_reading(database)
        aggregates = self.lake.aggregates
        grants.grant_on_database("KeepAggregates", aggregates, ["CREATE_TABLE", "DESCRIBE"])
        grants.grant_on_tables("WriteAggregates", aggregates, ["ALTER", "DESCRIBE", "INSERT", "SELECT"])

    def pack(self, scope: Construct, id: str, contracts: Mapping[str, Path] | None = None) -> s3_assets.Asset:
        """Return the job's code with contracts by name, by default those of project/exports/."""
        return s3_assets.Asset(scope, id, path=str(assets.build_glue_zip(contracts=contracts)))

    def create_role(
        self,
        scope: Construct,
        id: str,
        *,
        zip_asset: s3_assets.Asset,
        reads: Sequence[Statement],
        contracts: Sequence[Contract],
    ) -> iam.Role:
        """Return the role of jobs with these contracts. `reads` are what reading their tables needs."""
        # For Glue, AWS documents aws:SourceAccount, but not that aws:SourceArn is the job's ARN.
        own_account = {"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        bucket = f"arn:{Stack.of(self).partition}:s3:::{self.script.s3_bucket_name}"
        code = [f"{bucket}/{asset.s3_object_key}" for asset in (self.script, zip_asset)]
        hashes = any(contract.hashed for contract in contracts)
        return create_role(
            scope,
            id,
            trusts=iam.ServicePrincipal("glue.amazonaws.com", conditions=own_account),
            purpose="Exports: reads tables, writes files and aggregates",
            statements=[
                *reads,
                allow("ReadCode", ["s3:GetObject"], code),
                *self._list_writes(contracts),
                *(self._may_read_pseudonym_key() if hashes else []),
                *may_encrypt_files(self, self.lake.key_arn),
                *self.connections.may_run_jobs(),
            ],
        )

    def create_job(
        self,
        scope: Construct,
        *,
        name: str,
        description: str,
        role: iam.IRole,
        arguments: Mapping[str, str],
        workers: int,
        timeout_minutes: int,
        runs_at_once: int = 1,
    ) -> glue.CfnJob:
        """Return a job that runs the script."""
        runtime = self.runtime
        job = glue.CfnJob(
            scope,
            "Default",
            name=name,
            description=description,
            role=role.role_arn,
            security_configuration=self.security.name,
            command=glue.CfnJob.JobCommandProperty(
                name="glueetl", python_version="3", script_location=self.script.s3_object_url
            ),
            default_arguments=arguments,
            execution_property=glue.CfnJob.ExecutionPropertyProperty(max_concurrent_runs=runs_at_once),
            glue_version=runtime.glue_version,
            # A failed run is not retried: somebody is told, and the next run catches up.
            max_retries=0,
            number_of_workers=workers,
            timeout=timeout_minutes,
            worker_type=runtime.glue_worker_type,
        )
        acknowledge(
            job,
            "The job's log groups are encrypted with the deployment's key themselves.",
            "AwsSolutions-GL1",
        )
        job.add_resource_dependency(self.security)
        self.connections.attach(job)
        return job

    def list_common_arguments(self, zip_asset: s3_assets.Asset, own_folder: str = "") -> dict[str, str]:
        """Return the arguments that all jobs have."""
        bucket = self.lake.bucket
        region = Stack.of(self).region
        warehouse = f"s3://{bucket}/{self.lake.prefixes.warehouse}"
        settings = [f"{name}={value}" for name, value in spark_settings(warehouse, region).items()]
        values = {
            "--bucket": bucket,
            "--prefix": self.lake.prefixes.exports,
            "--warehouse": warehouse,
            "--aggregates-database": self.lake.aggregates,
            "--region": region,
            "--conf": " --conf ".join(settings),
            "--datalake-formats": "iceberg",
            "--enable-auto-scaling": "true",
            # By default, Glue writes the events of Spark's exceptions to a log, with the values that an
            # expression failed on.
            "--enable-job-insights": "false",
            # Without one, Glue creates a bucket of its own for the region.
            "--TempDir": f"s3://{bucket}/{self.lake.prefixes.temporary}/{own_folder}",
            "--extra-py-files": zip_asset.s3_object_url,
            "--job-language": "python",
            "--custom-logGroup-prefix": self.log_prefix,
        }
        if self.connections.names:
            # Otherwise Glue calls S3, Glue and CloudWatch from its own network.
            values["--disable-proxy-v2"] = "true"
        return values

    def _create_encryption_key(self) -> kms.Key:
        """Create the key of logs and bookmarks. It is deleted with the stack, like the logs."""
        key = create_encryption_key(self, "Key", f"Encrypts logs and bookmarks of exports of {self.prefix}")
        groups = build_own_arn(self, "logs", f"log-group:{self.log_prefix}/*")
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
            name=f"{self.prefix}-exports",
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

    def _build_encryption_of_files(self) -> glue.CfnSecurityConfiguration.S3EncryptionProperty:
        of = glue.CfnSecurityConfiguration
        if self.lake.key_arn:
            return of.S3EncryptionProperty(s3_encryption_mode="SSE-KMS", kms_key_arn=self.lake.key_arn)
        return of.S3EncryptionProperty(s3_encryption_mode="SSE-S3")

    def _list_writes(self, contracts: Sequence[Contract]) -> list[Statement]:
        """Allow writing the files and tables of these contracts, or of all where jobs have one role."""
        bucket_arn = self.lake.arn
        prefixes = self.lake.prefixes
        folders = [f"{contract.name}/" for contract in contracts] if self.has_own_folders else [""]
        keeping = [contract.name for contract in contracts if contract.keeps_table]
        objects = list(_OBJECTS)
        return [
            allow("ListFiles", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], [bucket_arn]),
            allow(
                "WriteFiles",
                [*objects, "s3:AbortMultipartUpload"],
                [f"{bucket_arn}/{prefixes.exports}/{folder}*" for folder in folders],
                why=ONE_PREFIX,
            ),
            allow(
                "UseTempDir",
                objects,
                [f"{bucket_arn}/{prefixes.temporary}/{folder}*" for folder in folders],
                why=ONE_PREFIX,
            ),
            *self._may_keep_aggregates(keeping),
            allow(
                "WriteOwnLog",
                ["logs:CreateLogStream", "logs:PutLogEvents"],
                [group.log_group_arn for group in self._logs],
            ),
        ]

    def _may_keep_aggregates(self, exports: Sequence[str]) -> list[Statement]:
        """Allow writing the tables of these exports, or of all where jobs have one role.

        Iceberg puts a table's files into a folder with its name, below the location of the database.
        """
        if not exports and self.has_own_folders:
            return []
        database = self.lake.aggregates
        warehouse = f"{self.lake.arn}/{self.lake.prefixes.warehouse}"
        tables = list_glue_table_arns(self, database)
        files = [f"{warehouse}/*"]
        if self.has_own_folders:
            own_tables = [build_own_arn(self, "glue", f"table/{database}/{export}") for export in exports]
            tables = [*tables[:-1], *own_tables]
            files = [f"{warehouse}/{database}/{export}/*" for export in exports]
        return [
            allow("KeepAggregatesGlue", _WRITES_TABLES, tables, why=ONE_DATABASE),
            allow("KeepAggregatesS3", list(_OBJECTS), files, why=ONE_PREFIX),
        ]

    def _may_read_pseudonym_key(self) -> list[Statement]:
        secret = self.lake.pseudonym_secret_arn
        key = self.lake.pseudonym_key_arn
        if not key:
            return may_read_secret(self, "Key", secret)
        return [
            allow("ReadKey", ["secretsmanager:GetSecretValue"], [secret]),
            allow("DecryptKey", ["kms:Decrypt"], [key], through(self, "secretsmanager")),
        ]


class ExportJob(Construct):
    """The Glue job of an export. It has one run at a time: a second one would find nothing to do."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        jobs: ExportJobs,
        table: Table,
        contract: Contract,
        role: iam.IRole,
        zip_asset: s3_assets.Asset,
        first_day: date | None,
    ) -> None:
        super().__init__(scope, id)
        jobs.claim(contract.name)
        self.jobs = jobs
        runtime = jobs.runtime
        self.name = f"{jobs.prefix}-{contract.name}"
        self.contract = contract
        arguments = _build_arguments(jobs, table, contract, zip_asset)
        if first_day:
            arguments["--first-day"] = first_day.isoformat()
        self.resource = jobs.create_job(
            self,
            name=self.name,
            description=contract.title,
            role=role,
            arguments=arguments,
            workers=runtime.glue_workers,
            timeout_minutes=runtime.glue_timeout_minutes,
        )


def _build_arguments(
    jobs: ExportJobs, table: Table, contract: Contract, zip_asset: s3_assets.Asset
) -> dict[str, str]:
    runtime = jobs.runtime
    values = {
        "--export": contract.name,
        "--time-limit-minutes": str(runtime.glue_timeout_minutes - _MINUTES_TO_END),
    }
    values |= jobs.list_common_arguments(zip_asset, f"{contract.name}/" if jobs.has_own_folders else "")
    if table.partitions:
        values["--partitions"] = str(table.partitions)
    location = table.location
    if isinstance(location, TablesInGlue):
        values["--database"] = location.database
    else:
        values["--tableflow-secret"] = location.secret
        values["--database"] = location.cluster_id
        if runtime.proxy:
            values["--proxy"] = runtime.proxy
        if location.catalog_uri:
            values["--catalog-uri"] = location.catalog_uri
    return values | ({"--pseudonym-secret": jobs.pseudonym_secret} if contract.hashed else {})
