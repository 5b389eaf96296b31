"""What a function last waited for, from its log, where CDK's framework only says that the operation timed
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry import errors
from lakeferry.deploy.failure_causes import Cause
from lakeferry.deployment import logs, stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Event
from lakeferry.errors import CommandFailed
from lambdas import contract

#: The message of CDK's framework, https://github.com/aws/aws-cdk, custom-resources provider-framework,
#: `onTimeout`.
_TIMED_OUT: Final = "Operation timed out"
#: Seconds before the failure in which the reason is looked for: longer than the framework waits.
_BEFORE: Final = contract.TOTAL_TIMEOUT_SECONDS + 900.0


def explain(ctx: DeploymentContext, cause: Cause, event: Event) -> Cause:
    """Return the cause with what the resource's function last waited for, or as it is if that isn't known."""
    if _TIMED_OUT not in cause.what or cause.code:
        return cause
    try:
        lines = list(_read_waiting_lines(ctx, event))
    except (
        ClientError,
        BotoCoreError,
        CommandFailed,
        KeyError,
    ):  # the log is only more detail, and may be deleted by now
        return cause
    entry = errors.load_catalogue().get(lines[-1]["code"]) if lines else None
    if entry is None:
        return cause
    what = f"{lines[-1]['reason']}; it was waited for this until the time of the operation was over"
    return attrs.evolve(
        cause, code=entry.code, what=what, why=entry.cause, fix=errors.to_plain_text(entry.remedy)
    )


def _read_waiting_lines(ctx: DeploymentContext, event: Event) -> Iterator[dict[str, Any]]:
    """Yield what the function logged when it waited for the resource, the oldest first.

    Raises what AWS raises.
    """
    stack = stacks.describe(ctx, event.stack_id)
    if stack is None:
        return
    stack = attrs.evolve(stack, template=stacks.read_template(ctx, stack.id))
    for function in stacks.list_functions(ctx, stack, contract.CUSTOM_RESOURCE):
        for line in logs.read_function_lines(ctx, function.log_group, event.at - _BEFORE):
            entry = line.fields
            if (
                entry.get("message") == "waiting"
                and entry.get("resource") == event.logical_id
                and line.at <= event.at + 1
            ):
                yield {"code": str(entry.get("code", "")), "reason": str(entry.get("reason", ""))}
