"""What stands in the accounts: stacks, what `doctor` checks, objects at the vendors, keys and alarms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from lakeferry.credentials import rotating_secrets, rotation
from lakeferry.credentials.rotating_secrets import RotatingSecret
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.health import doctor, drift, model, runner
from lakeferry.health.model import Result
from lakeferry.inventory import Verdict
from lakeferry.verification.claims import Claim, explain_no_confluent
from lakeferry.verification.evidence import Answer, Asked, Finding, Outcome, explain_unseen
from lakeferry.verification.measured import list_alarms, list_measured
from lambdas import contract
from lambdas.rotation.versions import SecretVersions

ROTATES: Final = "the key rotates on its schedule"
ALARM_EXISTS: Final = "the alarm exists, and tells somebody"
EXISTS_AT_VENDOR: Final = "what the deployment created at the vendors is there"
_ALARM: Final = "AWS::CloudWatch::Alarm"
_RESULTS: Final = {
    Result.OK: Outcome.PASSED,
    Result.WARN: Outcome.PASSED,
    Result.FAIL: Outcome.FAILED,
    Result.SKIPPED: Outcome.NOT_ASKED,
}


def hash_template(stack: Stack) -> str:
    """Return the SHA-256 of the template that is deployed, "" if it can't be read."""
    if not stack.template:
        return ""
    text = json.dumps(stack.template, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_stacks(ctx: DeploymentContext, deployed: dict[str, Stack]) -> list[Finding]:
    findings = []
    for name in ctx.stacks:
        asked = Asked(Claim.DEPLOYED, name, "CloudFormation: DescribeStacks, GetTemplate")
        stack = deployed.get(name)
        if stack is None:
            findings.append(asked.failed("there is no such stack"))
        elif stack.is_in_progress:
            findings.append(asked.unknown(stack.status))
        elif not stack.is_active or stack.status.endswith("_FAILED"):
            findings.append(asked.failed(stack.status))
        else:
            findings.append(asked.passed(f"{stack.status}, template {hash_template(stack)[:12]}"))
    return findings


def check_doctor(ctx: DeploymentContext) -> list[Finding]:
    return [_read_check(check) for check in runner.run(doctor.list_probes(ctx))]


def _read_check(check: model.Check) -> Finding:
    asked = Asked(Claim.DOCTOR, f"{check.group}: {check.name}", f"`lakeferry doctor`: {check.group}")
    seen = check.message
    if check.needed:
        seen += f"; needed: {check.needed}"
    if check.caused_by:
        seen += f"; caused by “{check.caused_by}”"
    if not check.is_seen:
        return asked.unknown(seen)
    if check.result is Result.WARN:
        seen = f"with a warning: {seen}"
    return asked.found(_RESULTS[check.result], seen)


def check_objects(ctx: DeploymentContext) -> list[Finding]:
    """Check that the vendors' objects exist and work, as `status --drift` does, which also compares AWS."""
    asked = Asked(
        EXISTS_AT_VENDOR,
        "objects of the stacks",
        "Confluent, Snowflake: each object, by the id in the deployment's state",
    )
    if why := explain_no_confluent(ctx.deployment):
        return [asked.not_asked(why)]
    try:
        missing = drift.find_missing(ctx)
    except Exception as error:
        return [asked.unknown(explain_unseen(error))]
    if not missing:
        return [asked.passed("all of them")]
    findings = []
    for item in missing:
        about = Asked(EXISTS_AT_VENDOR, f"{item.system} {item.type} {item.name}", asked.asked)
        outcome = Outcome.UNKNOWN if item.status == Verdict.UNKNOWN else Outcome.FAILED
        findings.append(about.found(outcome, f"{item.status}: {item.details}"))
    return findings


def check_rotation(ctx: DeploymentContext) -> list[Finding]:
    """Check each key's schedule and age by what Secrets Manager knows: the vendor isn't asked, and the
    rotation function isn't called.
    """
    question = "Secrets Manager: DescribeSecret, ListSecretVersionIds"
    asked = Asked(ROTATES, "keys of the deployment", question)
    try:
        secrets = rotating_secrets.load(ctx)
    except Exception as error:
        return [asked.unknown(explain_unseen(error))]
    if not secrets:
        return [asked.not_asked("the deployment has no key that rotates")]
    return [_check_key(ctx, secret, question) for secret in secrets]


def _check_key(ctx: DeploymentContext, secret: RotatingSecret, question: str) -> Finding:
    def look() -> Answer:
        described = SecretVersions(ctx.client("secretsmanager"), secret.arn).describe()
        age = rotating_secrets.read_age_in_aws(ctx, secret)
        if described.deleted or not described.enabled or described.next_rotation is None:
            return Answer(False, "the secret is deleted" if described.deleted else "its rotation is off")
        due = datetime.fromtimestamp(described.next_rotation, UTC)
        if troubles := list(rotation.list_troubles(ctx.deployment, age)):
            return Answer(False, "; ".join(troubles))
        return Answer(True, f"the key is {age.age_days:.1f} days old, next rotation {due:%Y-%m-%d %H:%M} UTC")

    return Asked(ROTATES, secret.name, question).look(look)


def check_alarms(ctx: DeploymentContext, deployed: Iterable[Stack]) -> list[Finding]:
    """Check the alarms of all templates, and that the metrics that they watch are measured."""
    question = "CloudWatch: DescribeAlarms, ListMetrics"
    asked = Asked(ALARM_EXISTS, "alarms of the stacks", question)
    try:
        with translate_aws_errors("reading the alarms"):
            alarms = list_alarms(ctx)
            measured = list_measured(ctx)
            wanted = list(_list_wanted(ctx, deployed))
    except Exception as error:
        return [asked.unknown(explain_unseen(error))]
    if not wanted:
        return [asked.failed("no template of the deployment has an alarm")]
    findings = []
    for name in wanted:
        about = Asked(ALARM_EXISTS, name, question)
        findings.append(_check_alarm(about, alarms.get(name)))
    watched = {alarm["MetricName"] for alarm in alarms.values() if "MetricName" in alarm}
    for metric in sorted(watched & set(contract.METRIC_DIMENSIONS)):
        about = Asked(Claim.MONITORING, metric, question)
        if metric in measured:
            findings.append(about.passed(f"{measured[metric]} values are measured"))
        else:
            every = f"the monitoring function measures every {contract.WATCH_MINUTES} minutes"
            findings.append(about.unknown(f"nothing was measured in the last two weeks; {every}"))
    return findings


def _list_wanted(ctx: DeploymentContext, deployed: Iterable[Stack]) -> Iterator[str]:
    """Yield the names of the alarms that CloudFormation created. Raises ClientError, BotoCoreError."""
    for stack in deployed:
        described = stacks.describe(ctx, stack.id, with_resources=True)
        for resource in described.resources if described else ():
            if resource.type == _ALARM:
                yield resource.physical_id


def _check_alarm(asked: Asked, alarm: dict[str, Any] | None) -> Finding:
    if alarm is None:
        return asked.failed("there is no such alarm")
    if not alarm.get("ActionsEnabled", False) or not alarm.get("AlarmActions"):
        return asked.failed("it tells nobody: it has no action, or its actions are off")
    state = alarm.get("StateValue", "")
    if state == "ALARM":
        return asked.failed(f"it is in the state ALARM: {alarm.get('StateReason', '')}")
    return asked.passed(f"state {state}, {len(alarm['AlarmActions'])} action")
