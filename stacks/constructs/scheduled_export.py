"""Scheduled exports of tables to CSV files, for apps that describe each export by itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

from aws_cdk import Names, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from config.exports import contracts
from config.exports.cron import problem as find_cron_problem
from config.forms import find_zone_problem
from config.toml_model import BadFile
from stacks.constructs.aggregates import create_aggregates_database
from stacks.constructs.export_job import ExportJob, ExportJobs
from stacks.constructs.job_schedule import create_schedule_group, create_starter_role, schedule_job
from stacks.constructs.mail import alarm_on_dead_letters, create_dead_letter_queue
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.secrets import name_secret_arn
from stacks.constructs.table import Table, TablesInGlue
from stacks.lake import Lake, Prefixes

#: Glue's states of a job run that did not succeed.
FAILURE: Final = ("FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")


class ExportBucket(Construct):
    """Where exports write, and what they share.

    All keys in `bucket` begin with `prefix`. `alarms` gets a message for each failed run, and for each start
    that could not be delivered. `pseudonym_secret` is the name of a secret with the pseudonymisation key,
    which contracts that hash columns need.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        bucket: s3.IBucket,
        alarms: sns.ITopic,
        prefix: str = "",
        pseudonym_secret: str = "",
    ) -> None:
        super().__init__(scope, id)
        self._require_names(runtime.prefix)
        self.alarms = alarms
        prefixes = Prefixes(prefix)
        aggregates = create_aggregates_database(
            self, "Aggregates", prefix=runtime.prefix, bucket=bucket.bucket_name, warehouse=prefixes.warehouse
        )
        key = bucket.encryption_key
        lake = Lake(
            tableflow_bucket="",
            tableflow_arn="",
            tableflow_key_arn="",
            bucket=bucket.bucket_name,
            arn=bucket.bucket_arn,
            key_arn=key.key_arn if key else "",
            prefixes=prefixes,
            pseudonym_secret_arn=name_secret_arn(self, pseudonym_secret) if pseudonym_secret else "",
            pseudonym_key_arn="",
            aggregates=aggregates.ref,
            workgroup="",
        )
        self.jobs = ExportJobs(self, "Jobs", runtime=runtime, lake=lake, pseudonym_secret=pseudonym_secret)
        self.group = create_schedule_group(
            self, "Schedules", Names.unique_resource_name(self, max_length=64, separator="-")
        )
        self.dead_letters = create_dead_letter_queue(self, "DeadLetters")
        alarm_on_dead_letters(
            self,
            "DeadLettersAlarm",
            queue=self.dead_letters,
            topic=alarms,
            name=f"{Names.unique_resource_name(self, max_length=200, separator='-')}-DeadLetters",
            what="A start of an export or a message about its failure",
        )

    def _require_names(self, prefix: str) -> None:
        """Raise BadProps if another one has the same names in the same account and region."""
        environment = Stack.of(self).environment
        for other in self.node.root.node.find_all():
            if (
                isinstance(other, ExportJobs)
                and other.prefix == prefix
                and Stack.of(other).environment == environment
            ):
                raise BadProps(
                    f"{self.node.path}: {other.node.path} has jobs and logs with the names {prefix}-… "
                    "already. Use its ExportBucket, or a Runtime with another project or stage"
                )


class Export(Construct):
    """One export: its job with a role that reads this one table, its schedule, and the alarm of failed runs.

    `contract` is the path of a TOML file, and `cron` a schedule as EventBridge Scheduler writes it: minute,
    hour, day of month, month, day of week, year. `first_day` is a day of the first window, if it isn't the
    contract's.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        to: ExportBucket,
        table: Table,
        contract: Path | str,
        cron: str,
        zone: str = "UTC",
        first_day: date | None = None,
    ) -> None:
        super().__init__(scope, id)
        jobs = to.jobs
        file = Path(contract)
        try:
            self.contract = contracts.parse(file.read_text(encoding="utf-8"), name=str(file))
        except OSError as error:
            raise BadProps(f"contract: {file} can't be read ({error.strerror})") from None
        except BadFile as bad:
            raise BadProps(str(bad)) from None
        self._require_fitting(jobs, table, cron, zone)
        zip_asset = jobs.pack(self, "Zip", {self.contract.name: file})
        self.role = jobs.create_role(
            self,
            "Role",
            zip_asset=zip_asset,
            reads=table.list_reads(self),
            contracts=[self.contract],
        )
        in_glue = [table.location.database] if isinstance(table.location, TablesInGlue) else []
        jobs.grant(self, "Grants", self.role, in_glue)
        self.job = ExportJob(
            self,
            "Job",
            jobs=jobs,
            table=table,
            contract=self.contract,
            role=self.role,
            zip_asset=zip_asset,
            first_day=first_day,
        )
        self.job.node.add_dependency(*table.created_by)
        starter = create_starter_role(
            self, "Starter", group=to.group, jobs=[self.job], dead_letters=to.dead_letters
        )
        schedule_job(
            self,
            "Schedule",
            job=self.job,
            cron=cron,
            zone=zone,
            group=to.group,
            role=starter,
            dead_letters=to.dead_letters,
        )
        self._report_failures(to)

    @property
    def job_name(self) -> str:
        return self.job.name

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role, user or function read the files of this export and their manifests."""
        lake = self.job.jobs.lake
        objects = f"{lake.arn}/{lake.prefixes.exports}/{self.contract.name}"
        granted = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:GetObject"],
            resource_arns=[f"{objects}/data/*", f"{objects}/manifests/*"],
        )
        found = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:ListBucket"],
            resource_arns=[lake.arn],
            conditions={"StringLike": {"s3:prefix": [f"{lake.prefixes.exports}/{self.contract.name}/*"]}},
        )
        return granted.combine(found)

    def _require_fitting(self, jobs: ExportJobs, table: Table, cron: str, zone: str) -> None:
        """Raise BadProps with all that doesn't fit together."""
        contract = self.contract
        problems = []
        if contract.source.topic != table.topic:
            problems.append(
                f"contract {contract.name} reads topic {contract.source.topic}, and `table` is that of topic "
                f"{table.topic}"
            )
        if contract.hashed and not jobs.pseudonym_secret:
            problems.append(
                f"contract {contract.name} hashes columns: name the secret with the pseudonymisation key as "
                "`pseudonym_secret` of the ExportBucket"
            )
        if problem := find_cron_problem(cron):
            problems.append(f"cron: {problem}")
        if problem := find_zone_problem(zone):
            problems.append(f"zone: {problem}")
        if problems:
            raise BadProps(f"{self.node.path}: {'; '.join(problems)}")

    def _report_failures(self, to: ExportBucket) -> None:
        rule = events.Rule(
            self,
            "FailureRule",
            description=f"Failure of export {self.contract.name}",
            event_pattern=events.EventPattern(
                source=["aws.glue"],
                detail_type=["Glue Job State Change"],
                detail={"jobName": [self.job_name], "state": list(FAILURE)},
            ),
        )
        job_run = events.EventField.from_path("$.detail.jobRunId")
        reason = events.EventField.from_path("$.detail.message")
        rule.add_target(
            targets.SnsTopic(
                to.alarms,
                message=events.RuleTargetInput.from_text(
                    f"Export {self.contract.name} failed in run {job_run} of Glue job {self.job_name} in "
                    f"{Stack.of(self).region}: {reason}"
                ),
                dead_letter_queue=to.dead_letters,
            )
        )
