"""Read a deployment from CloudFormation: its stacks with their templates, outputs, resources and events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import PARTS, DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.output import Reporter
from lambdas.custom_resources import request
from lambdas.custom_resources.request import Identity

#: The stack that `cdk bootstrap` creates in each account and region.
TOOLKIT: Final = "CDKToolkit"
DELETED: Final = "DELETE_COMPLETE"
#: States from which CloudFormation can't begin an update. A stack in such a state is not usable.
_INACTIVE: Final = (
    "CREATE_FAILED",
    "ROLLBACK_COMPLETE",
    "ROLLBACK_FAILED",
    "DELETE_FAILED",
    "REVIEW_IN_PROGRESS",
)
#: States after a stack's first creation has failed. CDK deletes such a stack and creates it again.
_CREATION_FAILED: Final = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
#: How many deleted stacks of the same name are read. CloudFormation keeps them for 90 days.
_MAX_DELETED: Final = 3
#: Seconds between two checks of a rollback, and its time limit: a custom resource may take an hour, and
#: others wait for it.
_POLL_SECONDS: Final = 5.0
_ROLLBACK_TIMEOUT: Final = 3 * 3600.0
_FUNCTION: Final = "AWS::Lambda::Function"
_STACK: Final = "AWS::CloudFormation::Stack"


@attrs.frozen
class StackResource:
    logical_id: str
    physical_id: str
    type: str
    status: str


@attrs.frozen
class Stack:
    """A stack of the deployment.

    `resources` and `template` are empty unless requested; `template` also if it isn't active.
    """

    name: str
    id: str
    status: str
    is_protected: bool = False
    resources: tuple[StackResource, ...] = ()
    template: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    outputs: Mapping[str, str] = attrs.field(factory=dict)
    tags: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def is_active(self) -> bool:
        """Return whether CloudFormation can begin an update from the stack's state."""
        return self.status not in _INACTIVE

    @property
    def is_in_progress(self) -> bool:
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def is_failed_creation(self) -> bool:
        return self.status in _CREATION_FAILED

    def identity(self, kind: str, logical_id: str = "") -> Identity | None:
        """Return the identity of the custom resource of a kind in `resources`, None if there is none. Without
        a logical id, it is the first one of this kind.
        """
        identities = (request.parse_physical_id(resource.physical_id) for resource in self.resources)
        for identity in identities:
            if identity and identity.kind == kind and logical_id in ("", identity.logical_id):
                return identity
        return None

    def logical_ids(self, type: str, **properties: str) -> Iterator[str]:
        """Yield the logical ids of the template's resources with this type and these properties."""
        for logical_id, body in self.template.get("Resources", {}).items():
            own = body.get("Properties", {})
            if body.get("Type") == type and all(own.get(name) == value for name, value in properties.items()):
                yield logical_id


@attrs.frozen
class Function:
    name: str
    log_group: str


@attrs.frozen
class Event:
    """An event of a stack. `at` is in seconds since 1970."""

    id: str
    stack: str
    stack_id: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    at: float

    @property
    def is_of_stack(self) -> bool:
        return self.type == _STACK and self.physical_id == self.stack_id

    @property
    def has_begun(self) -> bool:
        return self.status.endswith("_IN_PROGRESS")

    @property
    def has_failed(self) -> bool:
        return self.status.endswith("_FAILED")


def list_names(ctx: DeploymentContext) -> list[str]:
    """Return the names of all stacks that any deployment file can produce, in the order of deployment."""
    return [f"{ctx.deployment.prefix}-{part}" for part in PARTS]


def read(ctx: DeploymentContext) -> dict[str, Stack]:
    """Return the deployed stacks with their templates, by name, in the order of deployment.

    Raises CommandFailed.
    """
    with translate_aws_errors("reading the stacks"):
        return {name: stack for name in list_names(ctx) if (stack := describe(ctx, name, with_template=True))}


def describe(
    ctx: DeploymentContext, name_or_id: str, *, with_resources: bool = False, with_template: bool = False
) -> Stack | None:
    """Return the stack, None if it doesn't exist or is deleted. Raises ClientError, BotoCoreError."""
    client = ctx.client("cloudformation")
    try:
        described = client.describe_stacks(StackName=name_or_id)["Stacks"][0]
    except ClientError as error:
        if (
            error.response["Error"]["Code"] == "ValidationError"
            and "does not exist" in error.response["Error"]["Message"]
        ):
            return None
        raise
    if described["StackStatus"] == DELETED:
        return None
    stack = Stack(
        name=described["StackName"],
        id=described["StackId"],
        status=described["StackStatus"],
        is_protected=bool(described.get("EnableTerminationProtection")),
        outputs=_read_outputs(described),
        tags={tag["Key"]: tag["Value"] for tag in described.get("Tags") or []},
    )
    if with_resources:
        stack = attrs.evolve(stack, resources=tuple(_list_resources(client, stack.id)))
    if with_template and stack.is_active:
        stack = attrs.evolve(stack, template=read_template(ctx, stack.id))
    return stack


