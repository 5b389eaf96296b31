"""`lakeferry deploy`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from config.deployments import validation
from lakeferry.deploy import checks, failure_causes, outcome, summary, waiting
from lakeferry.deploy.progress import Progress
from lakeferry.deployment import cdk as cdk_cli
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.deployment.context import DeploymentContext, open_judged_context
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health import drift
from lakeferry.health.drift import Drift
from lakeferry.inventory import Verdict
from lakeferry.inventory.known import require_same_tenants
from lakeferry.local import lock, target
from lakeferry.output import Output, format_duration
from lakeferry.plan import build, render
from lakeferry.plan.render import Plan
from lambdas.shared.errors import Denied

_LAST_LINES: Final = 6
_YES: Final = ("y", "yes")


def run_deploy(output: Output, stage: str, *, yes: bool, repair: bool = False) -> dict[str, Any]:
    """Synthesise and deploy a stage. With `repair`, objects that are missing at Confluent or Snowflake are
    created again.

    Raises CommandFailed if a prerequisite is missing, the user doesn't confirm, or the deployment fails.
    """
    with _lock_stage(stage), open_judged_context(stage) as ctx:
        with output.step("Checking prerequisites"):
            checks.require(ctx)
            require_tenants(ctx)
        log = target.STATE / f"deploy-{stage}.log"
        log.write_text("", encoding="utf-8")
        with cdk_cli.open_templates(ctx, log) as cdk:
            with output.step(f"Planning {ctx.deployment.prefix}") as report:
                repairs = to_repair(output, ctx) if repair else ""
                build.synthesize(cdk, report, repair=repairs)
            document = deploy(output, ctx, cdk, yes=yes)
        if repairs:
            verify_repair(output, ctx)
        return document


def _lock_stage(stage: str) -> AbstractContextManager[None]:
    """Keep a second deployment of the stage in this clone away. Raises CommandFailed."""

    def name_process(process: str) -> CommandFailed:
        return CommandFailed("STACK-BUSY", f"process {process} is deploying stage {stage} in this clone")

    if not validation.is_stage(stage):  # no name of a file; the caller reports it
        return nullcontext()
    return lock.hold_lock(target.STATE / f"deploy-{stage}.lock", name_process)


def require_tenants(ctx: DeploymentContext) -> None:
    """Raise LakeferryError if a login is of another organization or account than the objects.

    Raises CommandFailed if the stacks can't be read. Who deploys may not be allowed to read keys and states.
    The functions are, and each refuses such a login too, only later.
    """
    with translate_aws_errors("reading the stacks"):
        described = [stacks.describe(ctx, name, with_resources=True) for name in ctx.stacks]
    for stack in described:
        if stack and stack.is_active:
            with suppress(Denied, CommandFailed):  # `checks` has reported keys that are missing or wrong
                require_same_tenants(ctx, [stack])


def deploy(output: Output, ctx: DeploymentContext, cdk: Cdk, *, yes: bool) -> dict[str, Any]:
    """Deploy synthesised templates and return the command's JSON document. Raises CommandFailed."""
    with output.step("Comparing with the deployed stacks") as report:
        plan = build.build_plan(ctx, cdk, report)
    render.show(output, plan)
    if plan.refusals:
        raise CommandFailed(
            "DEPLOY-REFUSED", "; ".join(map(str, plan.refusals)), details=render.build_document(plan)
        )
    began = time.monotonic()
    if not plan.is_empty:
        _require_confirmed(output, ctx, plan, yes=yes)
    checks.require_idle(ctx)
    if not plan.is_empty:
        _run(output, ctx, cdk, plan)
    outputs = summary.stack_outputs(stacks.read(ctx).values())
    seconds = time.monotonic() - began
    sentence = f"Deployed {ctx.deployment.prefix} in {format_duration(seconds)}"
    output.print("\nNothing to deploy" if plan.is_empty else f"\n{sentence}")
    commands = summary.show(output, ctx, outputs, plan.cost, is_first=not plan.deployed)
    return {
        "stage": ctx.stage,
        **render.build_document(plan),
        "seconds": round(seconds, 1),
        "outputs": [attrs.asdict(output_) for output_ in outputs],
        "next": commands,
    }


def to_repair(output: Output, ctx: DeploymentContext) -> str:
    """Return the context value `repair`, "" if no object is missing. Before that, say what a repair doesn't
    bring back.

    Raises CommandFailed if an object can't be seen, because it may be there, or if one can't be repaired.
    """
    missing = drift.find_missing(ctx)
    repairable = [difference for difference in missing if difference.stack]
    others = [difference for difference in missing if not difference.stack]
    unknown = [difference for difference in others if difference.status == Verdict.UNKNOWN]
    if unknown:
        names = (
            f"{difference.system} {difference.type} {difference.name}".rstrip() for difference in unknown
        )
        listed = [f"{name}: {difference.details}" for name, difference in zip(names, unknown, strict=True)]
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {'; '.join(listed)}")
    if others:
        raise CommandFailed(
            "REPAIR-REFUSED",
            _list_states(others),
            details=[attrs.asdict(difference) for difference in others],
        )
    if not repairable:
        output.info("No object is missing at Confluent or Snowflake")
    for difference in repairable:
        what = f"{difference.system} {difference.type} {difference.name} of {difference.stack}"
        output.print(f"{difference.status}: {what}: {difference.details}")
    return repair_of(ctx, repairable)


