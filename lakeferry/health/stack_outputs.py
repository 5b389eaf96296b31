"""Parts of a deployment as they stand, and what their stacks' resources are called at the vendors."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lambdas import contract
from lambdas.custom_resources import request
from lambdas.custom_resources.request import Identity


@attrs.frozen
class Part:
    """One stack, with the physical ids of what is in it."""

    ctx: DeploymentContext
    stack: Stack
    ids: Mapping[str, str]

    @property
    def outputs(self) -> Mapping[str, str]:
        return self.stack.outputs

    def named(self, kind: str) -> str:
        """The vendor's name of the one object of this kind; "" where the stack has none."""
        found = self._identity(kind)
        if found is None:
            return ""
        told = self.ctx.deployment.deployment
        return contract.object_name(
            project=told.name,
            stage=told.stage,
            region=self.ctx.region,
            account=self.ctx.account,
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


def read(ctx: DeploymentContext, name: str) -> Part | str:
    """The part, or why there is none to be looked at. Raises CommandFailed."""
    stack_name = f"{ctx.deployment.prefix}-{name}"
    with translate_aws_errors(f"asking for stack {stack_name}"):
        stack = stacks.describe(ctx, stack_name, with_template=True)
    if stack is None:
        return f"there is no stack {stack_name}"
    if not stack.is_active:
        return f"stack {stack_name} is {stack.status}"
    return Part(ctx, stack, stacks.physical_ids(ctx, stack))


def role_arn(ctx: DeploymentContext, vendor: str) -> str:
    """Of the role by which `tableflow` or `snowflake` comes into the account."""
    return f"arn:aws:iam::{ctx.account}:role/{role_name(ctx, vendor)}"


def role_name(ctx: DeploymentContext, vendor: str) -> str:
    return f"{ctx.deployment.regional_prefix}-{vendor}"


def tableflow_secret(ctx: DeploymentContext) -> str:
    return f"{ctx.deployment.prefix}/confluent/tableflow"
