"""What a custom resource made before its create failed is deleted in the rollback.

CloudFormation keeps the id that the failed answer named, and the rollback sends Delete with it; stock MiniStack forgets it. A
resource that the rollback could not delete stays with the stack, whose deletion tries again; stock forgets it too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulators.aws.hooks import Patch

PATCH = Patch("cfn_failed_create")
_CUSTOM: Final = "ministack.services.cloudformation.custom_resource"
_STACKS: Final = "ministack.services.cloudformation.stacks"
#: By stack and logical id: the record of a resource whose create failed.
_failed: dict[tuple[str, str], dict[str, Any]] = {}


@PATCH.replaces(
    _CUSTOM,
    "invoke_custom_resource",
    "request_type logical_id props stack_name stack_id resource_type physical_id old_props",
)
def invoke_custom_resource(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., tuple[str, dict[str, Any]]],
    request_type: str,
    logical_id: str,
    props: dict[str, Any],
    stack_name: str,
    stack_id: str,
    resource_type: str,
    physical_id: str | None = None,
    old_props: dict[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]:
    key = (stack_id, logical_id)
    if request_type == "Create":
        _failed[key] = {"ResourceType": resource_type, "LogicalResourceId": logical_id, "Properties": props, "Attributes": {}}
    made = original(request_type, logical_id, props, stack_name, stack_id, resource_type, physical_id, old_props)
    _failed.pop(key, None)
    return made


@PATCH.replaces(_CUSTOM, "deliver_response", "token response")
def deliver_response(original: Callable[..., bool], token: str, response: dict[str, Any]) -> bool:
    """Runs in the thread of the answer, so what it belongs to is told by the answer itself."""
    record = _failed.get((str(response.get("StackId")), str(response.get("LogicalResourceId"))))
    if record is not None and response.get("PhysicalResourceId"):
        record["PhysicalResourceId"] = response["PhysicalResourceId"]
    return original(token, response)


@PATCH.replaces(_STACKS, "_roll_back_operation", "stack_name stack_id stack operation reason_override")
async def roll_back_operation(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., Awaitable[None]],
    stack_name: str,
    stack_id: str,
    stack: dict[str, Any],
    operation: dict[str, Any],
    reason_override: str = "",
) -> None:
    resources = stack.setdefault("_resources", {})
    failed = _failed.pop((stack_id, operation.get("failed_logical_id") or ""), {})
    if failed.get("PhysicalResourceId"):
        resources[failed["LogicalResourceId"]] = failed
        operation["created"] = [*operation.get("created", []), failed["LogicalResourceId"]]
    held = dict(resources)
    await original(stack_name, stack_id, stack, operation, reason_override)
    if stack["StackStatus"] == "ROLLBACK_FAILED":
        for logical_id in stack.get("_rollback_failed", {}):
            resources[logical_id] = held[logical_id] | {"ResourceStatus": "DELETE_FAILED"}
