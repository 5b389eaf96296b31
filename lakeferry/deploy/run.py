"""`lakeferry deploy`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.deploy import checks as preflight
from lakeferry.deploy import events
from lakeferry.deploy import failure_causes as causes
from lakeferry.deploy import summary as ending
from lakeferry.deploy.progress import Progress
from lakeferry.deployment import cdk_runs
from lakeferry.deployment import context as ground
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.cdk_runs import Cdk, CliFailed
from lakeferry.deployment.context import Ground, aws_told
from lakeferry.health import drift
from lakeferry.inventory import Verdict
from lakeferry.local import target as world
from lakeferry.plan import build as taking
from lakeferry.plan import render as telling
from lakeferry.plan.durations import spoken
from lakeferry.plan.render import Plan

Tell = Callable[[str], object]
_LOG: Final = world.STATE / "deploy.log"
_LAST_LINES: Final = 6
_YES: Final = ("y", "yes")


def told(voice: Voice, stage: str, *, yes: bool, repair: bool = False) -> dict[str, Any]:
    """`repair` also creates objects again that are missing at the vendors.

    Raises CommandFailed where something is missing, nobody agrees, or it fails.
    """
    with ground.of(stage) as here:
        with voice.step("Looking whether everything is there"):
            preflight.require(here)
        _LOG.parent.mkdir(exist_ok=True)
        _LOG.write_text("", encoding="utf-8")
        with cdk_runs.templates_of(here, _LOG) as cdk:
            with voice.step(f"Planning {here.deployment.prefix}") as tell:
                taking.synthesised(cdk, tell, repair=_to_repair(voice, here) if repair else "")
            return deploy(voice, here, cdk, yes=yes)


def deploy(voice: Voice, here: Ground, cdk: Cdk, *, yes: bool) -> dict[str, Any]:
    """Of templates that are synthesised. Raises CommandFailed."""
    with voice.step("Comparing with what is deployed") as tell:
        plan = taking.take(here, cdk, tell)
    telling.show(voice, plan)
    began = time.monotonic()
    if not plan.is_empty:
        _require_agreed(voice, here, plan, yes=yes)
        _run(voice, here, cdk, plan)
    standing = deployed.read(here).values()
    seconds = time.monotonic() - began
    voice.result(f"\nDeployed {here.deployment.prefix} in {spoken(seconds)}" if not plan.is_empty else "\nNothing was to do")
    exist = ending.things(standing)
    commands = ending.show(voice, here, exist, plan.cost, is_first=not plan.standing)
    return {
        "stage": here.stage,
        **telling.document(plan),
        "seconds": round(seconds, 1),
        "exists": [attrs.asdict(thing) for thing in exist],
        "next": commands,
    }


def _to_repair(voice: Voice, here: Ground) -> str:
    """Raises CommandFailed where a vendor can't be asked: what is missing there would not be known."""
    found = drift.missing(here)
    if unasked := [one for one in found if one.how == Verdict.NOT_ASKED]:
        told = "; ".join(f"{one.world} {one.what}: {one.detail}".replace(" : ", ": ") for one in unasked)
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {told}")
    for one in found:
        voice.say(f"missing: {one.world} {one.what} {one.name}")
    if not found:
        voice.say("No object is missing at Confluent or Snowflake")
    return taking.repair_of(here, found)


def _require_agreed(voice: Voice, here: Ground, plan: Plan, *, yes: bool) -> None:
    if yes:
        return
    if not voice.may_ask:
        raise CommandFailed(
            "DEPLOY-NOT-CONFIRMED", "confirmation is required, and the session is not interactive; nothing was changed"
        )
    if plan.broadened:
        voice.result("\nMORE WOULD BE ALLOWED:", alarm=True)
        telling.show_permissions(voice, plan.broadened)
    if plan.losses:
        voice.result("\nLOST FOR GOOD:", alarm=True)
        telling.show_losses(voice, plan)
    lost = f"\nType the stage's name, {here.stage}, to lose this and go on"
    question = "\nApprove these permissions and deploy? Type yes" if plan.broadened else "\nDeploy this? Type yes"
    answer = voice.ask(lost if plan.losses else question).lower()
    if answer != here.stage if plan.losses else answer not in _YES:
        raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")


def _run(voice: Voice, here: Ground, cdk: Cdk, plan: Plan) -> None:
    phases = {phase.stack: phase for phase in plan.phases}
    with aws_told("asking for the stacks"):
        watch = events.Watch(here.client("cloudformation"), here.stacks)
    with voice.step(f"Deploying {here.deployment.prefix}") as tell:
        progress = Progress(here.stacks, phases, voice.say, tell, here.clock.time)
        try:
            cdk.deploy(lambda _: None, meanwhile=lambda: _look(watch, progress))
        except CliFailed as failed:
            _look(watch, progress)
            raise _failure(voice, here, progress, failed, cdk.log) from None
        except KeyboardInterrupt:
            _look(watch, progress)
            raise _stopped(here, progress) from None
        _look(watch, progress)


def _look(watch: events.Watch, progress: Progress) -> None:
    """What can't be seen now is seen the next time: it is CDK that deploys."""
    try:
        progress.feed(watch.new())
    except (ClientError, BotoCoreError):
        return
    progress.tick()


def _failure(voice: Voice, here: Ground, progress: Progress, failed: CliFailed, log: Path) -> CommandFailed:
    states = {stack.name: stack.status for stack in deployed.read(here).values()}
    cause = causes.find(progress.seen)
    details = {"cause": attrs.asdict(cause) if cause else None, "states": states, "log": world.relative(log)}
    for name, status in states.items():
        if name in progress.known:
            voice.result(f"{name}: {causes.state(name, status)}")
    if cause is None:
        last = "\n".join(line.strip() for line in failed.lines[-_LAST_LINES:])
        hint = f"Look at {world.relative(log)}, then run the same command again"
        return CommandFailed("DEPLOY-FAILED", f"CDK's command line failed:\n{last}", hint, details)
    more = f" More: `lakeferry explain {cause.code}`." if cause.code else ""
    hint = f"{cause.fix}{more} Then run the same command again: it carries on"
    return CommandFailed("DEPLOY-FAILED", str(cause), hint, details, why=cause.why)


def _stopped(here: Ground, progress: Progress) -> CommandFailed:
    going = progress.under_way
    told = f"CloudFormation goes on with {', '.join(going)}" if going else "no stack was under way"
    hint = f"`lakeferry status --stage {here.stage}` looks; `lakeferry deploy --stage {here.stage}` later does the rest"
    return CommandFailed("DEPLOY-STOPPED", f"stopped watching; {told}", hint, {"under_way": going})
