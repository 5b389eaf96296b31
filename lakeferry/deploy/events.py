"""CloudFormation's events of a stack, as this house reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.plan.resources import Resource

_STACK: Final = "AWS::CloudFormation::Stack"


@attrs.frozen
class Event:
    """`at` is in seconds since 1970."""

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

    @property
    def resource(self) -> Resource:
        return Resource(self.stack, self.logical_id, {"Type": self.type})


def read(told: Mapping[str, Any]) -> Event:
    return Event(
        id=told["EventId"],
        stack=told["StackName"],
        stack_id=told["StackId"],
        logical_id=told["LogicalResourceId"],
        physical_id=told.get("PhysicalResourceId") or "",
        type=told["ResourceType"],
        status=told["ResourceStatus"],
        reason=told.get("ResourceStatusReason") or "",
        at=told["Timestamp"].timestamp(),
    )


@attrs.define
class Watch:
    """New events of stacks, from the moment on that it was made."""

    client: Any
    stacks: list[str]
    _last: dict[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for stack in self.stacks:
            for event in itertools.islice(_newest_first(self.client, stack), 1):
                self._last[stack] = event.id

    def new(self) -> list[Event]:
        """The oldest first. Raises ClientError, BotoCoreError."""
        found = [event for stack in self.stacks for event in self._of(stack)]
        return sorted(found, key=lambda event: event.at)

    def _of(self, stack: str) -> list[Event]:
        known = self._last.get(stack)
        events = list(itertools.takewhile(lambda event: event.id != known, _newest_first(self.client, stack)))
        if events:
            self._last[stack] = events[0].id
        return events[::-1]


def _newest_first(client: Any, stack: str) -> Iterator[Event]:
    """None of a stack that isn't there."""
    try:
        for page in client.get_paginator("describe_stack_events").paginate(StackName=stack):
            yield from map(read, page["StackEvents"])
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
