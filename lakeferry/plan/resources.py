"""One resource of a template, and whose world it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import attrs

from lakeferry.deployment.stacks import Event
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lakeferry.plan.references import Place
from lambdas import contract
from lambdas.custom_resources import registry

__all__ = ["AWS", "CONFLUENT", "SNOWFLAKE", "Resource", "of_event", "of_template"]

_KINDS: Final = {contract.resource_type(kind): kind for kind in registry.RESOURCE_TYPES}
_WORLDS: Final = {registry.CONFLUENT: CONFLUENT, registry.SNOWFLAKE: SNOWFLAKE}
_RETAIN: Final = "Retain"
#: What tells one object from the others of its kind, beside its logical id.
_TELLING: Final = ("topic", "subject", "name", "role", "description")


@attrs.frozen
class Resource:
    """`body` is what the template says of it."""

    stack: str
    logical_id: str
    body: Mapping[str, Any] = attrs.field(repr=False, eq=False)

    @property
    def place(self) -> Place:
        return self.stack, self.logical_id

    @property
    def type(self) -> str:
        return str(self.body.get("Type", ""))

    @property
    def properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.body.get("Properties") or {}
        return found

    @cached_property
    def kind(self) -> str:
        """Of ours, "" for what is AWS's."""
        return _KINDS.get(self.type, "")

    @property
    def world(self) -> str:
        return _WORLDS[registry.RESOURCE_TYPES[self.kind].vendor] if self.kind else AWS

    @property
    def what(self) -> str:
        """Its kind in words: kafka cluster, or AWS's type without AWS."""
        return self.kind.removeprefix("snowflake_").replace("_", " ") if self.kind else self.type.removeprefix("AWS::")

    @property
    def name(self) -> str:
        """With what the deployment file calls it, where it does. AWS's logical ids are the same in several stacks."""
        if not self.kind:
            return f"{self.stack.rpartition('-')[2]}/{self.logical_id}"
        own = (self.properties.get(name) for name in _TELLING)
        told = next((value for value in own if isinstance(value, str) and value), "")
        return f"{self.logical_id} ({told})" if told else self.logical_id

    @property
    def stays_when_removed(self) -> bool:
        return self.body.get("DeletionPolicy") == _RETAIN

    @property
    def stays_when_replaced(self) -> bool:
        return self.body.get("UpdateReplacePolicy") == _RETAIN


def of_event(event: Event) -> Resource:
    """Return the resource that an event is about."""
    return Resource(event.stack, event.logical_id, {"Type": event.type})


def of_template(stack: str, template: Mapping[str, Any]) -> Iterator[Resource]:
    for logical_id, body in template.get("Resources", {}).items():
        yield Resource(stack, logical_id, body)
