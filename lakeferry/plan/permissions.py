"""Changes of permissions: what is added to and removed from the policies of roles, keys, buckets, queues and
topics.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from lakeferry.deployment.stacks import Stack
from lakeferry.plan import references
from lakeferry.plan.references import Exports
from lakeferry.plan.templates import SynthesizedStack, TemplateResource, list_resources

_ALLOW: Final = "Allow"
_DENY: Final = "Deny"
_LAMBDA: Final = "AWS::Lambda::Permission"
#: The elements of a policy statement that limit its scope, with the words that introduce them in the output.
_SCOPE: Final = (
    ("Principal", "to"),
    ("NotPrincipal", "to all but"),
    ("Resource", "on"),
    ("NotResource", "on all but"),
)


@attrs.frozen(order=True)
class Permission:
    """One action of a policy statement. `scope` describes the principal, the resource and the condition."""

    effect: str
    scope: str
    action: str


@attrs.frozen
class PermissionChange:
    """The changes of one resource.

    `broadens` means that something more is allowed, or something less is denied.
    """

    stack: str
    logical_id: str
    type: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    broadens: bool


def compare(wanted: Sequence[SynthesizedStack], deployed: Mapping[str, Stack]) -> list[PermissionChange]:
    """Return the changes of permissions in all synthesised stacks."""
    exports = references.list_exports({stack.name: stack.template for stack in wanted})
    return [change for stack in wanted for change in _compare_stack(stack, deployed.get(stack.name), exports)]


def _compare_stack(
    stack: SynthesizedStack, deployed: Stack | None, given: Exports
) -> Iterator[PermissionChange]:
    before = {}
    if deployed:
        before = {resource.logical_id: resource for resource in list_resources(stack.name, deployed.template)}
    after = {resource.logical_id: resource for resource in list_resources(stack.name, stack.template)}
    for logical_id in dict.fromkeys([*after, *before]):
        old = _read_resource(before.get(logical_id), given)
        new = _read_resource(after.get(logical_id), given)
        if old != new:
            added = new - old
            removed = old - new
            allows_more = any(permission.effect == _ALLOW for permission in added)
            denies_less = any(permission.effect == _DENY for permission in removed)
            yield PermissionChange(
                stack.name,
                logical_id,
                (after.get(logical_id) or before[logical_id]).type,
                tuple(_format_lines(added)),
                tuple(_format_lines(removed)),
                broadens=allows_more or denies_less,
            )


def _read_resource(resource: TemplateResource | None, given: Exports) -> set[Permission]:
    if resource is None or not resource.type.startswith("AWS::"):
        return set()
    properties = resource.properties
    permissions = set(_read_documents(properties, given))
    if resource.type == _LAMBDA:
        principal = references.format_without_assets(properties.get("Principal"), given)
        function = references.format_without_assets(properties.get("FunctionName"), given)
        scope = f"to {principal} on {function}"
        if source := properties.get("SourceArn"):
            scope += f" if it comes from {references.format_without_assets(source, given)}"
        action = references.format_without_assets(properties.get("Action"), given)
        permissions.add(Permission(_ALLOW, scope, action))
    for arn in properties.get("ManagedPolicyArns") or []:
        permissions.add(
            Permission(_ALLOW, "", f"whatever policy {references.format_without_assets(arn, given)} allows")
        )
    if boundary := properties.get("PermissionsBoundary"):
        permissions.add(
            Permission(
                _DENY,
                "",
                f"whatever boundary {references.format_without_assets(boundary, given)} doesn't allow",
            )
        )
    return permissions


def _read_documents(value: Any, given: Exports) -> Iterator[Permission]:
    """Yield the permissions in all policy documents in a value."""
    if isinstance(value, list):
        for item in value:
            yield from _read_documents(item, given)
    elif isinstance(value, Mapping):
        if "Statement" in value:
            for statement in _as_list(value["Statement"]):
                yield from _read_statement(statement, given)
        else:
            yield from _read_documents(list(value.values()), given)


def _read_statement(statement: Mapping[str, Any], given: Exports) -> Iterator[Permission]:
    """Yield a permission for each combination of action, principal and resource, so that order and grouping
    don't matter.
    """
    condition = statement.get("Condition")
    where = f" if {json.dumps(condition, ensure_ascii=False, sort_keys=True)}" if condition else ""
    scopes = [""]
    for name, word in _SCOPE:
        if name in statement:
            parts = _write_values(statement[name], given)
            scopes = [f"{scope} {word} {part}" for scope in scopes for part in parts]
    actions = [
        *_write_values(statement.get("Action", []), given),
        *(f"all but {part}" for part in _write_values(statement.get("NotAction", []), given)),
    ]
    effect = str(statement.get("Effect", _ALLOW))
    for scope in scopes:
        for action in actions:
            yield Permission(effect, f"{scope}{where}".strip(), action)


def _write_values(value: Any, given: Exports) -> list[str]:
    if isinstance(value, Mapping) and not references.is_function(value):
        return [f"{name} {part}" for name, inner in value.items() for part in _write_values(inner, given)]
    return [references.format_without_assets(item, given) for item in _as_list(value)]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _format_lines(permissions: Iterable[Permission]) -> Iterator[str]:
    """Yield a line for each effect and scope, with all actions."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for permission in sorted(permissions):
        grouped.setdefault((permission.effect, permission.scope), []).append(permission.action)
    for (effect, scope), actions in grouped.items():
        yield f"{effect.lower()} {', '.join(actions)} {scope}".strip()
