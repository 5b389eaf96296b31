"""Publish every closed window that needs it. This is the script of the Glue job and of local runs.

`python -m glue_jobs.export --export weekly_sales --as-of 2026-11-16T06:00:00Z --database lkc-… --bucket …`
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import attrs
from pyspark.sql import SparkSession

from config.exports import contracts
from config.exports.contract import Contract, WindowRule
from config.exports.window_ranges import BadWindows, select_windows
from config.exports.windows import Window, list_closed_windows
from config.toml_model import BadFile
from glue_jobs import additivity, arguments, errors, prepare, probe, runs, session
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.arguments import MISSING, PUBLISHED, Arguments
from glue_jobs.catalogs import open_catalog
from glue_jobs.delivery import cleanup
from glue_jobs.delivery.personal_scan import require_patterns
from glue_jobs.delivery.publish import Listing
from glue_jobs.errors import BadInput, Blocked, DataProblem, ExportError, Inconsistent
from glue_jobs.expression_guard import require_allowed
from glue_jobs.pseudonyms import fetch_key
from glue_jobs.run_context import RunContext
from glue_jobs.runs import Clock, OnPhase, RunRecord
from glue_jobs.source import require_fields, require_same_fields, with_appended_at
from glue_jobs.store import Bucket, Services, connect
from glue_jobs.window import WindowExport

_LOG = logging.getLogger("lakeferry.export")
#: Errors that affect one window only; the run goes on with the next one.
_OF_ONE_WINDOW = (DataProblem, Blocked, Inconsistent)
#: Errors of AWS and of Tableflow's catalog that another attempt may not meet.
_RETRYABLE = ("EXP-AWS-FAILED", "EXP-AWS-UNREACHABLE", "EXP-CATALOG-UNREACHABLE", "EXP-CREDENTIALS-ENDED")
_CANCELLED = ExportError("EXP-CANCELLED", "the run was stopped")


def main(argv: Sequence[str] | None = None) -> int:
    """Run an export and return the exit code, which is 0 also if a window has to wait.

    The run's record has the details. In Glue, a failure raises SystemExit with its reason, because Glue shows
    only that text with the run, and keeps no exit code.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    words = sys.argv[1:] if argv is None else argv
    try:
        args = arguments.parse(words, now=runs.utc_now())
        if args.probe:
            return probe.run(args)
        if args.prepare_table:
            return prepare.run(args, _load_contract(args.export))
        record = run(args)
    except ExportError as error:
        print(f"export failed: {error}", file=sys.stderr)  # noqa: T201 - Glue's log is this stream
        code = error.exit_code
        reason = str(error)
    else:
        code = exit_code(record)
        reason = record.reason or ""
    if code and arguments.is_run_of_glue(words):
        sys.exit(reason)
    return code


def log_phase(window: str, phase: str) -> None:
    _LOG.info("%s: %s", window, phase)


def run(
    args: Arguments,
    *,
    spark: SparkSession | None = None,
    on_phase: OnPhase = log_phase,
    clock: Clock = runs.utc_now,
) -> RunRecord:
    """Run an export, in the session `spark` if there is one.

    Raises ExportError if the run as a whole fails. Errors of single windows are in the record.
    """
    contract = _load_contract(args.export)
    rule = attrs.evolve(contract.window, first=args.first_day or contract.window.first)
    asked = _select_asked(args, rule)
    services = connect(args.region)
    bucket = Bucket(services.s3, args.bucket, args.prefix)
    record = runs.begin(
        bucket,
        contract.name,
        args.as_of,
        args.time_limit,
        clock,
        job_run_id=args.job_run_id,
        asked={"windows": args.windows, "only": args.only} if asked is not None else None,
    )
    try:
        started = (lambda: spark) if spark else session.start_in_background(args.warehouse, args.region)
        get_spark = _share_session(started)
        context, durations = _prepare(
            args,
            contract,
            services,
            record,
            rule=rule,
            asked=asked,
            get_spark=get_spark,
            on_phase=on_phase,
            clock=clock,
        )
        _export_windows(context, durations)
    except BaseException as thrown:
        error = errors.translate(thrown) if isinstance(thrown, Exception) else _CANCELLED
        with suppress(ExportError):  # the first error is the one to report
            _end(record, bucket, clock, error)
        if error is _CANCELLED or error is thrown:
            raise
        errors.log_cause(thrown)
        raise error from None
    _end(record, bucket, clock, None)
    return record


