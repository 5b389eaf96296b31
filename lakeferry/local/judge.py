"""Ask Spark what it finds in contracts, by the code of the job, in a process of its own.

The process starts when the first contract needs it, and answers are kept below .lakeferry/analyses, so that
nobody waits for Spark twice. An answer belongs to the parts of the contract that Spark looks at, the table's
columns, the code of the job, and Spark's version.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from cattrs.preconf.json import make_converter

from config.exports.analysis import Analysis
from config.exports.contract import Contract
from config.exports.table_columns import list_spark_columns
from config.exports.topic_schema import TopicSchema
from glue_jobs.platform import compute_code_version
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT

KEPT: Final = ROOT / ".lakeferry" / "analyses"
CONVERTER: Final = make_converter()
_WORKER: Final = "lakeferry.local.judge_worker"
_END_SECONDS: Final = 60


class NotReady(Exception):
    """Spark can't be asked. The message is one sentence with what to do."""


@contextmanager
def open_judge() -> Iterator[SparkJudge]:
    """Yield a judge for a command. Raises CommandFailed if Spark can't be asked."""
    try:
        with SparkJudge() as judge:
            yield judge
    except NotReady as missing:
        raise CommandFailed("NOT-SET-UP", str(missing)) from None


class SparkJudge:
    """A context manager; its end is the end of the process. Raises NotReady when it is called."""

    def __init__(self, kept: Path = KEPT) -> None:
        self._kept = kept
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    def __enter__(self) -> SparkJudge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            _end(self._process)
        if self._log:
            self._log.close()

    def __call__(self, contract: Contract, schema: TopicSchema) -> Analysis:
        request = json.dumps(
            {"contract": CONVERTER.unstructure(contract), "columns": list_spark_columns(schema)}
        )
        # The answer depends on the code and on Spark, too.
        marks = "\n".join((request, compute_code_version(), metadata.version("pyspark")))
        name = hashlib.sha256(marks.encode()).hexdigest()[:32]
        file = self._kept / f"{name}.json"
        if (kept := _read(file)) is not None:
            return kept
        answer = self._ask(request)
        analysis = Analysis.of_document(answer)
        _keep(file, answer)
        return analysis

    def _ask(self, request: str) -> dict[str, Any]:
        process = self._process or self._start()
        answer = self._send_request(process, request)
        if "not_set_up" in answer:
            raise NotReady(answer["not_set_up"])
        analysis: dict[str, Any] = answer["analysis"]
        return analysis

    def _start(self) -> subprocess.Popen[str]:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the process
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # In its own session, so that Ctrl-C reaches only this process, which then ends the other one.
        self._process = subprocess.Popen(
            [sys.executable, "-m", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            text=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip
        return self._process

    def _send_request(self, process: subprocess.Popen[str], request: str) -> dict[str, Any]:
        line = ""
        if process.stdin and process.stdout:
            with suppress(BrokenPipeError):
                process.stdin.write(f"{request}\n")
                process.stdin.flush()
            line = process.stdout.readline()
        if not line:
            raise NotReady(
                f"Spark ended while it read the contracts: {self._read_last_line()}. Run `make setup`, "
                "then try again"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read_last_line(self) -> str:
        if self._log is None:
            return "it said nothing"
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _end(process: subprocess.Popen[str]) -> None:
    try:
        if process.stdin:
            with suppress(OSError):  # it has ended by itself
                process.stdin.close()
        process.wait(_END_SECONDS)
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _read(file: Path) -> Analysis | None:
    """Return a kept analysis, None if there is none or if it can't be read."""
    try:
        return Analysis.of_document(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(file: Path, document: dict[str, Any]) -> None:
    """Write the answer at once or not at all.

    A folder that can't be written costs time, and is no mistake.
    """
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(document), encoding="utf-8")
        unfinished.replace(file)
