"""DescribeStackResource knows a resource that is being made.

CloudFormation answers CREATE_IN_PROGRESS from the moment at which it begins. Stock MiniStack says that there is no such resource
until it is done, which to a custom resource's function looks as if nobody waited for it.
"""

from __future__ import annotations

from typing import Any

from simulators.aws.hooks import Answer, Original, Patch, ministack

PATCH = Patch("cfn_in_progress")


@PATCH.replaces_entry("ministack.services.cloudformation.handlers", "_ACTION_HANDLERS", "DescribeStackResource")
def describe_stack_resource(original: Original, params: dict[str, Any]) -> Answer:
    handlers = ministack("services.cloudformation.handlers")
    logical_id, stack = handlers._p(params, "LogicalResourceId"), handlers._resolve_stack(handlers._p(params, "StackName"))
    if not stack or logical_id in stack.get("_resources", {}):
        return original(params)
    begun = _begun(stack["StackId"], logical_id)
    if not begun:
        return original(params)
    stack["_resources"][logical_id] = begun
    try:
        return original(params)
    finally:
        del stack["_resources"][logical_id]


def _begun(stack_id: str, logical_id: str) -> dict[str, Any]:
    """Its record, where the last event says that it is under way."""
    events = ministack("services.cloudformation")._stack_events.get(stack_id, [])
    last = next((event for event in reversed(events) if event["LogicalResourceId"] == logical_id), None)
    if not last or not last["ResourceStatus"].endswith("_IN_PROGRESS"):
        return {}
    # In an update, stock calls it UPDATE_IN_PROGRESS what is made for the first time.
    status = last["ResourceStatus"].replace("UPDATE_", "CREATE_")
    return {"ResourceType": last["ResourceType"], "ResourceStatus": status, "Timestamp": last["Timestamp"]}
