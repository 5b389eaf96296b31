"""What became of a deployment, read from CloudFormation: the CDK CLI also succeeds if it finds nothing to do.

It compares with the template that CloudFormation returns. While another deployment updates a stack, that is
the new template, although the update may still fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.errors import CommandFailed
from lakeferry.output import Reporter
from lakeferry.plan import templates
from lakeferry.plan.difference import Comparison

#: Seconds between two looks at the stacks, and the limit: a custom resource may take an hour, and others wait
#: for it.
_POLL_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 3 * 3600.0
#: What AWS or the CDK CLI says if another deployment works on the stack, or has taken the change set, which
#: has always one name.
_OTHERS: Final = re.compile(
    r"_IN_PROGRESS state and can ?not be|InvalidChangeSetStatus|ChangeSetNotFound"
    r"|ChangeSet \[\S+\] does not exist|OperationInProgress|EXECUTE_IN_PROGRESS"
)


def require_deployed(
    ctx: DeploymentContext, folder: Path, report: Reporter, meanwhile: Callable[[], object]
) -> None:
    """Wait until CloudFormation has ended its work, and raise CommandFailed unless it has what `folder`
    describes.

    `folder` has the synthesised templates. `meanwhile` is called at each look at the stacks.
    """
    deployed = _await_end(ctx, report, meanwhile)
    active = {name: stack for name, stack in deployed.items() if stack.is_active}
    changes = Comparison(templates.read_stacks(folder, ctx.stacks), active).changes()
    undone = dict.fromkeys(change.resource.stack for change in changes)
    if undone:
        states = []
        for name in undone:
            stack = deployed.get(name)
            states.append(f"{name} is {stack.status}" if stack else f"there is no {name}")
        raise explain_overtaken(ctx, f"not deployed, although the CDK CLI succeeded: {', '.join(states)}")


def explain_overtaken(ctx: DeploymentContext, message: str) -> CommandFailed:
    hint = (
        f"Wait until no other deployment runs, look at `lakeferry plan --stage {ctx.stage}`, then deploy "
        "again"
    )
    return CommandFailed("DEPLOY-OVERTAKEN", message, hint)


def names_another_deployment(lines: Iterable[str]) -> bool:
    """Return whether the output of the CDK CLI says that another deployment works on a stack."""
    return any(_OTHERS.search(line) for line in lines)


def _await_end(ctx: DeploymentContext, report: Reporter, meanwhile: Callable[[], object]) -> dict[str, Stack]:
    """Return all stacks. Raises CommandFailed if one is still in progress after the limit."""
    until = ctx.clock.time() + _PATIENCE_SECONDS
    while True:
        deployed = stacks.read(ctx)
        busy = [f"{stack.name} is {stack.status}" for stack in deployed.values() if stack.is_in_progress]
        if not busy:
            return deployed
        if ctx.clock.time() >= until:
            raise CommandFailed("STACK-BUSY", ", ".join(busy))
        report(f"waiting for another deployment: {', '.join(busy)}")
        ctx.clock.sleep(_POLL_SECONDS)
        meanwhile()
