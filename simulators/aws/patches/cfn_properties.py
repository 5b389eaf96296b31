"""Properties that stock CloudFormation drops on the way from the template to the service.

- AWS::Scheduler::Schedule: ScheduleExpressionTimezone, StartDate, EndDate, KmsKeyArn, so that every schedule was one of UTC.
  What Scheduler refuses fails the resource; stock takes no notice, and there is no schedule.
- AWS::Glue::Job: ExecutionProperty, so that no job ran twice at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, ministack
from simulators.aws.provisioning import Made, asked, typed

PATCH = Patch("cfn_properties")
_SCHEDULE: Final = "AWS::Scheduler::Schedule"


@PATCH.provisions(_SCHEDULE, "create", original=True)
def create_schedule(_: Callable[..., Made], logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    make_name = ministack("services.cloudformation.provisioners")._physical_name
    name = props.get("Name") or make_name(stack_name, logical_id, max_len=64)
    return name, {"Arn": asked("scheduler", "_create_schedule", name, props)["ScheduleArn"]}


@PATCH.provisions(_SCHEDULE, "update", original=True)
def update_schedule(_: Callable[..., Made], physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str) -> Made:
    """Another name or group is another schedule; the one before goes when the update is through."""
    if new.get("Name", physical_id) != physical_id or new.get("GroupName") != old.get("GroupName"):
        made: Made = create_schedule(physical_id, new, stack_name)
        return made
    return physical_id, {"Arn": asked("scheduler", "_update_schedule", physical_id, new)["ScheduleArn"]}


@PATCH.replaces("ministack.services.cloudformation.provisioners", "_glue_job_fields", "props")
def job_fields(original: Callable[..., dict[str, Any]], props: dict[str, Any]) -> dict[str, Any]:
    fields = original(props)
    if "ExecutionProperty" in props:
        fields["ExecutionProperty"] = {name: typed(value) for name, value in props["ExecutionProperty"].items()}
    return fields
