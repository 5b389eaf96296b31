"""The job as a real process, which a test can stop at the moment at which AWS has done what it asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
from canary import AWS_SECRET
from lake import AS_OF, ROOT, Lake
from waiting import PATIENCE

from simulators.core.faults import FaultClient

#: Seconds between two looks at a process; nothing depends on them.
LOOK = 0.02


@attrs.frozen
class Job:
    """`python -m glue_jobs.export` in a session of its own; what it says goes to `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    def ended(self) -> bool:
        """Waits a moment."""
        try:
            self.process.wait(LOOK)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """As a container goes: driver and JVM at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def output(self) -> str:
        return self.log.read_text(errors="replace")


def start(
    lake: Lake,
    contract: str,
    *words: str,
    limits: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """Spark's settings and the way to the embedded AWS are in the environment; `contract` is a name or a path."""
    log = lake.folder / f"{len(list(lake.folder.iterdir()))}.log"
    args = ["--export", contract, "--as-of", AS_OF.isoformat(), *lake.target.arguments(), *words]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "glue_jobs.export", *args],
            cwd=ROOT,
            env=os.environ | {"AWS_SECRET_ACCESS_KEY": AWS_SECRET} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=limits,  # noqa: PLW1509 - it sets limits of the child, and takes no lock
        )
    return Job(process, log)


def await_held(faults: FaultClient, ended: Callable[[], bool], result: Callable[[], str] = str) -> None:
    """Until an answer is held. `ended` waits a moment and tells whether whoever should ask has given up."""
    while not faults.state()["held"]:
        assert not ended(), f"it ended before the call that was to be held\n{result()}"
