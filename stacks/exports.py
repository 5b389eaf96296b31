"""Exports: jobs, schedules, and mails about their runs."""

from __future__ import annotations

import itertools
from typing import Final

from aws_cdk import Duration, RemovalPolicy, TimeZone
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as event_targets
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as schedule_targets
from constructs import Construct

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import to_pascal_case
from lambdas import contract
from lambdas.shared.settings import NotificationSettings
from stacks.base import LakeferryStack, build_catalog_uri, build_own_arn
from stacks.confluent.access import name_table_reader_secret
from stacks.confluent.stack import ConfluentStack, find_glue_database
from stacks.constructs.export_job import ExportJobs, TableflowKey
from stacks.constructs.function import PythonFunction
from stacks.constructs.mail import AlarmTopic, create_dead_letter_queue, mail_topic
from stacks.constructs.secrets import may_encrypt_files
from stacks.constructs.statements import ITS_TOPICS, ONE_PREFIX, Statement, allow, create_role
from stacks.data import DataStack
from stacks.settings import PublishedSettings, build_topic_arns, build_topic_name

#: If Glue refuses a start because a run is still active, it is retried for this long. Later, the next run
#: catches up.
_START_HOURS: Final = 6
_START_TRIES: Final = 24
#: Job names per rule. EventBridge allows 2,048 characters in an event pattern by default, and a job's name
#: has up to 100.
_JOBS_OF_RULE: Final = 16
_SUCCESS: Final = ("SUCCEEDED",)
_FAILURE: Final = ("FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")


