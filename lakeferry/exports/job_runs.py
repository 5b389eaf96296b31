"""Start a run of an export's Glue job, follow it to its end, and say how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from glue_jobs.runs import RunRecord
from lakeferry.error_translation import as_failure, translate_aws_errors
from lakeferry.errors import CommandFailed, find_entry, load_catalogue, to_plain_text
from lakeferry.exports.deployed import DeployedExport
from lakeferry.health.exports import ACTIVE_RUNS
from lakeferry.local import results
from lakeferry.output import Output, Reporter, find_program_name, format_duration
from lambdas.notifications import outcome
from lambdas.shared.aws import read_error_code
from lambdas.shared.errors import LakeferryError

#: Seconds between two looks at a run.
_POLL: Final = 3.0
#: Seconds between two attempts to start a run while another one is in progress.
_PAUSE: Final = 15.0
#: Minutes after Glue's time limit at which a run that hasn't ended isn't watched any more: Glue also needs
#: time to start it.
_SPARE_MINUTES: Final = 30
_TIMES: Final = ("as_of", "started_at", "expires_at", "ended_at")
_BUSY: Final = "ConcurrentRunsExceededException"
_UNKNOWN: Final = "EXP-UNEXPECTED"


@attrs.frozen
class EndedRun:
    """A run that has ended in the state `state` of Glue. `record` is None if it wrote none."""

    job_run: outcome.JobRun
    state: str
    record: RunRecord | None

    @property
    def stops_others(self) -> bool:
        """Return whether a window failed for a reason that also affects the others, or none was begun."""
        windows = self.record.windows if self.record else []
        return not windows or any(window.get("stops") for window in windows)


def start_run(export: DeployedExport, arguments: Mapping[str, str]) -> str:
    """Start a run and return Glue's id of it. `arguments` have no hyphens in front.

    Raises CommandFailed if one is in progress.
    """
    given = {f"--{name}": value for name, value in arguments.items()}
    with translate_aws_errors(f"starting job {export.job}"):
        run_id = _try_to_start(export, given)
    if run_id:
        return run_id
    active = find_active_run(export)
    about = f", {active}," if active else ""
    message = f"a run of export {export.name}{about} is in progress, and it has one at a time"
    hint = f"Run this again when it has ended: {describe_watching(export)}. Nothing was started"
    raise CommandFailed("EXPORT-RUNNING", message, hint)


def start_next_run(
    output: Output, export: DeployedExport, arguments: Mapping[str, str], report: Reporter
) -> str:
    """Start a run, after one that may be in progress. Raises CommandFailed if that one doesn't end."""
    clock = export.ctx.clock
    until = clock.time() + (export.minutes + _SPARE_MINUTES) * 60
    is_told = False
    while True:
        try:
            return start_run(export, arguments)
        except CommandFailed as failure:
            if failure.code != "EXPORT-RUNNING" or clock.time() >= until:
                raise
            if not is_told:
                output.info(f"{failure.message}: waiting for its end")
                is_told = True
        report("waiting for another run")
        clock.sleep(_PAUSE)


def follow_run(output: Output, export: DeployedExport, run_id: str, report: Reporter) -> EndedRun:
    """Show a run's progress until it has ended.

    Raises CommandFailed if the user interrupts, if it can't be read any more, or if it doesn't end.
    """
    try:
        return _watch(output, export, run_id, report)
    except KeyboardInterrupt:
        message = (
            f"run {run_id} of export {export.name} goes on in AWS; this command only stopped to watch it"
        )
        raise CommandFailed("EXPORT-STOPPED", message, describe_goings(export, run_id)) from None
    except (CommandFailed, LakeferryError) as error:
        failure = error if isinstance(error, CommandFailed) else as_failure(error)
        message = f"{failure.message}. Run {run_id} of export {export.name} goes on in AWS"
        raise CommandFailed(failure.code, message, failure.hint, why=failure.why) from None


def describe_watching(export: DeployedExport) -> str:
    name = find_program_name()
    stage = export.ctx.stage
    log = f"`{name} logs {export.name} --stage {stage}` shows its log so far"
    return f"{log}, and `{name} status --stage {stage}` how it ended"


def describe_goings(export: DeployedExport, run_id: str) -> str:
    """Return how to watch a run that nobody watches, and how to stop it."""
    words = f"--region {export.ctx.region} --job-name {export.job} --job-run-ids {run_id}"
    return f"{describe_watching(export)}; `aws glue batch-stop-job-run {words}` stops it"


def find_failure(export: DeployedExport, ended: EndedRun) -> CommandFailed | None:
    """Return the error of a run, that with which `lakeferry export run` would end on this machine."""
    record = ended.record
    of_run = find_failure_of_run(export, ended)
    return of_run or (results.find_failure(record) if record else None)


def find_failure_of_run(export: DeployedExport, ended: EndedRun) -> CommandFailed | None:
    """Return the error of a run as a whole, None if at most single windows failed."""
    record = ended.record
    if ended.state == "TIMEOUT":
        message = f"Glue ended the run after {export.minutes} minutes, its time limit"
        return CommandFailed("EXP-TIME-LIMIT", message)
    if ended.state == "STOPPED":
        return CommandFailed("EXP-CANCELLED", "somebody stopped the run")
    if record is None or record.state == "running":
        news = outcome.describe_dead_run(export.name, ended.job_run.id, ended.job_run.message)
        hint = describe_watching(export) if news.code == outcome.DIED else ""
        return _build_failure(news.code, news.reason, hint)
    code, _, what = str(record.reason or "").partition("  ")
    of_windows = [window["code"] for window in record.windows if window.get("exit_code")]
    if record.state in outcome.FAILURE_STATES and code not in of_windows:
        return _build_failure(code, what)
    return None


