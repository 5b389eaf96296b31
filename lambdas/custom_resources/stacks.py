"""What CloudFormation is doing with a stack: the only witness when events come late or in the wrong order."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from lambdas.shared.aws import CloudFormation, told, unless

_IN_PROGRESS: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


class Stacks(Protocol):
    def is_forward(self, stack_id: str) -> bool:
        """Whether the stack is being created or updated. False on its way back from that."""

    def is_rolling_back(self, stack_id: str) -> bool:
        """Whether what is deleted now was created by the operation that failed."""

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        """Whether CloudFormation waits for this resource to come into being. False where the stack doesn't have it."""


@attrs.frozen
class CloudFormationStacks:
    """Raises Transient, and Denied or Refused where AWS will not answer."""

    client: CloudFormation

    def is_forward(self, stack_id: str) -> bool:
        return self._status(stack_id) in _IN_PROGRESS

    def is_rolling_back(self, stack_id: str) -> bool:
        return "ROLLBACK" in self._status(stack_id)

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        try:
            with told("describing a resource of the stack"), unless(("ValidationError",), LookupError):
                detail = self.client.describe_stack_resource(StackName=stack_id, LogicalResourceId=logical_id)
        except LookupError:
            return False
        return detail.get("StackResourceDetail", {}).get("ResourceStatus", "") in _IN_PROGRESS

    def _status(self, stack_id: str) -> str:
        with told("describing the stack"):
            return str(self.client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"])
