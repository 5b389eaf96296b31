"""Remove what runs left: files that no generation of a manifest names, uploads that nobody ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from glue_jobs import runs
from glue_jobs.delivery.manifest import Manifest
from glue_jobs.delivery.publish import WindowLocation
from glue_jobs.store import Bucket


def clean_window(location: WindowLocation, own_run: str, now: datetime) -> list[str]:
    """Remove what dead runs left in this window. Return their ids."""
    current = location.current()
    kept = {own_run} | (_runs_of(current[0]) if current else set())
    objects: dict[str, list[str]] = {}
    uploads: dict[str, list[tuple[str, str]]] = {}
    for key in location.bucket.keys(location.data):
        objects.setdefault(_run_of(location, key), []).append(key)
    for key, upload_id in location.bucket.uploads(location.data):
        uploads.setdefault(_run_of(location, key), []).append((key, upload_id))
    removed = []
    for run_id in sorted((objects.keys() | uploads.keys()) - kept):
        if runs.may_be_removed(location.bucket, location.export, run_id, location.window, now):
            remove(location, objects.get(run_id, []), uploads.get(run_id, []))
            removed.append(run_id)
    return removed


def clean_up_dead_runs(bucket: Bucket, export: str, own_run: str, earlier: list[dict[str, Any]], now: datetime) -> None:
    """Remove what runs left that died lately, also in windows that no run works on again; their records then say so.

    `earlier` are the records of the latest runs.
    """
    for run_id in runs.list_dead_runs(earlier, now):
        below = f"{export}/data/"
        keys = [*bucket.keys(below), *(key for key, _ in bucket.uploads(below))]
        for window in sorted({key.split("/")[2] for key in keys if key.split("/")[3] == run_id}):
            clean_window(WindowLocation(bucket, export, window), own_run, now)
        runs.mark_died(bucket, export, run_id)


def discard_files(location: WindowLocation, run_id: str) -> None:
    """Remove what this run wrote into the window, unless a manifest names it."""
    current = location.current()
    if current and run_id in _runs_of(current[0]):
        return
    folder = location.run_folder(run_id)
    remove(location, list(location.bucket.keys(folder)), list(location.bucket.uploads(folder)))


def remove(location: WindowLocation, objects: list[str], uploads: list[tuple[str, str]]) -> None:
    for key, upload_id in uploads:
        location.bucket.abort(key, upload_id)
    location.bucket.delete(objects)


def _runs_of(manifest: Manifest) -> set[str]:
    return {generation["run_id"] for generation in manifest["generations"]}


def _run_of(location: WindowLocation, key: str) -> str:
    return key.removeprefix(location.data).partition("/")[0]
