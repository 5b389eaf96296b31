"""Run an export for a command: show progress, and copy the files."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import boto3
from pyspark.sql import SparkSession

from config.exports.file_model import ROW_ROLES
from glue_jobs import arguments, export, runs
from glue_jobs.errors import ExportError
from glue_jobs.runs import RunRecord
from glue_jobs.store import Bucket, translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local import spark as local_spark
from lakeferry.local.target import ExportTarget
from lakeferry.output import Output
from stacks.assets import BuildFailed, build_glue_zip


@contextmanager
def open_spark(output: Output, master: str = local_spark.LOCAL) -> Iterator[None]:
    """Run exports in this block on the Spark master. Raises CommandFailed."""
    try:
        java_home = local_spark.prepare(
            master=master, code=build_glue_zip if local_spark.is_cluster(master) else None
        )
    except local_spark.BadMaster as error:
        raise CommandFailed("SPARK-MASTER", str(error)) from None
    except (local_spark.NotSetUp, BuildFailed) as error:
        raise CommandFailed("NOT-SET-UP", str(error)) from None
    try:
        with show_log(output):
            yield
    finally:
        if local_spark.can_write_archive(java_home):
            output.info("archiving Java's classes once, so that later starts are faster …")
        with output.step("Stopping Java"):
            local_spark.end(java_home)


@contextmanager
def show_log(output: Output) -> Iterator[None]:
    """Show the job's log, which includes causes of unexpected errors, with --verbose only."""
    handler = logging.Handler()
    handler.emit = lambda record: output.debug(handler.format(record))  # type: ignore[method-assign]
    job = logging.getLogger("lakeferry.export")
    root = logging.getLogger()
    job.addHandler(handler)
    job.propagate = False
    root.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        root.removeFilter(_is_no_interrupt)
        job.propagate = True
        job.removeHandler(handler)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Return False for the traceback of a Ctrl-C, which py4j logs to the root logger before it raises the
    KeyboardInterrupt.
    """
    return not str(record.msg).startswith("KeyboardInterrupt while sending command")


def run(
    output: Output, target: ExportTarget, options: list[str], title: str, session: SparkSession | None = None
) -> RunRecord:
    """Run an export and return its record, which includes failures of windows.

    Raises CommandFailed if the run can't start.
    """
    try:
        args = arguments.parse([*target.arguments(), *options], now=runs.utc_now())
        with _show_progress(output, title) as on_phase:
            return export.run(args, on_phase=on_phase, spark=session)
    except ExportError as error:
        raise CommandFailed(error.code, error.what, error.remedy) from None


def download(target: ExportTarget, record: RunRecord, out: Path) -> list[Path]:
    """Copy the files of a run's windows to `out`/<export>/<window>/ and return the data files.

    Raises CommandFailed.
    """
    bucket = Bucket(boto3.client("s3"), target.bucket, target.prefix.strip("/"))
    windows = [window for window in record.windows if window["state"] in ("published", "unchanged")]
    try:
        files: list[Path] = []
        for window in windows:
            files += _download_window(bucket, record, window, out)
        return files
    except OSError as error:
        message = f"{error.filename or out} can't be written: {error.strerror}"
        raise CommandFailed("OUT-FOLDER", message) from None
    except ExportError as error:
        raise CommandFailed(error.code, error.what, error.remedy) from None


def _download_window(bucket: Bucket, record: RunRecord, window: dict[str, Any], out: Path) -> list[Path]:
    folder = out / record.export / str(window["window"])
    folder.mkdir(parents=True, exist_ok=True)
    targets = [
        (file["key"], folder / file["key"].rpartition("/")[2], file["role"] in ROW_ROLES)
        for file in window["files"]
    ]
    targets.append(
        (bucket.key(f"{record.export}/manifests/{window['window']}.json"), folder / "manifest.json", False)
    )
    before = _find_earlier_copies(folder)
    for key, target, _ in targets:
        with translate_aws_errors(f"reading s3://{bucket.name}/{key}"):
            bucket.s3.download_file(bucket.name, key, str(target))
    data = [target for _, target, is_data in targets if is_data]
    for old in before.difference(data):
        old.unlink()
    return data


def _find_earlier_copies(folder: Path) -> set[Path]:
    """Return the data files that an earlier copy of the window wrote and that nobody has changed since.

    Which files there are, and whether they are compressed, depends on the contract.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        files = {folder / PurePosixPath(file["key"]).name: file for file in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()  # there is no manifest of an earlier copy
    return {
        path for path, file in files.items() if file["role"] in ROW_ROLES and _has_bytes(path, file["sha256"])
    }


def _has_bytes(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


@contextmanager
def _show_progress(output: Output, title: str) -> Iterator[Callable[[str, str], None]]:
    """Show the phase with the time since the start, and Spark's tasks."""
    started = time.monotonic()
    now: dict[str, str] = {"phase": "starting"}
    ended = threading.Event()
    with output.step(title) as update:

        def watch() -> None:
            while not ended.wait(0.5):
                update(f"{time.monotonic() - started:.0f} s  {now['phase']}  {_describe_tasks()}")

        def on_phase(window: str, phase: str) -> None:
            now["phase"] = f"{window}: {phase}"

        watcher = threading.Thread(target=watch, daemon=True)
        if output.is_interactive:
            watcher.start()
        try:
            yield on_phase
        finally:
            ended.set()
            if watcher.is_alive():
                watcher.join()


def _describe_tasks() -> str:
    session = SparkSession.getActiveSession()
    if session is None:
        return ""
    tracker = session.sparkContext.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
    return " ".join(f"[{stage.numCompletedTasks}/{stage.numTasks} tasks]" for stage in stages)
