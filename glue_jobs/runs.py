"""The record of a run: what it did with each window, also if it failed; and which runs are dead.

`runs/<id>.json` is written before anything else, before each window and at the end. A run that finds files of
another run in a window can thus tell whether that run still works on it.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from glue_jobs.errors import ExportError
from glue_jobs.platform import compute_code_version
from glue_jobs.store import Bucket

_DIED = ExportError("EXP-DIED", "the run's process ended without saying why")
#: How many records are read at a time. The next run notices a dead run or, if its time limit hasn't passed
#: then, one soon after.
_LATEST = 20
#: How many records are read at most. Runs that failed before their first window say nothing about windows, so
#: older records are read too: an hourly export may fail for almost three weeks.
_MOST = 500
#: The time between the moment at which a run stops publishing and the one at which others remove its files.
#: It is longer than the last write can take with all its retries (see `store`).
_GRACE = timedelta(minutes=10)
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

Clock = Callable[[], datetime]
#: A function that is called with (window, phase) when a phase begins.
OnPhase = Callable[[str, str], None]


def utc_now() -> datetime:
    return datetime.now(UTC)


def make_run_id(now: datetime) -> str:
    """Return an id that sorts by time and is unique without coordination."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def _name_host() -> str:
    """Return the host name and, on Linux, the boot id and the PID namespace: a PID is only valid within
    them.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    namespace = Path("/proc/self/ns/pid")
    since = boot.read_text().strip() if boot.exists() else ""
    return f"{socket.gethostname()}/{since}/{namespace.readlink() if namespace.is_symlink() else ''}"


@attrs.define
class RunRecord:
    """`windows` has a document for each processed window, and `phases` the seconds by phase over all of them.
    `working_on` is the window in progress, so that a window that kills its run can be recognised.
    `windows_left` counts windows that the run planned and didn't begin. `job_run_id` is Glue's id of the run,
    None outside Glue; the mail about the run finds its record by it. `asked` has the arguments `windows` and
    `only` of a run that was asked for certain windows. Times are in UTC."""

    id: str
    export: str
    as_of: datetime
    started_at: datetime
    expires_at: datetime
    job_run_id: str | None = None
    state: str = "running"
    reason: str | None = None
    ended_at: datetime | None = None
    windows: list[dict[str, Any]] = attrs.field(factory=list)
    working_on: str | None = None
    windows_left: int = 0
    phases: dict[str, float] = attrs.field(factory=dict)
    asked: dict[str, str] | None = None
    host: str = attrs.field(factory=_name_host)
    pid: int = attrs.field(factory=os.getpid)

    @property
    def key(self) -> str:
        return run_key(self.export, self.id)

    def require_time(self, now: datetime) -> None:
        """Raises ExportError once the time limit has passed: other runs may then remove this one's files."""
        if now >= self.expires_at:
            raise ExportError(
                "EXP-TIME-LIMIT",
                f"the run's time limit passed at {self.expires_at:%Y-%m-%d %H:%M} UTC, so it publishes "
                "nothing more",
            )

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to the phase."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - started, 3)

    def save(self, bucket: Bucket) -> None:
        bucket.write(
            self.key,
            _encode_json(attrs.asdict(self) | {"code_version": compute_code_version()}),
            "application/json",
        )


def describe_outcome(window: str, state: str, visible: dict[str, Any]) -> dict[str, Any]:
    """Return a window's document for the record, with facts of the manifest that is visible, or that would
    be.
    """
    document = {"window": window, "state": state, "reason": None}
    return document | {key: visible[key] for key in _MANIFEST_KEYS_IN_RECORD}


def begin(
    bucket: Bucket,
    export: str,
    as_of: datetime,
    limit: timedelta,
    clock: Clock,
    *,
    job_run_id: str | None = None,
    asked: dict[str, str] | None = None,
) -> RunRecord:
    now = clock()
    record = RunRecord(make_run_id(now), export, as_of, now, now + limit, job_run_id, asked=asked)
    record.save(bucket)
    return record


def run_key(export: str, run_id: str) -> str:
    return f"{export}/runs/{run_id}.json"


def may_be_removed(
    bucket: Bucket, export: str, run_id: str, window: str, now: datetime, *, replaced_at: datetime | None
) -> bool:
    """Return whether files that a run left in a window, and that no manifest names, may be removed.

    They are kept if the run's record says that it published the window, because somebody deleted the
    manifest. They are also kept if the run has just ended or died, and it isn't known whether it published
    the window: S3 may still write the manifest. If the run ended before `replaced_at`, when another one
    published the window, S3 refuses this write.
    """
    stored = bucket.read_json(run_key(export, run_id))
    if stored is None:
        return True
    record = stored[0]
    if any(outcome["window"] == window and outcome["state"] == "published" for outcome in record["windows"]):
        return False
    if not _is_over(record, now):
        return False
    if window not in _find_unsure(record):
        return True
    # A dead run has no end until another one finds it dead.
    ended = datetime.fromisoformat(record["ended_at"] or record["expires_at"])
    is_refused = replaced_at is not None and ended <= replaced_at
    return is_refused or ended + _GRACE <= now


