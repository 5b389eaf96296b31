"""A deployment's life under faults: deploy, update, destroy; after each, the user's remedy, and exactly what should be there."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry import inventory
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.errors import CommandFailed
from lakeferry.inventory import Item, Verdict, destroy
from lakeferry.output import Reporter
from rehearsal import faults
from rehearsal.check import NotProven, require
from rehearsal.checks import teardown, updates
from rehearsal.faults import Injector
from rehearsal.harness import Harness

#: How often a user runs it again.
_TRIES: Final = 4
_STUCK: Final = ("ROLLBACK_FAILED", "DELETE_FAILED", "CREATE_FAILED")
Shape = Counter[tuple[str, str]]


@attrs.frozen
class Step:
    """`runs` is how often it was run, the one under faults included; `hits` the calls that faults hit, by vendor."""

    name: str
    faults: str
    hits: dict[str, int]
    runs: int
    failed_first: bool
    seconds: float
    why: str = ""


@attrs.frozen
class Before:
    """What all lives share: templates of deployment and update, and what each made and called in a life without faults."""

    deployed: Cdk
    updated: Cdk
    expected: dict[str, Shape] = attrs.Factory(dict)
    calls: dict[str, faults.Calls] = attrs.Factory(dict)


@attrs.define
class Life:
    stage: Harness
    seed: int
    before: Before
    steps: list[Step] = attrs.Factory(list)

    def live(self, report: Reporter) -> None:
        """Raises NotProven."""
        for name, cdk in (("deploy", self.before.deployed), ("update", self.before.updated)):
            self._step(name, partial(cdk.deploy, report), partial(self._again, cdk, report))
        self._step("destroy", partial(self.before.updated.destroy, report), partial(self._destroy, report))
        teardown.nothing_left(self.stage)

    def _step(self, name: str, work: Callable[[], object], remedy: Callable[[], object]) -> None:
        wanted = faults.plan(self.seed, name, self.before.calls[name])
        injector, started = Injector(self.stage.worlds), time.monotonic()
        injector.inject(wanted)
        try:
            why = _failure(work)
        finally:
            _, hits = injector.stop()
        runs, last = 1, why
        while last and runs <= _TRIES:
            runs, last = runs + 1, _failure(remedy)
        require(not last, f"seed {self.seed}: {name} does not come through: {last[-400:]}")
        self.steps.append(Step(name, wanted.describe, hits, runs, bool(why), time.monotonic() - started, _first(why)))
        if name in self.before.expected:
            self._compare(name)

    def _again(self, cdk: Cdk, report: Reporter) -> None:
        """Run it again; where CloudFormation can't go on from what there is, destroy first."""
        if _stuck(self.stage):
            self._destroy(report)
        cdk.deploy(report)

    def _destroy(self, report: Reporter) -> None:
        ctx = self.stage.ctx
        done = destroy.destroy(ctx, destroy.plan(ctx, inventory.collect(ctx)), say=report, report=report)
        teardown.require_nothing_left(done.items)

    def _compare(self, name: str) -> None:
        found, expected = shape(inventory.collect(self.stage.ctx)), self.before.expected[name]
        require(found == expected, f"seed {self.seed}, after {name}: too much {found - expected}, too little {expected - found}")


def shape(items: list[Item]) -> Shape:
    """Of what belongs and what is left over, how many there are of each kind. What is kept by decision may grow."""
    return Counter((item.system, str(item.kind)) for item in items if item.verdict is not Verdict.RETAINED)


def baseline(stage: Harness, report: Reporter) -> Before:
    """From a life without faults, of the stage as it was synthesised."""
    before = Before(stage.cdk, updates.synth(stage, "changed", updates.changed(updates.original(stage))))
    injector = Injector(stage.worlds)
    for name, cdk in (("deploy", before.deployed), ("update", before.updated)):
        injector.count()
        cdk.deploy(report)
        before.calls[name], _ = injector.stop()
        before.expected[name] = shape(inventory.collect(stage.ctx))
    injector.count()
    before.updated.destroy(report)
    before.calls["destroy"], _ = injector.stop()
    teardown.nothing_left(stage)
    return before


def _stuck(stage: Harness) -> bool:
    standing = (stacks.describe(stage.ctx, name) for name in stage.ctx.stacks)
    return any(stack and stack.status in _STUCK for stack in standing)


def _failure(work: Callable[[], object]) -> str:
    try:
        work()
    except (CliFailed, CommandFailed, NotProven) as failed:
        return str(failed)
    return ""


def _first(why: str) -> str:
    """The line that says most."""
    lines = [line for line in why.splitlines() if "FAILED" in line or "❌" in line]
    return (lines or why.splitlines() or [""])[0][:300]


def summary(lives: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """`lives` as they stand in nemesis.json."""
    steps = [step for life in lives for step in life["steps"]]
    return {
        "seconds": round(seconds, 1),
        "seeds": [life["seed"] for life in lives],
        "hits": {vendor: sum(step["hits"].get(vendor, 0) for step in steps) for vendor in faults.VENDORS},
        "failed_first": sum(step["failed_first"] for step in steps),
        "steps": len(steps),
        "lives": list(lives),
    }


def written(lives: list[Life], seconds: float, out: Path) -> dict[str, Any]:
    document = summary([{"seed": life.seed, "steps": [attrs.asdict(step) for step in life.steps]} for life in lives], seconds)
    out.mkdir(parents=True, exist_ok=True)
    (out / "nemesis.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return document
