"""A deployment's stacks as CDK synthesises them, and the resources in their templates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry.deployment.stacks import Event
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lakeferry.plan.references import ResourceId
from lambdas import contract
from lambdas.custom_resources import registry

_KINDS: Final = {contract.resource_type(kind): kind for kind in registry.RESOURCE_TYPES}
_SYSTEMS: Final = {registry.CONFLUENT: CONFLUENT, registry.SNOWFLAKE: SNOWFLAKE}
_RETAINS: Final = ("Retain", "RetainExceptOnCreate")
#: Properties that can identify an object for users, in addition to its logical id.
_NAMES: Final = ("topic", "subject", "name", "role", "description")


@attrs.frozen
class SynthesizedStack:
    name: str
    template: Mapping[str, Any] = attrs.field(repr=False)
    tags: Mapping[str, str] = attrs.field(factory=dict)
    is_protected: bool = False


@attrs.frozen
class TemplateResource:
    """A resource in a template. `body` is its definition there."""

    stack: str
    logical_id: str
    body: Mapping[str, Any] = attrs.field(repr=False, eq=False)

    @property
    def id(self) -> ResourceId:
        return self.stack, self.logical_id

    @property
    def type(self) -> str:
        return str(self.body.get("Type", ""))

    @property
    def properties(self) -> Mapping[str, Any]:
        properties: Mapping[str, Any] = self.body.get("Properties") or {}
        return properties

    @cached_property
    def kind(self) -> str:
        """Return the custom resource type, "" for an AWS resource type."""
        return _KINDS.get(self.type, "")

    @property
    def system(self) -> str:
        return _SYSTEMS[registry.RESOURCE_TYPES[self.kind].vendor] if self.kind else AWS

    @property
    def what(self) -> str:
        """Return the type as text: kafka cluster, or the AWS type without the prefix, like S3::Bucket."""
        return (
            self.kind.removeprefix("snowflake_").replace("_", " ")
            if self.kind
            else self.type.removeprefix("AWS::")
        )

    @property
    def name(self) -> str:
        """Return a name for users: the logical id and the object's name; for an AWS resource, the part and
        the logical id.

        AWS resources in different stacks can have the same logical id.
        """
        if not self.kind:
            return f"{self.stack.rpartition('-')[2]}/{self.logical_id}"
        values = (self.properties.get(name) for name in _NAMES)
        text = next((value for value in values if isinstance(value, str) and value), "")
        return f"{self.logical_id} ({text})" if text else self.logical_id

    @property
    def stays_when_removed(self) -> bool:
        return self.body.get("DeletionPolicy") in _RETAINS

    @property
    def stays_when_replaced(self) -> bool:
        return self.body.get("UpdateReplacePolicy") in _RETAINS


def list_resources(stack: str, template: Mapping[str, Any]) -> Iterator[TemplateResource]:
    for logical_id, body in template.get("Resources", {}).items():
        yield TemplateResource(stack, logical_id, body)


def read_resource_of_event(event: Event) -> TemplateResource:
    """Return the resource that an event is about."""
    return TemplateResource(event.stack, event.logical_id, {"Type": event.type})


def read_stacks(folder: Path, names: Iterable[str]) -> list[SynthesizedStack]:
    """Return the stacks with these names, in this order, from CDK's cloud assembly in `folder`."""
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    stacks = []
    for name in names:
        properties = artifacts[name]["properties"]
        template = json.loads((folder / properties["templateFile"]).read_text(encoding="utf-8"))
        is_protected = bool(properties.get("terminationProtection"))
        stacks.append(SynthesizedStack(name, template, properties.get("tags", {}), is_protected))
    return stacks
