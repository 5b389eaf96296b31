"""CloudFormation: how stacks are created, rolled back and deleted.

- cfn_delete_order: Dependents are deleted first. If one can't be deleted, the resources that it depends on
  are kept, so that a later deletion can succeed; also in a rollback. Stock MiniStack continues, and deletes
  even the functions that delete a custom resource. Source: CloudFormation user guide, DependsOn and "Delete
  stack fails".
- cfn_deleted_resources: ListStackResources and DescribeStackResources answer for a deleted stack too, by its
  ID, with DELETE_COMPLETE or DELETE_SKIPPED for each resource. Stock answers with an empty list. Source:
  CloudFormation API reference, ListStackResources ("up to 90 days after the stack has been deleted").
- cfn_failed_create: The physical ID in a custom resource's FAILED response to Create is kept, and the
  rollback sends Delete with it. Resources that the rollback can't delete stay in the stack, and deleting the
  stack tries again. Stock keeps neither. Source: CloudFormation user guide, "Custom resource response
  objects" and "Continue rolling back".
- cfn_in_progress: DescribeStackResource answers CREATE_IN_PROGRESS as soon as the creation begins. Stock
  answers that the resource doesn't exist until it is complete, so the function of a custom resource concludes
  that nobody waits for it. Source: CloudFormation API reference, DescribeStackResource.
- cfn_custom_resources: CloudFormation invokes the function of a custom resource asynchronously, so Lambda
  retries a failed invocation twice. CloudFormation waits for the response, not for the function to end. Stock
  invokes the function once, so that after a failure the stack waits for ServiceTimeout, an hour by default;
  and a function that hangs blocks the stack until Lambda's timeout. Source: CloudFormation user guide, "How
  custom resources work"; Lambda developer guide, "Using AWS Lambda with AWS CloudFormation".
- cfn_exports: An update that would change or remove an exported value fails while another stack imports it,
  and is rolled back. Stock checks this only when the exporting stack is deleted. Source: CloudFormation user
  guide, "Get exported outputs from a deployed CloudFormation stack".

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and cloudformation"`
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulators.aws.hooks import Answer, Original, Patch, import_ministack

DELETE_ORDER = Patch("cfn_delete_order")
_STACKS: Final = "ministack.services.cloudformation.stacks"
#: Holds names that it imported from `_STACKS`.
_HANDLERS: Final = "ministack.services.cloudformation.handlers"
_DELETE_PARAMETERS: Final = "stack_name stack_id retain_resources force"
#: By stack: the logical IDs of resources that could not be deleted in the current operation.
_undeleted: dict[str, set[str]] = {}


class StillNeeded(Exception):
    """A resource that could not be deleted needs this one. The message becomes the ResourceStatusReason."""


@DELETE_ORDER.replaces(_HANDLERS, "_delete_stack_async", _DELETE_PARAMETERS)
@DELETE_ORDER.replaces(_STACKS, "_delete_stack_async", _DELETE_PARAMETERS)
async def delete_stack(
    original: Callable[..., Awaitable[None]], stack_name: str, stack_id: str, *arguments: Any, **options: Any
) -> None:
    _undeleted[stack_name] = set()
    await original(stack_name, stack_id, *arguments, **options)


@DELETE_ORDER.replaces(_STACKS, "_delete_resource", "resource_type physical_id props stack_name logical_id")
def delete_resource(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., None],
    resource_type: str,
    physical_id: str,
    props: dict[str, Any],
    stack_name: str | None = None,
    logical_id: str | None = None,
) -> None:
    if stack_name is None or logical_id is None:
        original(resource_type, physical_id, props, stack_name, logical_id)
        return
    undeleted = _undeleted.setdefault(stack_name, set())
    try:
        if remaining := _list_dependents(stack_name, logical_id) & undeleted:
            raise StillNeeded(f"needed by {', '.join(sorted(remaining))}, which could not be deleted")
        original(resource_type, physical_id, props, stack_name, logical_id)
    except Exception:
        undeleted.add(logical_id)
        raise
    undeleted.discard(logical_id)


def _list_dependents(stack_name: str, logical_id: str) -> set[str]:
    """Return the resources that depend on this one directly.

    An undeleted indirect dependent keeps these, too.
    """
    engine = import_ministack("services.cloudformation.engine")
    stacks = import_ministack("services.cloudformation")._stacks
    stack = stacks.get(stack_name) or {}
    defined: dict[str, Any] = (stack.get("_template") or {}).get("Resources", {})
    return {
        name
        for name, resource in defined.items()
        if logical_id in engine._extract_deps(resource, set(defined))
    }


DELETED_RESOURCES = Patch("cfn_deleted_resources")


@DELETED_RESOURCES.replaces(_HANDLERS, "_delete_stack_async", _DELETE_PARAMETERS)
@DELETED_RESOURCES.replaces(_STACKS, "_delete_stack_async", _DELETE_PARAMETERS)
async def keep_deleted_resources(
    original: Callable[..., Awaitable[None]], stack_name: str, stack_id: str, *arguments: Any, **options: Any
) -> None:
    services = import_ministack("services.cloudformation")
    stack = services._stacks.get(stack_name) or {}
    before = dict(stack.get("_resources", {}))
    await original(stack_name, stack_id, *arguments, **options)
    if stack.get("StackStatus") != "DELETE_COMPLETE":
        return
    skipped = {
        event["LogicalResourceId"]
        for event in services._stack_events.get(stack_id, [])
        if event["ResourceStatus"] == "DELETE_SKIPPED"
    }
    for logical_id, resource in before.items():
        resource["ResourceStatus"] = "DELETE_SKIPPED" if logical_id in skipped else "DELETE_COMPLETE"
    stack["_resources"] = before


FAILED_CREATE = Patch("cfn_failed_create")
_CUSTOM: Final = "ministack.services.cloudformation.custom_resource"
#: By stack and logical ID: the record of a custom resource whose creation is in progress or has failed.
_failed: dict[tuple[str, str], dict[str, Any]] = {}


@FAILED_CREATE.replaces(
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
        _failed[key] = {
            "ResourceType": resource_type,
            "LogicalResourceId": logical_id,
            "Properties": props,
            "Attributes": {},
        }
    resource = original(
        request_type, logical_id, props, stack_name, stack_id, resource_type, physical_id, old_props
    )
    _failed.pop(key, None)
    return resource


@FAILED_CREATE.replaces(_CUSTOM, "deliver_response", "token response")
def deliver_response(original: Callable[..., bool], token: str, response: dict[str, Any]) -> bool:
    """Keep the physical ID and deliver the response, which names its resource: this thread is not that of the
    creation.
    """
    record = _failed.get((str(response.get("StackId")), str(response.get("LogicalResourceId"))))
    if record is not None and response.get("PhysicalResourceId"):
        record["PhysicalResourceId"] = response["PhysicalResourceId"]
    return original(token, response)


@FAILED_CREATE.replaces(
    _STACKS, "_roll_back_operation", "stack_name stack_id stack operation reason_override"
)
async def roll_back_operation(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., Awaitable[None]],
    stack_name: str,
    stack_id: str,
    stack: dict[str, Any],
    operation: dict[str, Any],
    reason_override: str = "",
) -> None:
    # Stock sets the template when a stack is complete; the rollback needs it for the order of deletion.
    stack["_template"] = operation.get("template") or stack.get("_template")
    _undeleted[stack_name] = set()
    resources = stack.setdefault("_resources", {})
    failed_resource = _failed.pop((stack_id, operation.get("failed_logical_id") or ""), {})
    if failed_resource.get("PhysicalResourceId"):
        resources[failed_resource["LogicalResourceId"]] = failed_resource
        operation["created"] = [*operation.get("created", []), failed_resource["LogicalResourceId"]]
    resources_before = dict(resources)
    await original(stack_name, stack_id, stack, operation, reason_override)
    if stack["StackStatus"] == "ROLLBACK_FAILED":
        for logical_id in stack.get("_rollback_failed", {}):
            resources[logical_id] = resources_before[logical_id] | {"ResourceStatus": "DELETE_FAILED"}


IN_PROGRESS = Patch("cfn_in_progress")


@IN_PROGRESS.replaces_entry(
    "ministack.services.cloudformation.handlers", "_ACTION_HANDLERS", "DescribeStackResource"
)
def describe_stack_resource(original: Original, params: dict[str, Any]) -> Answer:
    handlers = import_ministack("services.cloudformation.handlers")
    logical_id = handlers._p(params, "LogicalResourceId")
    stack = handlers._resolve_stack(handlers._p(params, "StackName"))
    if not stack or logical_id in stack.get("_resources", {}):
        return original(params)
    record = _find_record_in_progress(stack["StackId"], logical_id)
    if not record:
        return original(params)
    stack["_resources"][logical_id] = record
    try:
        return original(params)
    finally:
        del stack["_resources"][logical_id]


def _find_record_in_progress(stack_id: str, logical_id: str) -> dict[str, Any]:
    """Return the resource's record if its last event is *_IN_PROGRESS, else an empty dict."""
    events = import_ministack("services.cloudformation")._stack_events.get(stack_id, [])
    resource_events = [event for event in events if event["LogicalResourceId"] == logical_id]
    if not resource_events:
        return {}
    last = resource_events[-1]
    if not last["ResourceStatus"].endswith("_IN_PROGRESS"):
        return {}
    # In an update of the stack, stock reports UPDATE_IN_PROGRESS for a resource that is being created.
    status = last["ResourceStatus"].replace("UPDATE_", "CREATE_")
    return {"ResourceType": last["ResourceType"], "ResourceStatus": status, "Timestamp": last["Timestamp"]}


