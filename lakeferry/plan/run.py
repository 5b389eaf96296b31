"""`lakeferry plan`."""

from __future__ import annotations

from typing import Any

from lakeferry.cli.output import CommandFailed, Voice, command
from lakeferry.deployment import cdk_runs
from lakeferry.deployment import context as ground
from lakeferry.deployment.context import Ground
from lakeferry.plan import build as taking
from lakeferry.plan import render as telling


def told(voice: Voice, stage: str, *, check: bool) -> dict[str, Any]:
    """Raises CommandFailed; with `check` also where anything would change."""
    with ground.of(stage) as here, cdk_runs.templates_of(here) as cdk:
        _ = here.account  # who isn't logged in need not wait for the templates
        with voice.step(f"Planning {here.deployment.prefix}") as tell:
            taking.synthesised(cdk, tell)
            plan = taking.take(here, cdk, tell)
        return _told(voice, here, plan, check=check)


def _told(voice: Voice, here: Ground, plan: telling.Plan, *, check: bool) -> dict[str, Any]:
    telling.show(voice, plan)
    document = {"stage": here.stage, **telling.document(plan)}
    if check and not plan.is_empty:
        hint = f"Look at it, then `lakeferry deploy --stage {here.stage}`"
        raise CommandFailed("PLAN-CHANGES", telling.summary(plan), hint, document)
    if not plan.is_empty:
        voice.result(f"Next: {command()} deploy --stage {here.stage}")
    return document
