"""Where data lies: Tableflow's bucket, ours, our aggregates' Glue database, Athena's workgroup, the pseudonymisation key."""

from __future__ import annotations

from typing import Final

import attrs
from aws_cdk import App, RemovalPolicy
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_s3 as s3

from deployments.check import Plan
from glue_jobs.contract import DEFAULT_ARGUMENTS
from lambdas import contract
from stacks.base import LakeferryStack, Surroundings, words
from stacks.constructs.acknowledged import acknowledge
from stacks.constructs.buckets import bucket, expire
from stacks.constructs.purge import Purge, may_empty
from stacks.constructs.secrets import SecretsOfStack, named_secret

EXPORTS: Final = DEFAULT_ARGUMENTS["prefix"]
WAREHOUSE: Final = "warehouse"
ATHENA: Final = "athena"
#: Ends a query that reads more: about five dollars.
_SCAN_LIMIT_BYTES: Final = 10**12
_QUERY_DAYS: Final = 30
_RECORD_DAYS: Final = 400


@attrs.frozen
class Lake:
    """What other stacks take. `pseudonym_key_arn` is "" where the secret was made by somebody else."""

    tableflow_bucket: str
    tableflow_arn: str
    bucket: str
    arn: str
    pseudonym_secret_arn: str
    pseudonym_key_arn: str
    aggregates: str
    workgroup: str


class DataStack(LakeferryStack):
    """Depends on nothing."""

    def __init__(self, app: App, plan: Plan, surroundings: Surroundings) -> None:
        super().__init__(app, "data", plan, surroundings, purpose="buckets, catalog of aggregates, queries, pseudonymisation key")
        self.tableflow_bucket = self._tableflow_bucket()
        self.lake_bucket = self._lake_bucket()
        self._aggregates()
        self.workgroup = self._workgroup()
        secret_arn, key_arn = self._pseudonym_secret()
        if not self.deployment.keeps_data:
            self._purge()
        self.lake = Lake(
            tableflow_bucket=self.offer(self.tableflow_bucket.bucket_name),
            tableflow_arn=self.offer(self.tableflow_bucket.bucket_arn),
            bucket=self.offer(self.lake_bucket.bucket_name),
            arn=self.offer(self.lake_bucket.bucket_arn),
            pseudonym_secret_arn=secret_arn,
            pseudonym_key_arn=key_arn,
            aggregates=self.aggregates_name,
            workgroup=self.deployment.prefix,
        )
        self._tell()

    @property
    def aggregates_name(self) -> str:
        """Of small letters, digits and underscores: Athena takes no other names without quotes."""
        return f"{self.deployment.prefix}_aggregates".replace("-", "_")

    def _tableflow_bucket(self) -> s3.Bucket:
        """Empty at first and written by Tableflow alone, as Confluent wants it; so no log of its accesses goes here either."""
        made = bucket(
            self, "TableflowBucket", chosen=self.deployment.aws.tableflow_bucket, keep=self.deployment.keeps_data, rules=[]
        )
        _unlogged(made)
        return made

    def _lake_bucket(self) -> s3.Bucket:
        """Files of exports end; manifests stay, because a window without one counts as not yet published."""
        rules = [expire(f"{ATHENA}/", _QUERY_DAYS), expire(f"{contract.NOTICES}/", _RECORD_DAYS)]
        for export in self.deployment.exports:
            rules.append(expire(f"{EXPORTS}/{export.contract}/data/", export.keep_days))
            rules.append(expire(f"{EXPORTS}/{export.contract}/runs/", _RECORD_DAYS))
        made = bucket(self, "LakeBucket", chosen=self.deployment.aws.lake_bucket, keep=self.deployment.keeps_data, rules=rules)
        _unlogged(made)
        return made

    def _aggregates(self) -> None:
        name = self.aggregates_name
        made = glue.CfnDatabase(
            self,
            "Aggregates",
            catalog_id=self.account,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=name,
                description="Aggregates that exports keep as tables",
                location_uri=f"s3://{self.lake_bucket.bucket_name}/{WAREHOUSE}/{name}",
            ),
        )
        made.apply_removal_policy(RemovalPolicy.RETAIN if self.deployment.keeps_data else RemovalPolicy.DESTROY)

    def _workgroup(self) -> athena.CfnWorkGroup:
        place = athena.CfnWorkGroup.ResultConfigurationProperty(
            output_location=f"s3://{self.lake_bucket.bucket_name}/{ATHENA}/",
            encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(encryption_option="SSE_S3"),
        )
        return athena.CfnWorkGroup(
            self,
            "Workgroup",
            name=self.deployment.prefix,
            description=f"Queries on the tables of {self.deployment.prefix}",
            recursive_delete_option=not self.deployment.keeps_data,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                bytes_scanned_cutoff_per_query=_SCAN_LIMIT_BYTES,
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                result_configuration=place,
            ),
        )

    def _pseudonym_secret(self) -> tuple[str, str]:
        """Kept when the data is: without it, what was exported before can't be joined with what comes."""
        if known := self.deployment.aws.pseudonym_secret:
            return named_secret(self, known), ""
        secrets = SecretsOfStack(self, "Secrets", purpose="Encrypts the pseudonymisation key", keep=self.deployment.keeps_data)
        arn = secrets.random_key("PseudonymKey", f"Pseudonymisation key of {self.deployment.prefix}")
        acknowledge(
            secrets,
            "Under another key the same person has another pseudonym, so files before and after could not be joined: it is "
            "replaced by decision, not by the calendar.",
            "AwsSolutions-SMG4",
        )
        return self.offer(arn), self.offer(secrets.key.key_arn)

    def _purge(self) -> None:
        """Files of exports and aggregates; the tables go with their database."""
        purge = Purge(self, "Purge", *may_empty(self.lake_bucket.bucket_arn))
        purge.on_destroy("EmptyLakeBucket", "bucket", self.lake_bucket.bucket_name, after=[self.lake_bucket, self.workgroup])

    def _tell(self) -> None:
        self.tell("TableflowBucketName", self.tableflow_bucket.bucket_name, "Tableflow's bucket; only Tableflow may write to it")
        self.tell("LakeBucketName", self.lake_bucket.bucket_name, "Exports, query results and aggregates")
        for export in self.deployment.exports:
            place = f"s3://{self.lake_bucket.bucket_name}/{EXPORTS}/{export.contract}/"
            self.tell(f"{words(export.contract)}Files", place, "Where the export's files and manifests are")
        self.tell("AggregatesDatabase", self.aggregates_name, "Glue database of aggregates that exports keep")
        self.tell("AthenaWorkgroup", self.workgroup.name, "Choose this workgroup in Athena")


def _unlogged(made: s3.Bucket) -> None:
    acknowledge(
        made,
        "Server access logs would need a third bucket that outlives this one. CloudTrail data events, which an account turns on "
        "for all buckets at once, tell the same and who it was.",
        "AwsSolutions-S1",
    )
