"""`lakeferry destroy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lakeferry.cli import inventory
from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import KEPT_BACK, LATER, CommandFailed
from lakeferry.output import Output

if TYPE_CHECKING:
    from lakeferry.deployment.context import DeploymentContext
    from lakeferry.inventory import Item
    from lakeferry.inventory.destroy import Planned

app: Final = command_group()


@command(
    app,
    stage=True,
    yes=True,
    exits=(LATER, KEPT_BACK),
    json_keys={
        "stage": "The deployment stage.",
        "account": "The AWS account.",
        "region": "The AWS region.",
        "goes": "With --plan: what would be deleted, in order, with the keys of `inventory`.",
        "stays": "With --plan: what would stay, each with why.",
        "stacks": "How many seconds the deletion of each stack took.",
        "removed": "What was deleted outside of the stacks.",
        "items": "The inventory at the end.",
    },
)
def destroy(
    call: CommandContext,
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Only list what would be deleted and what would stay, and why.")] = False,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="STAGE",
            help="The stage's name once more, instead of typing it at the prompt. --yes doesn't confirm.",
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Delete a whole deployment in order, with leftovers of aborted deployments, and check that nothing is left."""
    from lakeferry.deployment.context import open_context

    if call.yes:
        hint = "Name the stage: `lakeferry destroy --confirm STAGE`"
        raise CommandFailed("USAGE", "`lakeferry destroy` takes no --yes: it doesn't say what is destroyed", hint)
    with open_context(call.stage) as ctx:
        return run(call.output, ctx, confirmed=confirmed, plan_only=plan)


def run(output: Output, ctx: DeploymentContext, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    """Destroy a deployment. Raises CommandFailed if it may not be destroyed, or something is left."""
    from lakeferry.inventory import destroy as core
    from lakeferry.inventory import take

    with output.step(f"Listing {ctx.deployment.prefix}"):
        planned = core.plan(ctx, take(ctx))
    show(output, ctx, planned)
    about = {"stage": ctx.stage, "account": ctx.account, "region": ctx.region}
    if plan_only:
        goes, stays = (inventory.documents(part) for part in (planned.goes, planned.stays))
        return {**about, "goes": goes, "stays": stays, "stacks": {}, "removed": [], "items": []}
    core.require_possible(ctx, planned)
    _require_confirmed(output, ctx, confirmed)
    try:
        with output.step(f"Destroying {ctx.deployment.prefix}") as report:
            done = core.destroy(ctx, planned, say=output.info, report=report)
    except KeyboardInterrupt:
        raise _interrupted(ctx) from None
    for reason in done.reasons:
        output.print(f"  {reason}")
    inventory.show(output, ctx, done.items)
    left, removed = inventory.documents(done.items), inventory.documents(done.removed)
    document = {**about, "goes": [], "stays": [], "stacks": done.seconds, "removed": removed, "items": left}
    inventory.require_nothing_left(done.items, {**document, "reasons": done.reasons})
    output.print(f"Nothing is left of {ctx.deployment.prefix} but what is listed above with its reason")
    return document


def show(output: Output, ctx: DeploymentContext, planned: Planned) -> None:
    """List everything by name, stack and kind: what isn't listed isn't removed."""
    from lakeferry.inventory import ORPHAN, STACK

    where = f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}"
    goes = f"To delete, in this order, {len(planned.goes)} of {where}:"
    output.print(goes if planned.goes else f"Nothing to delete of {where}")
    for number, (owner, items) in enumerate(groupby(planned.goes, key=lambda item: item.whose), start=1):
        output.print(f"{number}. {'in no stack' if owner == ORPHAN else f'stack {owner}'}")
        for line in _counted(item for item in items if item.kind != STACK):
            output.print(f"     {line}")
    if planned.stays:
        output.print("To stay:")
        rows = [inventory.row(item) for item in planned.stays]
        output.table(["world", "kind", "name", "why"], [[*row[:3], row[5]] for row in rows])
    if planned.differing:
        does = "delete" if ctx.deployment.keeps_data else "keep"
        output.warn(f'The stacks were deployed with on_destroy = "{does}"; deployments/{ctx.stage}.toml says otherwise')


def _counted(items: Iterable[Item]) -> Iterator[str]:
    """One line for each kind, with all names."""
    for (world, kind), same in groupby(items, key=lambda item: (item.world, item.kind)):
        names = [inventory.row(item)[2] for item in same]
        yield f"{len(names)} {world} {kind}: {', '.join(names)}"


def _require_confirmed(output: Output, ctx: DeploymentContext, confirmed: str | None) -> None:
    if confirmed is None and output.can_prompt:
        confirmed = output.ask(f"This can't be undone. Type the stage's name, {ctx.stage}, to destroy {ctx.deployment.prefix}")
        if confirmed != ctx.stage:
            raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")
    if confirmed != ctx.stage:
        message = "no stage was named" if confirmed is None else f"{confirmed!r} is not the stage that would be destroyed"
        hint = f"Name the stage: `lakeferry destroy --stage {ctx.stage} --confirm {ctx.stage}`; `--plan` lists what would go"
        raise CommandFailed("NOT-CONFIRMED", message, hint)


def _interrupted(ctx: DeploymentContext) -> CommandFailed:
    """Return the error for Ctrl-C: CloudFormation continues the deletions that it has started."""
    from botocore.exceptions import BotoCoreError, ClientError

    from lakeferry.deployment.stacks import describe, names

    try:
        in_progress = [name for name in names(ctx) if (stack := describe(ctx, name)) and stack.is_in_progress]
        progress = f"CloudFormation continues to delete {', '.join(in_progress)}" if in_progress else "no stack is being deleted"
    except (ClientError, BotoCoreError):
        in_progress, progress = [], "whether CloudFormation continues is not known: AWS did not answer"
    hint = f"`lakeferry inventory --stage {ctx.stage}` lists what exists; `lakeferry destroy --stage {ctx.stage}` continues"
    message = f"interrupted; {progress}. What was deleted so far stays deleted"
    return CommandFailed("DESTROY-STOPPED", message, hint, {"under_way": in_progress})