CUSTOM_RESOURCES = Patch("cfn_custom_resources")
_is_cloudformation: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar(
    "cloudformation_asks", default=False
)


@CUSTOM_RESOURCES.replaces(
    _CUSTOM,
    "invoke_custom_resource",
    "request_type logical_id props stack_name stack_id resource_type physical_id old_props",
)
def invoke_without_waiting(
    original: Callable[..., tuple[str, dict[str, Any]]], *request: Any, **options: Any
) -> tuple[str, dict[str, Any]]:
    token = _is_cloudformation.set(True)
    try:
        return original(*request, **options)
    finally:
        _is_cloudformation.reset(token)


@CUSTOM_RESOURCES.replaces(
    "ministack.services.lambda_svc", "_execute_function_with_config_scope", "func event"
)
def execute_function(original: Callable[..., Any], func: dict[str, Any], event: Any) -> Any:
    """Invoke asynchronously for CloudFormation. Other callers, such as Step Functions, need the result."""
    if not _is_cloudformation.get():
        return original(func, event)
    import_ministack("services.lambda_svc").invoke_async_with_retry(func, event)
    return {}


EXPORTS = Patch("cfn_exports")


@EXPORTS.replaces(
    _STACKS,
    "_resolve_stack_outputs",
    "outputs_defs conditions resources param_values mappings stack_name stack_id",
)
def resolve_stack_outputs(
    original: Callable[..., tuple[list[Any], dict[str, Any]]], *arguments: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Raise ValueError, which fails the update, if an imported export would change or be removed."""
    outputs, exports = original(*arguments)
    cloudformation = import_ministack("services.cloudformation")
    handlers = import_ministack("services.cloudformation.handlers")
    stack_id = arguments[-1]
    for name, old_export in cloudformation._exports.items():
        new_export = exports.get(name)
        if old_export["StackId"] != stack_id or (new_export and new_export["Value"] == old_export["Value"]):
            continue
        for importer, stack in cloudformation._stacks.items():
            is_deleted = stack["StackStatus"] == "DELETE_COMPLETE"
            if (
                not is_deleted
                and stack["StackId"] != stack_id
                and name in handlers._imported_export_names(stack, importer)
            ):
                change = "updated" if new_export else "deleted"
                raise ValueError(f"Export {name} cannot be {change} as it is in use by {importer}")
    return outputs, exports


PATCHES: Final = (
    DELETE_ORDER,
    DELETED_RESOURCES,
    FAILED_CREATE,
    IN_PROGRESS,
    CUSTOM_RESOURCES,
    EXPORTS,
)
