"""Makes a plan: synthesises, asks what is deployed, compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lakeferry.cli.output import CommandFailed
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.cdk_runs import Cdk, CliFailed
from lakeferry.deployment.context import Ground, aws_told
from lakeferry.deployment.stacks import Deployed
from lakeferry.health.drift import Drift
from lakeferry.plan import cost, durations, permissions, references, templates
from lakeferry.plan.difference import Comparison
from lakeferry.plan.render import Plan, Setting
from lakeferry.plan.templates import Wanted
from lambdas.shared.redaction import redact

Tell = Callable[[str], object]
#: Of the command line, where it fails.
_LAST_LINES: Final = 5


def synthesised(cdk: Cdk, tell: Tell, deployments: Path | None = None, repair: str = "") -> None:
    """`repair` is what `repair_of` makes. Raises CommandFailed."""
    tell("templates")
    try:
        cdk.synth(lambda _: None, deployments, repair)
    except CliFailed as failed:
        last = "\n".join(failed.lines[-_LAST_LINES:])
        hint = "Correct what these lines name; `python -m lakeferry.deployment.cdk synth` shows all of them"
        raise CommandFailed("SYNTH-FAILED", f"the templates could not be made:\n{last}", hint) from None


def repair_of(here: Ground, missing: Iterable[Drift]) -> str:
    """As the app takes it: a value that no deployment before had, and the resources whose object is missing."""
    names = ",".join(f"{one.stack}/{one.name}" for one in missing)
    return f"{here.clock.time():.0f}:{names}" if names else ""


def take(here: Ground, cdk: Cdk, tell: Tell) -> Plan:
    """Of templates that are synthesised. Raises CommandFailed."""
    tell("what is deployed")
    standing = deployed.read(here)
    wanted = templates.read(cdk.folder, here.stacks)
    tell("what differs")
    begun = {name: stack for name, stack in standing.items() if stack.stands}
    changes = Comparison(here.region, wanted, begun).changes()
    with aws_told("asking how long the last deployment took"):
        phases = [durations.phase(stack.name, changes, _last(here, standing.get(stack.name))) for stack in wanted]
    return Plan(
        prefix=here.deployment.prefix,
        account=here.account,
        region=here.region,
        changes=changes,
        permissions=permissions.compare(wanted, begun),
        settings=[one for stack in wanted if stack.name in begun for one in _settings(stack, begun[stack.name])],
        phases=[phase for phase in phases if phase],
        cost=cost.estimate(here.plan),
        standing=list(standing),
        unwanted=[name for name in standing if name not in here.stacks],
    )


def _last(here: Ground, standing: Deployed | None) -> float | None:
    return durations.last(here.client("cloudformation"), standing.id) if standing else None


def _settings(wanted: Wanted, standing: Deployed) -> Iterator[Setting]:
    """What of the stack itself differs."""
    yield from _mapped(wanted.name, "tag", standing.tags, wanted.tags)
    before, after = (_outputs(template) for template in (standing.template, wanted.template))
    yield from _mapped(wanted.name, "output", before, after)
    if standing.is_protected != wanted.is_protected:
        yield Setting(wanted.name, "protection against deletion", *(_on(one.is_protected) for one in (standing, wanted)))


def _outputs(template: Mapping[str, Any]) -> dict[str, str]:
    return {name: redact(references.shown(one.get("Value"), {})) for name, one in template.get("Outputs", {}).items()}


def _mapped(stack: str, what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Setting]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Setting(stack, f"{what} {name}", before.get(name, "nothing"), after.get(name, "nothing"))


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
