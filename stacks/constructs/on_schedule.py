"""A function that is called by the clock, with a role for nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.base import LakeferryStack
from stacks.constructs.function import OwnFunction, keeps
from stacks.constructs.statements import allow, role


class OnSchedule(Construct):
    """`cron` is in UTC. A call that can't be delivered within the hour goes to `dead_letters`, if there are any: the next one is
    due soon."""

    def __init__(
        self,
        stack: LakeferryStack,
        name: str,
        function: OwnFunction,
        *,
        cron: str,
        purpose: str,
        dead_letters: sqs.IQueue | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(stack, name)
        default = stack.own_arn("scheduler", "schedule-group/default")
        service = iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": default}},
        )
        caller = role(
            self,
            "Caller",
            trusts=service,
            purpose=purpose,
            statements=[
                allow("CallFunction", ["lambda:InvokeFunction"], [function.arn]),
                *keeps(dead_letters),
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
