"""`lakeferry plan`."""

from __future__ import annotations

from typing import Any

from lakeferry.deployment import cdk_runs
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, command
from lakeferry.plan import build as taking
from lakeferry.plan import render as telling


def told(output: Output, stage: str, *, check: bool) -> dict[str, Any]:
    """Raises CommandFailed; with `check` also where anything would change."""
    with open_context(stage) as ctx, cdk_runs.templates_of(ctx) as cdk:
        _ = ctx.account  # who isn't logged in need not wait for the templates
        with output.step(f"Planning {ctx.deployment.prefix}") as report:
            taking.synthesised(cdk, report)
            plan = taking.take(ctx, cdk, report)
        return _told(output, ctx, plan, check=check)


def _told(output: Output, ctx: DeploymentContext, plan: telling.Plan, *, check: bool) -> dict[str, Any]:
    telling.show(output, plan)
    document = {"stage": ctx.stage, **telling.document(plan)}
    if check and not plan.is_empty:
        hint = f"Look at it, then `lakeferry deploy --stage {ctx.stage}`"
        raise CommandFailed("PLAN-CHANGES", telling.summary(plan), hint, document)
    if not plan.is_empty:
        output.print(f"Next: {command()} deploy --stage {ctx.stage}")
    return document
