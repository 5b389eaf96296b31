"""What looks after a deployment: the watch, alarms on what it finds or doesn't find, a dashboard, a budget."""

from __future__ import annotations

from typing import Final

from aws_cdk import App, Duration
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions

from deployments.check import Plan
from deployments.model import Topic
from lambdas import contract
from stacks import data
from stacks.base import LakeferryStack, Surroundings
from stacks.confluent.stack import ConfluentStack
from stacks.constructs.function import OwnFunction
from stacks.constructs.on_schedule import OnSchedule
from stacks.constructs.secrets import through
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, ONE_PREFIX, Statement, allow, glue_tables
from stacks.data import DataStack
from stacks.exports import ExportsStack
from stacks.snowflake import SnowflakeStack

#: An alarm needs two looks of the watch: one that is missing or bad may pass.
_LOOK_HOURS: Final = 6
_LOOKS: Final = 2


class OperationsStack(LakeferryStack):
    """Needs all the others: it goes first."""

    def __init__(
        self,
        app: App,
        plan: Plan,
        surroundings: Surroundings,
        stacks: tuple[DataStack, ConfluentStack, SnowflakeStack | None, ExportsStack],
    ) -> None:
        super().__init__(app, "operations", plan, surroundings, purpose="watch, alarms, dashboard, budget")
        self.data, self.confluent, self.snowflake, self.exports = stacks
        for needed in filter(None, stacks):  # values that are offered bind no stack to their giver by themselves
            self.add_stack_dependency(needed)
        self._watch = self._watching()
        self._alarms = self._alarming()
        self._dashboard()
        self._budget()
        self.tell("DashboardPage", _page(self), "Freshness, lateness, ages of keys")

    def _watching(self) -> OwnFunction:
        environment = {
            contract.PROJECT: self.deployment.deployment.name,
            contract.STAGE: self.deployment.deployment.stage,
            contract.LAKE_BUCKET: self.data.lake.bucket,
            contract.LAKE_PREFIX: data.EXPORTS,
            contract.WATCHED: self.to_json_string(self._watched()),
            contract.CONFLUENT_URL: self.surroundings.confluent_url,
            contract.SNOWFLAKE_URL: self.surroundings.snowflake_url,
            contract.CLOUD_KEY_SECRET: self.confluent.cluster.watcher_secret_arn,
            contract.SNOWFLAKE_SECRET: self.snowflake.reader.secret_arn if self.snowflake else "",
        }
        function = OwnFunction(
            self,
            "Watch",
            handler=contract.WATCH,
            purpose="Emits freshness, lateness and ages of keys",
            environment={name: value for name, value in environment.items() if value},
            statements=self._may_look(),
            dead_letters=self.exports.dead_letters,
        )
        OnSchedule(
            self,
            "WatchSchedule",
            function,
            cron=f"20 0/{_LOOK_HOURS} * * ? *",
            purpose="Looks after the deployment",
            dead_letters=self.exports.dead_letters,
        )
        return function

    def _watched(self) -> dict[str, object]:
        return {
            "cluster": self.confluent.cluster.glue_database,
            "tables": [self._table(topic) for topic in self.deployment.tables],
            "exports": [
                {
                    "export": export.contract,
                    "cron": export.cron,
                    "zone": export.zone,
                    "late_after_hours": export.late_after_hours,
                    **({"first_day": export.first_day.isoformat()} if export.first_day else {}),
                    "topic": self.exports.topics[export.contract].topic_arn,
                    "recipients": len(export.recipients),
                }
                for export in self.deployment.exports
            ],
            "secrets": self._secrets(),
        }

    def _table(self, topic: Topic) -> dict[str, str]:
        assert topic.tableflow is not None
        shown = topic.tableflow.snowflake_table if self.snowflake else None
        return {
            "topic": topic.name,
            "database": self.confluent.cluster.glue_database if topic.tableflow.in_glue else "",
            "snowflake": f"{self.snowflake.reader.schema}.{shown.upper()}" if self.snowflake and shown else "",
        }

    def _secrets(self) -> list[str]:
        return [*self.confluent.cluster.secret_arns, *([self.snowflake.reader.secret_arn] if self.snowflake else [])]

    def _may_look(self) -> list[Statement]:
        """Keys are read of two accounts that can do nothing but see metrics or read tables; of the others it sees dates."""
        lake, cluster = self.data.lake, self.confluent.cluster
        readers, keys = [cluster.watcher_secret_arn], [cluster.key_arn]
        if self.snowflake:
            readers.append(self.snowflake.reader.secret_arn)
            keys.append(self.snowflake.reader.key_arn)
        return [
            allow("SeeTables", ["glue:GetTable"], glue_tables(self, cluster.glue_database), why=ONE_DATABASE),
            allow("ReadMetadata", ["s3:GetObject"], [f"{lake.tableflow_arn}/*/metadata/*"], why=ITS_KEYS),
            allow("FindMetadata", ["s3:ListBucket"], [lake.tableflow_arn], {"StringLike": {"s3:prefix": ["*/metadata/*"]}}),
            *self._may_count_recipients(),
            allow("ReadManifests", ["s3:GetObject"], [f"{lake.arn}/{data.EXPORTS}/*/manifests/*"], why=ONE_PREFIX),
            # Without a condition on the prefix: with one, S3 answers 403 and not 404 for a manifest that isn't there yet.
            allow("FindManifests", ["s3:ListBucket"], [lake.arn]),
            allow("SeeAgesOfKeys", ["secretsmanager:DescribeSecret", "secretsmanager:ListSecretVersionIds"], self._secrets()),
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

    def _may_count_recipients(self) -> list[Statement]:
        topics = [topic.topic_arn for topic in self.exports.topics.values()]
        return [allow("CountRecipients", ["sns:GetTopicAttributes"], topics)] if topics else []

    def _alarming(self) -> list[cloudwatch.Alarm]:
        alerts, rotation = self.deployment.alerts, self.deployment.rotation
        stale = alerts.table_stale_hours
        limits = {
            "TopicAgeHours": stale,
            "IcebergAgeHours": stale,
            "GlueAgeHours": stale,
            "SnowflakeAgeHours": stale,
            "ExportLateHours": 0,
            "RecipientsUnconfirmed": 0,
            "KeyAgeDays": alerts.key_age_days or rotation.every_days * 3 // 2,
        }
        emitted = self._emitted()
        alarms = [self._on_watch(metric, limit) for metric, limit in limits.items() if metric in emitted]
        return [*alarms, self._on_dead_letters()]

    def _emitted(self) -> set[str]:
        """Metrics that the watch has something to say about."""
        found = {"KeyAgeDays"}
        if self.deployment.tables:
            found |= {"TopicAgeHours"}
        if self.deployment.tables_in_glue:
            found |= {"IcebergAgeHours", "GlueAgeHours"}
        if self.snowflake and any(one.tableflow and one.tableflow.snowflake_table for one in self.deployment.tables):
            found |= {"SnowflakeAgeHours"}
        return found | ({"ExportLateHours", "RecipientsUnconfirmed"} if self.deployment.exports else set())

    def _metric(self, name: str, dimension: str = "", value: str = "") -> cloudwatch.Metric:
        """The largest of all, or that of one table, export or secret."""
        dimensions = {contract.DEPLOYMENT_DIMENSION: self.deployment.prefix, **({dimension: value} if dimension else {})}
        return cloudwatch.Metric(
            namespace=contract.METRICS,
            metric_name=name,
            dimensions_map=dimensions,
            period=Duration.hours(_LOOK_HOURS),
            statistic="Maximum",
        )

    def _on_watch(self, metric: str, limit: int) -> cloudwatch.Alarm:
        """No data is bad news too: either the watch is broken or there was nothing to look at."""
        alarm = cloudwatch.Alarm(
            self,
            f"{metric}Alarm",
            alarm_name=f"{self.deployment.prefix}-{metric}",
            alarm_description=f"{metric} of {self.deployment.prefix} is above {limit}, or the watch says nothing",
            metric=self._metric(metric),
            threshold=limit,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=_LOOKS,
            datapoints_to_alarm=_LOOKS,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        return self._told(alarm)

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
        return self._told(alarm)

    def _told(self, alarm: cloudwatch.Alarm) -> cloudwatch.Alarm:
        action = actions.SnsAction(self.exports.alarm_topic)
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
        widgets.append(cloudwatch.GraphWidget(title="KeyAgeDays", width=12, left=[self._metric("KeyAgeDays")]))
        board = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=self.deployment.regional_prefix)
        board.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", width=24, alarms=self._alarms))
        board.add_widgets(*widgets)

    def _budget(self) -> None:
        """Counts what carries the deployment's tags, once the account's billing knows them as cost allocation tags."""
        told = self.deployment.deployment
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
                cost_filters={"TagKeyValue": [f"user:project${told.name}", f"user:stage${told.stage}"]},
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
