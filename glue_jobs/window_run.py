"""One window from the pinned table to what is visible: a flow chart in which each step may end the way."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from exports.windows import Window
from glue_jobs.delivery import commit, manifest
from glue_jobs.delivery.commit import Manifest
from glue_jobs.delivery.manifest import Delivered
from glue_jobs.errors import DataProblem, ExportError
from glue_jobs.job import Job
from glue_jobs.making import describe, make
from glue_jobs.pipeline import Rows

#: What the run's record repeats of the manifest.
_TOLD = ("status", "generation", "run_id", "rows", "headline", "files", "checks", "notes")


def run_window(job: Job, window: Window, previous: Manifest | None) -> dict[str, Any]:
    """The window's document for the run's record. Raises ExportError, having taken back what it wrote.

    `previous` is the manifest of the window before, which the report compares with.
    """
    place = job.place(window)
    with job.phase(window, "clean up"):
        commit.clean(place, job.record.id, job.clock())
    if (settled := _settled(job, window)) is not None:
        return _document(window, commit.UNCHANGED, settled)
    late = job.table.committed_at < window.end
    if late and job.contract.window.on_late != "publish":
        return _late(job, window)
    try:
        delivered, rows = make(job, window, "late" if late else "complete", previous)
        try:
            return _decided(job, window, delivered, rows)
        finally:
            rows.release()
    except BaseException:
        with suppress(ExportError):  # what went wrong first is what counts, and the next run removes what is left
            commit.withdraw(place, job.record.id)
        raise


def _settled(job: Job, window: Window) -> Manifest | None:
    """What is visible, where nothing that it depends on has changed and all of it is still there."""
    place = job.place(window)
    found = place.current()
    if not found or not manifest.is_settled(found[0], job.contract, job.table, job.key_version):
        return None
    if not commit.is_whole(place, found[0]):
        return None
    if job.aggregates and not job.aggregates.holds(place, found[0]):
        return None
    return found[0]


def _late(job: Job, window: Window) -> dict[str, Any]:
    reason = f"the table's last commit is of {job.table.committed_at:%Y-%m-%d %H:%M} UTC, before the window's end"
    if job.contract.window.on_late == "fail":
        raise DataProblem("EXP-LATE", f"window {window.label}: {reason}", "Wait for newer data, then run again")
    return {"window": window.label, "state": "late", "reason": reason}


def _decided(job: Job, window: Window, delivered: Delivered, rows: Rows) -> dict[str, Any]:
    place, on_empty = job.place(window), job.contract.window.on_empty
    empty = delivered.inspection.rows == 0
    if empty and on_empty == "fail":
        raise DataProblem("EXP-EMPTY", f"window {window.label} has no rows, and the contract wants some", "Check the source")
    if job.dry_run or (empty and on_empty == "skip"):
        commit.withdraw(place, job.record.id)
        if not job.dry_run:
            place.mark_skipped(job.record.id)
        return _document(window, "dry_run" if job.dry_run else "skipped", _draft(job, delivered, None))
    with job.phase(window, "publish"):
        described = describe(job, window, delivered)
        outcome = commit.publish(place, job.fence, lambda current: _draft(job, described, current))
        if outcome.state != commit.PUBLISHED:
            commit.withdraw(place, job.record.id)
    if job.aggregates and rows.groups is not None and outcome.state != commit.SUPERSEDED:
        with job.phase(window, "keep aggregate"):
            job.aggregates.write(place, window, outcome.manifest, rows.groups)
    return _document(window, outcome.state, outcome.manifest)


def _draft(job: Job, delivered: Delivered, current: Manifest | None) -> Manifest:
    return manifest.manifest(delivered, current, fence=job.fence, now=job.clock())


def _document(window: Window, state: str, visible: Manifest) -> dict[str, Any]:
    return {"window": window.label, "state": state, "reason": None} | {part: visible[part] for part in _TOLD}
