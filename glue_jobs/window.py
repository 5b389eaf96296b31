"""Exports one window: from the pinned table to what is visible."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from exports.windows import Window
from glue_jobs.delivery import manifest, publish
from glue_jobs.delivery.manifest import Delivered
from glue_jobs.delivery.publish import Manifest
from glue_jobs.errors import Blocked, DataProblem, ExportError
from glue_jobs.job import Job
from glue_jobs.making import describe, make
from glue_jobs.rows import Rows

#: What the run's record repeats of the manifest.
_TOLD = ("status", "generation", "run_id", "rows", "headline", "files", "checks", "notes")

#: A commit of Tableflow may hold the news of some Kafka partitions only, and the next one comes within minutes. When the table
#: takes new data this long after the window's end, a partition without newer events is idle.
_IDLE_AFTER = timedelta(hours=1)


def run_window(job: Job, window: Window, previous: Manifest | None) -> dict[str, Any]:
    """The window's document for the run's record. Raises ExportError, after it removed what it wrote, unless a manifest that
    names it may still appear.

    `previous` is the manifest of the window before, which the report compares with.
    """
    place = job.place(window)
    job.record.require_time(job.clock())
    with job.phase(window, "clean up"):
        publish.clean(place, job.record.id, job.clock())
    if (settled := _settled(job, window)) is not None:
        return _document(window, publish.UNCHANGED, settled)
    late = _lateness(job, window)
    if late and job.contract.window.on_late != "publish":
        return _late(job, window, late)
    try:
        delivered, rows = make(job, window, "late" if late else "complete", previous)
        try:
            return _decided(job, window, delivered, rows, late)
        finally:
            rows.release()
    except BaseException as error:
        if not publish.may_be_written(error):
            with suppress(ExportError):  # what went wrong first is what counts, and the next run removes what is left
                publish.withdraw(place, job.record.id)
        raise


def _settled(job: Job, window: Window) -> Manifest | None:
    """What is visible, where nothing that it depends on has changed and all of it is still there."""
    place = job.place(window)
    found = place.current()
    if not found or not manifest.is_settled(found[0], job.contract, job.table, job.key_version):
        return None
    if not publish.is_whole(place, found[0]):
        return None
    if job.aggregates and not job.aggregates.holds(place, found[0]):
        return None
    return found[0]


def _lateness(job: Job, window: Window) -> str:
    """Why events of the window may still be on their way to the table; "" where none are."""
    last = f"the table's last new data is of {job.table.appended_at:%Y-%m-%d %H:%M} UTC"
    if job.table.appended_at < window.end:
        return f"{last}, before the window's end"
    if job.table.appended_at >= window.end + _IDLE_AFTER:
        return ""
    with job.phase(window, "look at partitions"):
        behind = job.pipeline(window).partitions_behind()
    if not behind:
        return ""
    named = ", ".join(map(str, behind))
    return f"{last}, and holds nothing that Kafka partitions {named} received after the window's end"


def _late(job: Job, window: Window, reason: str) -> dict[str, Any]:
    if job.contract.window.on_late == "fail":
        raise DataProblem("EXP-LATE", f"window {window.label}: {reason}", "Wait for newer data, then run again")
    return {"window": window.label, "state": "late", "reason": reason}


def _decided(job: Job, window: Window, delivered: Delivered, rows: Rows, late: str) -> dict[str, Any]:
    """`late` is what `_lateness` says."""
    place, on_empty = job.place(window), job.contract.window.on_empty
    empty = delivered.inspection.rows == 0
    if empty and on_empty == "fail":
        raise DataProblem("EXP-EMPTY", f"window {window.label} has no rows, and the contract wants some", "Check the source")
    if job.dry_run:
        publish.withdraw(place, job.record.id)
        return _document(window, "dry_run", _draft(job, delivered, None))
    current = place.current()
    if current and not job.accept_fewer_events:
        _require_all_events(window, current[0], delivered)
    # What was published and has become empty is published again as empty: skipping it would leave its rows visible.
    if empty and on_empty == "skip" and current is None:
        publish.withdraw(place, job.record.id)
        if late:
            return _late(job, window, late)
        place.mark_skipped(job.record.id)
        return _document(window, "skipped", _draft(job, delivered, None))
    with job.phase(window, "publish"):
        described = describe(job, window, delivered)
        outcome = publish.publish(place, job.fence, lambda current: _draft(job, described, current))
        if outcome.state != publish.PUBLISHED:
            publish.withdraw(place, job.record.id)
        if outcome.state == publish.PUBLISHED and outcome.manifest["generation"] == 1:
            place.unmark_skipped()
    if job.aggregates and rows.groups is not None and outcome.state != publish.SUPERSEDED:
        with job.phase(window, "keep aggregate"):
            job.aggregates.write(place, window, outcome.manifest, rows.groups)
    return _document(window, outcome.state, outcome.manifest)


def _require_all_events(window: Window, current: Manifest, delivered: Delivered) -> None:
    if current["content_sha256"] != delivered.inspection.content_sha256 and manifest.lost_events(current, delivered):
        raise Blocked(
            "EXP-EVENTS-LOST",
            f"window {window.label}: events that generation {current['generation']} was made of are no longer in the table, so a "
            "new generation would lack them",
            "The published file stays. Let Tableflow keep rows (rows_days) for longer than a window and restate_for_days "
            "together. To publish without these events, run once with --accept-fewer-events true",
        )


def _draft(job: Job, delivered: Delivered, current: Manifest | None) -> Manifest:
    """The manifest to publish, which is written at once, so this is the last moment to see that the time is up."""
    job.record.require_time(job.clock())
    return manifest.manifest(delivered, current, fence=job.fence, now=job.clock())


def _document(window: Window, state: str, visible: Manifest) -> dict[str, Any]:
    return {"window": window.label, "state": state, "reason": None} | {part: visible[part] for part in _TOLD}
