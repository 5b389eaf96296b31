"""Remove leftovers of runs: files that no generation of a manifest names, and unfinished uploads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from glue_jobs import runs
from glue_jobs.delivery.manifest import Manifest
from glue_jobs.delivery.publish import Leftovers, Listing, WindowLocation


def clean_window(
    location: WindowLocation,
    current: Manifest | None,
    left: dict[str, Leftovers],
    own_run: str,
    now: datetime,
) -> list[str]:
    """Remove what ended or dead runs left in this window. Return the ids of these runs.

    `current` is the window's manifest, and `left` has what each run left, by its id.
    """
    replaced_at = None
    if current is not None and current["run_id"] == own_run:
        replaced_at = datetime.fromisoformat(current["published_at"])
    kept_runs = {own_run} | (_list_runs(current) if current else set())
    removed = []
    for run_id in sorted(left.keys() - kept_runs):
        may_be_removed = runs.may_be_removed(
            location.bucket, location.export, run_id, location.window, now, replaced_at=replaced_at
        )
        if may_be_removed:
            remove(location, left[run_id])
            removed.append(run_id)
    return removed


def clean_up_dead_runs(listing: Listing, own_run: str, earlier: list[dict[str, Any]], now: datetime) -> None:
    """Remove what recently dead runs left, also in windows that no run processes again, and mark these runs
    as failed.

    Also remove what ended runs left in windows for which they don't know whether they published them.
    `earlier` are the records of the latest runs.
    """
    for run_id, unsure_windows in runs.list_unsure_runs(earlier).items():
        _clean_windows(listing, unsure_windows.intersection(listing.windows_of(run_id)), own_run, now)
    for run_id in runs.list_dead_runs(earlier, now):
        _clean_windows(listing, listing.windows_of(run_id), own_run, now)
        runs.mark_died(listing.bucket, listing.export, run_id, now)


def _clean_windows(listing: Listing, windows: Iterable[str], own_run: str, now: datetime) -> None:
    for window in windows:
        location = WindowLocation(listing.bucket, listing.export, window)
        current, _ = location.current() or (None, None)
        clean_window(location, current, listing.leftovers(window), own_run, now)


def discard_files(location: WindowLocation, run_id: str) -> None:
    """Remove what this run wrote into the window, unless a manifest names it."""
    current = location.current()
    if current and run_id in _list_runs(current[0]):
        return
    folder = location.run_folder(run_id)
    remove(location, Leftovers(list(location.bucket.keys(folder)), list(location.bucket.uploads(folder))))


def remove(location: WindowLocation, left: Leftovers) -> None:
    for key, upload_id in left.uploads:
        location.bucket.abort(key, upload_id)
    location.bucket.delete(left.keys)


def _list_runs(manifest: Manifest) -> set[str]:
    return {generation["run_id"] for generation in manifest["generations"]}
