"""CloudFormation waits for a custom resource's answer, not for its function to end.

Stock MiniStack waits for both: a function that hangs after its work was done elsewhere holds the stack until Lambda's timeout.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, in_background

PATCH = Patch("cfn_custom_resources")
_SERVICE: Final = "ministack.services.cloudformation.custom_resource"
_asks: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("cloudformation_asks", default=False)


@PATCH.replaces(
    _SERVICE,
    "invoke_custom_resource",
    "request_type logical_id props stack_name stack_id resource_type physical_id old_props",
)
def invoke_custom_resource(
    original: Callable[..., tuple[str, dict[str, Any]]], *asked: Any, **named: Any
) -> tuple[str, dict[str, Any]]:
    token = _asks.set(True)
    try:
        return original(*asked, **named)
    finally:
        _asks.reset(token)


@PATCH.replaces("ministack.services.lambda_svc", "_execute_function_with_config_scope", "func event")
def execute_function(original: Callable[..., Any], func: dict[str, Any], event: Any) -> Any:
    """Step Functions and others, which come here too, need what it returns."""
    if not _asks.get():
        return original(func, event)
    in_background(original, func, event)
    return {}
