"""Exports: jobs, schedules, and mails about their runs."""

from __future__ import annotations

import itertools
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as event_targets
from aws_cdk import aws_kms as kms
from constructs import Construct

from config.deployments.confluent_model import Topic
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.model import to_pascal_case
from lambdas import contract
from lambdas.shared.settings import NotificationSettings
from stacks.base import LakeferryStack, build_catalog_uri
from stacks.confluent.access import name_table_reader_secret
from stacks.confluent.stack import ConfluentStack, find_glue_database
from stacks.constructs.aggregate_tables import create_table_job
from stacks.constructs.export_job import ExportJob, ExportJobs
from stacks.constructs.file_links import FileLinks
from stacks.constructs.function import PythonFunction
from stacks.constructs.job_schedule import create_schedule_group, create_starter_role, schedule_job
from stacks.constructs.mail import AlarmTopic, create_dead_letter_queue, mail_topic
from stacks.constructs.readers import create_reader_role
from stacks.constructs.scheduled_export import FAILURE, JOBS_OF_RULE
from stacks.constructs.secrets import may_encrypt_files
from stacks.constructs.ses_mail import SesMail
from stacks.constructs.statements import ITS_TOPICS, ONE_PREFIX, Statement, allow
from stacks.constructs.synthesis import build_own_arn
from stacks.constructs.table import Table, TablesAtConfluent, TablesInGlue
from stacks.data import DataStack
from stacks.settings import PublishedSettings, build_topic_arns, build_topic_name, list_recipient_ids

