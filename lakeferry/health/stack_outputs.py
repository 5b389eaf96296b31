"""Parts of a deployment as they stand, and what their stacks' resources are called at the vendors."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import Ground, aws_told
from lakeferry.deployment.stacks import Deployed
from lambdas import contract
from lambdas.custom_resources import request
from lambdas.custom_resources.request import Identity


@attrs.frozen
class Part:
    """One stack, with the physical ids of what is in it."""

    here: Ground
    stack: Deployed
    ids: Mapping[str, str]

    @property
    def outputs(self) -> Mapping[str, str]:
        return self.stack.outputs

    def named(self, kind: str) -> str:
        """The vendor's name of the one object of this kind; "" where the stack has none."""
        found = self._identity(kind)
        if found is None:
            return ""
        told = self.here.deployment.deployment
        return contract.object_name(
            project=told.name,
            stage=told.stage,
            region=self.here.region,
            account=self.here.account,
            stack=self.stack.name,
            logical_id=found.logical_id,
            generation=found.generation,
        )

    def origin(self, kind: str) -> str:
        """The mark of the resource, of which our external ids are made."""
        found = self._identity(kind)
        return request.resource_uid(self.stack.id, found.logical_id) if found else ""

    def _identity(self, kind: str) -> Identity | None:
        known = filter(None, map(request.parse_physical_id, self.ids.values()))
        return next((each for each in known if each.kind == kind), None)


def read(here: Ground, name: str) -> Part | str:
    """The part, or why there is none to be looked at. Raises CommandFailed."""
    stack_name = f"{here.deployment.prefix}-{name}"
    with aws_told(f"asking for stack {stack_name}"):
        stack = deployed.one(here, stack_name)
    if stack is None:
        return f"there is no stack {stack_name}"
    if not stack.stands:
        return f"stack {stack_name} is {stack.status}"
    return Part(here, stack, deployed.physical(here, stack))


def role_arn(here: Ground, vendor: str) -> str:
    """Of the role by which `tableflow` or `snowflake` comes into the account."""
    return f"arn:aws:iam::{here.account}:role/{role_name(here, vendor)}"


def role_name(here: Ground, vendor: str) -> str:
    return f"{here.deployment.regional_prefix}-{vendor}"


def tableflow_secret(here: Ground) -> str:
    return f"{here.deployment.prefix}/confluent/tableflow"
