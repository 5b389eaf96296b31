"""`lakeferry plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CHANGES, CommandFailed
from lakeferry.output import program_name

#: The keys of a plan; `deploy` has them too.
PLANNED: Final = {
    "stage": "The deployment stage.",
    "account": "The AWS account.",
    "region": "The AWS region.",
    "changes": "Each resource that would change: stack, world (AWS, Confluent, Snowflake), what, logical_id, name, action, "
    "why (property is a path; before, after, does, follows, perhaps) and what the old object takes along (loses).",
    "losses": "Those of these that lose something.",
    "permissions": "Each resource whose policy statements would change: stack, logical_id, type, added, removed, broadens.",
    "settings": "Outputs, tags and protection of stacks that would change: stack, what, before, after.",
    "unwanted": "Deployed stacks that the file no longer has; they stay.",
    "phases": "Each stack: minutes from low to high, and seconds of the last deployment.",
    "cost": "What it costs a month while it is deployed: currency, low, high.",
}
app: Final = command_group()


@command(
    app,
    stage=True,
    exits=(CHANGES,),
    json_keys=PLANNED,
)
def plan(
    call: CommandContext,
    *,
    check: Annotated[bool, typer.Option("--check", help="End with exit code 4 if anything would change.")] = False,
) -> Mapping[str, Any]:
    """Show what a deployment would create, change, replace and delete in AWS, Confluent Cloud and Snowflake, and why."""
    from lakeferry.deployment.cdk import templates_of
    from lakeferry.deployment.context import open_context
    from lakeferry.plan import build, render

    output = call.output
    with open_context(call.stage) as ctx, templates_of(ctx) as cdk:
        _ = ctx.account  # fails before the synthesis if nobody is logged in
        with output.step(f"Planning {ctx.deployment.prefix}") as report:
            build.synthesize(cdk, report)
            changes = build.build_plan(ctx, cdk, report)
        render.show(output, changes)
        document = {"stage": ctx.stage, **render.document(changes)}
        if check and not changes.is_empty:
            hint = f"Review it, then run `lakeferry deploy --stage {ctx.stage}`"
            raise CommandFailed("PLAN-CHANGES", render.summary(changes), hint, document)
        if not changes.is_empty:
            output.print(f"Next: {program_name()} deploy --stage {ctx.stage}")
        return document
