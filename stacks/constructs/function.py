"""A Python function of ours: a log group that ends, a role with what is asked for and nothing else, an alarm when it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import assets
from stacks.base import LakeferryStack
from stacks.constructs.acknowledged import acknowledge
from stacks.constructs.mail import alarm_topic_name
from stacks.constructs.statements import Statement, allow, role


class OwnFunction(Construct):
    """`statements` are all that the function's role may do, beside writing its own log.

    `dead_letters` get what Lambda has tried three times in vain.
    """

    def __init__(
        self,
        stack: LakeferryStack,
        name: str,
        *,
        handler: str,
        purpose: str,
        environment: Mapping[str, str],
        statements: Sequence[Statement],
        timeout_seconds: int | None = None,
        dead_letters: sqs.IQueue | None = None,
    ) -> None:
        super().__init__(stack, name)
        settings = stack.deployment.aws
        platform = assets.HERE if stack.surroundings.functions_here else assets.aws(settings.lambda_python)
        self.log_group = log_group(self, "Logs", stack)
        self.role = role(
            self,
            "Role",
            trusts=iam.ServicePrincipal("lambda.amazonaws.com"),
            purpose=purpose,
            statements=[writes(self.log_group), *keeps(dead_letters), *statements],
        )
        self.function = lambda_.Function(
            self,
            "Function",
            code=lambda_.Code.from_asset(str(assets.lambda_folder(platform)), exclude=["**/__pycache__", "*.pyc"]),
            handler=handler,
            runtime=lambda_.Runtime(f"python{settings.lambda_python}", lambda_.RuntimeFamily.PYTHON),
            architecture=lambda_.Architecture.ARM_64,
            dead_letter_queue=dead_letters,
            description=purpose,
            environment=dict(environment),
            log_group=self.log_group,
            memory_size=settings.lambda_memory_mb,
            role=self.role.without_policy_updates(),
            timeout=Duration.seconds(timeout_seconds or settings.lambda_timeout_seconds),
        )
        acknowledge(self.function, "Functions run on the version of Python that their tests run on.", "AwsSolutions-L1")
        self._alarm(stack, name, purpose)

    def _alarm(self, stack: LakeferryStack, name: str, purpose: str) -> None:
        """In the function's own stack: an alarm in another one would keep the function from being removed."""
        alarm = cloudwatch.Alarm(
            self,
            "ErrorsAlarm",
            alarm_name=f"{stack.deployment.prefix}-{name}Errors",
            alarm_description=f"Function {name} failed ({purpose}). `lakeferry logs` shows why",
            metric=self.function.metric_errors(period=Duration.minutes(5), statistic="Sum"),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        topic = sns.Topic.from_topic_arn(self, "AlarmTopic", stack.own_arn("sns", alarm_topic_name(stack)))
        alarm.add_alarm_action(actions.SnsAction(topic))
        alarm.add_ok_action(actions.SnsAction(topic))

    @property
    def arn(self) -> str:
        return self.function.function_arn


def log_group(scope: Construct, name: str, stack: LakeferryStack) -> logs.LogGroup:
    """Goes with the stack: what must be kept of a run stands in its record."""
    days = stack.deployment.aws.log_retention_days
    group = logs.LogGroup(scope, name, removal_policy=RemovalPolicy.DESTROY)
    bare = group.node.default_child
    assert isinstance(bare, logs.CfnLogGroup)
    bare.retention_in_days = days
    return group


def keeps(queue: sqs.IQueue | None) -> list[Statement]:
    return [allow("KeepWhatFailed", ["sqs:SendMessage"], [queue.queue_arn])] if queue else []


def writes(*groups: logs.ILogGroup) -> Statement:
    return allow("WriteOwnLog", ["logs:CreateLogStream", "logs:PutLogEvents"], [group.log_group_arn for group in groups])