def _read_outputs(described: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs") or []}


def describe_deleted(ctx: DeploymentContext, names: list[str]) -> Iterator[Stack]:
    """Yield the latest deleted stacks of each name, with their outputs and resources.

    CloudFormation finds these only by their ids.
    """
    client = ctx.client("cloudformation")
    pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=[DELETED])
    deleted = [
        summary for page in pages for summary in page["StackSummaries"] if summary["StackName"] in names
    ]
    for name in names:
        mine = [summary for summary in deleted if summary["StackName"] == name]
        mine.sort(key=lambda summary: str(summary.get("DeletionTime", "")))
        for summary in mine[-_MAX_DELETED:]:
            described = client.describe_stacks(StackName=summary["StackId"])["Stacks"][0]
            yield Stack(
                name,
                summary["StackId"],
                DELETED,
                outputs=_read_outputs(described),
                resources=tuple(_list_resources(client, summary["StackId"])),
            )


def read_template(ctx: DeploymentContext, stack_id: str) -> dict[str, Any]:
    """Return the deployed template. Raises ClientError, BotoCoreError."""
    body = ctx.client("cloudformation").get_template(StackName=stack_id, TemplateStage="Original")[
        "TemplateBody"
    ]
    template: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return template


def unprotect_failed_creation(ctx: DeploymentContext, stack: Stack) -> None:
    """Remove the termination protection of a stack whose first creation was rolled back, which has no data.

    CDK turns the protection on before it first creates a stack. After a failed creation, it deletes the stack
    to create it again, but doesn't turn the protection off first, so CloudFormation would refuse every
    further deployment. Raises CommandFailed.
    """
    if stack.is_failed_creation and stack.is_protected:
        with translate_aws_errors(f"removing the termination protection of stack {stack.name}"):
            client = ctx.client("cloudformation")
            client.update_termination_protection(EnableTerminationProtection=False, StackName=stack.id)


def continue_rollback(ctx: DeploymentContext, stack: Stack, report: Reporter) -> None:
    """Continue the rollback of an update if it has failed. Until it succeeds, CloudFormation accepts no
    deployment.

    Waits up to three hours. Raises CommandFailed.
    """
    if stack.status != "UPDATE_ROLLBACK_FAILED":
        return
    client = ctx.client("cloudformation")
    clock = ctx.clock
    with translate_aws_errors(f"continuing the rollback of stack {stack.name}"):
        client.continue_update_rollback(StackName=stack.id)
        until = clock.time() + _ROLLBACK_TIMEOUT
        current = describe(ctx, stack.id)
        while current and current.is_in_progress and clock.time() < until:
            report(f"{stack.name}: continuing its rollback")
            clock.sleep(_POLL_SECONDS)
            current = describe(ctx, stack.id)
    if current and current.is_in_progress:
        raise CommandFailed("STACK-BUSY", f"{stack.name} is still {current.status}")
    if current is None or current.status != "UPDATE_ROLLBACK_COMPLETE":
        status = current.status if current else DELETED
        hint = (
            "The stack's events in the CloudFormation console show which resource failed. Fix it, then "
            "deploy again"
        )
        raise CommandFailed(
            "DEPLOY-FAILED", f"the rollback of stack {stack.name} failed again; it is {status}", hint
        )


def require_part(ctx: DeploymentContext, part: str) -> Stack:
    """Return the active stack of a part: data, confluent, … Raises CommandFailed if it isn't deployed."""
    name = f"{ctx.deployment.prefix}-{part}"
    with translate_aws_errors("reading the stacks"):
        stack = describe(ctx, name, with_template=True)
    if stack is None or not stack.is_active:
        message = f"stack {name} is not deployed in account {ctx.account}, {ctx.region}"
        raise CommandFailed("NOT-DEPLOYED", message, f"`lakeferry deploy --stage {ctx.stage}` deploys it")
    return stack


