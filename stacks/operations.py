"""What looks after a deployment: the watch, alarms on what it finds or doesn't find, a dashboard, a budget."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from deployments.check import LoadedDeployment
from lambdas import contract
from stacks.base import LakeferryStack, SynthOptions, own_arn
from stacks.confluent.stack import ConfluentStack
from stacks.constructs.function import FunctionSchedule, PythonFunction
from stacks.constructs.queries import named_queries
from stacks.constructs.secrets import named_secret, through
from stacks.constructs.statements import (
    ITS_JOBS,
    ITS_KEYS,
    ITS_TOPICS,
    ONE_DATABASE,
    ONE_PREFIX,
    Statement,
    allow,
    glue_tables,
)
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.lake import EXPORTS
from stacks.settings import PublishedSettings, topic_arns
from stacks.snowflake import Reader, SnowflakeStack

#: Of the last three runs of the watch, as many must be over the limit: one may be wrong or missing.
_RUNS: Final = 3
_RUNS_OVER: Final = 2
_CONFIRM_HOURS: Final = 24
_AGES: Final = ("TopicAgeHours", "IcebergAgeHours", "GlueAgeHours", "SnowflakeAgeHours")
#: Every deployment has these; the dashboard shows the largest value.
_WHOLE_METRICS: Final = ("KeyAgeDays", "RotationOverdueDays", "DeployerKeyAgeDays", contract.UNMEASURED)


class OperationsStack(LakeferryStack):
    """Needs all the others: it goes first."""

    def __init__(
        self,
        scope: Construct,
        *,
        loaded: LoadedDeployment,
        data: DataStack,
        confluent: ConfluentStack,
        snowflake: SnowflakeStack | None,
        exports: ExportsStack,
    ) -> None:
        super().__init__(scope, "operations", loaded=loaded, purpose="watch, alarms, dashboard, budget, queries")
        self.data, self.confluent, self.snowflake, self.exports = data, confluent, snowflake, exports
        for needed in filter(None, (data, confluent, snowflake, exports)):  # an exported value alone orders no stacks
            self.add_stack_dependency(needed)
        shown = any(one.tableflow and one.tableflow.snowflake_table for one in self.deployment.tables)
        #: As whom the watch asks about tables in Snowflake. A linked database is not asked about.
        self._shown: Reader | None = self.snowflake.reader if self.snowflake and shown else None
        self._watch()
        self._alarms = self._create_alarms()
        self._dashboard()
        self._budget()
        named_queries(
            self,
            deployment=self.deployment,
            database=confluent.cluster.glue_database,
            workgroup=data.lake.workgroup,
        )
        self.output("DashboardPage", _page(self), "Freshness, lateness, ages of keys")

    def _watch(self) -> None:
        settings = PublishedSettings(self, "Settings", deployment=self.deployment, secrets=self._secret_names())
        options = SynthOptions.of(self)
        environment = {
            contract.PROJECT: self.deployment.identity.name,
            contract.STAGE: self.deployment.identity.stage,
            contract.LAKE_BUCKET: self.data.lake.bucket,
            contract.LAKE_PREFIX: EXPORTS,
            contract.SETTINGS: settings.url,
            contract.CLUSTER: self.confluent.cluster.glue_database,
            contract.TOPIC_ARNS: topic_arns(self, self.deployment) if self.deployment.exports else "",
            contract.SNOWFLAKE_SCHEMA: self.snowflake.reader.schema if self.snowflake else "",
            contract.TABLEFLOW_SECRET: self.confluent.cluster.table_watcher_secret_arn,
            contract.CONFLUENT_URL: options.confluent_url,
            contract.SNOWFLAKE_URL: options.snowflake_url,
            contract.CLOUD_KEY_SECRET: self.confluent.cluster.watcher_secret_arn,
            contract.SNOWFLAKE_SECRET: self._shown.secret_arn if self._shown else "",
        }
        function = PythonFunction(
            self,
            "Watch",
            deployment=self.deployment,
            handler=contract.WATCH,
            purpose="Emits freshness, lateness and ages of keys",
            environment={name: value for name, value in environment.items() if value},
            statements=[settings.may_read(), *self._may_look()],
            dead_letters=self.exports.dead_letters,
        )
        FunctionSchedule(
            self,
            "WatchSchedule",
            function=function,
            cron=f"0/{contract.WATCH_MINUTES} * * * ? *",
            purpose="Looks after the deployment",
            dead_letters=self.exports.dead_letters,
        )

    def _secret_names(self) -> list[str]:
        held = [self.confluent.secrets, *([self.snowflake.secrets] if self.snowflake else [])]
        return [secret.name for one in held for secret in one.filled]

    def _secrets(self) -> list[str]:
        return [*self.confluent.cluster.secret_arns, *([self.snowflake.reader.secret_arn] if self.snowflake else [])]

    def _may_look(self) -> list[Statement]:
        """It reads keys of accounts that can see metrics and tables and change nothing; of other keys it sees dates."""
        lake, cluster = self.data.lake, self.confluent.cluster
        readers, keys = [cluster.watcher_secret_arn, cluster.table_watcher_secret_arn], [cluster.key_arn]
        if self._shown:
            readers.append(self._shown.secret_arn)
            keys.append(self._shown.key_arn)
        return [
            allow("SeeTables", ["glue:GetTable"], glue_tables(self, cluster.glue_database), why=ONE_DATABASE),
            allow("ReadMetadata", ["s3:GetObject"], [f"{lake.tableflow_arn}/*/metadata/*"], why=ITS_KEYS),
            allow("FindMetadata", ["s3:ListBucket"], [lake.tableflow_arn], {"StringLike": {"s3:prefix": ["*/metadata/*"]}}),
            *self._may_see_exports(),
            allow("ReadManifests", ["s3:GetObject"], [f"{lake.arn}/{EXPORTS}/*/manifests/*"], why=ONE_PREFIX),
            # Without a condition on the prefix: with one, S3 answers 403 and not 404 for a manifest that isn't there yet.
            allow("FindManifests", ["s3:ListBucket"], [lake.arn]),
            allow(
                "SeeAgesOfKeys",
                ["secretsmanager:DescribeSecret", "secretsmanager:ListSecretVersionIds"],
                [*self._secrets(), *self._deployer_secrets()],
            ),
            allow("ReadAsReaders", ["secretsmanager:GetSecretValue"], readers),
            allow("DecryptKeys", ["kms:Decrypt"], keys, through(self, "secretsmanager")),
            allow(
                "EmitMetrics",
                ["cloudwatch:PutMetricData"],
                ["*"],
                {"StringEquals": {"cloudwatch:namespace": contract.METRICS}},
                why="CloudWatch knows no resource for metrics; the condition leaves one namespace.",
            ),
        ]

    def _deployer_secrets(self) -> list[str]:
        names = [self.deployment.confluent.cloud_key_secret, *([self.snowflake.wanted.key_secret] if self.snowflake else [])]
        return [named_secret(self, name) for name in names]

    def _may_see_exports(self) -> list[Statement]:
        if not self.deployment.exports:
            return []
        jobs = own_arn(self, "glue", f"job/{self.deployment.prefix}-*")
        return [
            allow("CountRecipients", ["sns:GetTopicAttributes"], [f"{topic_arns(self, self.deployment)}*"], why=ITS_TOPICS),
            allow("SeeJobs", ["glue:GetJob"], [jobs], why=ITS_JOBS),
        ]

    def _create_alarms(self) -> list[cloudwatch.Alarm]:
        alerts, rotation = self.deployment.alerts, self.deployment.rotation
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
        emitted = self._emitted()
        alarms = [self._on_watch(metric, limit) for metric, limit in limits.items() if metric in emitted]
        if self.deployment.exports:
            alarms.append(self._on_unconfirmed())
        return [*alarms, self._on_dead_letters()]

    def _emitted(self) -> set[str]:
        """Metrics that the watch has something to say about."""
        emitted = set(_WHOLE_METRICS)
        if self.deployment.tables:
            emitted |= {"TopicAgeHours", "TableflowStopped", "RowsSkipped"}
        if self.deployment.tables_in_glue:
            emitted |= {"IcebergAgeHours", "GlueAgeHours"}
        if self._shown:
            emitted |= {"SnowflakeAgeHours"}
        return emitted | ({"ExportLateHours", "RecipientsUnconfirmed"} if self.deployment.exports else set())

    def _metric(
        self, name: str, dimension: str = "", value: str = "", *, minutes: int = contract.WATCH_MINUTES
    ) -> cloudwatch.Metric:
        """The largest of all, or that of one table, export or secret."""
        dimensions = {contract.DEPLOYMENT_DIMENSION: self.deployment.prefix, **({dimension: value} if dimension else {})}
        return cloudwatch.Metric(
            namespace=contract.METRICS,
            metric_name=name,
            dimensions_map=dimensions,
            period=Duration.minutes(minutes),
            statistic="Maximum",
        )

    def _on_watch(self, metric: str, limit: int) -> cloudwatch.Alarm:
        """A new alarm has INSUFFICIENT_DATA until the watch has run, and mails nothing. Where data stops, it goes back to that
        state, which is mailed: the watch doesn't run any more."""
        alarm = cloudwatch.Alarm(
            self,
            f"{metric}Alarm",
            alarm_name=f"{self.deployment.prefix}-{metric}",
            alarm_description=f"{metric} of {self.deployment.prefix} is above {limit}. `lakeferry status` says of what. "
            "With INSUFFICIENT_DATA, the watch doesn't run any more",
            metric=self._metric(metric),
            threshold=limit,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=_RUNS,
            datapoints_to_alarm=_RUNS_OVER,
            treat_missing_data=cloudwatch.TreatMissingData.MISSING,
        )
        alarm.add_insufficient_data_action(actions.SnsAction(self.exports.alarms.topic))
        return self._mails(alarm)

    def _on_unconfirmed(self) -> cloudwatch.Alarm:
        """Only after a day: nobody confirms a subscription before it is deployed."""
        alarm = cloudwatch.Alarm(
            self,
            "RecipientsUnconfirmedAlarm",
            alarm_name=f"{self.deployment.prefix}-RecipientsUnconfirmed",
            alarm_description=f"A recipient of {self.deployment.prefix} has not confirmed for a day, and gets no mail",
            metric=self._metric("RecipientsUnconfirmed", minutes=60),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=_CONFIRM_HOURS,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        return self._mails(alarm)

    def _on_dead_letters(self) -> cloudwatch.Alarm:
        queue = self.exports.dead_letters
        alarm = cloudwatch.Alarm(
            self,
            "DeadLettersAlarm",
            alarm_name=f"{self.deployment.prefix}-DeadLetters",
            alarm_description="A start of an export or a notice could not be delivered; the queue says which",
            metric=queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(5), statistic="Maximum"),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        return self._mails(alarm)

    def _mails(self, alarm: cloudwatch.Alarm) -> cloudwatch.Alarm:
        action = actions.SnsAction(self.exports.alarms.topic)
        alarm.add_alarm_action(action)
        alarm.add_ok_action(action)
        return alarm

    def _dashboard(self) -> None:
        tables = [topic.name for topic in self.deployment.tables]
        shown = {"Table": tables, "Export": [export.contract for export in self.deployment.exports]}
        widgets: list[cloudwatch.IWidget] = [
            cloudwatch.GraphWidget(
                title=metric,
                width=12,
                left=[self._metric(metric, dimension, value) for value in shown[dimension]],
            )
            for metric, dimension in contract.METRIC_DIMENSIONS.items()
            if metric in self._emitted() and shown.get(dimension)
        ]
        widgets += [cloudwatch.GraphWidget(title=metric, width=12, left=[self._metric(metric)]) for metric in _WHOLE_METRICS]
        board = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self.deployment.regional_prefix)
        board.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=self._alarms))
        board.add_widgets(*widgets)

    def _budget(self) -> None:
        """Counts what carries the deployment's tags, once the account's billing knows them as cost allocation tags."""
        identity = self.deployment.identity
        subscribers = [
            budgets.CfnBudget.SubscriberProperty(subscription_type="EMAIL", address=address)
            for address in self.deployment.alerts.engineers[:10]
        ]
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=self.deployment.regional_prefix,
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=self.deployment.alerts.monthly_budget_usd, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:project${identity.name}", f"user:stage${identity.stage}"]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        comparison_operator="GREATER_THAN", notification_type=kind, threshold=threshold
                    ),
                    subscribers=subscribers,
                )
                for kind, threshold in (("ACTUAL", 80), ("FORECASTED", 100))
            ],
        )


def _page(stack: LakeferryStack) -> str:
    return f"https://{stack.region}.console.aws.amazon.com/cloudwatch/home?region={stack.region}#dashboards/dashboard/{stack.deployment.regional_prefix}"
