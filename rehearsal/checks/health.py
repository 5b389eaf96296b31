"""`lakeferry doctor` finds everything well, and names what was broken by hand; the watch measures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakeferry.deployment import stacks
from lakeferry.health import doctor, runner
from lakeferry.health.model import Check, Result
from lambdas import contract
from rehearsal.check import Proof, require
from rehearsal.harness import Harness, until


def all_well(stage: Harness) -> list[Proof]:
    checks = _look(stage)
    wrong = [check for check in checks if check.result is Result.FAIL]
    require(not wrong, f"doctor finds {_named(wrong)}")
    ok = sum(check.result is Result.OK for check in checks)
    return [Proof("doctor finds nothing wrong", f"{ok} checks ok, among them every hop of both handshakes", {"ok": ok})]


def names_what_is_broken(stage: Harness) -> list[Proof]:
    """The external ids in both roles' trust are changed, as if somebody had done it in the console."""
    told = []
    for vendor, group in (("tableflow", "Confluent → AWS"), ("snowflake", "Snowflake → AWS")):
        role = f"{stage.ctx.deployment.regional_prefix}-{vendor}"
        with _broken(stage, role):
            roots = [check for check in _look(stage) if check.is_root]
        named = all(root.group == group and "trust" in root.name for root in roots)
        require(roots and named, f"with the trust of {role} broken, doctor names {_named(roots) or 'nothing'}")
        told.append(f"{group}: {', '.join(root.name for root in roots)}")
    wrong = [check for check in _look(stage) if check.result is Result.FAIL]
    require(not wrong, f"once mended, doctor still finds {_named(wrong)}")
    return [Proof("doctor names a broken handshake", "; ".join(told), {"broken": len(told)})]


def _look(stage: Harness) -> list[Check]:
    return runner.run(doctor.probes(stage.ctx))


@contextmanager
def _broken(stage: Harness, role: str) -> Iterator[None]:
    iam = stage.ctx.client("iam")
    right: dict[str, Any] = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    wrong = json.loads(json.dumps(right))
    for statement in wrong["Statement"]:
        for condition in statement.get("Condition", {}).values():
            condition.update({name: "changed-by-hand" for name in condition})
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(wrong))
    try:
        yield
    finally:
        iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(right))


def _named(checks: list[Check]) -> str:
    return "; ".join(f"{check.group}, {check.name}: {check.message}" for check in checks)


def watched(stage: Harness) -> list[Proof]:
    """The watch runs when its schedule says so, under its own role, and CloudWatch has a figure for each thing it looks at."""
    stack = stacks.describe(stage.ctx, f"{stage.ctx.deployment.prefix}-operations", with_resources=True)
    names = [each.physical_id for each in stack.resources if each.type == "AWS::Scheduler::Schedule"] if stack else []
    require(names, "no stack of operations has a schedule")
    for name in names:
        stage.worlds.ask_aws("POST", "/schedules/fire", {"name": name})
    wanted = set(contract.METRIC_DIMENSIONS)
    seen = until(lambda: found if (found := _metrics(stage)).keys() >= wanted else None, "the watch wrote not all metrics")
    told = f"{sum(seen.values())} figures of {len(seen)} metrics, among them the age of each hop and of each key"
    return [Proof("the watch measures every hop", told, dict(seen))]


def _metrics(stage: Harness) -> Counter[str]:
    """How many of each there are, those of the whole deployment left out."""
    pages = stage.ctx.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace=contract.METRICS)
    return Counter(each["MetricName"] for page in pages for each in page["Metrics"] if len(each["Dimensions"]) > 1)
