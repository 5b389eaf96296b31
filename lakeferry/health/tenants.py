"""Whether the logins are of the organization and the account in which the deployment's objects are."""

from __future__ import annotations

from typing import Final

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health.model import NOT_DEPLOYED, Check, Group
from lakeferry.inventory.known import find_other_tenants, list_custom_resources
from lambdas.shared.errors import LakeferryError

ORGANIZATION: Final = "organization"
ACCOUNT: Final = "account"


def look(ctx: DeploymentContext, group: Group, name: str, part: str) -> list[Check]:
    """Compare the login with the objects of the stack `part`.

    Who looks may not be allowed to read keys and states.
    """
    stack_name = f"{ctx.deployment.prefix}-{part}"
    with translate_aws_errors(f"reading stack {stack_name}"):
        stack = stacks.describe(ctx, stack_name, with_resources=True)
    if stack is None or not any(list_custom_resources(stack)):
        return [group.skip_unseen(name, NOT_DEPLOYED)]
    try:
        others = list(find_other_tenants(ctx, [stack]))
    except (LakeferryError, CommandFailed) as failure:
        why = failure.what if isinstance(failure, LakeferryError) else failure.message
        return [group.skip_unseen(name, f"not checked: {why}")]
    for resource, other in others:
        problem = (
            f"{other.kind.code}: {resource.identity.kind} {resource.identity.logical_id} of {stack.name}: "
            f"{other.what}"
        )
        return [group.fail(name, problem, other.remedy)]
    return [group.ok(name, f"the one that has the objects of {stack.name}")]
