"""Scheduled exports of tables to CSV files, for apps that describe each export by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

from config.deployments import validation
from config.deployments.export_model import Export as ExportSettings
from config.deployments.shared_rules import find_rows_problem, find_schedule_problem
from config.exports import topic_schema
from config.exports.avro_schema import BadSchema
from config.exports.check import check_file, read_by_names
from config.exports.contract import Contract
from config.toml_model import BadFile
from stacks.constructs.aggregates import create_aggregates_database
from stacks.constructs.export_job import ExportJob, ExportJobs
from stacks.constructs.job_schedule import create_schedule_group, create_starter_role, schedule_job
from stacks.constructs.mail import alarm_on_dead_letters, create_dead_letter_queue
from stacks.constructs.readers import may_read_export
from stacks.constructs.reading import grant_statements
from stacks.constructs.runtime import BadProps, Runtime, list_setting_problems, refuse, require_forms
from stacks.constructs.secrets import name_secret_arn
from stacks.constructs.table import Table
from stacks.lake import Lake, Prefixes

#: Glue's states of a job run that did not succeed.
FAILURE: Final = ("FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")
#: Job names per rule. EventBridge allows 2,048 characters in an event pattern by default, and a job's name
#: has up to 100. Each rule has a condition in the dead-letter queue's policy, and SQS takes ten.
JOBS_OF_RULE: Final = 16


class ExportBucket(Construct):
    """Where exports write, and what they share.

    All keys in `bucket` begin with `prefix`, by default the project and stage of `runtime`. `alarms` gets a
    message for each failed run, and for each start that could not be delivered; if the app creates the topic,
    alarms may publish to it. `pseudonym_secret` is the name of a secret with the pseudonymisation key, which
    contracts that hash columns need.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        bucket: s3.IBucket,
        alarms: sns.ITopic,
        prefix: str | None = None,
        pseudonym_secret: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        root = f"{runtime.prefix}/" if prefix is None else prefix
        require_forms(
            prefix=(validation.KEY_PREFIX, root),
            pseudonym_secret=(validation.SECRET_NAME, pseudonym_secret),
        )
        self._require_own(runtime.prefix, bucket.bucket_name, root)
        self.alarms = alarms
        self._let_alarms_in()
        self._rules: list[events.Rule] = []
        self._reported = 0
        self.jobs = ExportJobs(
            self,
            "Jobs",
            runtime=runtime,
            lake=self._describe_lake(runtime.prefix, bucket, Prefixes(root), pseudonym_secret),
            pseudonym_secret=pseudonym_secret or "",
            has_own_folders=True,
        )
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

    def report_failures(self, job: ExportJob) -> None:
        """Send a message to `alarms` when a run of the job fails."""
        name = {"jobName": [job.name]}
        if self._reported % JOBS_OF_RULE:
            self._rules[-1].add_event_pattern(detail=name)
        else:
            self._rules.append(self._create_rule(name))
        self._reported += 1

    def _describe_lake(
        self, names: str, bucket: s3.IBucket, prefixes: Prefixes, pseudonym_secret: str | None
    ) -> Lake:
        key = bucket.encryption_key
        aggregates = create_aggregates_database(
            self, "Aggregates", prefix=names, bucket=bucket.bucket_name, warehouse=prefixes.warehouse
        )
        return Lake(
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

    def _create_rule(self, detail: dict[str, list[str]]) -> events.Rule:
        rule = events.Rule(
            self,
            f"FailureRule{self._reported or ''}",
            description="Failure of an export",
            event_pattern=events.EventPattern(
                source=["aws.glue"],
                detail_type=["Glue Job State Change"],
                detail={**detail, "state": list(FAILURE)},
            ),
        )
        name, job_run, reason = (
            events.EventField.from_path(f"$.detail.{field}") for field in ("jobName", "jobRunId", "message")
        )
        text = f"Glue job {name} failed in run {job_run} in {Stack.of(self).region}: {reason}"
        rule.add_target(
            targets.SnsTopic(
                self.alarms,
                message=events.RuleTargetInput.from_text(text),
                dead_letter_queue=self.dead_letters,
            )
        )
        return rule

    def _let_alarms_in(self) -> None:
        """Let alarms publish to a topic of the app. The rules give it a policy, which replaces the one that
        lets the account's alarms in. The policy of a topic that exists stays as it is.
        """
        self.alarms.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[self.alarms.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )

    def _require_own(self, names: str, bucket: str, root: str) -> None:
        """Raise BadProps if another one has the same names in the same account and region, or the same keys
        in the same bucket.
        """
        stack = Stack.of(self)
        for jobs in self.node.root.node.find_all():
            if not isinstance(jobs, ExportJobs):
                continue
            if jobs.prefix == names and Stack.of(jobs).environment == stack.environment:
                raise BadProps(
                    f"{self.node.path}: {jobs.node.path} has jobs and logs with the names {names}-… "
                    f"already. Create the exports in stack {Stack.of(jobs).node.path} with its "
                    "ExportBucket, or use a Runtime with another project or stage"
                )
            taken = jobs.lake.prefixes.root
            if jobs.lake.bucket == bucket and (taken.startswith(root) or root.startswith(taken)):
                raise BadProps(
                    f"{self.node.path}: prefix: {jobs.node.path} writes to keys of the same bucket that "
                    f"begin with {taken}, and keys of this one begin with {root}. Name a prefix that doesn't "
                    "contain the other"
                )


class Export(Construct):
    """One export: its job with a role that reads this one table, its schedule, and the alarm of failed runs.

    `contract` is the path of a TOML file, and `schema` of the Avro schema of the topic's values, as Schema
    Registry has it with its tags. `cron` is a schedule as EventBridge Scheduler writes it: minute, hour, day
    of month, month, day of week, year. `first_day` is a day of the first window, if it isn't the contract's.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        to: ExportBucket,
        table: Table,
        contract: Path | str,
        schema: Path | str,
        cron: str,
        zone: str = "UTC",
        first_day: date | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._require_stack_of(to)
        jobs = to.jobs
        file = Path(contract)
        settings = list_setting_problems(ExportSettings, {"cron": cron, "zone": zone, "first_day": first_day})
        self.contract = self._read_contract(file, Path(schema), table, settings)
        refuse([*settings, *self._list_misfits(jobs, table, cron, zone)], self.node.path)
        zip_asset = jobs.pack(self, "Zip", {self.contract.name: file})
        self.role = jobs.create_role(
            self,
            "Role",
            zip_asset=zip_asset,
            reads=table.list_reads(self),
            contracts=[self.contract],
        )
        jobs.grant(self, "Grants", self.role, [])
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
        may_read = table.grant_in_lake_formation(
            self, "ReadGrants", governs=jobs.runtime.lake_formation, arn=self.role.role_arn
        )
        self.job.node.add_dependency(*table.created_by, *may_read)
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
        to.report_failures(self.job)

    @property
    def job_name(self) -> str:
        return self.job.name

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role, user or function read the files of this export and their manifests."""
        statements = may_read_export(self, self.job.jobs.lake, self.contract.name)
        return grant_statements(self, grantee, statements)

    def _require_stack_of(self, to: ExportBucket) -> None:
        """Raise BadProps in another stack: the two would need each other's jobs, rules and queue."""
        stack = Stack.of(to)
        if Stack.of(self) is not stack:
            raise BadProps(
                f"{self.node.path}: to: {to.node.path} is in another stack. Create the export in stack "
                f"{stack.node.path}; its table may be in any stack"
            )

    def _read_contract(
        self, file: Path, schema_file: Path, table: Table, problems: Sequence[str]
    ) -> Contract:
        """Return the contract, checked against the schema as for a deployment file; but Spark isn't asked.

        Raises BadProps with all mistakes, `problems` among them.
        """
        try:
            schema = topic_schema.load(schema_file, table.topic)
            return check_file(file, schema, read_by_names)
        except BadSchema as bad:
            mistake = f"schema: {bad}"
        except BadFile as bad:
            mistake = f"contract: {bad}"
        raise BadProps(f"{self.node.path}: {'; '.join([*problems, mistake])}")

    def _list_misfits(self, jobs: ExportJobs, table: Table, cron: str, zone: str) -> Iterator[str]:
        """Yield what doesn't fit together."""
        contract = self.contract
        if contract.hashed and not jobs.pseudonym_secret:
            yield (
                f"contract {contract.name} hashes columns: name the secret with the pseudonymisation key as "
                "`pseudonym_secret` of the ExportBucket"
            )
        if problem := find_rows_problem(contract, table.settings):
            yield f"rows_days in `settings` of the table {problem}"
        if problem := find_schedule_problem(contract, cron, zone):
            yield f"cron: {problem}"
