"""`lakeferry export run --stage`, `export backfill` and `export restate`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs

from config.exports.file_model import ROW_ROLES
from config.exports.window_ranges import write_ranges
from glue_jobs.arguments import MISSING, PUBLISHED
from glue_jobs.runs import RunRecord
from lakeferry.deployment.context import open_context
from lakeferry.errors import CommandFailed
from lakeferry.exports import job_runs
from lakeferry.exports.deployed import DeployedExport, find_export
from lakeferry.exports.job_runs import EndedRun
from lakeferry.local import results
from lakeferry.output import Output, find_program_name

#: States of a window whose files are visible.
_VISIBLE: Final = ("published", "unchanged", "superseded")


@attrs.define
class RangeResult:
    """`left` are windows of the range that no run has begun."""

    left: list[str] = attrs.field(factory=list)
    runs: list[EndedRun] = attrs.field(factory=list)

    def add(self, ended: EndedRun) -> None:
        self.runs.append(ended)
        windows = ended.record.windows if ended.record else []
        begun = {window["window"] for window in windows}
        self.left = [label for label in self.left if label not in begun]
        if ended.record and ended.record.state != "running" and not ended.record.windows_left:
            # The run planned no other window: somebody else has published it, or taken it back.
            self.left = []

    @property
    def windows(self) -> list[dict[str, Any]]:
        records = [run.record for run in self.runs if run.record]
        return [window for record in records for window in record.windows]


def run_export(
    output: Output, stage: str, name: str, *, wait: bool, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Start one run with these arguments of the job, and follow it if `wait`.

    Raises CommandFailed: with the code of the run if it fails.
    """
    with open_context(stage) as ctx:
        export = find_export(ctx, name)
        given = {"as-of": export.now.isoformat(), **arguments}
        export.require_valid(given)
        with output.step(f"Running {name}") as report:
            run_id = job_runs.start_run(export, given)
            output.info(f"Started run {run_id} of job {export.job}")
            ended = job_runs.follow_run(output, export, run_id, report) if wait else None
        source = f"job {export.job} of stage {stage}"
        if ended is None:
            output.print(f"Started run {run_id} of job {export.job}; nobody waits for it.")
            output.print(f"Next: {job_runs.describe_goings(export, run_id)}")
            started: dict[str, Any] = dict.fromkeys(field.name for field in attrs.fields(RunRecord))
            values = {"export": name, "as_of": given["as-of"], "state": "started", "job_run_id": run_id}
            return {"source": source, **started, **values}
        failure = job_runs.find_failure(export, ended)
        _report_runs(output, export, [ended])
        if ended.record is None or failure:
            raise failure or CommandFailed("EXP-DIED", f"run {run_id} wrote no record")
        _report_next(output, export, ended.record)
        return {"source": source, **attrs.asdict(ended.record)}