def _load_contract(name: str) -> Contract:
    """Raises BadInput that lists all mistakes."""
    try:
        return contracts.load(name)
    except BadFile as bad:
        mistakes = str(bad).removesuffix(".")
        raise BadInput("EXP-CONTRACT", mistakes) from None


def _select_asked(args: Arguments, rule: WindowRule) -> list[Window] | None:
    """Return the windows that the run is asked for, None for every one that needs it. Raises BadInput."""
    if not args.windows:
        return None
    try:
        return select_windows(args.windows, rule, args.as_of)
    except BadWindows as bad:
        raise BadInput("EXP-WINDOWS", str(bad)) from None


def _prepare(
    args: Arguments,
    contract: Contract,
    services: Services,
    record: RunRecord,
    *,
    rule: WindowRule,
    asked: list[Window] | None,
    get_spark: Callable[[], SparkSession],
    on_phase: OnPhase,
    clock: Clock,
) -> tuple[RunContext, dict[str, float]]:
    """Pin the table, clean up after dead runs, and plan the windows.

    Return the context, and by window the seconds that an earlier run took.
    """
    bucket = Bucket(services.s3, args.bucket, args.prefix)
    catalog = open_catalog(services, get_spark, args.tableflow_secret, args.catalog_uri, args.proxy)
    table = catalog.pin(args.database, args.table or catalog.name_table(contract.source))
    require_fields(contract, table)
    keeps_table = contract.keeps_table
    listing = Listing.read(bucket, contract.name)
    earlier = runs.load_recent(
        bucket, contract.name, [run_id for run_id in listing.labels("runs") if run_id != record.id]
    )
    cleanup.clean_up_dead_runs(listing, record.id, earlier, clock())
    contract = contract.starting_by(rule.first)
    published = listing.labels("manifests")
    skipped = listing.labels("skipped")
    tried = runs.find_last_failures(earlier)
    if asked is None:
        to_check = runs.list_windows_to_check(earlier, keeps_table=keeps_table)
        planned = plan(rule, args.as_of, published=published, skipped=skipped, tried=tried, to_check=to_check)
    else:
        planned = plan_asked(asked, args.only, settled={*published, *skipped}, tried=tried)
    context = RunContext(
        spark=get_spark,
        catalog=catalog,
        contract=contract,
        table=table,
        key=fetch_key(services, args.pseudonym_secret) if contract.hashed else None,
        bucket=bucket,
        record=record,
        listing=listing,
        windows=planned,
        first_day=rule.first,
        computed=runs.find_last_computed(earlier),
        clock=clock,
        on_phase=on_phase,
        aggregates=AggregateTable(services, get_spark, contract, args.aggregates_database)
        if keeps_table
        else None,
        dry_run=args.dry_run,
        accept_fewer_events=args.accept_fewer_events,
        accept_window_change=args.accept_window_change,
        partitions=args.partitions,
        complete_until=args.complete_until,
    )
    return context, runs.find_durations(earlier)


