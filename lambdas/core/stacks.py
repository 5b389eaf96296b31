"""What CloudFormation is doing with a stack: the only witness when events come late or in the wrong order."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import attrs

from lambdas.core.aws import CloudFormation, told
from lambdas.core.errors import Transient


class Direction(Enum):
    FORWARD = "forward"
    BACK = "back"
    UNKNOWN = "unknown"


class Stacks(Protocol):
    def direction(self, stack_id: str) -> Direction:
        """Whether the stack is being created or updated, or on its way back from that."""

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        """Whether CloudFormation waits for this resource to come into being. False where that can't be found out."""


@attrs.frozen
class CloudFormationStacks:
    client: CloudFormation

    def direction(self, stack_id: str) -> Direction:
        try:
            with told("describing the stack"):
                status = str(self.client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"])
        except (Transient, LookupError):
            return Direction.UNKNOWN
        return Direction.FORWARD if status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS") else Direction.BACK

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        try:
            with told("describing a resource of the stack"):
                detail = self.client.describe_stack_resource(StackName=stack_id, LogicalResourceId=logical_id)
        except Transient:
            return False
        status = detail.get("StackResourceDetail", {}).get("ResourceStatus", "")
        return status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
