"""Check health: `lakeferry doctor` finds nothing wrong, and names what was broken by hand; the monitoring
function measures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakeferry.deployment import stacks
from lakeferry.health import doctor, model, runner
from lakeferry.health.model import Result as DoctorResult
from lakeferry.rehearsal.harness import Check, Harness, Result, require, wait_until
from lakeferry.verification.measured import list_alarms, list_measured
from lambdas import contract


def nothing_wrong(harness: Harness) -> list[Result]:
    checks = _run_doctor(harness)
    wrong = [check for check in checks if check.result is DoctorResult.FAIL]
    require(not wrong, f"doctor finds {_describe(wrong)}")
    ok = sum(check.result is DoctorResult.OK for check in checks)
    return [
        Check(
            "doctor finds nothing wrong",
            f"{ok} checks ok, among them every hop of the handshakes with AWS",
            {"ok": ok},
        )
    ]


def broken_trust_is_named(harness: Harness) -> list[Result]:
    """Change the external ids in the roles' trust policies, as somebody could in the console."""
    deployment = harness.deployment
    groups = {}
    if deployment.uses_own_bucket:
        groups["tableflow"] = "Confluent → AWS"
    if deployment.uses_snowflake:
        groups["snowflake"] = "Snowflake → AWS"
    reported = []
    for vendor, group in groups.items():
        role = f"{harness.ctx.deployment.regional_prefix}-{vendor}"
        with _break_trust(harness, role):
            roots = [check for check in _run_doctor(harness) if check.is_root]
        is_named = all(root.group == group and "trust" in root.name for root in roots)
        require(
            roots and is_named,
            f"with the trust of {role} broken, doctor names {_describe(roots) or 'nothing'}",
        )
        reported.append(f"{group}: {', '.join(root.name for root in roots)}")
    wrong = [check for check in _run_doctor(harness) if check.result is DoctorResult.FAIL]
    require(not wrong, f"after the repair, doctor still finds {_describe(wrong)}")
    return [Check("doctor names a broken handshake", "; ".join(reported), {"broken": len(reported)})]


def _run_doctor(harness: Harness) -> list[model.Check]:
    return runner.run(doctor.list_probes(harness.ctx))


@contextmanager
def _break_trust(harness: Harness, role: str) -> Iterator[None]:
    iam = harness.ctx.client("iam")
    original: dict[str, Any] = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    changed = json.loads(json.dumps(original))
    for statement in changed["Statement"]:
        for condition in statement.get("Condition", {}).values():
            condition.update({name: "changed-by-hand" for name in condition})
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(changed))
    try:
        yield
    finally:
        iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(original))


def _describe(checks: list[model.Check]) -> str:
    return "; ".join(f"{check.group}, {check.name}: {check.message}" for check in checks)


def monitoring_measures(harness: Harness) -> list[Result]:
    """Fire the monitoring function's schedule; it runs under its own role, and CloudWatch gets every metric
    that an alarm of the deployment watches.
    """
    stack = stacks.describe(harness.ctx, f"{harness.ctx.deployment.prefix}-operations", with_resources=True)
    resources = stack.resources if stack else ()
    names = [resource.physical_id for resource in resources if resource.type == "AWS::Scheduler::Schedule"]
    require(names, "no stack of operations has a schedule")
    for name in names:
        harness.simulators.ask_aws("POST", "/schedules/fire", {"name": name})
    alarms = list_alarms(harness.ctx).values()
    watched = {alarm["MetricName"] for alarm in alarms if "MetricName" in alarm}
    expected = watched & set(contract.METRIC_DIMENSIONS)
    require(expected, f"no alarm watches a metric of the deployment: {sorted(watched)}")

    def read_all_metrics() -> Counter[str] | None:
        counts = list_measured(harness.ctx)
        return counts if counts.keys() >= expected else None

    listed = ", ".join(sorted(expected))
    metrics = wait_until(read_all_metrics, f"the monitoring function didn't write all of {listed}")
    result = (
        f"{sum(metrics.values())} values of {len(metrics)} metrics, among them the age of each hop and of "
        "each key"
    )
    return [Check("monitoring measures every hop", result, dict(metrics))]
