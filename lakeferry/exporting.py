"""Runs an export for a command: progress while it runs, files on disk afterwards, and what the record says in words."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
from pyspark.sql import SparkSession

from glue_jobs import arguments, export, runs
from glue_jobs.errors import ExportError
from glue_jobs.runs import RunRecord
from lakeferry.console import FAILED, KEPT_BACK, LATER, WRONG_INPUT, CommandFailed, Voice
from lakeferry.world import World

_EXIT = {1: FAILED, 2: WRONG_INPUT, 7: KEPT_BACK}
#: What a window's state means, in words.
STATES = {
    "published": "published",
    "unchanged": "unchanged",
    "superseded": "a newer run was faster",
    "skipped": "empty, skipped",
    "late": "waits for data",
    "dry_run": "dry run",
    "blocked": "kept back",
    "failed": "failed",
}


def run(voice: Voice, world: World, words: list[str], title: str) -> RunRecord:
    """Raises CommandFailed where nothing could be begun. Trouble of single windows is in the record."""
    try:
        args = arguments.parse([*world.arguments(), *words], now=runs.utc_now())
        with _progress(voice, title) as tell:
            return export.run(args, export.Surroundings(tell=tell))
    except ExportError as error:
        raise CommandFailed(_EXIT.get(error.exit_code, FAILED), error.code, error.what, error.remedy) from None


def download(world: World, record: RunRecord, out: Path) -> list[Path]:
    """Copies what the windows of a run show to `out`/<export>/<window>/. Returns the data files."""
    s3 = boto3.client("s3")
    copied = []
    for window in record.windows:
        if window["state"] not in ("published", "unchanged"):
            continue
        folder = out / record.export / str(window["window"])
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        keys = [(file["role"], file["key"]) for file in window["files"]]
        keys.append(("manifest", f"{world.prefix}/{record.export}/manifests/{window['window']}.json"))
        for role, key in keys:
            target = folder / ("manifest.json" if role == "manifest" else key.rpartition("/")[2])
            s3.download_file(world.bucket, key, str(target))
            if role == "data":
                copied.append(target)
    return copied


def summary(record: RunRecord) -> list[list[str]]:
    """A line a window: export, window, state, rows, totals."""
    return [
        [record.export, str(w["window"]), STATES[w["state"]], _rows(w), _headline(w) or str(w.get("reason") or "")]
        for w in record.windows
    ]


def trouble(record: RunRecord) -> CommandFailed | None:
    """How a command ends whose run had windows that failed, were kept back or wait."""
    bad = [window for window in record.windows if window.get("exit_code")]
    if bad:
        worst = max(bad, key=lambda window: int(window["exit_code"]))
        exit_code = _EXIT.get(worst["exit_code"], FAILED)
        return CommandFailed(exit_code, worst["code"], worst["reason"], worst["remedy"], details=record.windows)
    if record.windows and all(window["state"] == "late" for window in record.windows):
        return CommandFailed(LATER, "EXP-LATE", str(record.windows[0]["reason"]), "Run again when newer data has arrived")
    return None


def _rows(window: dict[str, Any]) -> str:
    return f"{window['rows']['rows']:,} rows" if "rows" in window else ""


def _headline(window: dict[str, Any]) -> str:
    shown = [f"{one['title'].lower()} {Decimal(one['total']):,}" for one in window.get("headline", [])]
    return " · ".join(shown)


@contextmanager
def _progress(voice: Voice, title: str) -> Iterator[Callable[[str, str], None]]:
    """Phases with the time since the start, and Spark's tasks while it works."""
    started = time.monotonic()
    now: dict[str, str] = {"phase": "starting"}
    done = threading.Event()
    with voice.step(title) as update:

        def watch() -> None:
            while not done.wait(0.5):
                update(f"{time.monotonic() - started:.0f} s  {now['phase']}  {_tasks()}")

        def tell(window: str, phase: str) -> None:
            now["phase"] = f"{window}: {phase}"

        watcher = threading.Thread(target=watch, daemon=True)
        if voice.lively:
            watcher.start()
        try:
            yield tell
        finally:
            done.set()
            if watcher.is_alive():
                watcher.join()


def _tasks() -> str:
    session = SparkSession.getActiveSession()
    if session is None:
        return ""
    tracker = session.sparkContext.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
    return " ".join(f"[{stage.numCompletedTasks}/{stage.numTasks} tasks]" for stage in stages)
