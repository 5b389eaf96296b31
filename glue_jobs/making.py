"""From a window to a finished, verified, described set of objects that nobody sees yet."""

from __future__ import annotations

import json
from typing import Any

import attrs
from pyspark.sql import functions as F

from exports.contract import Contract
from exports.windows import Window
from glue_jobs import outcomes
from glue_jobs.delivery import counts, csv, datapackage, manifest, report
from glue_jobs.delivery.counts import Read
from glue_jobs.delivery.encode import Form, PartitionReport
from glue_jobs.delivery.manifest import CheckResult, Delivered, File
from glue_jobs.delivery.publish import Manifest
from glue_jobs.delivery.upload import Uploaded, upload
from glue_jobs.delivery.verify import Inspection, Object, inspect
from glue_jobs.errors import Blocked
from glue_jobs.job import Job
from glue_jobs.rows import Rows
from glue_jobs.store import told
from glue_jobs.transforms.check import row_rules


def make(job: Job, window: Window, status: str, previous: Manifest | None) -> tuple[Delivered, Rows]:
    """Writes and verifies the file. Raises Blocked where the contract keeps it back, Inconsistent where books don't match."""
    uploaded, rows = _uploaded(job, window)
    with job.phase(window, "verify"):
        inspection = _inspected(job, uploaded)
        books = _books(job, window, uploaded.report, inspection)
        checks = _checks(job, uploaded.report, inspection)
    _require_clean(window, inspection, checks)
    counted = uploaded.report
    delivered = Delivered(
        contract=job.contract,
        window=window,
        table=job.table,
        run_id=job.record.id,
        status="empty" if inspection.rows == 0 and status == "complete" else status,
        books=books,
        offsets=counted.offsets,
        inspection=inspection,
        checks=checks,
        notes=manifest.notes(job.contract, inspection, counted.cut, counted.replaced),
        files=[File("data", inspection.key, inspection.size, inspection.sha256, inspection.rows)],
        key_version=job.key_version,
        previous_window=manifest.previous_document(previous) if previous else None,
        aggregate_table=job.aggregates.name if job.aggregates else None,
    )
    return delivered, rows


def describe(job: Job, window: Window, delivered: Delivered) -> Delivered:
    """Writes the data dictionary and the report beside the data."""
    package = json.dumps(datapackage.data_package(delivered), indent=2, ensure_ascii=False).encode()
    page = report.html(delivered).encode()
    folder = job.place(window).run_folder(job.record.id)
    files = [
        _write(job, "datapackage", f"{folder}datapackage.json", package, "application/json"),
        _write(job, "report", f"{folder}report.html", page, "text/html; charset=utf-8"),
    ]
    return attrs.evolve(delivered, files=[*delivered.files, *files])


def _write(job: Job, role: str, key: str, content: bytes, content_type: str) -> File:
    job.bucket.write(key, content, content_type)
    return File(role, job.bucket.key(key), len(content), manifest.digest(content))


def _uploaded(job: Job, window: Window) -> tuple[Uploaded, Rows]:
    """Without Python over values first; text beyond ASCII that must be hashed makes it try again with it."""
    pipeline = job.pipeline(window)
    form = Form(job.contract.columns, job.contract.delivery)
    for any_text in (False, True):
        with job.phase(window, "compute"):
            rows = pipeline.rows(any_text=any_text)
            uploaded = upload(rows.frame, rows.partitions, job.bucket, _data_key(job, window), form)
        if not uploaded.report.flagged.get(str(outcomes.FOREIGN)):
            break
        rows.release()
    for key, upload_id in job.bucket.uploads(job.place(window).run_folder(job.record.id)):
        job.bucket.abort(key, upload_id)  # a task that was tried twice began two
    return uploaded, rows


def _data_key(job: Job, window: Window) -> str:
    ending = ".csv.gz" if job.contract.delivery.gzip else ".csv"
    return f"{job.place(window).run_folder(job.record.id)}{job.contract.name}_{window.label}{ending}"


def _inspected(job: Job, uploaded: Uploaded) -> Inspection:
    file = uploaded.file
    with told(f"reading back s3://{job.bucket.name}/{file.key}"):
        body = job.bucket.s3.get_object(Bucket=job.bucket.name, Key=file.key)["Body"]
        header = csv.header(job.contract.columns, job.contract.delivery)
        return inspect(Object(file.key, body, file.parts), job.contract, header)


def _books(job: Job, window: Window, counted: PartitionReport, inspection: Inspection) -> dict[str, Any]:
    pipeline = job.pipeline(window)
    read = Read(
        in_table=pipeline.count_table() if job.table.records is None else job.table.records,
        whole_table=job.contract.window.applies == "after_deduplication",
        **pipeline.count_read(),
    )
    books = counts.books(read, counted, inspection, aggregated=job.contract.aggregate is not None)
    counts.require_valid(read, job.contract.source.max_invalid_percent, window.label)
    return books


def _checks(job: Job, counted: PartitionReport, inspection: Inspection) -> list[CheckResult]:
    of_rows = implied_checks(job.contract, inspection) + [
        CheckResult(rule.id, rule.severity, rule.message, counted.flagged.get(str(bit), 0))
        for bit, rule in enumerate(row_rules(job.contract), outcomes.FIRST_RULE)
    ]
    overall = [check for check in job.contract.check if check.overall]
    if not overall:
        return of_rows
    values = {"rows": inspection.rows} | {
        f"{what}_{name}": value for name, total in inspection.totals.items() for what, value in total.items()
    }
    row = job.spark().range(1).select([F.lit(value).alias(name) for name, value in values.items()])
    held = row.select([F.coalesce(F.expr(check.overall or ""), F.lit(True)) for check in overall]).collect()[0]
    return of_rows + [
        CheckResult(check.id, check.severity, check.message, 0 if ok else 1, "file")
        for check, ok in zip(overall, held, strict=True)
    ]


def implied_checks(contract: Contract, inspection: Inspection) -> list[CheckResult]:
    """What the columns promise without being asked: no empty cells, no values but those listed."""
    results = []
    for column in contract.columns:
        if not column.nullable:
            empty = inspection.nulls.get(column.name, 0)
            results.append(CheckResult(f"{column.name}_not_empty", "block", f"{column.name} is empty in some rows.", empty))
        if column.allowed:
            told_ = f"{column.name} has values other than {', '.join(column.allowed)}."
            results.append(CheckResult(f"{column.name}_allowed", "block", told_, inspection.disallowed.get(column.name, 0)))
    return results


def _require_clean(window: Window, inspection: Inspection, checks: list[CheckResult]) -> None:
    if inspection.personal:
        places = "; ".join(f"{place} in {count} rows" for place, count in sorted(inspection.personal.items()))
        raise Blocked(
            "EXP-PERSONAL-DATA",
            f"the file of {window.label} holds what looks like personal data ({places})",
            "Give the column a treatment in the contract, or keep it with a reason",
        )
    failed = [check for check in checks if check.severity == "block" and not check.passed]
    if failed:
        listed = "; ".join(f"{check.message} ({check.id}: {check.failed:,})" for check in failed)
        raise Blocked("EXP-CHECK-BLOCKED", f"window {window.label}: {listed}", "Correct the source, or the check")
