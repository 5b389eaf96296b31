"""`lakeferry plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CHANGES, CommandFailed
from lakeferry.output import find_program_name

#: Keys of the JSON document of a plan; `deploy` returns them too.
PLANNED: Final = {
    "stage": "The deployment stage.",
    "account": 'The AWS account; "" if nobody is logged in, so that nothing could be compared (`plan` only).',
    "region": "The AWS region.",
    "changes": (
        "Each resource to change: stack, system (AWS, Confluent, Snowflake), type, logical_id, name, "
        "action (create, update, replace, recreate, delete, retain), why (property is a path; before, "
        "after, effect, caused_by, conditional), data_loss (what is deleted with the old object)."
    ),
    "losses": "The changes that delete data, without refused ones.",
    "statements": "Each edited Flink statement: name, outcome (edited in place, refused, dropped and read "
    "again), reason (of a refusal), reading (its table and what reads it), diff (lines).",
    "adopted": "The names of objects that the file adopts, and that are taken over if they exist.",
    "refused": (
        "Each change that CloudFormation or Confluent can't make: resource, reason. If there is one, "
        "nothing is deployed."
    ),
    "not_checked": "Sentences about what a vendor could refuse, and could not be asked.",
    "permissions": "Each resource with policy statements to change: stack, logical_id, type, added, "
    "removed, broadens.",
    "settings": "Outputs, tags and protection of stacks to change: stack, what, before, after.",
    "busy": "Stacks that another deployment is just changing, so that the plan may be out of date.",
    "removed_from_file": "Deployed stacks that the deployment file no longer has; they are kept.",
    "phases": (
        "The expected duration of each stack: low and high in minutes, last (duration of the last "
        "deployment) in seconds."
    ),
    "cost": "The estimated monthly cost: currency, low, high.",
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
    check: Annotated[bool, typer.Option("--check", help="Exit with code 4 if there are changes.")] = False,
) -> Mapping[str, Any]:
    """Show what deploying would create, update, replace and delete in AWS, Confluent Cloud and Snowflake, and
    why.
    """
    from lakeferry.deployment.cdk import open_templates
    from lakeferry.deployment.context import open_judged_context
    from lakeferry.plan import build, render

    output = call.output
    with open_judged_context(call.stage) as ctx, open_templates(ctx) as cdk:
        is_compared = check or ctx.has_credentials
        if is_compared:
            _ = ctx.account  # fails before the synthesis if nobody is logged in, or the login has expired
        with output.step(f"Planning {ctx.deployment.prefix}") as report:
            build.synthesize(cdk, report)
            changes = build.build_plan(ctx, cdk, report) if is_compared else build.build_first_plan(ctx, cdk)
        render.show(output, changes)
        document = {"stage": ctx.stage, **render.build_document(changes)}
        if check and not changes.is_empty:
            hint = (
                "; ".join(map(str, changes.refusals))
                or f"Review it, then `lakeferry deploy --stage {ctx.stage}`"
            )
            raise CommandFailed("PLAN-CHANGES", render.summarize(changes), hint, document)
        if not changes.is_empty and not changes.refusals:
            output.print(f"Next: {find_program_name()} deploy --stage {ctx.stage}")
        return document
