"""Fault runs: deploy, update and destroy under random faults; each step succeeds when retried, and leaves no
orphan.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry import inventory
from lakeferry.deployment import logs, stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.inventory import Item, Verdict, destroy, forget
from lakeferry.output import Reporter
from lakeferry.rehearsal.checks import lifecycle
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.harness import CheckFailed, Harness, require, wait_until
from simulators.core.faults import FaultClient

AWS: Final = "AWS"
CONFLUENT: Final = "Confluent"
SNOWFLAKE: Final = "Snowflake"
VENDORS: Final = (AWS, CONFLUENT, SNOWFLAKE)
Calls = dict[str, int]
_SHAPES: Final = {AWS: ("aws-json", "html"), CONFLUENT: ("json", "html"), SNOWFLAKE: ("json", "html")}
_ONCE: Final = ("error", "effect_then_error", "reset", "effect_then_reset", "truncate")
_STATUSES: Final = (400, 403, 429, 500, 502, 503)
#: How many calls in a row an outage fails: more than a client retries, and fewer than exhaust its deadline.
_OUTAGE: Final = {AWS: 12, CONFLUENT: 40, SNOWFLAKE: 25}
#: Number of single faults of a step at each vendor.
_SINGLE: Final = 3
_NEVER: Final = 10**9
#: How often a user retries a step.
_RETRIES: Final = 4
#: How long CloudFormation may roll back before a step is retried. The provider framework waits up to an hour.
_ROLLBACK_SECONDS: Final = 3700.0
_STUCK: Final = ("ROLLBACK_FAILED", "DELETE_FAILED", "CREATE_FAILED")
#: What `destroy` says of an object that may or may not exist.
_ADVICE: Final = re.compile(r"`lakeferry forget (\S+) (\S+)`")
Shape = Counter[tuple[str, str]]


@attrs.frozen
class FaultPlan:
    """Rules by vendor. `outage` is the vendor that is down for a while, "" for none."""

    rules: dict[str, list[dict[str, Any]]]
    outage: str

    @property
    def describe(self) -> str:
        return f"{sum(map(len, self.rules.values()))} rules" + (
            f", {self.outage} down for a while" if self.outage else ""
        )


def plan(seed: int, step: str, calls: Calls) -> FaultPlan:
    """Spread faults over the calls that the step makes at each vendor without faults."""
    chance = random.Random(f"{seed}/{step}")  # noqa: S311  (repeatable by design)
    rules = {}
    for vendor, count in calls.items():
        rules[vendor] = [_draw_fault(chance, vendor, count) for _ in range(_SINGLE)]
    outage = chance.choice((*calls, ""))
    if outage:
        rules[outage].append(_draw_outage(chance, outage, calls[outage]))
    return FaultPlan(rules, outage)


def _draw_fault(chance: random.Random, vendor: str, calls: int) -> dict[str, Any]:
    return {
        "fault": chance.choice(_ONCE),
        "nth": chance.randint(1, max(1, calls)),
        "status": chance.choice(_STATUSES),
        "shape": chance.choice(_SHAPES[vendor]),
        "after_bytes": chance.randint(0, 40),
    }


def _draw_outage(chance: random.Random, vendor: str, calls: int) -> dict[str, Any]:
    nth = chance.randint(1, max(1, calls // 2))
    status = chance.choice((500, 503))
    shape = _SHAPES[vendor][0]
    return {"fault": "error", "nth": nth, "times": _OUTAGE[vendor], "status": status, "shape": shape}


@attrs.define
class Injector:
    """Sets the rules of each simulator and counts the calls that they hit."""

    simulators: SimulatedEnvironment

    def inject(self, faults: FaultPlan) -> None:
        for vendor, client in self._list_clients():
            client.rule(*faults.rules[vendor])

    def count(self) -> None:
        """Count calls without failing any."""
        for _, client in self._list_clients():
            client.rule({"fault": "error", "nth": _NEVER})

    def stop(self) -> tuple[Calls, Calls]:
        """Remove the rules and return how many calls were seen and how many were hit, by vendor."""
        seen = {}
        hits = {}
        for vendor, client in self._list_clients():
            rules = client.state()["rules"]
            seen[vendor], hits[vendor] = (
                max(int(rule["seen"]) for rule in rules),
                sum(int(rule["hits"]) for rule in rules),
            )
            client.clear()
        return seen, hits

    def _list_clients(self) -> list[tuple[str, FaultClient]]:
        running = self.simulators
        addresses = {
            AWS: running.aws.url,
            CONFLUENT: running.confluent["url"],
            SNOWFLAKE: running.snowflake["url"],
        }
        return [(vendor, FaultClient(url)) for vendor, url in addresses.items()]


@attrs.frozen
class Step:
    """`attempts` includes the one under faults; `hits` are the calls that faults hit, by vendor; `why` is the
    first failure.
    """

    name: str
    faults: str
    hits: dict[str, int]
    attempts: int
    failed_first: bool
    seconds: float
    why: str = ""


@attrs.frozen
class Baseline:
    """Templates of deployment and update, and the objects and calls of each step in a run without faults."""

    deployed: Cdk
    updated: Cdk
    expected: dict[str, Shape] = attrs.Factory(dict)
    calls: dict[str, Calls] = attrs.Factory(dict)


@attrs.define
class FaultRun:
    """One deployment from deploy to destroy under the faults of a seed."""

    harness: Harness
    seed: int
    baseline: Baseline
    steps: list[Step] = attrs.Factory(list)

    def run(self, report: Reporter) -> None:
        """Raises CheckFailed."""
        for name, cdk in (("deploy", self.baseline.deployed), ("update", self.baseline.updated)):
            self._run_step(name, partial(cdk.deploy, report), partial(self._retry, cdk, report))
        self._run_step(
            "destroy", partial(self.baseline.updated.destroy, report), partial(self._destroy, report)
        )
        lifecycle.nothing_left(self.harness)

    def _run_step(self, name: str, work: Callable[[], object], remedy: Callable[[], object]) -> None:
        faults = plan(self.seed, name, self.baseline.calls[name])
        injector = Injector(self.harness.simulators)
        started = time.monotonic()
        injector.inject(faults)
        try:
            why = _run_and_describe(work)
        finally:
            _, hits = injector.stop()
        attempts = 1
        last = why
        while last and attempts <= _RETRIES:
            attempts = attempts + 1
            last = _run_and_describe(remedy)
        require(not last, f"seed {self.seed}: {name} still fails after {attempts} attempts: {last[-400:]}")
        self.steps.append(
            Step(
                name,
                faults.describe,
                hits,
                attempts,
                bool(why),
                time.monotonic() - started,
                _pick_informative_line(why),
            )
        )
        if name in self.baseline.expected:
            actual = count_shape(inventory.collect(self.harness.ctx))
            expected = self.baseline.expected[name]
            difference = f"unexpected {actual - expected}, missing {expected - actual}"
            require(actual == expected, f"seed {self.seed}, after {name}: {difference}")

    def _retry(self, cdk: Cdk, report: Reporter) -> None:
        """Deploy again, as `lakeferry deploy` does: when CloudFormation has ended what it is doing.

        Destroy first if it can't update a stack in its present state.
        """
        ctx = self.harness.ctx
        wait_until(lambda: not _list_busy_stacks(ctx), "a stack is still in progress", _ROLLBACK_SECONDS)
        described = (stacks.describe(ctx, name) for name in ctx.stacks)
        if any(stack and stack.status in _STUCK for stack in described):
            self._destroy(report)
        for stack in stacks.read(ctx).values():
            stacks.continue_rollback(ctx, stack, report)
        cdk.deploy(report)

    def _destroy(self, report: Reporter) -> None:
        ctx = self.harness.ctx
        destroyed = destroy.destroy(ctx, destroy.plan(ctx, inventory.collect(ctx)), say=report, report=report)
        if self._forget_as_advised(destroyed.reasons):
            planned = destroy.plan(ctx, inventory.collect(ctx))
            destroyed = destroy.destroy(ctx, planned, say=report, report=report)
        lifecycle.require_nothing_left(destroyed.items)

    def _forget_as_advised(self, reasons: Sequence[str]) -> bool:
        """Do what `destroy` advises about objects of which no login can tell whether they exist. Return
        whether there was such advice.

        A fault may answer a deletion that took effect with a refusal. Lakeferry then can't know. The checks
        at the end of the run notice if an object was forgotten that does exist.
        """
        advised: set[tuple[str, str]] = set()
        for reason in reasons:
            advised.update(_ADVICE.findall(reason))
        for stack, logical_id in advised:
            found = forget.find(self.harness.ctx, stack, logical_id)
            forget.forget(self.harness.ctx, found, "deleted by a call whose answer was a refusal")
        return bool(advised)


def count_shape(items: list[Item]) -> Shape:
    """Count the objects of each kind, without those that are retained by decision: their number may grow."""
    return Counter((item.system, str(item.kind)) for item in items if item.verdict is not Verdict.RETAINED)


def measure_baseline(harness: Harness, report: Reporter) -> Baseline:
    """Deploy, update and destroy once without faults."""
    baseline = Baseline(harness.cdk, lifecycle.synth_change(harness))
    injector = Injector(harness.simulators)
    for name, cdk in (("deploy", baseline.deployed), ("update", baseline.updated)):
        injector.count()
        cdk.deploy(report)
        baseline.calls[name], _ = injector.stop()
        baseline.expected[name] = count_shape(inventory.collect(harness.ctx))
    injector.count()
    baseline.updated.destroy(report)
    baseline.calls["destroy"], _ = injector.stop()
    lifecycle.nothing_left(harness)
    return baseline


def write_function_logs(harness: Harness, file: Path) -> None:
    """Write what the deployment's functions logged, and what is left over: after a run that failed, they are
    gone with the simulators.
    """
    ctx = harness.ctx
    client = ctx.client("logs")
    lines = [f"left over: {item}" for item in inventory.problems(inventory.collect(ctx))]
    for page in client.get_paginator("describe_log_groups").paginate():
        names = [group["logGroupName"] for group in page["logGroups"]]
        for name in names:
            if f"/{ctx.deployment.prefix}-" in name:
                lines.append(f"=== {name}")
                lines += [line.text for line in logs.read_function_lines(ctx, name, 0.0)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _list_busy_stacks(ctx: DeploymentContext) -> list[str]:
    return [stack.name for stack in stacks.read(ctx).values() if stack.is_in_progress]


def _run_and_describe(work: Callable[[], object]) -> str:
    try:
        work()
    except (CliFailed, CommandFailed, CheckFailed) as failed:
        return str(failed)
    return ""


def _pick_informative_line(why: str) -> str:
    """Return the most informative line."""
    lines = [line for line in why.splitlines() if "FAILED" in line or "❌" in line]
    return (lines or why.splitlines() or [""])[0][:300]


def summarize(runs: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the document of runs that are in the form of faults.json."""
    steps = [step for run in runs for step in run["steps"]]
    return {
        "seconds": round(seconds, 1),
        "seeds": [run["seed"] for run in runs],
        "hits": {vendor: sum(step["hits"].get(vendor, 0) for step in steps) for vendor in VENDORS},
        "failed_first": sum(step["failed_first"] for step in steps),
        "steps": len(steps),
        "runs": list(runs),
    }


def write_summary(runs: list[FaultRun], seconds: float, out: Path) -> dict[str, Any]:
    documents = []
    for run in runs:
        steps = [attrs.asdict(step) for step in run.steps]
        documents.append({"seed": run.seed, "steps": steps})
    document = summarize(documents, seconds)
    out.mkdir(parents=True, exist_ok=True)
    (out / "faults.json").write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return document