def _share_session(wait: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    """Return a function that waits for the session and activates it in the thread that calls it."""
    return lambda: session.activate(wait())


def exit_code(record: RunRecord) -> int:
    """Return the highest exit code of the windows, or 0."""
    return max((window.get("exit_code", 0) for window in record.windows), default=0)


def plan(
    rule: WindowRule,
    as_of: datetime,
    *,
    published: Container[str],
    skipped: Container[str],
    tried: Mapping[str, str],
    to_check: Container[str] = (),
) -> list[Window]:
    """Return windows in the order in which the run processes them.

    The window that closed last comes first, unless it failed in an earlier run, so that no older one can
    delay it. If the one before it is new too, that comes before it, because the report compares them. Then
    come missing windows, oldest first; published windows that late events may still change; and windows that
    failed in an earlier run, least recently tried first. So a window that fails in each run, or ends each
    run, does not delay others.

    `published` has the labels of windows with a manifest, and `skipped` those of windows that were empty and
    need none. `tried` has the id of the run that last tried a window and failed. `to_check` has published
    windows that are processed regardless of their age (`runs.list_windows_to_check`).
    """
    closed = list(list_closed_windows(rule, as_of))
    if not closed:
        return []
    *earlier, latest = closed
    restated = timedelta(days=rule.restate_for_days)

    def is_settled(window: Window) -> bool:
        return window.label in published or window.label in skipped

    def may_change(window: Window) -> bool:
        return as_of < window.end + restated or window.label in to_check

    newest = [latest] if not is_settled(latest) or may_change(latest) else []
    missing = [window for window in earlier if not is_settled(window)]
    restatable = [window for window in earlier if is_settled(window) and may_change(window)]
    ordered = sorted([*newest, *missing, *restatable], key=lambda window: tried.get(window.label, ""))
    if ordered[:1] == newest and not is_settled(latest):
        # The report of the latest window compares it with the one before.
        previous = [window for window in earlier[-1:] if window in missing and window.label not in tried]
        return [*previous, *(window for window in ordered if window not in previous)]
    return ordered


def plan_asked(
    asked: list[Window], only: str, *, settled: Container[str], tried: Mapping[str, str]
) -> list[Window]:
    """Return the windows that a run was asked for, in the order in which it processes them: oldest first, and
    after the others those that failed in an earlier run, least recently tried first.

    `settled` has the labels of windows that are published, or were empty and need no file. `only` leaves out
    these (MISSING) or all others (PUBLISHED).
    """
    wanted = {MISSING: (False,), PUBLISHED: (True,)}.get(only, (False, True))
    windows = [window for window in asked if (window.label in settled) in wanted]
    return sorted(windows, key=lambda window: tried.get(window.label, ""))


def _export_windows(run: RunContext, durations: dict[str, float]) -> None:
    """Export the windows one after another. `durations` has the seconds that earlier runs took, by window.

    A window that is expected to take longer than the time that is left is not begun, unless it is the run's
    first.
    """
    record = run.record
    record.windows_left = len(run.windows)
    if run.windows:
        require_patterns(run.contract)
        require_same_fields(require_allowed(run.spark(), run.contract), run.contract, run.table)
        run = attrs.evolve(run, contract=additivity.decide_additivity(run.spark(), run.contract))
        read_events = partial(run.catalog.read_events, run.table)
        run = attrs.evolve(run, table=with_appended_at(run.table, read_events))
    for window in run.windows:
        began = run.clock()
        # A window is expected to take as long as the last time or, if that is unknown, as the longest.
        expected = durations.get(window.label, max(durations.values(), default=0.0))
        seconds_left = (record.expires_at - began).total_seconds()
        if record.windows and expected > seconds_left:
            continue
        if run.catalog.credentials_end:
            run = run.reopen()
        record.working_on = window.label
        record.save(run.bucket)
        document = _export_or_explain(run, window, tries_left=1)
        record.windows.append(document | {"seconds": round((run.clock() - began).total_seconds(), 3)})
        durations |= runs.find_durations([{"windows": record.windows[-1:]}])
        record.working_on = None
        record.windows_left -= 1
        if document.get("stops"):
            break


def _export_or_explain(run: RunContext, window: Window, *, tries_left: int) -> dict[str, Any]:
    """Export a window and return its document for the run's record, also if it failed."""
    attempt = WindowExport(run, window)
    try:
        return attempt.export()
    except Exception as thrown:  # Spark and boto3 raise many classes
        # Once a window is published, its aggregate is written to a table, with the role of the job.
        translate = errors.translate if attempt.may_be_published else run.catalog.translate
        error = translate(thrown)
        if error is not thrown:
            errors.log_cause(thrown)
        if tries_left and error.code in _RETRYABLE and not attempt.may_be_published:
            _LOG.info("%s: %s; trying again", window.label, error.what)
        else:
            return _explain(window, error, may_be_published=attempt.may_be_published)
    return _export_or_explain(run.reopen(), window, tries_left=tries_left - 1)


def _explain(window: Window, error: ExportError, *, may_be_published: bool) -> dict[str, Any]:
    return {
        "window": window.label,
        "state": "blocked" if isinstance(error, Blocked) else "failed",
        "code": error.code,
        "reason": error.what,
        "remedy": error.remedy,
        "exit_code": error.exit_code,
        "stops": not isinstance(error, _OF_ONE_WINDOW) and error.code not in _RETRYABLE,
        "may_be_published": may_be_published,
    }


def _end(record: RunRecord, bucket: Bucket, clock: Clock, error: ExportError | None) -> None:
    failed = [window for window in record.windows if window.get("exit_code")]
    if error is not None:
        record.state = "failed"
        record.reason = f"{error.code}  {error.what}. {error.remedy}"
    elif failed:
        record.state = failed[0]["state"]
        record.reason = f"{failed[0]['code']}  {failed[0]['reason']}. {failed[0]['remedy']}"
    else:
        record.state = "done"
    record.ended_at = clock()
    record.save(bucket)


if __name__ == "__main__":
    # AWS doesn't document that Glue treats sys.exit(0) as a success, so the script just ends.
    if code := main():
        sys.exit(code)
