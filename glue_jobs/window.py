"""Export one window, unless it is up to date: compute, upload, verify, describe and publish it."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
from pyspark.sql import functions as F

from config.exports.windows import Window, kind_of
from glue_jobs.aggregate_table import holds
from glue_jobs.borders import REMEDY
from glue_jobs.completeness import Verdict
from glue_jobs.delivery import cleanup, counts, csv, datapackage, manifest, report
from glue_jobs.delivery.checks import explained, implied_checks
from glue_jobs.delivery.counts import PartitionReport, ReadCounts
from glue_jobs.delivery.losses import accept_loss
from glue_jobs.delivery.manifest import INCOMPLETE, Accepted, CheckResult, Fence, File, Manifest, WindowResult
from glue_jobs.delivery.multipart import CsvFormat, StoredFile, write_file
from glue_jobs.delivery.publish import (
    MAY_BE_WRITTEN,
    PUBLISHED,
    SKIPPED,
    SUPERSEDED,
    UNCHANGED,
    WindowLocation,
    may_be_written,
    publish,
    require_no_newer_contract,
)
from glue_jobs.delivery.verify import FileStats, verify_file
from glue_jobs.errors import Blocked, DataProblem, ExportError
from glue_jobs.failing import failing_expressions, failing_totals, naming_expressions
from glue_jobs.platform import code_version
from glue_jobs.rows import WindowFrame
from glue_jobs.run_context import RunContext
from glue_jobs.store import ObjectBody, aws_errors

#: Keys of the manifest that the run's record contains too.
_MANIFEST_KEYS_IN_RECORD = (
    "status",
    "completeness",
    "generation",
    "run_id",
    "rows",
    "headline",
    "files",
    "checks",
    "notes",
)


def export_window(run: RunContext, window: Window) -> dict[str, Any]:
    """Export a window and return its document for the run's record.

    If an error stops it, it removes the files that it wrote, unless a manifest that names them may still
    appear.
    """
    location = run.location(window)
    run.record.require_time(run.clock())
    with run.phase(window, "look for changes"):
        current, _ = location.current() or (None, None)
        cleanup.clean_window(
            location, current, run.listing.leftovers(window.label), run.record.id, run.clock()
        )
        inputs = {"inputs_sha256": _hash_inputs(run, window)}
    require_no_newer_contract(current, run.contract.version)
    _require_fitting_borders(run, window)
    is_accepted_now = window.label in run.borders  # the manifest doesn't say so yet
    document = None if is_accepted_now else _describe_if_up_to_date(run, window, current, inputs)
    if document is not None and document["status"] != INCOMPLETE:
        return document
    verdict = _judge_completeness(run, window, current)
    if document is not None and not verdict.is_complete:
        return document
    if not verdict.is_complete and run.contract.window.on_incomplete_source != "publish":
        return _incomplete_document(run, window, verdict)
    try:
        document = _export(run, window, verdict)
    except BaseException as error:
        if not may_be_written(error):
            with suppress(ExportError):  # the first error is the one to report; the next run removes the rest
                cleanup.discard_files(location, run.record.id)
        raise
    return document | inputs if document["state"] in (PUBLISHED, UNCHANGED, SKIPPED) else document


def _hash_inputs(run: RunContext, window: Window) -> str:
    """Return a hash of everything that determines the rows of a window. While it is the same, so are they."""
    parts = [
        run.table.uuid,
        run.query.files.digest(window),
        run.contract.sha256,
        run.key_version,
        code_version(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _describe_if_up_to_date(
    run: RunContext, window: Window, current: Manifest | None, inputs: dict[str, str]
) -> dict[str, Any] | None:
    """Return the document of a window that was computed from the same inputs, and whose files and aggregate
    are present.

    None if it must be computed.
    """
    before = run.computed.get(window.label, {})
    if before.get("inputs_sha256") != inputs["inputs_sha256"]:
        return None
    if current is None:
        return (
            before if before["state"] == SKIPPED and window.label in run.listing.labels("skipped") else None
        )
    if before["run_id"] != current["run_id"] or not run.listing.has_files(current):
        return None
    if run.aggregates and not holds(run.aggregated, current):
        return None
    return _document(window, UNCHANGED, current) | inputs


def _require_fitting_borders(run: RunContext, window: Window) -> None:
    """Raises Blocked also for a window that is up to date: its neighbour may have failed in the run that
    published it.
    """
    borders = run.borders.get(window.label, [])
    if borders and not run.accept_window_change:
        raise Blocked("EXP-WINDOW-CHANGED", "; ".join(border.what for border in borders), REMEDY)


def _find_accepted(run: RunContext, window: Window, current: Manifest | None) -> Accepted:
    """Return what was accepted for the published generation, and what is accepted now."""
    borders = run.borders.get(window.label, [])
    sentences = [f"{border.what[0].upper()}{border.what[1:]}. That was accepted." for border in borders]
    return manifest.accepted_of(current, run.contract).with_neighbours(
        (border.neighbour for border in borders), sentences
    )


def _judge_completeness(run: RunContext, window: Window, current: Manifest | None) -> Verdict:
    """Return whether the table has all events of the window.

    What was known when the window was published stays true: the table has not lost events of the window
    unnoticed.
    """
    if current is not None and manifest.was_complete(current, window, run.table):
        return Verdict(True, current["completeness"])
    with run.phase(window, "look at partitions"):
        return run.completeness.of(window)


def _incomplete_document(run: RunContext, window: Window, verdict: Verdict) -> dict[str, Any]:
    if run.contract.window.on_incomplete_source == "fail":
        raise DataProblem("EXP-SOURCE-INCOMPLETE", f"window {window.label}: {verdict.evidence}")
    return {"window": window.label, "state": "incomplete", "reason": verdict.evidence}


def _export(run: RunContext, window: Window, verdict: Verdict) -> dict[str, Any]:
    location = run.location(window)
    previous = _find_previous_manifest(run, window)
    try:
        frame, stored = _compute(run, window)
        with run.phase(window, "verify"), ThreadPoolExecutor(1) as pool:
            # Only this thread uses Spark, because Spark's settings belong to a thread. Another one reads the
            # file meanwhile.
            reading = pool.submit(_read_back, run, stored)
            read = _count_read(run, window)
            stats = reading.result()
            counted = counts.reconcile(
                read, stored.report, stats, aggregated=run.contract.aggregate is not None
            )
            counts.require_valid(read, run.contract.source.max_invalid_percent, window.label)
            checks = _run_checks(run, stored.report, stats)
        _require_clean(run, window, stats, checks)
        empty = stats.rows == 0
        result = WindowResult(
            contract=run.contract,
            window=window,
            table=run.table,
            run_id=run.record.id,
            status=_name_status(verdict, empty=empty),
            completeness=verdict.evidence,
            counts=counted,
            events=read.inside,
            offsets=stored.report.offsets,
            stats=stats,
            checks=checks,
            notes=manifest.notes(run.contract, stats, stored.report.cut, stored.report.replaced),
            files=[File("data", stats.key, stats.size, stats.sha256, stats.rows)],
            key_version=run.key_version,
            previous_window=manifest.comparable(previous, run.contract) if previous else None,
            aggregate_table=run.aggregates.name if run.aggregates else None,
        )
        if empty and run.contract.window.on_empty == "fail":
            raise DataProblem("EXP-EMPTY", f'window {window.label} has no rows, and on_empty is "fail"')
        current, _ = location.current() or (None, None)
        result = attrs.evolve(result, accepted=_find_accepted(run, window, current))
        result = accept_loss(current, result, accept=run.accept_fewer_events)
        result = attrs.evolve(result, notes=[*result.notes, *result.accepted.sentences])
        if run.dry_run:
            cleanup.discard_files(location, run.record.id)
            return _document(window, "dry_run", _build_manifest(run, result))
        # A published window that has become empty is published again as empty. Skipping it would leave its
        # rows visible.
        if empty and run.contract.window.on_empty == "skip" and current is None:
            cleanup.discard_files(location, run.record.id)
            if not verdict.is_complete:
                return _incomplete_document(run, window, verdict)
            location.mark_skipped(run.record.id)
            return _document(window, SKIPPED, _build_manifest(run, result))
        return _publish(run, window, result, frame)
    finally:
        with suppress(Exception):  # the first error is the one to report
            run.spark().catalog.clearCache()  # the groups of an aggregate


def _name_status(verdict: Verdict, *, empty: bool) -> str:
    if not verdict.is_complete:
        return INCOMPLETE
    return "empty" if empty else "complete"


def _find_previous_manifest(run: RunContext, window: Window) -> Manifest | None:
    """Return the manifest of the latest published window before this one, which the report compares with."""
    published = [window["window"] for window in run.record.windows if window["state"] == PUBLISHED]
    labels = (*run.listing.labels("manifests"), *published)
    earlier = [label for label in labels if label < window.label and kind_of(label) == kind_of(window.label)]
    stored = (
        run.bucket.read_json(WindowLocation(run.bucket, run.contract.name, max(earlier)).manifest_key)
        if earlier
        else None
    )
    return stored[0] if stored else None


def _compute(run: RunContext, window: Window) -> tuple[WindowFrame, StoredFile]:
    """Compute and upload the rows."""
    folder = run.location(window).run_folder(run.record.id)
    ending = ".csv.gz" if run.contract.delivery.gzip else ".csv"
    key = f"{folder}{run.contract.name}_{window.label}{ending}"
    query = run.query.window(window)
    with run.phase(window, "compute"), naming_expressions(partial(failing_expressions, query)):
        frame = query.rows()
        form = CsvFormat(run.contract.columns, run.contract.delivery, frame.hashed_late, run.query.key)
        stored = write_file(frame.frame, frame.partitions, run.bucket, key, form)
    for unfinished, upload_id in run.bucket.uploads(folder):
        run.bucket.abort(
            unfinished, upload_id
        )  # boto3 retries a request without an answer, so S3 may have begun two
    return frame, stored


def _read_back(run: RunContext, stored: StoredFile) -> FileStats:
    with aws_errors(f"reading back s3://{run.bucket.name}/{stored.key}"):
        body = ObjectBody(run.bucket.s3, run.bucket.name, stored.key, run.bucket.pause)
        return verify_file(
            stored.key,
            body,
            stored.parts,
            run.contract,
            csv.header(run.contract.columns, run.contract.delivery),
        )


def _count_read(run: RunContext, window: Window) -> ReadCounts:
    return ReadCounts(
        in_table=run.query.records,
        whole_table=run.contract.window.filter_stage == "after_deduplication",
        **run.query.window(window).count_read(),
    )


def _run_checks(run: RunContext, report: PartitionReport, stats: FileStats) -> list[CheckResult]:
    results = implied_checks(run.contract, stats)
    of_rows = [check for check in run.contract.check if check.each_row]
    for number, check in enumerate(of_rows):
        results.append(
            CheckResult(check.id, check.severity, check.message, report.flagged.get(str(number), 0))
        )
    overall = [check for check in run.contract.check if check.overall]
    if overall:
        totals = {
            f"{kind}_{name}": value
            for name, numbers in stats.totals.items()
            for kind, value in numbers.items()
        }
        values = {"rows": stats.rows} | {name: totals[name] for name in run.contract.total_names}
        row = run.spark().range(1).select([F.lit(value).alias(name) for name, value in values.items()])
        with naming_expressions(partial(failing_totals, row, overall)):
            held = row.select(
                [F.coalesce(F.expr(check.overall or ""), F.lit(True)) for check in overall]
            ).collect()[0]
        for check, passed in zip(overall, held, strict=True):
            results.append(CheckResult(check.id, check.severity, check.message, 0 if passed else 1, "file"))
    return results


def _require_clean(run: RunContext, window: Window, stats: FileStats, checks: list[CheckResult]) -> None:
    if stats.personal:
        hits = "; ".join(f"{kind} in {count} rows" for kind, count in sorted(stats.personal.items()))
        raise Blocked(
            "EXP-PERSONAL-DATA", f"the file of {window.label} holds what looks like personal data ({hits})"
        )
    failed = [check for check in checks if check.severity == "block" and not check.passed]
    if failed:
        listed, remedy = explained(failed, run.contract, stats)
        raise Blocked("EXP-CHECK-BLOCKED", f"window {window.label}: {listed}", remedy)


def _publish(run: RunContext, window: Window, result: WindowResult, frame: WindowFrame) -> dict[str, Any]:
    location = run.location(window)
    with run.phase(window, "publish"):
        described = attrs.evolve(result, files=[*result.files, *_describe(run, window, result)])
        outcome = publish(location, _build_manifest(run, described), run.record, run.clock)
        if outcome.state != PUBLISHED:
            cleanup.discard_files(location, run.record.id)
        if outcome.state == PUBLISHED and outcome.manifest["generation"] == 1:
            location.unmark_skipped()
    if run.aggregates and frame.groups is not None and outcome.state != SUPERSEDED:
        try:
            with run.phase(window, "keep aggregate"):
                run.aggregates.write(location, window, outcome.manifest, frame.groups)
        except BaseException as error:
            error.add_note(MAY_BE_WRITTEN)  # a later run completes the table, regardless of the window's age
            raise
    return _document(window, outcome.state, outcome.manifest)


def _describe(run: RunContext, window: Window, result: WindowResult) -> list[File]:
    """Write the data dictionary and the report beside the data."""
    package = json.dumps(datapackage.data_package(result), indent=2, ensure_ascii=False).encode()
    files = []
    for role, name, content, content_type in (
        ("datapackage", "datapackage.json", package, "application/json"),
        ("report", "report.html", report.html(result).encode(), "text/html; charset=utf-8"),
    ):
        key = f"{run.location(window).run_folder(run.record.id)}{name}"
        run.bucket.write(key, content, content_type)
        files.append(File(role, run.bucket.key(key), len(content), hashlib.sha256(content).hexdigest()))
    return files


def _build_manifest(run: RunContext, result: WindowResult) -> Manifest:
    now = run.clock()
    run.record.require_time(now)
    fence = Fence(run.table.current_since, run.record.started_at, run.record.id)
    return manifest.first_generation(result, fence, now)


def _document(window: Window, state: str, visible: Manifest) -> dict[str, Any]:
    return {"window": window.label, "state": state, "reason": None} | {
        part: visible[part] for part in _MANIFEST_KEYS_IN_RECORD
    }
