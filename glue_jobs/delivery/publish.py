"""Publish once. What a window's manifest names is visible; everything else is not.

    <export>/manifests/<window>.json     written last, by a conditional write: the decision
    <export>/data/<window>/<run>/…       the files of one run, under keys that no other run uses
    <export>/skipped/<window>.json       the window was found empty and passed over
    <export>/runs/<run>.json             see glue_jobs.runs

Two runs that publish the same window meet at the manifest: one write succeeds, the other is refused and looks again.
Same content: nothing new. Otherwise the run with the later view of the source wins, whoever is slower.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs

from glue_jobs import runs
from glue_jobs.errors import StorageProblem
from glue_jobs.store import Bucket, Conflict, Unanswered

Manifest = dict[str, Any]

PUBLISHED = "published"
UNCHANGED = "unchanged"
SUPERSEDED = "superseded"

#: More than runs of one export that could be at the same window at once.
_ATTEMPTS = 50
#: Seconds. S3 answers 409 while another write of the same key is under way.
_LONGEST_PAUSE = 1.0
_MAY_BE_WRITTEN = "The manifest may have been written, or may still be."


@attrs.frozen(order=True)
class Fence:
    """Which of two runs knows more: the one whose view of the source became current later, then the one begun later."""

    source_since: datetime
    started_at: datetime
    run_id: str

    def document(self) -> list[str]:
        return [self.source_since.isoformat(), self.started_at.isoformat(), self.run_id]


def fence_of(manifest: Manifest) -> Fence:
    since, started, run_id = manifest["fence"]
    return Fence(datetime.fromisoformat(since), datetime.fromisoformat(started), run_id)


@attrs.frozen
class Place:
    """One window of one export in the bucket."""

    bucket: Bucket
    export: str
    window: str

    @property
    def manifest_key(self) -> str:
        return f"{self.export}/manifests/{self.window}.json"

    @property
    def data(self) -> str:
        return f"{self.export}/data/{self.window}/"

    def run_folder(self, run_id: str) -> str:
        return f"{self.data}{run_id}/"

    def current(self) -> tuple[Manifest, str] | None:
        """The manifest and its ETag."""
        return self.bucket.read_json(self.manifest_key)

    @property
    def _skipped_key(self) -> str:
        return f"{self.export}/skipped/{self.window}.json"

    def mark_skipped(self, run_id: str) -> None:
        self.bucket.write(self._skipped_key, json.dumps({"run_id": run_id}).encode(), "application/json")

    def unmark_skipped(self) -> None:
        self.bucket.delete([self._skipped_key])


@attrs.frozen
class Outcome:
    """`manifest` is the one that is visible now, whoever wrote it."""

    state: str
    manifest: Manifest


def publish(
    place: Place,
    fence: Fence,
    draft: Callable[[Manifest | None], Manifest],
    pause: Callable[[float], None] = time.sleep,
) -> Outcome:
    """`draft` makes the manifest, given the one that it replaces. It is called again when another run was faster.

    Where an error leaves open whether S3 wrote the manifest, `may_be_written` says so of it.
    """
    for attempt in range(_ATTEMPTS):
        found = place.current()
        current, etag = found or (None, None)
        if current is not None and current["run_id"] == fence.run_id:
            return Outcome(PUBLISHED, current)  # written by us: its answer was lost, and the client's second try was refused
        manifest = draft(current)
        if current is not None and _says_the_same(current, manifest) and is_whole(place, current):
            return Outcome(UNCHANGED, current)
        if current is not None and fence_of(current) > fence:
            return Outcome(SUPERSEDED, current)
        content = json.dumps(manifest, indent=2, ensure_ascii=False).encode()
        try:
            place.bucket.write_if(place.manifest_key, content, "application/json", etag=etag)
        except Conflict:
            # Nothing to wait for where another run has won; the jitter keeps runs that meet at a 409 apart.
            pause(random.uniform(0, min(_LONGEST_PAUSE, 0.01 * 2**attempt)))  # noqa: S311 - no secret depends on it
            continue
        except (Unanswered, KeyboardInterrupt) as error:
            error.add_note(_MAY_BE_WRITTEN)
            raise
        return Outcome(PUBLISHED, manifest)
    raise StorageProblem("EXP-MANIFEST-BUSY", f"S3 keeps refusing the manifest of {place.window}", "Run again")


def may_be_written(error: BaseException) -> bool:
    """Whether `publish` ended with `error` in the middle of a write, so that the manifest may name the run's files."""
    return _MAY_BE_WRITTEN in getattr(error, "__notes__", ())


def is_whole(place: Place, manifest: Manifest) -> bool:
    """Whether all files that the manifest names are there."""
    return all(place.bucket.size_of(file["key"]) == file["size"] for file in manifest["files"])


def _says_the_same(current: Manifest, manifest: Manifest) -> bool:
    """The same rows in the same form, described by the same contract. Then what is visible already is as good as ours."""
    return all(current[part] == manifest[part] for part in ("content_sha256", "form", "status", "contract"))


def clean(place: Place, own_run: str, now: datetime) -> list[str]:
    """Removes what dead runs left in this window: files that no generation names, uploads that nobody ends."""
    found = place.current()
    kept = {own_run} | (_runs_of(found[0]) if found else set())
    objects: dict[str, list[str]] = {}
    uploads: dict[str, list[tuple[str, str]]] = {}
    for key in place.bucket.keys(place.data):
        objects.setdefault(_run_of(place, key), []).append(key)
    for key, upload_id in place.bucket.uploads(place.data):
        uploads.setdefault(_run_of(place, key), []).append((key, upload_id))
    removed = []
    for run_id in sorted((objects.keys() | uploads.keys()) - kept):
        if runs.may_be_removed(place.bucket, place.export, run_id, place.window, now):
            remove(place, objects.get(run_id, []), uploads.get(run_id, []))
            removed.append(run_id)
    return removed


def sweep(bucket: Bucket, export: str, own_run: str, earlier: list[dict[str, Any]], now: datetime) -> None:
    """Removes what runs left that died lately, also in windows that no run works on again; their records then say so.

    `earlier` are the records of the latest runs.
    """
    for run_id in runs.died(earlier, now):
        below = f"{export}/data/"
        keys = [*bucket.keys(below), *(key for key, _ in bucket.uploads(below))]
        for window in sorted({key.split("/")[2] for key in keys if key.split("/")[3] == run_id}):
            clean(Place(bucket, export, window), own_run, now)
        runs.bury(bucket, export, run_id)


def withdraw(place: Place, run_id: str) -> None:
    """Removes what this run wrote into the window, unless a manifest names it."""
    found = place.current()
    if found and run_id in _runs_of(found[0]):
        return
    folder = place.run_folder(run_id)
    remove(place, list(place.bucket.keys(folder)), list(place.bucket.uploads(folder)))


def remove(place: Place, objects: list[str], uploads: list[tuple[str, str]]) -> None:
    for key, upload_id in uploads:
        place.bucket.abort(key, upload_id)
    place.bucket.delete(objects)


def _runs_of(manifest: Manifest) -> set[str]:
    return {generation["run_id"] for generation in manifest["generations"]}


def _run_of(place: Place, key: str) -> str:
    return key.removeprefix(place.data).partition("/")[0]
