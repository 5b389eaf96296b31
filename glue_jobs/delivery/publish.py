"""Publish a window once. Only the files that its manifest names are visible.

    <export>/manifests/<window>.json     written last, by a conditional write: makes the files visible
    <export>/data/<window>/<run>/…       the files of one run, under keys that no other run uses
    <export>/skipped/<window>.json       the window was empty and was skipped
    <export>/runs/<run>.json             see glue_jobs.runs

If two runs publish the same window, S3 accepts one write of the manifest and refuses the other. The refused
run then reads the manifest: if the content is the same, it publishes nothing. Otherwise the run with the
newer view of the source wins, even if it is slower.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import attrs

from glue_jobs.delivery.manifest import Manifest, build_next_generation, read_fence
from glue_jobs.errors import BadInput, ExportError, StorageProblem
from glue_jobs.runs import Clock, RunRecord
from glue_jobs.store import Bucket, Conflict, Unanswered

PUBLISHED = "published"
UNCHANGED = "unchanged"
SUPERSEDED = "superseded"
SKIPPED = "skipped"

#: More than the number of runs that could publish the same window at the same time.
_ATTEMPTS = 50
#: Seconds. S3 answers 409 while another write of the same key is in progress.
_LONGEST_PAUSE = 1.0


@attrs.frozen
class WindowLocation:
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
        """Return the manifest and its ETag."""
        return self.bucket.read_json(self.manifest_key)

    @property
    def _skipped_key(self) -> str:
        return f"{self.export}/skipped/{self.window}.json"

    def mark_skipped(self, run_id: str) -> None:
        self.bucket.write(self._skipped_key, json.dumps({"run_id": run_id}).encode(), "application/json")

    def unmark_skipped(self) -> None:
        self.bucket.delete([self._skipped_key])


@attrs.frozen
class Listing:
    """What an export had in the bucket when the run began: bytes by relative key, and (relative key, upload
    id) of unfinished uploads. One listing for a run, instead of several for each window."""

    bucket: Bucket
    export: str
    sizes: dict[str, int]
    uploads: list[tuple[str, str]]

    @classmethod
    def read(cls, bucket: Bucket, export: str) -> Listing:
        return cls(bucket, export, dict(bucket.sizes(f"{export}/")), list(bucket.uploads(f"{export}/data/")))

    def labels(self, folder: str) -> list[str]:
        """Return the names of the JSON documents in a folder, in order: windows of manifests/ and skipped/,
        ids of runs/.
        """
        below = f"{self.export}/{folder}/"
        return [key.removeprefix(below).removesuffix(".json") for key in self.sizes if key.startswith(below)]

    def leftovers(self, window: str) -> dict[str, Leftovers]:
        """Return what each run left in a window, by the run's id."""
        below = f"{self.export}/data/{window}/"
        by_run: dict[str, Leftovers] = {}
        for key in self.sizes:
            if key.startswith(below):
                run_id = key.removeprefix(below).partition("/")[0]
                by_run.setdefault(run_id, Leftovers()).keys.append(key)
        for key, upload_id in self.uploads:
            if key.startswith(below):
                run_id = key.removeprefix(below).partition("/")[0]
                by_run.setdefault(run_id, Leftovers()).uploads.append((key, upload_id))
        return by_run

    def windows_of(self, run_id: str) -> list[str]:
        """Return the windows in which a run left something."""
        below = f"{self.export}/data/"
        uploading = [key for key, _ in self.uploads]
        windows = set()
        for key in (*self.sizes, *uploading):
            window, *rest = key.removeprefix(below).split("/")
            if rest[:1] == [run_id]:
                windows.add(window)
        return sorted(windows)

    def has_files(self, manifest: Manifest) -> bool:
        """Return whether all files that the manifest names were there."""
        return all(
            self.sizes.get(self.bucket.relative(file["key"])) == file["size"] for file in manifest["files"]
        )


@attrs.frozen
class Leftovers:
    """Objects and unfinished uploads of one run in one window."""

    keys: list[str] = attrs.field(factory=list)
    uploads: list[tuple[str, str]] = attrs.field(factory=list)