def verify_repair(output: Output, ctx: DeploymentContext) -> None:
    """Raises CommandFailed if something is still missing: objects that hang on a repaired one may have gone
    with it.
    """
    with output.step("Verifying the repair"):
        still = drift.find_missing(ctx)
    if still:
        raise CommandFailed(
            "REPAIR-INCOMPLETE",
            _list_states(still),
            details=[attrs.asdict(difference) for difference in still],
        )


def _list_states(differences: Iterable[Drift]) -> str:
    reasons = []
    for difference in differences:
        what = f"{difference.system} {difference.type} {difference.name}"
        reasons.append(f"{what} is {difference.status}: {difference.details}")
    return "; ".join(reasons)


def repair_of(ctx: DeploymentContext, missing: Iterable[Drift]) -> str:
    """Return the CDK context value `repair`: the time, so that the value is new, and the resources whose
    object is missing.
    """
    names = ",".join(f"{drifted.stack}/{drifted.name}" for drifted in missing)
    return f"{ctx.clock.time():.0f}:{names}" if names else ""


def _require_confirmed(output: Output, ctx: DeploymentContext, plan: Plan, *, yes: bool) -> None:
    if yes:
        return
    if not output.can_prompt:
        raise CommandFailed(
            "DEPLOY-NOT-CONFIRMED",
            "confirmation is required, and the session is not interactive; nothing was changed",
        )
    if plan.broadened:
        output.print("\nBROADER PERMISSIONS:", alarm=True)
        render.show_permissions(output, plan.broadened)
    if plan.losses:
        output.print("\nPERMANENT DATA LOSS:", alarm=True)
        render.show_losses(output, plan)
    lost = f"\nThis permanently deletes the data listed above. Type the stage name ({ctx.stage}) to continue"
    question = (
        "\nApprove these permissions and deploy? Type yes" if plan.broadened else "\nDeploy this? Type yes"
    )
    answer = output.ask(lost if plan.losses else question).lower()
    if answer != ctx.stage if plan.losses else answer not in _YES:
        raise CommandFailed("STOPPED", "cancelled; nothing was changed", "Run the command again")


def _run(output: Output, ctx: DeploymentContext, cdk: Cdk, plan: Plan) -> None:
    phases = {phase.stack: phase for phase in plan.phases}
    with output.step("Preparing the stacks") as report:
        for stack in stacks.read(ctx).values():
            stacks.unprotect_failed_creation(ctx, stack)
            stacks.continue_rollback(ctx, stack, report)
    with translate_aws_errors("reading the stacks"):
        watch = stacks.EventWatch(ctx.client("cloudformation"), ctx.stacks)
    with output.step(f"Deploying {ctx.deployment.prefix}") as report:
        progress = Progress(ctx.stacks, phases, output.info, report, ctx.clock.time)
        try:
            cdk.deploy(lambda _: None, meanwhile=lambda: _show_new_events(watch, progress))
        except CliFailed as failed:
            _show_new_events(watch, progress)
            raise _explain_failure(output, ctx, progress, failed, cdk.log) from None
        except KeyboardInterrupt:
            _show_new_events(watch, progress)
            raise _explain_stopped(ctx, progress) from None
        _show_new_events(watch, progress)
        outcome.require_deployed(ctx, cdk.folder, report, lambda: _show_new_events(watch, progress))


def _show_new_events(watch: stacks.EventWatch, progress: Progress) -> None:
    """Show new events.

    A failure to read them is ignored: CDK still deploys, and the next call reads the same events.
    """
    try:
        progress.feed(watch.new())
    except (ClientError, BotoCoreError):
        return
    progress.tick()


def _explain_failure(
    output: Output, ctx: DeploymentContext, progress: Progress, failed: CliFailed, log: Path
) -> CommandFailed:
    states = {stack.name: stack.status for stack in stacks.read(ctx).values()}
    cause = failure_causes.find(progress.seen)
    event = failure_causes.find_first(progress.seen)
    if cause and event:
        cause = waiting.explain(ctx, cause, event)
    details = {
        "cause": attrs.asdict(cause) if cause else None,
        "states": states,
        "log": target.shorten_path(log),
    }
    for name, status in states.items():
        if name in progress.known:
            output.print(f"{name}: {failure_causes.describe_state(name, status)}")
    if cause is None and outcome.names_another_deployment(failed.lines):
        busy = (
            ", ".join(
                f"{name} is {status}" for name, status in states.items() if status.endswith("_IN_PROGRESS")
            )
            or "they ended"
        )
        raise outcome.explain_overtaken(ctx, f"another deployment works on the same stacks: {busy}")
    if cause is None:
        last = "\n".join(line.strip() for line in failed.lines[-_LAST_LINES:])
        hint = f"Read {target.shorten_path(log)}, then run the same command again"
        return CommandFailed("DEPLOY-FAILED", f"the CDK CLI failed:\n{last}", hint, details)
    more = f" More: `lakeferry explain {cause.code}`." if cause.code else ""
    hint = f"{cause.fix}{more} Then run the same command again: it continues"
    return CommandFailed("DEPLOY-FAILED", str(cause), hint, details, why=cause.why)


def _explain_stopped(ctx: DeploymentContext, progress: Progress) -> CommandFailed:
    busy = progress.under_way
    state = f"CloudFormation is still working on {', '.join(busy)}" if busy else "no stack was in progress"
    hint = (
        f"`lakeferry status --stage {ctx.stage}` shows its state; `lakeferry deploy --stage {ctx.stage}` "
        "later completes it"
    )
    return CommandFailed("DEPLOY-STOPPED", f"interrupted; {state}", hint, {"under_way": busy})