_SUCCESS: Final = ("SUCCEEDED",)


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
        self.alarms = AlarmTopic(
            self, "Alarm", runtime=self.runtime, engineers=self.deployment.alerts.engineers
        )
        self.dead_letters = create_dead_letter_queue(self, "DeadLetters")
        self.jobs: dict[str, ExportJob] = {}
        self.links: FileLinks | None = None
        self.mail: SesMail | None = None
        if self.deployment.exports:
            self._create_jobs(confluent)
            if self.deployment.mail:
                self.mail = SesMail(
                    self,
                    "Mail",
                    runtime=self.runtime,
                    sender=self.deployment.mail.sender,
                    address=self.deployment.mail.address,
                )
            else:
                self._create_topics()
            self._create_schedules()
            settings = PublishedSettings(self, "Settings", deployment=self.deployment)
            self.links = self._open_links(settings)
            self._create_reader_roles()
            self._notify(settings)
        self._add_outputs()

    def _create_jobs(self, confluent: ConfluentStack | None) -> None:
        """Create the jobs. They have one zip and one role."""
        jobs = ExportJobs(
            self,
            "Jobs",
            runtime=self.runtime,
            lake=self.lake,
            pseudonym_secret=self.deployment.aws.pseudonym_secret or self.lake.pseudonym_secret_arn,
        )
        tables = self._list_tables(confluent)
        contracts = {
            export.contract: self.loaded.sources.contract(export.contract, None)
            for export in self.deployment.exports
        }
        read = {contract.source.topic for contract in contracts.values()}
        reads: list[Statement] = []
        for location in dict.fromkeys(tables[topic].location for topic in sorted(read)):
            reads += location.list_reads(self)
        zip_asset = jobs.pack(jobs, "Zip")
        role = jobs.create_role(
            jobs, "Role", zip_asset=zip_asset, reads=reads, contracts=list(contracts.values())
        )
        reads_glue = any(topic.name in read for topic in self.deployment.tables_in_glue)
        jobs.grant(jobs, "Grants", role, [self.glue_database] if reads_glue else [])
        for export in self.deployment.exports:
            contract = contracts[export.contract]
            self.jobs[export.contract] = ExportJob(
                jobs,
                f"{to_pascal_case(export.contract)}Job",
                jobs=jobs,
                table=tables[contract.source.topic],
                contract=contract,
                role=role,
                zip_asset=zip_asset,
                first_day=export.first_day,
            )
        if self.deployment.shows_aggregates:
            create_table_job(
                jobs,
                "AggregateTablesJob",
                jobs=jobs,
                role=role,
                zip_asset=zip_asset,
                tables=len(self.deployment.exports),
            )

    def _list_tables(self, confluent: ConfluentStack | None) -> dict[str, Table]:
        """Return the tables by topic. A topic that is no table has the place that it would have."""
        in_glue = TablesInGlue(self.glue_database, self.lake.tableflow_arn, self.lake.tableflow_key_arn)
        at_confluent = self._find_tables_at_confluent(confluent)
        tables = {}
        for topic in self.deployment.topics:
            location = at_confluent if topic in self.deployment.managed_tables else in_glue
            assert location is not None
            tables[topic.name] = Table(
                topic=topic.name,
                name=topic.table,
                location=location,
                partitions=self._count_partitions(topic),
            )
        return tables

    def _count_partitions(self, topic: Topic) -> int | None:
        """Return the number of partitions of a topic, which may not be known for a table that exists."""
        exists = topic.existing or self.deployment.source is not None
        return topic.partitions if exists else self.loaded.sources.partitions(topic)

    def _find_tables_at_confluent(self, confluent: ConfluentStack | None) -> TablesAtConfluent | None:
        secret = name_table_reader_secret(self.deployment)
        if confluent and secret:
            return TablesAtConfluent(secret, confluent.cluster.key_arn, confluent.cluster.id)
        source = self.deployment.source.catalog if self.deployment.source else None
        if source is None:
            return None
        return TablesAtConfluent(secret, "", source.cluster_id, build_catalog_uri(self, source))

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
                ids=list_recipient_ids(self.deployment, export),
            )

    def _create_schedules(self) -> None:
        group = create_schedule_group(self, "Schedules", self.deployment.prefix)
        role = create_starter_role(
            self,
            "Starter",
            group=group,
            jobs=list(self.jobs.values()),
            dead_letters=self.dead_letters,
        )
        for export in self.deployment.exports:
            schedule_job(
                self,
                f"{to_pascal_case(export.contract)}Schedule",
                job=self.jobs[export.contract],
                cron=export.cron,
                zone=export.zone,
                group=group,
                role=role,
                dead_letters=self.dead_letters,
            )

    def _open_links(self, settings: PublishedSettings) -> FileLinks | None:
        """Return what opens links, None for a deployment without them."""
        linked = self.deployment.exports_with_links
        if not linked:
            return None
        rotation = self.deployment.rotation
        return FileLinks(
            self,
            "Links",
            runtime=self.runtime,
            lake=self.lake,
            exports=[export.contract for export in linked],
            settings_url=settings.url,
            may_read_settings=settings.may_read(),
            longest_days=max(export.link_days or 0 for export in linked),
            rotation_days=rotation.every_days,
            grace_days=rotation.grace_days,
        )

    def _create_reader_roles(self) -> None:
        for export in self.deployment.exports:
            if not export.readers:
                continue
            name = to_pascal_case(export.contract)
            role = create_reader_role(
                self, f"{name}Readers", lake=self.lake, export=export.contract, readers=export.readers
            )
            self.output(f"{name}ReaderRole", role.role_arn, "The role with which readers get the files")

    def _notify(self, settings: PublishedSettings) -> None:
        links = self.links
        function = PythonFunction(
            self,
            "Notify",
            runtime=self.runtime,
            handler=contract.NOTIFY,
            purpose="Sends mails and events about the runs of exports",
            environment=NotificationSettings(
                project=self.deployment.identity.name,
                stage=self.deployment.identity.stage,
                bucket=self.lake.bucket,
                prefix=self.lake.prefixes.exports,
                notices=self.lake.prefixes.notices,
                alarm_topic=self.alarms.topic.topic_arn,
                settings=settings.url,
                topic_arns="" if self.mail else build_topic_arns(self, self.deployment),
                mail_sender=self.mail.sender if self.mail else "",
                mail_configuration_set=self.mail.configuration_set if self.mail else "",
                region=self.region,
                link_secret=links.secret.arn if links else "",
                link_url=links.url if links else "",
                deployment=self.deployment.prefix if links else "",
            ).to_environment(),
            statements=[
                *self._may_notify(),
                settings.may_read(),
                *(links.may_read_key() if links else []),
            ],
            dead_letters=self.dead_letters,
        )
        target = event_targets.LambdaFunction(
            function.function,
            dead_letter_queue=self.dead_letters,
            max_event_age=Duration.hours(24),
            retry_attempts=10,
        )
        if self.mail:
            self.mail.create_rule().add_target(target)
        names = [job.name for job in self.jobs.values()]
        for (outcome, states), start in itertools.product(
            (("Success", _SUCCESS), ("Failure", FAILURE)), range(0, len(names), JOBS_OF_RULE)
        ):
            rule = events.Rule(
                self,
                f"{outcome}Rule{start or ''}",
                description=f"{outcome} of an export",
                event_pattern=events.EventPattern(
                    source=["aws.glue"],
                    detail_type=["Glue Job State Change"],
                    detail={"jobName": names[start : start + JOBS_OF_RULE], "state": list(states)},
                ),
            )
            rule.add_target(target)

    def _may_notify(self) -> list[Statement]:
        """Return what the function may do. It reads records and manifests, and of files with rows only those
        that it attaches to mails.
        """
        arn = self.lake.arn
        prefixes = self.lake.prefixes
        records = [f"{arn}/{prefixes.exports}/*/{part}/*" for part in ("runs", "manifests")]
        jobs = [build_own_arn(self, "glue", f"job/{job.name}") for job in self.jobs.values()]
        return [
            allow("ReadRecords", ["s3:GetObject"], records, why=ONE_PREFIX),
            *self._may_attach_files(),
            allow(
                "WriteMarkers",
                ["s3:GetObject", "s3:PutObject"],
                [f"{arn}/{prefixes.notices}/*"],
                why=ONE_PREFIX,
            ),
            # Without a condition on the prefix: with one, S3 answers 403 instead of 404 for a marker that
            # doesn't exist yet.
            allow("FindRecords", ["s3:ListBucket"], [arn]),
            *may_encrypt_files(self, self.lake.key_arn),
            allow("GetJobRuns", ["glue:GetJobRun"], jobs),
            *self._may_send_mails(),
            allow(
                "PutEvents",
                ["events:PutEvents"],
                [build_own_arn(self, "events", "event-bus/default")],
                {
                    "StringEquals": {
                        "events:source": contract.EVENT_SOURCE,
                        "events:detail-type": contract.EVENT_TYPE,
                    }
                },
            ),
            allow("SendAlarms", ["sns:Publish"], [self.alarms.topic.topic_arn]),
            allow("EncryptAlarms", ["kms:Decrypt", "kms:GenerateDataKey"], [self.alarms.key_arn]),
        ]

    def _may_attach_files(self) -> list[Statement]:
        if self.mail is None:
            return []
        sources = self.loaded.sources
        folder = f"{self.lake.arn}/{self.lake.prefixes.exports}"
        attached = [
            f"{folder}/{export.contract}/data/*"
            for export in self.deployment.exports
            if sources.contract(export.contract, None).delivery.attach_up_to_kb
        ]
        return [allow("AttachFiles", ["s3:GetObject"], attached, why=ONE_PREFIX)] if attached else []

    def _may_send_mails(self) -> list[Statement]:
        if self.mail:
            return self.mail.may_send()
        topics = f"{build_topic_arns(self, self.deployment)}*"
        return [allow("SendMails", ["sns:Publish"], [topics], why=ITS_TOPICS)]

    def _add_outputs(self) -> None:
        for export in self.deployment.exports:
            self.output(
                f"{to_pascal_case(export.contract)}JobName",
                self.jobs[export.contract].name,
                "The export's Glue job",
            )
        self.output(
            "DeadLettersUrl", self.dead_letters.queue_url, "Starts and events that could not be delivered"
        )
        self.output(
            "Unconfirmed",
            "Every engineer has to confirm a subscription in a mail from SNS"
            if self.mail
            else "Every recipient has to confirm a subscription in a mail from SNS",
            "Alarms come only after that" if self.mail else "Mails about exports come only after that",
        )