class ExportsStack(LakeferryStack):
    """The exports stack. It depends on the names of the tables and the buckets."""

    def __init__(
        self, scope: Construct, *, loaded: LoadedDeployment, data: DataStack, confluent: ConfluentStack | None
    ) -> None:
        super().__init__(
            scope, "exports", loaded=loaded, purpose="scheduled exports and the mails about them"
        )
        self.add_stack_dependency(confluent or data)
        self.lake = data.lake
        self.glue_database = find_glue_database(self.deployment, confluent)
        self.alarms = AlarmTopic(self, "Alarm", deployment=self.deployment)
        self.dead_letters = create_dead_letter_queue(self, "DeadLetters")
        self.jobs: dict[str, glue.CfnJob] = {}
        if self.deployment.exports:
            jobs = ExportJobs(
                self,
                "Jobs",
                loaded=loaded,
                lake=self.lake,
                glue_database=self.glue_database,
                tableflow_key=self._find_tableflow_key(confluent),
            )
            self.jobs = jobs.jobs
            self._create_topics()
            self._create_schedules()
            self._notify()
        self._add_outputs()

    def _find_tableflow_key(self, confluent: ConfluentStack | None) -> TableflowKey | None:
        secret = name_table_reader_secret(self.deployment)
        if confluent and secret:
            return TableflowKey(secret, confluent.cluster.key_arn, confluent.cluster.id)
        source = self.deployment.source.catalog if self.deployment.source else None
        if source is None:
            return None
        return TableflowKey(secret, "", source.cluster_id, build_catalog_uri(self, source))

    def _create_topics(self) -> None:
        key = kms.Alias.from_alias_name(self, "SnsKey", "alias/aws/sns")
        for export in self.deployment.exports:
            mail_topic(
                self,
                f"{to_pascal_case(export.contract)}Topic",
                title=self.loaded.sources.contract(export.contract, None).title,
                recipients=export.recipients,
                key=key,
                topic_name=build_topic_name(self.deployment, export.contract),
            )

    def _create_schedules(self) -> None:
        group = scheduler.ScheduleGroup(
            self,
            "Schedules",
            schedule_group_name=self.deployment.prefix,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = self._create_starter_role(group)
        for export in self.deployment.exports:
            job = self.jobs[export.contract]
            schedule = scheduler.Schedule(
                self,
                f"{to_pascal_case(export.contract)}Schedule",
                schedule_group=group,
                description=f"Starts export {export.contract}",
                schedule=scheduler.ScheduleExpression.expression(
                    f"cron({export.cron})", TimeZone.of(export.zone)
                ),
                target=self._start(job, role),
                time_window=scheduler.TimeWindow.off(),
            )
            schedule.node.add_dependency(role)

    def _create_starter_role(self, group: scheduler.ScheduleGroup) -> iam.Role:
        """Return the role of the schedules. It trusts only those of this group."""
        service = iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": self.account, "aws:SourceArn": group.schedule_group_arn}
            },
        )
        return create_role(
            self,
            "Starter",
            trusts=service,
            purpose="Starts exports",
            statements=[
                self._may_start(list(self.jobs.values())),
                allow("SendToDeadLetters", ["sqs:SendMessage"], [self.dead_letters.queue_arn]),
            ],
        )

    def _may_start(self, jobs: list[glue.CfnJob]) -> Statement:
        return allow(
            "StartJobs",
            ["glue:StartJobRun"],
            [build_own_arn(self, "glue", f"job/{job.name}") for job in jobs],
        )

    def _start(self, job: glue.CfnJob, role: iam.Role) -> schedule_targets.Universal:
        """Return the target of a schedule. `--as-of` is the scheduled time, however late the start is."""
        scheduled = scheduler.ContextAttribute.scheduled_time
        return schedule_targets.Universal(
            service="glue",
            action="startJobRun",
            input=scheduler.ScheduleTargetInput.from_object(
                {"JobName": job.ref, "Arguments": {"--as-of": scheduled}}
            ),
            role=role.without_policy_updates(),
            policy_statements=[self._may_start([job]).policy_statement()],
            dead_letter_queue=self.dead_letters,
            max_event_age=Duration.hours(_START_HOURS),
            retry_attempts=_START_TRIES,
        )

    def _notify(self) -> None:
        settings = PublishedSettings(self, "Settings", deployment=self.deployment)
        function = PythonFunction(
            self,
            "Notify",
            deployment=self.deployment,
            handler=contract.NOTIFY,
            purpose="Sends mails about the runs of exports",
            environment=NotificationSettings(
                project=self.deployment.identity.name,
                stage=self.deployment.identity.stage,
                bucket=self.lake.bucket,
                prefix=self.lake.prefixes.exports,
                notices=self.lake.prefixes.notices,
                alarm_topic=self.alarms.topic.topic_arn,
                settings=settings.url,
                topic_arns=build_topic_arns(self, self.deployment),
                region=self.region,
            ).to_environment(),
            statements=[*self._may_notify(), settings.may_read()],
            dead_letters=self.dead_letters,
        )
        names = [str(job.name) for job in self.jobs.values()]
        for (outcome, states), start in itertools.product(
            (("Success", _SUCCESS), ("Failure", _FAILURE)), range(0, len(names), _JOBS_OF_RULE)
        ):
            rule = events.Rule(
                self,
                f"{outcome}Rule{start or ''}",
                description=f"{outcome} of an export",
                event_pattern=events.EventPattern(
                    source=["aws.glue"],
                    detail_type=["Glue Job State Change"],
                    detail={"jobName": names[start : start + _JOBS_OF_RULE], "state": list(states)},
                ),
            )
            rule.add_target(
                event_targets.LambdaFunction(
                    function.function,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=Duration.hours(24),
                    retry_attempts=10,
                )
            )

    def _may_notify(self) -> list[Statement]:
        """Return what the function may do. It reads records and manifests, never files with rows."""
        arn = self.lake.arn
        prefixes = self.lake.prefixes
        records = [f"{arn}/{prefixes.exports}/*/{part}/*" for part in ("runs", "manifests")]
        jobs = [build_own_arn(self, "glue", f"job/{job.name}") for job in self.jobs.values()]
        return [
            allow("ReadRecords", ["s3:GetObject"], records, why=ONE_PREFIX),
            allow(
                "WriteMarkers",
                ["s3:GetObject", "s3:PutObject"],
                [f"{arn}/{prefixes.notices}/*"],
                why=ONE_PREFIX,
            ),
            # Without a condition on the prefix: with one, S3 answers 403 instead of 404 for a marker that
            # doesn't exist yet.
            allow("FindRecords", ["s3:ListBucket"], [arn]),
            *may_encrypt_files(self, self.lake),
            allow("GetJobRuns", ["glue:GetJobRun"], jobs),
            allow(
                "SendMails", ["sns:Publish"], [f"{build_topic_arns(self, self.deployment)}*"], why=ITS_TOPICS
            ),
            allow("SendAlarms", ["sns:Publish"], [self.alarms.topic.topic_arn]),
            allow("EncryptAlarms", ["kms:Decrypt", "kms:GenerateDataKey"], [self.alarms.key_arn]),
        ]

    def _add_outputs(self) -> None:
        for export in self.deployment.exports:
            self.output(
                f"{to_pascal_case(export.contract)}JobName",
                str(self.jobs[export.contract].name),
                "The export's Glue job",
            )
        self.output(
            "DeadLettersUrl", self.dead_letters.queue_url, "Starts and events that could not be delivered"
        )
        self.output(
            "Unconfirmed",
            "Every recipient has to confirm a subscription in a mail from SNS",
            "Mails about exports come only after that",
        )