def _build_failure(code: str, text: str, hint: str = "") -> CommandFailed:
    """Return the error with a code that the job wrote. `text` may end with the catalogue's remedy."""
    known = code if code in load_catalogue() else _UNKNOWN
    remedy = to_plain_text(find_entry(known).remedy).removesuffix(".")
    return CommandFailed(known, text.removesuffix(remedy).rstrip(". "), hint)


def find_active_run(export: DeployedExport) -> str:
    """Return Glue's id of a run in progress, "" if there is none any more. Raises CommandFailed."""
    with translate_aws_errors(f"listing runs of job {export.job}"):
        answer = export.ctx.client("glue").get_job_runs(JobName=export.job, MaxResults=20)
    active = [run["Id"] for run in answer["JobRuns"] if run["JobRunState"] in ACTIVE_RUNS]
    return active[0] if active else ""


def read_last_run(export: DeployedExport) -> EndedRun | None:
    """Return the run that started last, which may be in progress, without its record. None if there is none.

    Raises CommandFailed.
    """
    with translate_aws_errors(f"listing runs of job {export.job}"):
        answer = export.ctx.client("glue").get_job_runs(JobName=export.job, MaxResults=20)
    if not answer["JobRuns"]:
        return None
    run = max(answer["JobRuns"], key=lambda job_run: job_run["StartedOn"])
    job_run = outcome.JobRun(run["Id"], run["StartedOn"].astimezone(UTC), run.get("ErrorMessage") or "")
    return EndedRun(job_run, str(run["JobRunState"]), None)


def _try_to_start(export: DeployedExport, arguments: dict[str, str]) -> str:
    """Return the id of the run, "" if another one is in progress. Raises ClientError, BotoCoreError."""
    try:
        answer = export.ctx.client("glue").start_job_run(JobName=export.job, Arguments=arguments)
    except ClientError as error:
        if read_error_code(error) == _BUSY:
            return ""
        raise
    return str(answer["JobRunId"])


def _watch(output: Output, export: DeployedExport, run_id: str, report: Reporter) -> EndedRun:
    clock = export.ctx.clock
    began = clock.time()
    state = ""
    shown = 0
    record: RunRecord | None = None
    while True:
        before = state
        job_run, state = _read_job_run(export, run_id)
        record = _read_record(export, job_run, record)
        windows = record.windows if record else []
        if state != before:
            output.info(f"{run_id}: {state}")
        for window in windows[shown:]:
            output.info(f"  {_describe_window(window)}")
        shown = len(windows)
        if state not in ACTIVE_RUNS:
            return EndedRun(job_run, state, record)
        seconds = clock.time() - began
        if seconds >= (export.minutes + _SPARE_MINUTES) * 60:
            message = f"run {run_id} is still {state} after {format_duration(seconds)}"
            raise CommandFailed("EXPORT-RUNNING", message, describe_goings(export, run_id))
        report(f"{format_duration(seconds)}  {state}  {_describe_work(record)}")
        clock.sleep(_POLL)


def _describe_window(window: Mapping[str, Any]) -> str:
    rows = f", {window['rows']['rows']:,} rows" if "rows" in window else ""
    took = f", {format_duration(window['seconds'])}" if "seconds" in window else ""
    return f"{window['window']}: {results.STATES.get(window['state'], window['state'])}{rows}{took}"


def _describe_work(record: RunRecord | None) -> str:
    """Return what a run is doing, and which phases took how long."""
    if record is None:
        return "starting Spark"
    if not record.working_on:
        return "looking for windows" if not record.windows else ""
    phases = [f"{name} {format_duration(seconds)}" for name, seconds in record.phases.items()]
    left = f", {record.windows_left - 1} to come" if record.windows_left > 1 else ""
    spent = f"  ({', '.join(phases)})" if phases else ""
    return f"working on {record.working_on}{left}{spent}"


def _read_job_run(export: DeployedExport, run_id: str) -> tuple[outcome.JobRun, str]:
    """Return the run and its state in Glue. Raises CommandFailed."""
    with translate_aws_errors(f"reading run {run_id} of job {export.job}"):
        run = export.ctx.client("glue").get_job_run(JobName=export.job, RunId=run_id)["JobRun"]
    started = run["StartedOn"].astimezone(UTC)
    return outcome.JobRun(run_id, started, run.get("ErrorMessage") or ""), str(run["JobRunState"])


def _read_record(
    export: DeployedExport, job_run: outcome.JobRun, known: RunRecord | None
) -> RunRecord | None:
    """Return the run's record as it is now, None before the run has written it. Raises LakeferryError."""
    folder = export.locate_folder("runs")
    if known is None:
        document = outcome.find_record(export.objects, folder, job_run)
        return _parse_record(document) if document else None
    stored = export.objects.read(f"{folder}{known.id}.json")
    return _parse_record(stored.document) if stored else known


def _parse_record(document: Mapping[str, Any]) -> RunRecord:
    """Return the record of a document. Keys of another release are left out."""
    names = {field.name for field in attrs.fields(RunRecord)}
    values = {name: value for name, value in document.items() if name in names}
    times = {name: datetime.fromisoformat(values[name]) for name in _TIMES if values.get(name)}
    return RunRecord(**{**values, **times})
