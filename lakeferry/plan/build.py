"""Build a plan: synthesise the templates, read the deployed ones, and compare them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.output import Reporter
from lakeferry.plan import (
    cost,
    durations,
    edited_statements,
    permissions,
    references,
    refusals,
    schemas,
    templates,
    tenants,
)
from lakeferry.plan.difference import Comparison
from lakeferry.plan.render import Plan, Setting
from lakeferry.plan.templates import SynthesizedStack
from lambdas.shared.redaction import redact

#: How many lines of the output of a failed synthesis are shown.
_LAST_LINES: Final = 5
#: How the app begins its message about a stack that is too large.
_TOO_MANY: Final = "TOO-MANY-RESOURCES  "


def synthesize(cdk: Cdk, report: Reporter, repair: str = "") -> None:
    """Synthesise the templates.

    `repair` is the value that lakeferry.deploy.run.repair_of returns. Raises CommandFailed.
    """
    report("synthesising")
    try:
        cdk.synth(lambda _: None, repair=repair)
    except CliFailed as failed:
        for line in failed.lines:
            if line.startswith(_TOO_MANY):
                raise CommandFailed("TOO-MANY-RESOURCES", line.removeprefix(_TOO_MANY)) from None
        last = "\n".join(failed.lines[-_LAST_LINES:])
        hint = (
            "Correct what these lines name; `python -m lakeferry.deployment.cdk synth` shows the whole output"
        )
        raise CommandFailed(
            "SYNTH-FAILED", f"the templates could not be synthesised:\n{last}", hint
        ) from None


def build_plan(ctx: DeploymentContext, cdk: Cdk, report: Reporter) -> Plan:
    """Compare synthesised templates with the deployed stacks. Raises CommandFailed."""
    report("reading stacks")
    deployed = stacks.read(ctx)
    wanted = templates.read_stacks(cdk.folder, ctx.stacks)
    report("comparing")
    active = {name: stack for name, stack in deployed.items() if stack.is_active}
    comparison = Comparison(wanted, active)
    changes = comparison.changes()
    answers = schemas.ask(ctx, comparison, changes)
    others = tenants.compare(ctx, active)
    with translate_aws_errors("reading the events of the last deployment"):
        phases = []
        for stack in wanted:
            before = deployed.get(stack.name)
            last = durations.find_last(ctx.client("cloudformation"), before.id) if before else None
            phases.append(durations.expect_phase(stack.name, changes, last))
    settings: list[Setting] = []
    for stack in wanted:
        if stack.name in active:
            settings += _compare_settings(stack, active[stack.name])
    return Plan(
        prefix=ctx.deployment.prefix,
        account=ctx.account,
        region=ctx.region,
        changes=changes,
        permissions=permissions.compare(wanted, active),
        refusals=[*others.refusals, *refusals.find(comparison, changes), *answers.refusals],
        unasked=(*others.unasked, *answers.unasked),
        busy=[f"stack {stack.name} is {stack.status}" for stack in deployed.values() if stack.is_in_progress],
        statements=edited_statements.list_edited(ctx.loaded, comparison, changes),
        settings=settings,
        phases=[phase for phase in phases if phase],
        cost=cost.estimate(ctx.loaded),
        deployed=list(deployed),
        removed_from_file=[name for name in deployed if name not in ctx.stacks],
    )


def build_first_plan(ctx: DeploymentContext, cdk: Cdk) -> Plan:
    """Return the plan of a deployment of which nothing is known: everything is created."""
    wanted = templates.read_stacks(cdk.folder, ctx.stacks)
    changes = Comparison(wanted, {}).changes()
    phases = [durations.expect_phase(stack.name, changes) for stack in wanted]
    return Plan(
        prefix=ctx.deployment.prefix,
        account="",
        region=ctx.region,
        changes=changes,
        permissions=permissions.compare(wanted, {}),
        settings=[],
        phases=[phase for phase in phases if phase],
        cost=cost.estimate(ctx.loaded),
        deployed=[],
        removed_from_file=[],
    )


def _compare_settings(wanted: SynthesizedStack, deployed: Stack) -> Iterator[Setting]:
    """Yield the tags and outputs of a stack, and its termination protection, where they differ."""
    before = _read_settings(deployed)
    after = _read_settings(wanted)
    for name in dict.fromkeys([*after, *before]):
        if before.get(name) != after.get(name):
            yield Setting(wanted.name, name, before.get(name, "nothing"), after.get(name, "nothing"))


def _read_settings(stack: SynthesizedStack | Stack) -> dict[str, str]:
    settings = {f"tag {name}": value for name, value in stack.tags.items()}
    for name, output in stack.template.get("Outputs", {}).items():
        settings[f"output {name}"] = redact(references.format_short(output.get("Value"), {}))
    settings["protection against deletion"] = "on" if stack.is_protected else "off"
    return settings
