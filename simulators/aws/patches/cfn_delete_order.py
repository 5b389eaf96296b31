"""What a resource needs stays as long as the resource could not be deleted.

CloudFormation deletes dependents first, and leaves alone whatever one needs that it could not delete, so that a further deletion
of the stack can come through. Stock MiniStack goes on, and deletes the functions that a custom resource is deleted by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, ministack

PATCH = Patch("cfn_delete_order")
_STACKS: Final = "ministack.services.cloudformation.stacks"
#: By stack, what could not be deleted in the operation that is under way.
_stuck: dict[str, set[str]] = {}


class StillNeeded(Exception):
    """CloudFormation tells it as the resource's reason."""


@PATCH.replaces(_STACKS, "_delete_stack_async", "stack_name stack_id retain_resources force")
async def delete_stack(
    original: Callable[..., Awaitable[None]], stack_name: str, stack_id: str, *given: Any, **named: Any
) -> None:
    _stuck[stack_name] = set()
    await original(stack_name, stack_id, *given, **named)


@PATCH.replaces(_STACKS, "_delete_resource", "resource_type physical_id props stack_name logical_id")
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
    stuck = _stuck.setdefault(stack_name, set())
    try:
        if users := _users(stack_name, logical_id) & stuck:
            raise StillNeeded(f"{', '.join(sorted(users))} could not be deleted, and needs it")
        original(resource_type, physical_id, props, stack_name, logical_id)
    except Exception:
        stuck.add(logical_id)
        raise
    stuck.discard(logical_id)


def _users(stack_name: str, logical_id: str) -> set[str]:
    """The resources that need this one directly; what needs those is stuck with them."""
    engine, stacks = ministack("services.cloudformation.engine"), ministack("services.cloudformation")._stacks
    stack = stacks.get(stack_name) or {}
    defined: dict[str, Any] = (stack.get("_template") or {}).get("Resources", {})
    return {name for name, each in defined.items() if logical_id in engine._extract_deps(each, set(defined))}