def _find_unsure(record: dict[str, Any]) -> set[str]:
    """Return the windows for which it isn't known whether a run that is over published them."""
    unsure = [window["window"] for window in record["windows"] if window.get("may_be_published")]
    return {*unsure, *filter(None, [record.get("working_on")])}


def _is_over(record: dict[str, Any], now: datetime) -> bool:
    """Return whether a run has ended: its record says so, its process is gone, or its time limit has
    passed.
    """
    if record["state"] != "running":
        return True
    has_died = record["host"] == _name_host() and not _is_alive(record["pid"])
    return has_died or datetime.fromisoformat(record["expires_at"]) + _GRACE <= now


def load_recent(bucket: Bucket, export: str, run_ids: list[str]) -> list[dict[str, Any]]:
    """Return the records of the latest of these runs, oldest first. Older records are read until one has a
    window.

    `run_ids` must be sorted; their order is exact to the second.
    """
    records: list[dict[str, Any]] = []
    with ThreadPoolExecutor(8) as pool:  # the client keeps ten connections
        for end in range(len(run_ids), max(len(run_ids) - _MOST, 0), -_LATEST):
            keys = [run_key(export, run_id) for run_id in run_ids[max(end - _LATEST, 0) : end]]
            records[:0] = [record[0] for record in pool.map(bucket.read_json, keys) if record]
            if any(record["windows"] for record in records):
                break
    return sorted(records, key=lambda record: str(record["started_at"]))


def list_dead_runs(records: list[dict[str, Any]], now: datetime) -> list[str]:
    """Return the ids of runs that are dead although their records say that they are running."""
    return [record["id"] for record in records if record["state"] == "running" and _is_over(record, now)]


def list_unsure_runs(records: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Return, by the id of an ended run, the windows for which it doesn't know whether it published them."""
    ended = [record for record in records if record["state"] != "running"]
    return {record["id"]: unsure for record in ended if (unsure := _find_unsure(record))}


def find_last_failures(records: list[dict[str, Any]]) -> dict[str, str]:
    """Return windows that failed, were blocked, or were in progress when their run ended, with the id of the
    last such run.
    """
    last: dict[str, str] = {}
    for record in records:
        ended = {window["window"] for window in record["windows"]}
        last = {label: run_id for label, run_id in last.items() if label not in ended}
        failed = [window["window"] for window in record["windows"] if window.get("exit_code")]
        if in_progress := record.get("working_on"):
            failed.append(in_progress)
        last |= dict.fromkeys(failed, record["id"])
    return last


def find_last_computed(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return, by window, the latest document with a hash of its inputs: the window was computed or was up to
    date.
    """
    computed = {}
    for record in records:
        for window in record["windows"]:
            if window.get("inputs_sha256"):
                computed[window["window"]] = window
    return computed


def find_durations(records: list[dict[str, Any]]) -> dict[str, float]:
    """Return, by window, the seconds that the last run took that published it."""
    durations = {}
    for record in records:
        for window in record["windows"]:
            if window["state"] == "published" and "seconds" in window:
                durations[window["window"]] = window["seconds"]
    return durations


def list_windows_to_check(records: list[dict[str, Any]], *, keeps_table: bool) -> set[str]:
    """Return published windows that a run must check regardless of their age.

    Their events may not all have been in the table or, if the export keeps a table of aggregates, their run
    may have ended after it wrote the file and before it wrote the table.
    """
    labels: set[str] = set()
    for record in records:
        for window in record["windows"]:
            if not window.get("exit_code") and window["state"] not in ("dry_run", "incomplete"):
                labels.discard(window["window"])
            if window.get("status") == "incomplete":
                labels.add(window["window"])
        if keeps_table:
            labels |= _find_unsure(record)
    return labels


def mark_died(bucket: Bucket, export: str, run_id: str, now: datetime) -> None:
    """Mark a dead run as failed in its record. It ended at some time before `now`."""
    key = run_key(export, run_id)
    if stored := bucket.read_json(key):
        document = stored[0] | {"state": "failed", "ended_at": now, "reason": str(_DIED)}
        bucket.write(key, _encode_json(document), "application/json")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _encode_json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False, default=_format_value).encode()


def _format_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
