"""Schedules that start export jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration, RemovalPolicy, Stack, TimeZone
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.export_job import ExportJob
from stacks.constructs.statements import Statement, allow, create_role
from stacks.constructs.synthesis import build_own_arn

#: If Glue refuses a start because a run is still active, it is retried for this long. Later, the next run
#: catches up.
_START_HOURS: Final = 6
_START_TRIES: Final = 24


def create_schedule_group(scope: Construct, id: str, name: str) -> scheduler.ScheduleGroup:
    return scheduler.ScheduleGroup(scope, id, schedule_group_name=name, removal_policy=RemovalPolicy.DESTROY)


def create_starter_role(
    scope: Construct,
    id: str,
    *,
    group: scheduler.ScheduleGroup,
    jobs: Sequence[ExportJob],
    dead_letters: sqs.IQueue,
) -> iam.Role:
    """Return the role of the schedules. It trusts only those of this group."""
    own_group = {"aws:SourceAccount": Stack.of(scope).account, "aws:SourceArn": group.schedule_group_arn}
    return create_role(
        scope,
        id,
        trusts=iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": own_group}),
        purpose="Starts exports",
        statements=[
            _may_start(scope, jobs),
            allow("SendToDeadLetters", ["sqs:SendMessage"], [dead_letters.queue_arn]),
        ],
    )


def schedule_job(
    scope: Construct,
    id: str,
    *,
    job: ExportJob,
    cron: str,
    zone: str,
    group: scheduler.ScheduleGroup,
    role: iam.Role,
    dead_letters: sqs.IQueue,
) -> None:
    """Start the job on schedule. `--as-of` is the scheduled time, however late the start is."""
    scheduled = scheduler.ContextAttribute.scheduled_time
    target = targets.Universal(
        service="glue",
        action="startJobRun",
        input=scheduler.ScheduleTargetInput.from_object(
            {"JobName": job.resource.ref, "Arguments": {"--as-of": scheduled}}
        ),
        role=role.without_policy_updates(),
        policy_statements=[_may_start(scope, [job]).policy_statement()],
        dead_letter_queue=dead_letters,
        max_event_age=Duration.hours(_START_HOURS),
        retry_attempts=_START_TRIES,
    )
    schedule = scheduler.Schedule(
        scope,
        id,
        schedule_group=group,
        description=f"Starts export {job.contract.name}",
        schedule=scheduler.ScheduleExpression.expression(f"cron({cron})", TimeZone.of(zone)),
        target=target,
        time_window=scheduler.TimeWindow.off(),
    )
    schedule.node.add_dependency(role)


def _may_start(scope: Construct, jobs: Sequence[ExportJob]) -> Statement:
    arns = [build_own_arn(scope, "glue", f"job/{job.name}") for job in jobs]
    return allow("StartJobs", ["glue:StartJobRun"], arns)
