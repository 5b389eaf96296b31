"""Compare the organization and the account of the vendors' logins with those of the deployed objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory.known import find_other_tenants, list_custom_resources
from lakeferry.plan.refusals import Refusal
from lakeferry.plan.schemas import Answers
from lakeferry.plan.templates import TemplateResource
from lambdas import contract
from lambdas.shared.errors import LakeferryError

_NOT_COMPARED: Final = (
    "whether the login is of the organization or account of its objects could not be asked ({why})"
)


def compare(ctx: DeploymentContext, active: Mapping[str, Stack]) -> Answers:
    """Return a refusal for each stack whose objects a login doesn't see, because it is of another
    organization or account.

    Who plans may not be allowed to read keys and states. The functions are, and refuse such a login too.
    """
    refused: list[Refusal] = []
    unasked: list[str] = []
    with translate_aws_errors("reading the stacks"):
        described = [stacks.describe(ctx, stack.id, with_resources=True) for stack in active.values()]
    for stack in described:
        if stack is None or not any(list_custom_resources(stack)):
            continue
        try:
            for known_object, other in find_other_tenants(ctx, [stack]):
                identity = known_object.identity
                body = {"Type": contract.resource_type(identity.kind), "Properties": known_object.properties}
                resource = TemplateResource(stack.name, identity.logical_id, body)
                refused.append(Refusal(resource, f"{other.kind.code}: {other.what}. {other.remedy}"))
        except (LakeferryError, CommandFailed) as failure:
            why = failure.what if isinstance(failure, LakeferryError) else failure.message
            unasked.append(f"stack {stack.name}: {_NOT_COMPARED.format(why=why)}")
    return Answers(tuple(refused), tuple(unasked))
