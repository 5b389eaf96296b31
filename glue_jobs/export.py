"""The script that Glue starts, and the same one that runs locally: publish every closed window that needs it.

`python -m glue_jobs.export --export weekly_sales --as-of 2026-11-16T06:00:00Z --database lkc-… --bucket …`
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import attrs
from pyspark.sql import SparkSession

from exports import contract as contracts
from exports.contract import Contract
from exports.toml_model import BadFile
from exports.windows import Window
from glue_jobs import arguments, log, planning, runs, session, spark_errors
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.arguments import Arguments
from glue_jobs.delivery import publish
from glue_jobs.delivery.publish import Manifest
from glue_jobs.errors import BadInput, Blocked, DataProblem, ExportError, Inconsistent
from glue_jobs.expressions import require_allowed
from glue_jobs.job import Job
from glue_jobs.keys import fetch
from glue_jobs.runs import Clock, Phases, RunRecord
from glue_jobs.source import require_fields, require_same_fields
from glue_jobs.store import Bucket, Services, connect
from glue_jobs.table_metadata import pin
from glue_jobs.window import run_window

#: Trouble of one window; the next one is tried nevertheless.
_OF_ONE_WINDOW = (DataProblem, Blocked, Inconsistent)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code; 0 also where a window has to wait. The record of the run says what happened."""
    log.to_stderr()
    try:
        record = run(arguments.parse(sys.argv[1:] if argv is None else argv, now=runs.utc_now()))
    except ExportError as error:
        print(f"export failed: {error}", file=sys.stderr)  # noqa: T201 - Glue's log is this stream
        return error.exit_code
    return exit_code(record)


@attrs.frozen
class Surroundings:
    """What a run takes from its caller: who hears of its phases, what time it is, a session that already runs."""

    tell: runs.Tell = log.phase
    clock: Clock = runs.utc_now
    spark: SparkSession | None = None


def run(args: Arguments, around: Surroundings = Surroundings()) -> RunRecord:
    """Runs an export. Raises ExportError where nothing could be begun; trouble of a window is in the record."""
    contract = _contract(args.export)
    services = connect()
    bucket = Bucket(services.s3, args.bucket, args.prefix)
    record = runs.begin(bucket, contract.name, args.as_of, args.time_limit, around.clock)
    try:
        job = _job(args, contract, services=services, bucket=bucket, record=record, around=around)
        _windows(job, args)
    except BaseException as thrown:
        error = spark_errors.told(thrown) if isinstance(thrown, Exception) else _CANCELLED
        with suppress(ExportError):  # what went wrong first is what counts
            _end(record, bucket, around.clock, error)
        if error is _CANCELLED or error is thrown:
            raise
        log.cause(thrown)
        raise error from None
    _end(record, bucket, around.clock, None)
    return record


_CANCELLED = ExportError("EXP-CANCELLED", "the run was stopped", "Run again; nothing is left half done")


def exit_code(record: RunRecord) -> int:
    """The worst of what happened to the windows."""
    return max((window.get("exit_code", 0) for window in record.windows), default=0)


def _contract(name: str) -> Contract:
    try:
        return contracts.load(name)
    except BadFile as bad:
        raise BadInput("EXP-CONTRACT", str(bad), "Correct the contract; `lakeferry export check` tells the same") from None


def _job(
    args: Arguments, contract: Contract, *, services: Services, bucket: Bucket, record: RunRecord, around: Surroundings
) -> Job:
    starting = _Starting(around.spark, args.warehouse)
    table = pin(services, args.database, args.table or contract.source.topic)
    require_fields(contract, table)
    key = fetch(services, args.pseudonym_secret) if contract.hashed else None
    keeps = contract.aggregate is not None and contract.aggregate.keep_as_table
    return Job(
        spark=starting.session,
        contract=contract,
        table=table,
        key=key,
        bucket=bucket,
        record=record,
        phases=Phases(record, around.tell),
        clock=around.clock,
        aggregates=AggregateTable(services, starting.session, contract, args.aggregates_database) if keeps else None,
        dry_run=args.dry_run,
        accept_fewer_events=args.accept_fewer_events,
    )


class _Starting:
    """A session that starts in the background while the run reads what it needs to plan."""

    def __init__(self, running: SparkSession | None, warehouse: str) -> None:
        self._session = running
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._start, args=(warehouse,), daemon=True)
        if running is None:
            self._thread.start()

    def session(self) -> SparkSession:
        if self._session is None:
            self._thread.join()
        if self._session is None:
            raise self._error or RuntimeError("the session did not start")
        return self._session

    def _start(self, warehouse: str) -> None:
        try:
            self._session = session.start(warehouse)
        except BaseException as error:  # told to whoever asks for the session
            self._error = error


def _windows(job: Job, args: Arguments) -> None:
    earlier = runs.latest(job.bucket, job.contract.name, job.record.id)
    publish.sweep(job.bucket, job.contract.name, job.record.id, earlier, job.clock())
    published, skipped = (_labels(job.bucket, f"{job.contract.name}/{folder}/") for folder in ("manifests", "skipped"))
    rule = job.contract.window
    rule = attrs.evolve(rule, first=args.first_day or rule.first)
    plan = planning.plan(rule, args.as_of, published=published, skipped=skipped, tried=runs.tried(earlier))
    job.record.windows_left = plan.left
    if plan.windows:
        require_same_fields(require_allowed(job.spark(), job.contract), job.contract, job.table)
    for window in plan.windows:
        job.record.working_on = window.label
        job.record.save(job.bucket)
        document = _one_window(job, window)
        job.record.windows.append(document)
        job.record.working_on = None
        if document.get("stops"):
            break


def _one_window(job: Job, window: Window) -> dict[str, Any]:
    """The window's document, also where it failed."""
    try:
        return run_window(job, window, _before(job, window))
    except Exception as thrown:  # Spark and boto3 throw many kinds; told() names them
        error = spark_errors.told(thrown)
        state = "blocked" if isinstance(error, Blocked) else "failed"
        if error is not thrown:
            log.cause(thrown)
        return {
            "window": window.label,
            "state": state,
            "code": error.code,
            "reason": error.what,
            "remedy": error.remedy,
            "exit_code": error.exit_code,
            "stops": not isinstance(error, _OF_ONE_WINDOW),
        }


def _before(job: Job, window: Window) -> Manifest | None:
    """The manifest of the latest published window before this one."""
    earlier = [label for label in _labels(job.bucket, f"{job.contract.name}/manifests/") if label < window.label]
    found = job.bucket.read_json(f"{job.contract.name}/manifests/{max(earlier)}.json") if earlier else None
    return found[0] if found else None


def _labels(bucket: Bucket, folder: str) -> set[str]:
    return {key.removeprefix(folder).removesuffix(".json") for key in bucket.keys(folder)}


def _end(record: RunRecord, bucket: Bucket, clock: Clock, error: ExportError | None) -> None:
    failed = [window for window in record.windows if window.get("exit_code")]
    if error is not None:
        record.state, record.reason = "failed", f"{error.code}  {error.what}. {error.remedy}"
    elif failed:
        record.state, record.reason = failed[0]["state"], f"{failed[0]['code']}  {failed[0]['reason']}. {failed[0]['remedy']}"
    else:
        record.state = "done"
    record.ended_at = clock()
    record.save(bucket)


if __name__ == "__main__":
    sys.exit(main())
