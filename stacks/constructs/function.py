"""A Python function: a log group with retention, a role with least privilege, an alarm on errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks import assets
from stacks.constructs.mail import create_alarm, find_alarm_topic
from stacks.constructs.network import may_run_functions, place_function
from stacks.constructs.runtime import Runtime
from stacks.constructs.statements import TRACE, Statement, acknowledge, allow, create_role
from stacks.constructs.synthesis import SynthOptions, build_own_arn

#: Why no function has reserved concurrency, for the rule that asks for it.
UNRESERVED: Final = (
    "Reserved concurrency is taken from all other functions of the account; a new account has ten in all. An "
    "alarm reports calls that AWS throttles."
)
_PYTHON: Final = "Functions run on the version of Python that their tests run on."
#: The rules that ask for a dead-letter queue of a function.
WITHOUT_DEAD_LETTERS: Final = ("NIST.800.53.R5-LambdaDLQ", "Serverless-LambdaDLQ")
#: AWS retries a throttled start by itself. An alarm goes off when it did not help for a quarter of an hour.
_PERIODS: Final = 3


class PythonFunction(Construct):
    """`statements` are all that the function's role may do, besides writing its own log and traces.

    `dead_letters` gets events that failed three times.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        handler: str,
        purpose: str,
        environment: Mapping[str, str],
        statements: Sequence[Statement],
        timeout_seconds: int | None = None,
        dead_letters: sqs.IQueue | None = None,
    ) -> None:
        super().__init__(scope, id)
        platform = (
            assets.LOCAL if SynthOptions.of(self).functions_local else assets.aws(runtime.lambda_python)
        )
        logs = log_group(self, "Logs", runtime=runtime)
        self.role = create_role(
            self,
            "Role",
            trusts=iam.ServicePrincipal("lambda.amazonaws.com"),
            purpose=purpose,
            statements=[
                may_write(logs),
                TRACE,
                *may_run_functions(runtime.network),
                *may_send(dead_letters),
                *statements,
            ],
        )
        self.function = lambda_.Function(
            self,
            "Function",
            code=lambda_.Code.from_asset(
                str(assets.build_lambda_folder(platform)), exclude=["**/__pycache__", "*.pyc"]
            ),
            handler=handler,
            runtime=lambda_.Runtime(f"python{runtime.lambda_python}", lambda_.RuntimeFamily.PYTHON),
            architecture=lambda_.Architecture.ARM_64,
            dead_letter_queue=dead_letters,
            description=purpose,
            environment=dict(environment),
            log_group=logs,
            logging_format=lambda_.LoggingFormat.JSON,
            memory_size=runtime.lambda_memory_mb,
            role=self.role.without_policy_updates(),
            timeout=Duration.seconds(timeout_seconds or runtime.lambda_timeout_seconds),
            tracing=lambda_.Tracing.ACTIVE,
        )
        bare = self.function.node.default_child
        assert isinstance(bare, lambda_.CfnFunction)
        place_function(bare, runtime.network)
        acknowledge(self.function, _PYTHON, "AwsSolutions-L1", "Serverless-LambdaLatestVersion")
        acknowledge(self.function, UNRESERVED, "NIST.800.53.R5-LambdaConcurrency")
        self._create_alarms(runtime, purpose)

    def _create_alarms(self, runtime: Runtime, purpose: str) -> None:
        """Create the alarms in the function's own stack: an alarm in another one would prevent deleting the
        function.
        """
        stack = Stack.of(self).stack_name
        name = "".join(self.node.path.split("/")[1:])
        topic = find_alarm_topic(self, "AlarmTopic", runtime)
        create_alarm(
            self,
            "ErrorsAlarm",
            topic=topic,
            name=f"{stack}-{name}Errors",
            description=f"Function {name} failed ({purpose}). `lakeferry logs` shows why",
            metric=self.function.metric_errors(period=Duration.minutes(5), statistic="Sum"),
        )
        create_alarm(
            self,
            "ThrottlesAlarm",
            topic=topic,
            name=f"{stack}-{name}Throttles",
            description=(
                f"AWS did not start function {name} ({purpose}): the account's concurrent executions are "
                "used up. AWS tries again for some hours"
            ),
            metric=self.function.metric_throttles(period=Duration.minutes(5), statistic="Sum"),
            periods=_PERIODS,
        )

    @property
    def arn(self) -> str:
        return self.function.function_arn


class FunctionSchedule(Construct):
    """Invokes a function on a schedule, with its own role.

    `cron` is in UTC. An event that can't be delivered within an hour goes to `dead_letters`, if set.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        function: PythonFunction,
        cron: str,
        purpose: str,
        dead_letters: sqs.IQueue | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(scope, id)
        schedules = {
            "aws:SourceAccount": Stack.of(self).account,
            "aws:SourceArn": build_own_arn(self, "scheduler", "schedule-group/default"),
        }
        caller = create_role(
            self,
            "Caller",
            trusts=iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": schedules}),
            purpose=purpose,
            statements=[
                allow("CallFunction", ["lambda:InvokeFunction"], [function.arn]),
                *may_send(dead_letters),
            ],
        )
        scheduler.Schedule(
            self,
            "Schedule",
            description=purpose,
            schedule=scheduler.ScheduleExpression.expression(f"cron({cron})"),
            target=targets.LambdaInvoke(
                function.function,
                dead_letter_queue=dead_letters,
                input=scheduler.ScheduleTargetInput.from_object(dict(event)) if event else None,
                max_event_age=Duration.hours(1),
                retry_attempts=3,
                role=caller.without_policy_updates(),
            ),
            time_window=scheduler.TimeWindow.off(),
        )


def log_group(
    scope: Construct, id: str, *, runtime: Runtime, name: str | None = None, key_arn: str | None = None
) -> logs.LogGroup:
    """Return a log group that is deleted with the stack: what must be kept about a run is in its run
    record.

    `key_arn` encrypts it if `runtime` names no key for logs.
    """
    group = logs.LogGroup(scope, id, log_group_name=name, removal_policy=RemovalPolicy.DESTROY)
    bare = group.node.default_child
    assert isinstance(bare, logs.CfnLogGroup)
    bare.retention_in_days = runtime.log_retention_days
    bare.kms_key_id = runtime.logs_key_arn or key_arn
    if bare.kms_key_id is None:
        acknowledge(
            group,
            "CloudWatch Logs encrypts with a key of AWS; `logs` in [encryption] names a KMS key.",
            "NIST.800.53.R5-CloudWatchLogGroupEncrypted",
        )
    return group


def may_send(queue: sqs.IQueue | None) -> list[Statement]:
    return [allow("SendToDeadLetters", ["sqs:SendMessage"], [queue.queue_arn])] if queue else []


def may_write(*groups: logs.ILogGroup) -> Statement:
    return allow(
        "WriteOwnLog",
        ["logs:CreateLogStream", "logs:PutLogEvents"],
        [group.log_group_arn for group in groups],
    )
