"""Starts a simulator in its own process, reads the line of JSON that announces it, and stops it.

Uses only the standard library.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
START_SECONDS: Final = 60.0
_LOG_LINES: Final = 15


class NotStarted(Exception):
    """The process made no announcement: `what` it did instead, and the `last` lines of its log."""

    def __init__(self, problem: str, last: Sequence[str]) -> None:
        super().__init__(problem)
        self.what = problem
        self.last = list(last) or ["(none)"]


def start(
    command: Sequence[str], log: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the command in a new session, which Ctrl-C in this terminal doesn't reach, so that `stop` can end
    it cleanly.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd=ROOT,
        env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **(environment or {})},
        start_new_session=True,
    )


def read_announcement(process: subprocess.Popen[bytes], log: IO[bytes]) -> dict[str, Any]:
    """Return the JSON in the first line of its output.

    Raises NotStarted if it ends or takes longer than START_SECONDS.
    """
    assert process.stdout is not None
    with process.stdout as stdout:
        readable_streams, _, _ = select.select([stdout], [], [], START_SECONDS)
        line = stdout.readline() if readable_streams else b""
    if line:
        announced: dict[str, Any] = json.loads(line)
        return announced
    problem = f"did not answer within {START_SECONDS:.0f} s"
    if readable_streams:
        problem = f"ended with code {process.wait()}"
    log.seek(0)
    raise NotStarted(problem, log.read().decode(errors="replace").strip().splitlines()[-_LOG_LINES:])


def stop(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM, so that the process can clean up.

    If it doesn't end within `grace` seconds, kill its process group.
    """
    try:
        process.terminate()
        process.wait(grace)
    except BaseException as reason:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not isinstance(reason, subprocess.TimeoutExpired):
            raise
    finally:
        if process.stdin is not None:
            process.stdin.close()


def end_with_parent() -> None:
    """Wait until standard input ends, as it does with the parent, then end this process.

    The parent writes nothing to it.
    """
    while os.read(0, 4096):  # not sys.stdin.buffer: its lock would delay the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)
