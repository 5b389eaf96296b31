"""`lakeferry destroy`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lakeferry.cli import inventory
from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import BLOCKED, LATER, CommandFailed
from lakeferry.output import Output

if TYPE_CHECKING:
    from lakeferry.deployment.context import DeploymentContext
    from lakeferry.inventory import Item
    from lakeferry.inventory.destroy import Planned

#: Columns of a listing that is not for a terminal.
_WIDTH: Final = 120
_INDENT: Final = " " * 5
app: Final = command_group()


@command(
    app,
    stage=True,
    yes=True,
    exits=(LATER, BLOCKED),
    json_keys={
        "stage": "The deployment stage.",
        "account": "The AWS account.",
        "region": "The AWS region.",
        "to_delete": "With --plan: items to delete, in order, as in `inventory`.",
        "to_keep": "With --plan: items to keep, each with the reason.",
        "lost_tables": 'Topics whose tables Confluent stores, and deletes also with on_destroy = "keep".',
        "stacks": "For each stack, the duration of its deletion in seconds.",
        "removed": "Items outside of stacks that were deleted.",
        "items": "The inventory at the end.",
    },
)
def destroy(
    call: CommandContext,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only list what would be deleted and kept, and why.")
    ] = False,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="STAGE",
            help="Confirm with the stage's name instead of typing it when prompted. --yes doesn't confirm.",
        ),
    ] = None,
) -> Mapping[str, Any]:
    """Delete a whole deployment, including what aborted deployments left behind, then check that nothing is
    left.
    """
    from lakeferry.deployment.context import open_context

    if call.yes:
        hint = "Name the stage: `lakeferry destroy --confirm STAGE`"
        raise CommandFailed(
            "USAGE", "`lakeferry destroy` takes no --yes: it doesn't say what is destroyed", hint
        )
    with open_context(call.stage) as ctx:
        return run(call.output, ctx, confirmed=confirmed, plan_only=plan)


def run(output: Output, ctx: DeploymentContext, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    """Delete the deployment.

    `confirmed` is the stage's name. Raises CommandFailed if deleting is not allowed or incomplete.
    """
    from lakeferry.inventory import collect
    from lakeferry.inventory import destroy as core

    with output.step(f"Listing the objects of {ctx.deployment.prefix}"):
        planned = core.plan(ctx, collect(ctx))
    show(output, ctx, planned)
    about = {
        "stage": ctx.stage,
        "account": ctx.account,
        "region": ctx.region,
        "lost_tables": planned.lost_tables,
    }
    if plan_only:
        to_delete = inventory.build_documents(planned.to_delete)
        to_keep = inventory.build_documents(planned.to_keep)
        return {**about, "to_delete": to_delete, "to_keep": to_keep, "stacks": {}, "removed": [], "items": []}
    core.require_possible(ctx, planned)
    _require_confirmed(output, ctx, confirmed)
    try:
        with output.step(f"Destroying {ctx.deployment.prefix}") as report:
            destroyed = core.destroy(ctx, planned, say=output.info, report=report)
    except KeyboardInterrupt:
        raise _explain_stopped(ctx) from None
    except CommandFailed as failure:
        raise _explain_stopped(ctx, failure) from None
    for reason in destroyed.reasons:
        output.print(f"  {reason}")
    inventory.show(output, ctx, destroyed.items)
    remaining = inventory.build_documents(destroyed.items)
    removed = inventory.build_documents(destroyed.removed)
    document = {
        **about,
        "to_delete": [],
        "to_keep": [],
        "stacks": destroyed.seconds,
        "removed": removed,
        "items": remaining,
    }
    inventory.require_nothing_left(destroyed.items, {**document, "reasons": destroyed.reasons})
    output.print(
        f"Nothing is left of {ctx.deployment.prefix} except the objects listed above, each with its reason"
    )
    if ctx.deployment.snowflake:
        role = ctx.deployment.snowflake.role
        output.print(
            f"Snowflake shows role {role} only what it owns: an object that another role got would not be "
            "listed"
        )
    return document


def show(output: Output, ctx: DeploymentContext, planned: Planned) -> None:
    """List all objects by stack, kind and name. Objects that aren't listed aren't deleted."""
    from lakeferry.inventory import ORPHAN, STACK

    where = f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}"
    if planned.to_delete:
        output.print(f"{where}: {len(planned.to_delete)} to delete, in this order:")
    else:
        output.print(f"{where}: nothing to delete")
    for number, (owner, items) in enumerate(groupby(planned.to_delete, key=lambda item: item.owner), start=1):
        place = "outside of stacks" if owner == ORPHAN else f"stack {owner}"
        output.print(f"{number}. {place}")
        for line in _count_by_kind(item for item in items if item.kind != STACK):
            for part in _wrap_line(line, output.width or _WIDTH):
                output.print(part)
    if planned.to_keep:
        output.print("To keep:")
        rows = [inventory.build_row(item) for item in planned.to_keep]
        output.table(["system", "kind", "name", "why"], [[*row[:3], row[5]] for row in rows])
    if planned.lost_tables and ctx.deployment.keeps_data:
        output.print(
            'Confluent deletes the rows of the tables in its storage, also with on_destroy = "keep": '
            f"{', '.join(planned.lost_tables)}",
            alarm=True,
        )
    if planned.differing:
        does = "delete" if ctx.deployment.keeps_data else "keep"
        output.warn(
            f'The stacks were deployed with on_destroy = "{does}"; project/deployments/{ctx.stage}.toml '
            "says otherwise"
        )


def _count_by_kind(items: Iterable[Item]) -> Iterator[str]:
    """Yield one line for each kind of object, with the number and all names."""
    for (system, kind), same in groupby(items, key=lambda item: (item.system, item.kind)):
        names = [inventory.build_row(item)[2] for item in same]
        yield f"{len(names)} {system} {kind}: {', '.join(names)}"


def _wrap_line(line: str, width: int) -> list[str]:
    """Return the line in parts of this width. Names are never split."""
    return textwrap.wrap(
        line,
        width,
        initial_indent=_INDENT,
        subsequent_indent=f"{_INDENT}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _require_confirmed(output: Output, ctx: DeploymentContext, confirmed: str | None) -> None:
    if confirmed is None and output.can_prompt:
        confirmed = output.ask(
            f"This permanently deletes {ctx.deployment.prefix}. Type the stage name ({ctx.stage}) to continue"
        )
        if confirmed != ctx.stage:
            raise CommandFailed("STOPPED", "cancelled; nothing was changed", "Run the command again")
    if confirmed != ctx.stage:
        message = (
            "the stage was not confirmed"
            if confirmed is None
            else f"{confirmed!r} is not the stage to destroy"
        )
        hint = (
            f"`lakeferry destroy --stage {ctx.stage} --confirm {ctx.stage}` confirms; `--plan` lists what "
            "would be deleted"
        )
        raise CommandFailed("NOT-CONFIRMED", message, hint)


def _explain_stopped(ctx: DeploymentContext, failure: CommandFailed | None = None) -> CommandFailed:
    """Return an error that names the stacks that are still being deleted.

    Without a `failure`, the user pressed Ctrl-C.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from lakeferry.deployment.stacks import describe, list_names

    try:
        under_way = [
            name for name in list_names(ctx) if (stack := describe(ctx, name)) and stack.is_in_progress
        ]
        state = "no stack is being deleted"
        if under_way:
            state = f"CloudFormation is still deleting {', '.join(under_way)}"
    except (ClientError, BotoCoreError):
        under_way = []
        state = "whether CloudFormation is still deleting is unknown: AWS did not answer"
    hint = (
        f"`lakeferry inventory --stage {ctx.stage}` lists what exists; `lakeferry destroy --stage "
        f"{ctx.stage}` continues"
    )
    what = failure.message if failure else "interrupted"
    message = f"{what}; {state}. What was deleted so far is gone"
    if failure is None:
        return CommandFailed("DESTROY-STOPPED", message, hint, {"under_way": under_way})
    hint = f"{failure.hint.rstrip('.')}. {hint}"
    return CommandFailed(
        failure.code, message, hint, {"under_way": under_way}, why=failure.why, trace=failure.trace
    )