@attrs.frozen
class Outcome:
    """`manifest` is the one that is visible now, whoever wrote it."""

    state: str
    manifest: Manifest


@attrs.define
class Publication:
    """The attempt of one run to publish one window.

    The write of the manifest has one of four outcomes: S3 accepted it; S3 refused it; nobody knows, because
    the answer was lost; or it was refused as a repetition, after a first write whose answer was lost. After
    the last two, `may_be_visible` stays true until another manifest is there that this run didn't want to
    replace: from then on, S3 refuses what may still be on its way.
    """

    location: WindowLocation
    run: RunRecord
    clock: Clock
    pause: Callable[[float], None] = time.sleep
    #: Whether the run's manifest is visible, or may still become visible. While this is true, nobody may
    #: delete the run's files.
    may_be_visible: bool = attrs.field(default=False, init=False)
    #: The ETag of the manifest that the last write wanted to replace.
    _replaced: str | None = attrs.field(default=None, init=False)

    def publish(self, manifest: Manifest) -> Outcome:
        """Make `manifest` the visible one, as the generation after the one that it replaces.

        Raises ExportError once the run's time limit has passed: other runs may then remove its files.
        """
        for attempt in range(_ATTEMPTS):
            current, etag = self.location.current() or (None, None)
            if current is not None and current["run_id"] == self.run.id:
                # The answer to the write was lost, and S3 refused the retry.
                self.may_be_visible = True
                return Outcome(PUBLISHED, current)
            if etag != self._replaced:
                # Another run's manifest is there, and S3 refuses every earlier write from now on.
                self.may_be_visible = False
            now = self.clock()
            self.run.require_time(now)
            require_no_newer_contract(current, manifest["contract"]["version"])
            if (
                current is not None
                and _says_the_same(current, manifest)
                and _files_exist(self.location, current)
            ):
                return Outcome(UNCHANGED, current)
            if current is not None and read_fence(current) > read_fence(manifest):
                return Outcome(SUPERSEDED, current)
            latest = build_next_generation(manifest, current, now)
            if self._write(latest, etag):
                return Outcome(PUBLISHED, latest)
            # If another run has won, there is nothing to wait for. The jitter separates runs that got a 409
            # together.
            longest = min(_LONGEST_PAUSE, 0.01 * 2**attempt)
            self.pause(random.uniform(0, longest))  # noqa: S311 - no secret depends on it
        raise StorageProblem("EXP-MANIFEST-BUSY", f"S3 keeps refusing the manifest of {self.location.window}")

    def _write(self, manifest: Manifest, etag: str | None) -> bool:
        """Return whether S3 accepted the write. It refuses it if the manifest doesn't have this ETag.

        After the refusal of a repeated request, the manifest may be visible: boto3 repeats a write whose
        answer was lost, and S3 refuses the repetition because of the first one.
        """
        content = json.dumps(manifest, indent=2, ensure_ascii=False).encode()
        may_be_visible_before = self.may_be_visible
        self.may_be_visible = True
        self._replaced = etag
        try:
            bucket = self.location.bucket
            bucket.write_if(self.location.manifest_key, content, "application/json", etag=etag)
        except Conflict as conflict:
            self.may_be_visible = may_be_visible_before or conflict.is_repeated
            return False
        except Unanswered:
            raise
        except ExportError:
            self.may_be_visible = may_be_visible_before
            raise
        return True


def require_no_newer_contract(current: Manifest | None, version: int) -> None:
    """Raises BadInput if the visible file was made with a higher version of the contract."""
    if current is not None and current["contract"]["version"] > version:
        raise BadInput(
            "EXP-CONTRACT-OLDER",
            f"window {current['window']['label']} was published with version "
            f"{current['contract']['version']} of the contract, and this run has version {version}",
        )


def _files_exist(location: WindowLocation, manifest: Manifest) -> bool:
    """Return whether all files that the manifest names are there now."""
    return all(location.bucket.size_of(file["key"]) == file["size"] for file in manifest["files"])


def _says_the_same(current: Manifest, manifest: Manifest) -> bool:
    """Return whether publishing would change nothing that a reader sees."""
    parts = ("content_sha256", "form", "status", "contract", "accepted")
    return all(current[part] == manifest[part] for part in parts)
