"""Operation of a deployment: monitoring, alarms, dashboard, budget, saved queries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.source_model import CatalogSource
from lambdas import contract
from lambdas.shared.settings import MonitoringSettings
from stacks.athena import let_people_query, save_queries
from stacks.base import LakeferryStack, build_catalog_uri
from stacks.confluent.access import name_table_reader_secret
from stacks.confluent.stack import Cluster, ConfluentStack, find_glue_database
from stacks.constructs.function import FunctionSchedule, PythonFunction
from stacks.constructs.lake_formation import READS_DATABASE, LakeFormationGrants
from stacks.constructs.mail import alarm_on_dead_letters, create_alarm
from stacks.constructs.monitoring_rights import may_read_tables, may_use_keys
from stacks.constructs.secrets import may_decrypt_files, may_read_secret, name_secret_arn
from stacks.constructs.statements import (
    ITS_JOBS,
    ITS_TOPICS,
    ONE_PREFIX,
    Statement,
    allow,
)
from stacks.constructs.synthesis import SynthOptions, build_own_arn
from stacks.constructs.vendor import may_read_states
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.settings import PublishedSettings, build_topic_arns
from stacks.snowflake import Reader, SnowflakeStack

#: Of the last three measurements, two must be above the limit: one may be wrong or missing.
_RUNS: Final = 3
_RUNS_OVER: Final = 2
_CONFIRM_HOURS: Final = 24
_AGES: Final = ("TopicAgeHours", "IcebergAgeHours", "GlueAgeHours", "SnowflakeAgeHours")
#: The budget's notifications: percentages of the actual and of the forecasted costs.
_THRESHOLDS: Final = (("ACTUAL", 80), ("FORECASTED", 100))
_OF_KEYS: Final = ("KeyAgeDays", "RotationOverdueDays", "DeployerKeyAgeDays")


class OperationsStack(LakeferryStack):
    """The operations stack. It depends on all others, so it is deleted first."""

    def __init__(
        self,
        scope: Construct,
        *,
        loaded: LoadedDeployment,
        data: DataStack,
        confluent: ConfluentStack | None,
        snowflake: SnowflakeStack | None,
        exports: ExportsStack,
    ) -> None:
        super().__init__(
            scope, "operations", loaded=loaded, purpose="monitoring, alarms, dashboard, budget, queries"
        )
        self.data = data
        self.confluent = confluent
        self._glue_database = find_glue_database(self.deployment, confluent)
        self.snowflake = snowflake
        self.exports = exports
        for needed in filter(
            None, (data, confluent, snowflake, exports)
        ):  # an imported value alone doesn't order stacks
            self.add_stack_dependency(needed)
        has_snowflake_tables = any(
            topic.tableflow and topic.tableflow.snowflake_table for topic in self.deployment.tables
        )
        #: The user with which monitoring reads tables in Snowflake. A linked database is not monitored.
        self._snowflake_reader: Reader | None = (
            self.snowflake.reader if self.snowflake and has_snowflake_tables else None
        )
        self._watch()
        self._alarms = self._create_alarms()
        if self.deployment.alerts.dashboard:
            self._create_dashboard()
        if self.deployment.has_budget:
            self._create_budget()
        if self.deployment.aws.athena_readers:
            let_people_query(self, data.lake, self._glue_database)
        save_queries(self, data.lake, self._glue_database)

    @property
    def _catalog_source(self) -> CatalogSource | None:
        """Return where somebody else's tables in Confluent's storage are."""
        return self.deployment.source.catalog if self.deployment.source else None

    def _watch(self) -> None:
        settings = PublishedSettings(
            self, "Settings", deployment=self.deployment, secrets=self._list_secret_names()
        )
        options = SynthOptions.of(self)
        cluster = self.confluent.cluster if self.confluent else None
        reader = self._snowflake_reader
        source = self._catalog_source
        variables = MonitoringSettings(
            project=self.deployment.identity.name,
            stage=self.deployment.identity.stage,
            bucket=self.data.lake.bucket,
            prefix=self.data.lake.prefixes.exports,
            settings=settings.url,
            cluster=self._glue_database,
            topic_arns=build_topic_arns(self, self.deployment) if self.deployment.sns_exports else "",
            metrics_key=cluster.watcher_secret_arn if cluster else "",
            confluent_url=options.confluent_url,
            proxy=self.deployment.proxy,
            tableflow_secret=cluster.table_watcher_secret_arn if cluster else "",
            table_reader_secret=name_table_reader_secret(self.deployment),
            catalog_uri=build_catalog_uri(self, source) if source else "",
            catalog_cluster=source.cluster_id if source else "",
            state_table=cluster.state_table if cluster else "",
            snowflake_schema=self.snowflake.reader.schema if self.snowflake else "",
            snowflake_secret=reader.secret_arn if reader else "",
            snowflake_url=options.snowflake_url,
            snowflake_state_table=reader.state_table if reader else "",
        )
        function = PythonFunction(
            self,
            "Watch",
            runtime=self.runtime,
            handler=contract.WATCH,
            purpose="Monitoring: measures freshness, lateness and ages of keys",
            environment=variables.to_environment(),
            statements=[settings.may_read(), *self._may_measure()],
            dead_letters=self.exports.dead_letters,
        )
        if self.deployment.tables_in_glue:
            grants = LakeFormationGrants(
                self,
                "WatchGrants",
                governs=self.deployment.aws.lake_formation,
                role_arn=function.role.role_arn,
            )
            grants.grant_on_database("ReadDatabase", self._glue_database, READS_DATABASE)
            grants.grant_on_tables("DescribeTables", self._glue_database, ["DESCRIBE"])
        FunctionSchedule(
            self,
            "WatchSchedule",
            function=function,
            cron=f"0/{contract.WATCH_MINUTES} * * * ? *",
            purpose="Starts monitoring",
            dead_letters=self.exports.dead_letters,
        )

    def _list_secret_names(self) -> list[str]:
        names = []
        for owner in (self.confluent, self.snowflake, self.exports.links):
            if owner:
                names += [secret.name for secret in owner.secrets.filled]
        return names

    def _may_measure(self) -> list[Statement]:
        """Return what monitoring may do.

        It reads keys that can only read metrics and tables; of other keys it reads dates.
        """
        lake = self.data.lake
        manifests = f"{lake.arn}/{lake.prefixes.exports}/*/manifests/*"
        return [
            *(may_read_tables(self, lake, self._glue_database) if self.deployment.tables_in_glue else []),
            *self._may_read_exports(),
            allow("ReadManifests", ["s3:GetObject"], [manifests], why=ONE_PREFIX),
            *may_decrypt_files(self, lake.key_arn),
            # Without a condition on the prefix: with one, S3 answers 403 instead of 404 for a manifest that
            # doesn't exist yet.
            allow("FindManifests", ["s3:ListBucket"], [lake.arn]),
            *self._may_read_all_keys(),
            allow(
                "EmitMetrics",
                ["cloudwatch:PutMetricData"],
                ["*"],
                {"StringEquals": {"cloudwatch:namespace": contract.METRICS}},
                why="CloudWatch has no resources for metrics; the condition allows one namespace.",
            ),
        ]

    def _may_read_all_keys(self) -> list[Statement]:
        if self.confluent:
            return self._may_read_keys(self.confluent.cluster)
        source = self._catalog_source
        return [
            *self._may_read_ages(self.deployment.manual_secrets),
            *(self._may_read_key_of_catalog(source) if source else []),
        ]

    def _may_read_key_of_catalog(self, source: CatalogSource) -> list[Statement]:
        return may_read_secret(self, "TableflowKey", name_secret_arn(self, source.key_secret))

    def _may_read_keys(self, cluster: Cluster) -> list[Statement]:
        watchers = [cluster.watcher_secret_arn, cluster.table_watcher_secret_arn]
        readers = [arn for arn in watchers if arn]
        if secret := name_table_reader_secret(self.deployment):
            readers.append(name_secret_arn(self, secret))
        keys = [cluster.key_arn]
        tables = [cluster.state_table]
        if self._snowflake_reader:
            tables.append(self._snowflake_reader.state_table)
            readers.append(self._snowflake_reader.secret_arn)
            keys.append(self._snowflake_reader.key_arn)
        names = [*self.deployment.created_confluent.manual_secrets]
        if self.snowflake:
            names.append(self.snowflake.settings.key_secret)
        return [
            *self._may_read_ages(names),
            *may_use_keys(self, readers, keys),
            may_read_states(*[build_own_arn(self, "dynamodb", f"table/{table}") for table in tables]),
        ]

    def _may_read_ages(self, of_people: Sequence[str] = ()) -> list[Statement]:
        """Allow reading when keys were replaced: those that rotate, and those `of_people`."""
        names = [*self._list_secret_names(), *of_people]
        arns = [name_secret_arn(self, name) for name in names]
        actions = ["secretsmanager:DescribeSecret", "secretsmanager:ListSecretVersionIds"]
        return [allow("ReadAgesOfKeys", actions, arns)] if arns else []

    def _may_read_exports(self) -> list[Statement]:
        if not self.deployment.exports:
            return []
        jobs = build_own_arn(self, "glue", f"job/{self.deployment.prefix}-*")
        may_get_jobs = allow("GetJobs", ["glue:GetJob"], [jobs], why=ITS_JOBS)
        if not self.deployment.sns_exports:
            return [may_get_jobs]
        topics = f"{build_topic_arns(self, self.deployment)}*"
        return [allow("CountRecipients", ["sns:GetTopicAttributes"], [topics], why=ITS_TOPICS), may_get_jobs]

    def _create_alarms(self) -> list[cloudwatch.Alarm]:
        alerts = self.deployment.alerts
        rotation = self.deployment.rotation
        limits = {
            **dict.fromkeys(_AGES, alerts.table_stale_hours),
            "TableflowStopped": 0,
            "RowsSkipped": 0,
            "ExportLateHours": 0,
            "KeyAgeDays": alerts.key_age_days or rotation.every_days * 3 // 2,
            "RotationOverdueDays": 0,
            "DeployerKeyAgeDays": alerts.deployer_key_age_days,
            contract.UNMEASURED: 0,
        }
        emitted = self._list_emitted_metrics()
        alarms = [
            self._alarm_on_metric(metric, limit) for metric, limit in limits.items() if metric in emitted
        ]
        if self.deployment.sns_exports:
            alarms.append(self._alarm_on_unconfirmed())
        return [*alarms, self._alarm_on_dead_letters()]

    def _list_general_metrics(self) -> tuple[str, ...]:
        """Return the metrics of which the dashboard shows the largest value."""
        if self.confluent:
            return (*_OF_KEYS, contract.UNMEASURED)
        of_brought_keys = ("DeployerKeyAgeDays",) if self.deployment.manual_secrets else ()
        of_links = ("KeyAgeDays", "RotationOverdueDays") if self.exports.links else ()
        return (*of_links, *of_brought_keys, contract.UNMEASURED)

    def _list_emitted_metrics(self) -> set[str]:
        """Return the metrics that monitoring emits for this deployment."""
        emitted = set(self._list_general_metrics())
        if self.confluent and self.deployment.tables and not self.deployment.uses_existing_cluster:
            emitted |= {"TopicAgeHours", "TableflowStopped", "RowsSkipped"}
        if self.deployment.tables_in_glue:
            emitted |= {"IcebergAgeHours", "GlueAgeHours"}
        if self.deployment.managed_tables:
            emitted |= {"IcebergAgeHours"}
        if self._snowflake_reader:
            emitted |= {"SnowflakeAgeHours"}
        if self.deployment.sns_exports:
            emitted.add("RecipientsUnconfirmed")
        return emitted | ({"ExportLateHours"} if self.deployment.exports else set())

    def _build_metric(
        self, name: str, dimension: str = "", value: str = "", *, minutes: int = contract.WATCH_MINUTES
    ) -> cloudwatch.Metric:
        """Return the maximum of a metric, of all or of one table, export or secret."""
        dimensions = {
            contract.DEPLOYMENT_DIMENSION: self.deployment.prefix,
            **({dimension: value} if dimension else {}),
        }
        return cloudwatch.Metric(
            namespace=contract.METRICS,
            metric_name=name,
            dimensions_map=dimensions,
            period=Duration.minutes(minutes),
            statistic="Maximum",
        )

    def _alarm_on_metric(self, metric: str, limit: int) -> cloudwatch.Alarm:
        return create_alarm(
            self,
            f"{metric}Alarm",
            topic=self.exports.alarms.topic,
            name=f"{self.deployment.prefix}-{metric}",
            description=(
                f"{metric} of {self.deployment.prefix} is above {limit}. `lakeferry status` shows where. "
                "INSUFFICIENT_DATA means that monitoring has stopped"
            ),
            metric=self._build_metric(metric),
            above=limit,
            periods=_RUNS,
            datapoints=_RUNS_OVER,
            mail_without_data=True,
        )

    def _alarm_on_unconfirmed(self) -> cloudwatch.Alarm:
        """Return an alarm that goes off after a whole day, because nobody can confirm a subscription before
        it is deployed.
        """
        return create_alarm(
            self,
            "RecipientsUnconfirmedAlarm",
            topic=self.exports.alarms.topic,
            name=f"{self.deployment.prefix}-RecipientsUnconfirmed",
            description=f"A recipient of {self.deployment.prefix} has not confirmed for a day, and gets no "
            "mail",
            metric=self._build_metric("RecipientsUnconfirmed", minutes=60),
            periods=_CONFIRM_HOURS,
        )

    def _alarm_on_dead_letters(self) -> cloudwatch.Alarm:
        return alarm_on_dead_letters(
            self,
            "DeadLettersAlarm",
            queue=self.exports.dead_letters,
            topic=self.exports.alarms.topic,
            name=f"{self.deployment.prefix}-DeadLetters",
            what="A start of an export or a notice",
        )

    def _create_dashboard(self) -> None:
        tables = [topic.table for topic in self.deployment.tables]
        dimensions = {"Table": tables, "Export": [export.contract for export in self.deployment.exports]}
        widgets: list[cloudwatch.IWidget] = []
        for metric, dimension in contract.METRIC_DIMENSIONS.items():
            values = dimensions.get(dimension)
            if values and metric in self._list_emitted_metrics():
                lines = [self._build_metric(metric, dimension, value) for value in values]
                widgets.append(cloudwatch.GraphWidget(title=metric, width=12, left=lines))
        for metric in self._list_general_metrics():
            lines = [self._build_metric(metric)]
            widgets.append(cloudwatch.GraphWidget(title=metric, width=12, left=lines))
        board = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self.deployment.regional_prefix)
        board.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=self._alarms))
        board.add_widgets(*widgets)
        page = (
            f"https://{self.region}.console.aws.amazon.com/cloudwatch/home?region={self.region}"
            f"#dashboards/dashboard/{self.deployment.regional_prefix}"
        )
        self.output("DashboardPage", page, "Freshness, lateness, ages of keys")

    def _create_budget(self) -> None:
        """Create the budget. It counts the costs of resources with the deployment's tags.

        The account has to activate the tags as cost allocation tags.
        """
        identity = self.deployment.identity
        addresses = self.deployment.alerts.engineers[:10]
        subscribers = [
            budgets.CfnBudget.SubscriberProperty(subscription_type="EMAIL", address=address)
            for address in addresses
        ]
        # If the notifications change, CloudFormation replaces the budget, and creates the new one before it
        # deletes the old one: the new one needs another name. It can't rename a budget, so that of an earlier
        # version, which has no digits in its name and the logical id Budget, is deleted.
        digits = hashlib.sha256(json.dumps([addresses, _THRESHOLDS]).encode()).hexdigest()[:8]
        budgets.CfnBudget(
            self,
            "CostBudget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=f"{self.deployment.regional_prefix}-{digits}",
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(
                    amount=self.deployment.alerts.monthly_budget_usd, unit="USD"
                ),
                cost_filters={
                    "TagKeyValue": [f"user:project${identity.name}", f"user:stage${identity.stage}"]
                },
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN", notification_type=kind, threshold=threshold
                    ),
                    subscribers=subscribers,
                )
                for kind, threshold in _THRESHOLDS
            ],
        )
