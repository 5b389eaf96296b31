"""The state of each export: last run, published windows, next run, and whether recipients and engineers get
mail.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from config.exports import cron
from lakeferry.health.freshness import Readers
from lakeferry.health.model import Observation, State, format_hours, observe
from lambdas.monitoring import measurements
from lambdas.monitoring.settings import MonitoredExport
from lambdas.notifications import outcome

_IN_PARALLEL: Final = 4
_FAILED_RUNS: Final = ("FAILED", "TIMEOUT", "ERROR", "EXPIRED", "STOPPED")
ACTIVE_RUNS: Final = ("STARTING", "RUNNING", "STOPPING", "WAITING")
#: States of a run record that mean that something is wrong.
_FAILED_RECORDS: Final = ("failed", "blocked")


@attrs.frozen
class LastRun:
    """`began` is in seconds since 1970. `result` is the state of the job run in Glue.

    `record` is the state in the run record, "" without a record; `windows` are its windows with their states.
    """

    id: str
    began: float
    seconds: float | None
    result: str
    record: str = ""
    windows: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen
class ExportStatus:
    """`last` is None before the first run. `next_run` is in seconds since 1970. `published` is the number of
    published windows.

    `observations` has only what a person should know.
    """

    export: str
    last: LastRun | None
    next_run: float | None
    zone: str
    observations: tuple[Observation, ...]
    published: int = 0

    @property
    def next_run_text(self) -> str:
        if self.next_run is None:
            return "never"
        return f"{datetime.fromtimestamp(self.next_run, ZoneInfo(self.zone)):%Y-%m-%d %H:%M} {self.zone}"

    def document(self) -> dict[str, Any]:
        return {
            "export": self.export,
            "last": attrs.asdict(self.last) if self.last else None,
            "next_run": self.next_run,
            "zone": self.zone,
            "observations": [observation.document() for observation in self.observations],
            "published": self.published,
        }


def read_exports(readers: Readers) -> list[ExportStatus]:
    with ThreadPoolExecutor(_IN_PARALLEL) as pool:
        return list(pool.map(functools.partial(_read_export, readers), readers.settings.monitored.exports))


def _read_export(readers: Readers, export: MonitoredExport) -> ExportStatus:
    next_run = cron.parse(export.cron, export.zone).after(
        datetime.fromtimestamp(readers.ctx.clock.time(), UTC)
    )
    last = observe(lambda: _read_last_run(readers, export.export))
    manifests = f"{readers.settings.prefix}/{export.export}/manifests/"
    published = observe(lambda: sum(1 for _ in readers.objects.list(manifests)))
    observations = [
        _observe_run(last),
        observe(lambda: _observe_lateness(readers, export, has_run=isinstance(last, LastRun))),
    ]
    if export.topic:
        observations.append(_observe_topic(readers, export.topic, export.recipients, "recipients", "nothing"))
    if isinstance(published, Observation):
        observations.append(published)
    return ExportStatus(
        export=export.export,
        last=last if isinstance(last, LastRun) else None,
        next_run=next_run.timestamp() if next_run else None,
        zone=export.zone,
        observations=tuple(observation for observation in observations if observation),
        published=published if isinstance(published, int) else 0,
    )


def _read_last_run(readers: Readers, export: str) -> LastRun | None:
    job = f"{readers.settings.deployment}-{export}"
    runs = readers.ctx.client("glue").get_job_runs(JobName=job, MaxResults=10)["JobRuns"]
    if not runs:
        return None
    run: dict[str, Any] = max(runs, key=lambda job_run: job_run["StartedOn"])
    began = run["StartedOn"].timestamp()
    ended = run.get("CompletedOn")
    seconds = ended.timestamp() - began if ended else None
    last = LastRun(run["Id"], began, seconds, run["JobRunState"], reason=run.get("ErrorMessage") or "")
    return last if last.result in ACTIVE_RUNS else _with_record(readers, export, last)


def _with_record(readers: Readers, export: str, last: LastRun) -> LastRun:
    """Add the run record, unless the run failed before it wrote one.

    Runs outside of Glue have records of their own.
    """
    run = outcome.JobRun(last.id, datetime.fromtimestamp(last.began, UTC))
    record = outcome.find_record(readers.objects, f"{readers.settings.prefix}/{export}/runs/", run)
    if record is None:
        return last
    windows = tuple(f"{window['window']} {window['state']}" for window in record.get("windows", []))
    return attrs.evolve(
        last, record=str(record["state"]), windows=windows, reason=str(record.get("reason") or last.reason)
    )


def _observe_run(last: LastRun | Observation | None) -> Observation | None:
    if last is None or isinstance(last, Observation):
        return last
    if last.result not in _FAILED_RUNS and last.record not in _FAILED_RECORDS:
        return None
    message = f"the last run {last.record or last.result.lower()}: {last.reason or 'no reason given'}"
    return Observation(State.WRONG, message=message)


def _observe_lateness(readers: Readers, export: MonitoredExport, *, has_run: bool) -> Observation | None:
    hours = readers.results.late(export)
    if hours > 0:
        return Observation(State.WRONG, hours, f"{format_hours(hours)} late")
    first = readers.results.first_run(export)
    if first and readers.ctx.clock.time() < (first + timedelta(hours=export.late_after_hours)).timestamp():
        kind = "scheduled run" if has_run else "run"
        message = f"the first {kind} comes at {first:%Y-%m-%d %H:%M} UTC"
        return Observation(State.WAITING, message=message)
    return None


def observe_engineers(readers: Readers) -> Observation | None:
    """Return how many engineers get no alarms, None if all get them.

    An alarm about this would not reach them.
    """
    ctx = readers.ctx
    topic = f"arn:aws:sns:{ctx.region}:{ctx.account}:{readers.settings.deployment}-alarms"
    return _observe_topic(readers, topic, len(ctx.deployment.alerts.engineers), "engineers", "no alarms")


def _observe_topic(readers: Readers, topic: str, people: int, who: str, gets: str) -> Observation | None:
    unreached = observe(lambda: measurements.find_unreached(readers.ctx.client("sns"), topic, people))
    if isinstance(unreached, Observation):
        return unreached
    reasons = []
    if unreached.pending:
        reasons.append(
            f"{unreached.pending} of {people} {who} have not confirmed the mail from AWS: they get {gets}"
        )
    if unreached.ended:
        command = f"aws sns subscribe --region {readers.ctx.region} --topic-arn {topic}"
        again = f"`{command} --protocol email --notification-endpoint ADDRESS`"
        ended = "unsubscribed, perhaps by a scanner of mails, or did not confirm in two days"
        reasons.append(
            f"{unreached.ended} of {people} {who} {ended}: they get {gets}. Subscribe them again: {again}"
        )
    return Observation(State.ACTION_NEEDED, float(sum(unreached)), "; ".join(reasons)) if reasons else None
