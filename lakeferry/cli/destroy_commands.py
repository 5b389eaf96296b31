"""`lakeferry destroy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakeferry import inventory
from lakeferry.cli import inventory_commands
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.errors import CommandFailed
from lakeferry.inventory import ORPHAN, Item, destroy, stacks
from lakeferry.inventory.destroy import Planned
from lakeferry.output import Output


def told(output: Output, stage: str, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    """`confirmed` is the stage's name once more. Raises CommandFailed where nothing may be removed, or something is left."""
    with open_context(stage) as ctx:
        return run(output, ctx, confirmed=confirmed, plan_only=plan_only)


def run(output: Output, ctx: DeploymentContext, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    with output.step(f"Looking for what there is of {ctx.deployment.prefix}"):
        planned = destroy.plan(ctx, inventory.take(ctx))
    show(output, ctx, planned)
    about = {"stage": ctx.stage, "account": ctx.account, "region": ctx.region}
    if plan_only:
        goes, stays = (inventory_commands.documents(part) for part in (planned.goes, planned.stays))
        return {**about, "goes": goes, "stays": stays, "stacks": {}, "removed": [], "items": []}
    destroy.require_possible(ctx, planned)
    _require_confirmed(output, ctx, confirmed)
    try:
        with output.step(f"Destroying {ctx.deployment.prefix}") as report:
            done = destroy.destroy(ctx, planned, say=output.info, report=report)
    except KeyboardInterrupt:
        raise _stopped(ctx) from None
    for reason in done.reasons:
        output.print(f"  {reason}")
    inventory_commands.show(output, ctx, done.items)
    left, removed = inventory_commands.documents(done.items), inventory_commands.documents(done.removed)
    document = {**about, "goes": [], "stays": [], "stacks": done.seconds, "removed": removed, "items": left}
    inventory_commands.require_nothing_left(done.items, {**document, "reasons": done.reasons})
    output.print(f"Nothing is left of {ctx.deployment.prefix} but what is listed above with its reason")
    return document


def show(output: Output, ctx: DeploymentContext, planned: Planned) -> None:
    """Everything by name, by stack and kind: what isn't listed isn't removed."""
    where = f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}"
    goes = f"To delete, in this order, {len(planned.goes)} of {where}:"
    output.print(goes if planned.goes else f"Nothing to delete of {where}")
    for number, (owner, items) in enumerate(groupby(planned.goes, key=lambda item: item.whose), start=1):
        output.print(f"{number}. {'in no stack' if owner == ORPHAN else f'stack {owner}'}")
        for line in _counted(item for item in items if item.kind != stacks.KIND):
            output.print(f"     {line}")
    if planned.stays:
        output.print("To stay:")
        rows = [inventory_commands.row(item) for item in planned.stays]
        output.table(["world", "kind", "name", "why"], [[*row[:3], row[5]] for row in rows])
    if planned.differing:
        does = "delete" if ctx.deployment.keeps_data else "keep"
        output.warn(f'The stacks were deployed with on_destroy = "{does}"; deployments/{ctx.stage}.toml says otherwise')


def _counted(items: Iterable[Item]) -> Iterator[str]:
    """One line for each kind, with all names."""
    for (world, kind), same in groupby(items, key=lambda item: (item.world, item.kind)):
        names = [inventory_commands.row(item)[2] for item in same]
        yield f"{len(names)} {world} {kind}: {', '.join(names)}"


def _require_confirmed(output: Output, ctx: DeploymentContext, confirmed: str | None) -> None:
    if confirmed is None and output.can_prompt:
        confirmed = output.ask(f"This can't be undone. Type the stage's name, {ctx.stage}, to destroy {ctx.deployment.prefix}")
        if confirmed != ctx.stage:
            raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")
    if confirmed != ctx.stage:
        told = "no stage was named" if confirmed is None else f"{confirmed!r} is not the stage that would be destroyed"
        hint = f"Name the stage: `lakeferry destroy --stage {ctx.stage} --confirm {ctx.stage}`; `--plan` lists what would go"
        raise CommandFailed("NOT-CONFIRMED", told, hint)


def _stopped(ctx: DeploymentContext) -> CommandFailed:
    """CloudFormation goes on with a deletion that it was asked for."""
    try:
        under_way = [name for name in stacks.names(ctx) if (one := stacks.one(ctx, name, resources=False)) and one.is_under_way]
        told = f"CloudFormation goes on deleting {', '.join(under_way)}" if under_way else "no stack is being deleted"
    except (ClientError, BotoCoreError):
        under_way, told = [], "whether CloudFormation goes on deleting is not known: AWS did not answer"
    hint = f"`lakeferry inventory --stage {ctx.stage}` lists what is there; `lakeferry destroy --stage {ctx.stage}` continues"
    message = f"stopped watching; {told}. What was deleted so far is gone"
    return CommandFailed("DESTROY-STOPPED", message, hint, {"under_way": under_way})
