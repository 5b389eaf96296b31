"""The exports: their schedules and runs, and their newest windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from config.deployments.export_model import Export
from config.exports.windows import Window, parse_label
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.exports.deployed import DeployedExport, find_export
from lakeferry.health.exports import ExportStatus, observe_engineers, read_exports
from lakeferry.health.freshness import Readers
from lakeferry.health.model import State
from lakeferry.verification import recomputation, windows
from lakeferry.verification.claims import Claim, explain_absent
from lakeferry.verification.evidence import Answer, Asked, Finding, explain_unseen

SCHEDULED: Final = "the schedule of the export is on"
RUNS: Final = "the last run succeeded, no window is late, and every recipient has confirmed"
_STATUS: Final = "Glue: GetJobRuns; S3: records of runs, manifests; SNS: ListSubscriptionsByTopic"
_SCHEDULES: Final = "EventBridge Scheduler: ListSchedules, GetSchedule"
_MANIFESTS: Final = "S3: ListObjectsV2, GetObject"


def find_schedule(ctx: DeploymentContext, job: str) -> dict[str, Any] | None:
    """Return the deployment's schedule that starts a job. Raises ClientError, BotoCoreError."""
    scheduler = ctx.client("scheduler")
    group = ctx.deployment.prefix
    pages = scheduler.get_paginator("list_schedules").paginate(GroupName=group)
    for name in [schedule["Name"] for page in pages for schedule in page["Schedules"]]:
        schedule: dict[str, Any] = scheduler.get_schedule(GroupName=group, Name=name)
        if json.loads(schedule["Target"].get("Input") or "{}").get("JobName") == job:
            return schedule
    return None


def check_runs(readers: Readers) -> list[Finding]:
    """Check the runs and the mails of the exports, as `lakeferry status` does."""
    findings = []
    for status in read_exports(readers):
        findings += judge_runs(status)
    asked = Asked(Claim.SUBSCRIPTIONS, "engineers", "SNS: ListSubscriptionsByTopic")
    engineers = observe_engineers(readers)
    findings.append(asked.observed(engineers) if engineers else asked.passed("all of them get alarms"))
    return findings


def judge_runs(status: ExportStatus) -> list[Finding]:
    """Return what is wrong or unknown about the runs of an export, or that nothing is.

    Before its first scheduled run, no window of an export that has run is late.
    """
    asked = Asked(RUNS, status.export, _STATUS)
    waiting = [observation for observation in status.observations if observation.state is State.WAITING]
    troubles = [observation for observation in status.observations if observation not in waiting]
    shown = troubles if status.last else status.observations
    if shown:
        return [asked.observed(observation) for observation in shown]
    if status.last is None:
        return [asked.unknown(_describe_last(status))]
    seen = [_describe_last(status), *(observation.message for observation in waiting)]
    return [asked.passed("; ".join(seen))]


def _describe_last(status: ExportStatus) -> str:
    if status.last is None:
        return f"no run yet; the next is at {status.next_run_text}"
    return f"run {status.last.id}: {status.last.record or status.last.result.lower()}"


def check_exports(
    ctx: DeploymentContext, last: int, *, recompute: bool, report: Callable[[str], object]
) -> list[Finding]:
    """Check each export's schedule and its `last` newest windows."""
    if why := explain_absent(Claim.PUBLISHED, ctx.deployment):
        return [Asked(Claim.PUBLISHED, "exports", "nobody").not_asked(why)]
    findings: list[Finding] = []
    for wanted in ctx.deployment.exports:
        report(wanted.contract)
        findings += _check_export(ctx, wanted, last, recompute=recompute)
    return findings


def _check_export(ctx: DeploymentContext, wanted: Export, last: int, *, recompute: bool) -> Iterator[Finding]:
    try:
        export = find_export(ctx, wanted.contract)
    except Exception as error:
        yield Asked(Claim.PUBLISHED, wanted.contract, "Glue: GetJob").unknown(explain_unseen(error))
        return
    yield Asked(SCHEDULED, export.name, _SCHEDULES).look(partial(_look_at_schedule, export))
    asked = Asked(Claim.PUBLISHED, export.name, _MANIFESTS)
    try:
        newest = list_newest(export, last)
    except Exception as error:
        yield asked.unknown(explain_unseen(error))
        return
    if not newest:
        yield asked.unknown("no window is published yet")
    for window in newest:
        with windows.open_window(export, window) as published:
            yield from published.check()
            yield recomputation.check(published, is_wanted=recompute)


def _look_at_schedule(export: DeployedExport) -> Answer:
    with translate_aws_errors("reading the schedules"):
        schedule = find_schedule(export.ctx, export.job)
    if schedule is None:
        return Answer(False, f"no schedule starts {export.job}")
    seen = f"{schedule['State']}, {schedule['ScheduleExpression']}"
    return Answer(schedule["State"] == "ENABLED", f"{seen}, {schedule.get('ScheduleExpressionTimezone', '')}")


def list_newest(export: DeployedExport, last: int) -> list[Window]:
    """Return the newest published windows, the newest first. Raises LakeferryError."""
    labels = export.list_labels("manifests")
    published = [parse_label(label, export.contract.window) for label in labels]
    return sorted(published, key=lambda window: window.end, reverse=True)[:last]