def run_range(
    output: Output, stage: str, name: str, *, windows: str, only: str, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Compute the missing or the published windows of a range, in as many runs as that takes.

    Raises CommandFailed: with the highest exit code of a window, or the error of a run that failed.
    """
    with open_context(stage) as ctx:
        export = find_export(ctx, name)
        export.require_valid({"as-of": export.now.isoformat(), **arguments})
        selected = [window.label for window in export.select(windows, export.now)]
        settled = export.list_settled()
        wanted = [label for label in selected if (label in settled) == (only == PUBLISHED)]
        if not wanted:
            output.print(_describe_nothing_to_do(export, selected, windows, only))
            return _build_document(stage, name, windows, RangeResult())
        output.info(f"{len(wanted)} of {len(selected)} windows are {only}: {_write(export, wanted)}")
        result = RangeResult(wanted)
        failure: CommandFailed | None
        try:
            _run_until_done(output, export, result, only, arguments)
            failure = _find_failure(export, result)
        except CommandFailed as stopped:
            failure = stopped
        except KeyboardInterrupt:
            message = "interrupted between two runs; none of this command is in progress"
            failure = CommandFailed("EXPORT-STOPPED", message)
        _report_runs(output, export, result.runs)
        if failure:
            raise _add_way_to_continue(export, failure, result, windows, only)
        output.print(_describe_next(export, only))
        return _build_document(stage, name, windows, result)


def _run_until_done(
    output: Output, export: DeployedExport, result: RangeResult, only: str, arguments: Mapping[str, str]
) -> None:
    """Start and follow runs until no window is left, or until one stops the others.

    Raises CommandFailed if a run can't be started or followed.
    """
    with output.step(f"Running {export.name}") as report:
        while result.left:
            asked = {"windows": _write(export, result.left), "only": only}
            given = {"as-of": export.now.isoformat(), **arguments, **asked}
            if result.runs:
                run_id = job_runs.start_next_run(output, export, given, report)
            else:
                run_id = job_runs.start_run(export, given)
            number = len(result.runs) + 1
            output.info(f"Run {number}, {run_id}: {len(result.left)} windows, {asked['windows']}")
            ended = job_runs.follow_run(output, export, run_id, report)
            result.add(ended)
            if job_runs.find_failure_of_run(export, ended) or ended.stops_others:
                return


def _find_failure(export: DeployedExport, result: RangeResult) -> CommandFailed | None:
    """Return the error of a run as a whole, else that of the window with the highest exit code."""
    last = result.runs[-1]
    if failure := job_runs.find_failure_of_run(export, last):
        return failure
    if last.record is None:
        return CommandFailed("EXP-DIED", f"run {last.job_run.id} wrote no record")
    return results.find_failure(attrs.evolve(last.record, windows=result.windows))


def _add_way_to_continue(
    export: DeployedExport, failure: CommandFailed, result: RangeResult, windows: str, only: str
) -> CommandFailed:
    """Return the error with how to continue, if windows are left."""
    document = _build_document(export.ctx.stage, export.name, windows, result)
    hint = failure.hint
    if result.left:
        again = f"{_name_command(export, only)} --windows {_write(export, result.left)}"
        count = len(result.left)
        rest = f"{count} windows are left: once no run is in progress, continue with `{again}`"
        hint = f"{hint.rstrip('.')}. {rest}"
    return CommandFailed(failure.code, failure.message, hint, details=document, why=failure.why)


def _write(export: DeployedExport, labels: Collection[str]) -> str:
    return write_ranges(labels, [window.label for window in export.list_closed()])


def _name_command(export: DeployedExport, only: str) -> str:
    verb = "backfill" if only == MISSING else "restate"
    return f"{find_program_name()} export {verb} {export.name} --stage {export.ctx.stage}"


def _describe_nothing_to_do(export: DeployedExport, selected: list[str], windows: str, only: str) -> str:
    if only == MISSING:
        again = f"{_name_command(export, PUBLISHED)} --windows {windows}"
        return (
            f"Nothing to do: all {len(selected)} windows are published, or were empty and need no file. "
            f"No run was started.\nNext: `{again}` computes them again"
        )
    again = f"{_name_command(export, MISSING)} --windows {windows}"
    return (
        f"Nothing to do: none of the {len(selected)} windows is published. No run was started.\n"
        f"Next: `{again}` publishes them"
    )


def _report_runs(output: Output, export: DeployedExport, runs: list[EndedRun]) -> None:
    """Print the numbers of each window's manifest, its file, and where the records of the runs are."""
    windows = RangeResult(runs=runs).windows
    ordered = sorted(windows, key=lambda window: str(window["window"]))
    rows = [
        [
            str(window["window"]),
            results.STATES.get(window["state"], window["state"]),
            str(window.get("generation") or ""),
            f"{window['rows']['rows']:,}" if "rows" in window else "",
            results.describe_totals(window),
        ]
        for window in ordered
    ]
    if rows:
        output.table(["window", "state", "generation", "rows", "totals"], rows)
    bucket = f"s3://{export.arguments['--bucket']}"
    for window in ordered:
        files = window.get("files", []) if window["state"] in _VISIBLE else []
        for file in files:
            if file["role"] in ROW_ROLES:
                output.print(f"{window['window']}: {bucket}/{file['key']}")
    for run in runs:
        if run.record:
            output.print(f"Record: {bucket}/{export.locate_folder('runs')}{run.record.id}.json")


def _report_next(output: Output, export: DeployedExport, record: RunRecord) -> None:
    name = find_program_name()
    if not record.windows:
        output.print("Nothing to do: every closed window is published and final.")
    if record.windows_left:
        output.print(f"The run did not begin {record.windows_left} more windows.")
        output.print(f"Next: run the same command again, or wait for the next scheduled run of {export.name}")
        return
    output.print(f"Next: `{name} export list --stage {export.ctx.stage}` lists its windows")


def _describe_next(export: DeployedExport, only: str) -> str:
    changed = "published" if only == MISSING else "checked, and published again where their rows had changed"
    name = find_program_name()
    return (
        f"The range is done: its {only} windows are {changed}.\n"
        f"Next: `{name} export list --stage {export.ctx.stage}` lists its windows"
    )


def _build_document(stage: str, name: str, windows: str, result: RangeResult) -> dict[str, Any]:
    records = [attrs.asdict(run.record) for run in result.runs if run.record]
    return {
        "stage": stage,
        "export": name,
        "asked": windows,
        "runs": records,
        "windows": result.windows,
        "left": result.left,
    }
