"""`lakeferry deploy`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deploy import checks, failure_causes, summary
from lakeferry.deploy.progress import Progress
from lakeferry.deployment import cdk as cdk_line
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health import drift
from lakeferry.health.drift import Drift
from lakeferry.inventory import Verdict
from lakeferry.local import target
from lakeferry.output import Output, format_duration
from lakeferry.plan import build, render
from lakeferry.plan.render import Plan

_LOG: Final = target.STATE / "deploy.log"
_LAST_LINES: Final = 6
_YES: Final = ("y", "yes")


def run_deploy(output: Output, stage: str, *, yes: bool, repair: bool = False) -> dict[str, Any]:
    """`repair` also creates objects again that are missing at the vendors.

    Raises CommandFailed where something is missing, nobody agrees, or it fails.
    """
    with open_context(stage) as ctx:
        with output.step("Looking whether everything is there"):
            checks.require(ctx)
        _LOG.parent.mkdir(exist_ok=True)
        _LOG.write_text("", encoding="utf-8")
        with cdk_line.templates_of(ctx, _LOG) as cdk:
            with output.step(f"Planning {ctx.deployment.prefix}") as report:
                build.synthesize(cdk, report, repair=_to_repair(output, ctx) if repair else "")
            return deploy(output, ctx, cdk, yes=yes)


def deploy(output: Output, ctx: DeploymentContext, cdk: Cdk, *, yes: bool) -> dict[str, Any]:
    """Of templates that are synthesised. Raises CommandFailed."""
    with output.step("Comparing with what is deployed") as report:
        plan = build.build_plan(ctx, cdk, report)
    render.show(output, plan)
    began = time.monotonic()
    if not plan.is_empty:
        _require_agreed(output, ctx, plan, yes=yes)
        _run(output, ctx, cdk, plan)
    standing = stacks.read(ctx).values()
    seconds = time.monotonic() - began
    output.print(
        f"\nDeployed {ctx.deployment.prefix} in {format_duration(seconds)}" if not plan.is_empty else "\nNothing was to do"
    )
    exist = summary.stack_outputs(standing)
    commands = summary.show(output, ctx, exist, plan.cost, is_first=not plan.deployed)
    return {
        "stage": ctx.stage,
        **render.document(plan),
        "seconds": round(seconds, 1),
        "exists": [attrs.asdict(thing) for thing in exist],
        "next": commands,
    }


def _to_repair(output: Output, ctx: DeploymentContext) -> str:
    """Raises CommandFailed where a vendor can't be asked: what is missing there would not be known."""
    found = drift.missing(ctx)
    if unasked := [one for one in found if one.how == Verdict.UNKNOWN]:
        unlisted = "; ".join(f"{one.world} {one.what}: {one.detail}".replace(" : ", ": ") for one in unasked)
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {unlisted}")
    for one in found:
        output.info(f"missing: {one.world} {one.what} {one.name}")
    if not found:
        output.info("No object is missing at Confluent or Snowflake")
    return repair_of(ctx, found)


def repair_of(ctx: DeploymentContext, missing: Iterable[Drift]) -> str:
    """As the app takes it: a value that no deployment before had, and the resources whose object is missing."""
    names = ",".join(f"{one.stack}/{one.name}" for one in missing)
    return f"{ctx.clock.time():.0f}:{names}" if names else ""


def _require_agreed(output: Output, ctx: DeploymentContext, plan: Plan, *, yes: bool) -> None:
    if yes:
        return
    if not output.can_prompt:
        raise CommandFailed(
            "DEPLOY-NOT-CONFIRMED", "confirmation is required, and the session is not interactive; nothing was changed"
        )
    if plan.broadened:
        output.print("\nMORE WOULD BE ALLOWED:", alarm=True)
        render.show_permissions(output, plan.broadened)
    if plan.losses:
        output.print("\nLOST FOR GOOD:", alarm=True)
        render.show_losses(output, plan)
    lost = f"\nType the stage's name, {ctx.stage}, to lose this and go on"
    question = "\nApprove these permissions and deploy? Type yes" if plan.broadened else "\nDeploy this? Type yes"
    answer = output.ask(lost if plan.losses else question).lower()
    if answer != ctx.stage if plan.losses else answer not in _YES:
        raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")


def _run(output: Output, ctx: DeploymentContext, cdk: Cdk, plan: Plan) -> None:
    phases = {phase.stack: phase for phase in plan.phases}
    with translate_aws_errors("asking for the stacks"):
        watch = stacks.EventWatch(ctx.client("cloudformation"), ctx.stacks)
    with output.step(f"Deploying {ctx.deployment.prefix}") as report:
        progress = Progress(ctx.stacks, phases, output.info, report, ctx.clock.time)
        try:
            cdk.deploy(lambda _: None, meanwhile=lambda: _look(watch, progress))
        except CliFailed as failed:
            _look(watch, progress)
            raise _failure(output, ctx, progress, failed, cdk.log) from None
        except KeyboardInterrupt:
            _look(watch, progress)
            raise _stopped(ctx, progress) from None
        _look(watch, progress)


def _look(watch: stacks.EventWatch, progress: Progress) -> None:
    """What can't be seen now is seen the next time: it is CDK that deploys."""
    try:
        progress.feed(watch.new())
    except (ClientError, BotoCoreError):
        return
    progress.tick()


def _failure(output: Output, ctx: DeploymentContext, progress: Progress, failed: CliFailed, log: Path) -> CommandFailed:
    states = {stack.name: stack.status for stack in stacks.read(ctx).values()}
    cause = failure_causes.find(progress.seen)
    details = {"cause": attrs.asdict(cause) if cause else None, "states": states, "log": target.relative(log)}
    for name, status in states.items():
        if name in progress.known:
            output.print(f"{name}: {failure_causes.state(name, status)}")
    if cause is None:
        last = "\n".join(line.strip() for line in failed.lines[-_LAST_LINES:])
        hint = f"Look at {target.relative(log)}, then run the same command again"
        return CommandFailed("DEPLOY-FAILED", f"CDK's command line failed:\n{last}", hint, details)
    more = f" More: `lakeferry explain {cause.code}`." if cause.code else ""
    hint = f"{cause.fix}{more} Then run the same command again: it carries on"
    return CommandFailed("DEPLOY-FAILED", str(cause), hint, details, why=cause.why)


def _stopped(ctx: DeploymentContext, progress: Progress) -> CommandFailed:
    going = progress.under_way
    going_on = f"CloudFormation goes on with {', '.join(going)}" if going else "no stack was under way"
    hint = f"`lakeferry status --stage {ctx.stage}` looks; `lakeferry deploy --stage {ctx.stage}` later does the rest"
    return CommandFailed("DEPLOY-STOPPED", f"stopped watching; {going_on}", hint, {"under_way": going})
