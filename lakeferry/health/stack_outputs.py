"""The deployed stacks as checks read them: outputs, physical ids, and the names of their objects at the vendors."""

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
class StackOutputs:
    """One stack. `ids` are physical ids by logical id."""

    ctx: DeploymentContext
    stack: Stack
    ids: Mapping[str, str]

    def __getitem__(self, output: str) -> str:
        """Return the output's value, "" where the stack has none of that name."""
        return self.stack.outputs.get(output, "")

    def object_name(self, kind: str) -> str:
        """Return the vendor's name of the only object of this kind; "" where the stack has none."""
        identity = self._identity(kind)
        if identity is None:
            return ""
        deployment = self.ctx.deployment.identity
        return contract.object_name(
            project=deployment.name,
            stage=deployment.stage,
            region=self.ctx.region,
            account=self.ctx.account,
            stack=self.stack.name,
            logical_id=identity.logical_id,
            generation=identity.generation,
        )

    def resource_uid(self, kind: str) -> str:
        """Return the resource's uid, from which our external ids are derived."""
        identity = self._identity(kind)
        return request.resource_uid(self.stack.id, identity.logical_id) if identity else ""

    def _identity(self, kind: str) -> Identity | None:
        known = filter(None, map(request.parse_physical_id, self.ids.values()))
        return next((each for each in known if each.kind == kind), None)


def read(ctx: DeploymentContext, part: str) -> StackOutputs | str:
    """Return the outputs of a part's stack, or why there are none. Raises CommandFailed."""
    name = f"{ctx.deployment.prefix}-{part}"
    with translate_aws_errors(f"asking for stack {name}"):
        stack = stacks.describe(ctx, name, with_template=True)
    if stack is None:
        return f"there is no stack {name}"
    if not stack.is_active:
        return f"stack {name} is {stack.status}"
    return StackOutputs(ctx, stack, stacks.physical_ids(ctx, stack))


def role_name(ctx: DeploymentContext, vendor: str) -> str:
    """Return the name of the role that `tableflow` or `snowflake` assumes."""
    return f"{ctx.deployment.regional_prefix}-{vendor}"


def role_arn(ctx: DeploymentContext, vendor: str) -> str:
    return f"arn:aws:iam::{ctx.account}:role/{role_name(ctx, vendor)}"


def tableflow_secret(ctx: DeploymentContext) -> str:
    return f"{ctx.deployment.prefix}/confluent/tableflow"