def require_output(ctx: DeploymentContext, part: str, name: str) -> str:
    """Return an output of a deployed part. Raises CommandFailed if it has none of this name."""
    stack = require_part(ctx, part)
    if name not in stack.outputs:
        message = f"stack {stack.name} has no output {name}"
        raise CommandFailed("NOT-DEPLOYED", message, f"`lakeferry deploy --stage {ctx.stage}`")
    return stack.outputs[name]


def find_part(ctx: DeploymentContext, part: str) -> Stack | str:
    """Return the active stack of a part with its resources, or, as text, why there is none.

    Raises CommandFailed.
    """
    name = f"{ctx.deployment.prefix}-{part}"
    with translate_aws_errors(f"reading stack {name}"):
        stack = describe(ctx, name, with_resources=True)
    if stack is None:
        return f"there is no stack {name}"
    return stack if stack.is_active else f"stack {name} is {stack.status}"


def find_object_name(ctx: DeploymentContext, stack: Stack, kind: str, logical_id: str = "") -> str:
    """Return the name that the vendor has for the stack's object of a kind, "" if there is none. Without a
    logical id, it is the first one of this kind.
    """
    identity = stack.identity(kind, logical_id)
    return ctx.object_name(stack.name, identity.logical_id, identity.generation) if identity else ""


def read_physical_ids(ctx: DeploymentContext, stack: Stack) -> dict[str, str]:
    """Return physical ids by logical id. Raises CommandFailed."""
    with translate_aws_errors(f"reading the resources of stack {stack.name}"):
        return {
            resource.logical_id: resource.physical_id
            for resource in _list_resources(ctx.client("cloudformation"), stack.id)
        }


def list_functions(ctx: DeploymentContext, stack: Stack, handler: str) -> list[Function]:
    """Return the stack's Lambda functions with this handler. Raises CommandFailed."""
    logical_ids = list(stack.logical_ids(_FUNCTION, Handler=handler))
    ids = read_physical_ids(ctx, stack) if logical_ids else {}
    functions = []
    for logical_id in logical_ids:
        physical_id = ids.get(logical_id)
        if not physical_id:
            continue
        properties = stack.template["Resources"][logical_id]["Properties"]
        group = properties.get("LoggingConfig", {}).get("LogGroup")
        name = ids.get(group.get("Ref", ""), "") if isinstance(group, Mapping) else str(group or "")
        functions.append(Function(physical_id, name or f"/aws/lambda/{physical_id}"))
    return functions


def read_newest_events(client: Any, stack: str) -> Iterator[Event]:
    """Yield a stack's events, the newest first; none if the stack doesn't exist.

    Raises ClientError, BotoCoreError.
    """
    try:
        for page in client.get_paginator("describe_stack_events").paginate(StackName=stack):
            yield from map(parse_event, page["StackEvents"])
    except ClientError as error:
        if "does not exist" not in str(error):
            raise


@attrs.define
class EventWatch:
    """Reads the events of stacks that happen after it was created."""

    client: Any
    stacks: list[str]
    _last: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for stack in self.stacks:
            for event in itertools.islice(read_newest_events(self.client, stack), 1):
                self._last[stack] = event.id

    def new(self) -> list[Event]:
        """Return the events since the last call, the oldest first. Raises ClientError, BotoCoreError."""
        new = [event for stack in self.stacks for event in self._read_new_events(stack)]
        return sorted(new, key=lambda event: event.at)

    def _read_new_events(self, stack: str) -> list[Event]:
        last_id = self._last.get(stack)
        events = list(
            itertools.takewhile(lambda event: event.id != last_id, read_newest_events(self.client, stack))
        )
        if events:
            self._last[stack] = events[0].id
        return events[::-1]


def parse_event(event: Mapping[str, Any]) -> Event:
    return Event(
        id=event["EventId"],
        stack=event["StackName"],
        stack_id=event["StackId"],
        logical_id=event["LogicalResourceId"],
        physical_id=event.get("PhysicalResourceId") or "",
        type=event["ResourceType"],
        status=event["ResourceStatus"],
        reason=event.get("ResourceStatusReason") or "",
        at=event["Timestamp"].timestamp(),
    )


def _list_resources(client: Any, stack_id: str) -> Iterator[StackResource]:
    for page in client.get_paginator("list_stack_resources").paginate(StackName=stack_id):
        for summary in page["StackResourceSummaries"]:
            physical = summary.get("PhysicalResourceId") or ""
            yield StackResource(
                summary["LogicalResourceId"], physical, summary["ResourceType"], summary["ResourceStatus"]
            )
