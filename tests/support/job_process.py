"""Runs the job as a real process, which a test can stop right after AWS has done what the job called it
for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from simulators.core.faults import FaultClient
from tests.support.canary import AWS_SECRET
from tests.support.lake import AS_OF, ROOT, Lake
from tests.support.waiting import PATIENCE

#: Seconds between two checks of a process. No result depends on them.
LOOK = 0.02
#: Seconds that an export of a test may take.
_LONGEST = 300


@attrs.frozen
class Job:
    """`python -m glue_jobs.export` in a session of its own, with its output in `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    def ended(self) -> bool:
        """Wait for a moment, and return whether the process has ended."""
        try:
            self.process.wait(LOOK)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        return self.process.wait(_LONGEST)

    def kill(self) -> None:
        """Kill driver and JVM at once, as the end of a container does."""
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
    """Start the job with `contract`, a name or a path.

    The environment has Spark's settings and leads to the embedded AWS.
    """
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
    """Wait until a response is held. `ended` waits for a moment and returns whether the caller has ended."""
    while not faults.state()["held"]:
        assert not ended(), f"the process ended before the call whose response a fault holds\n{result()}"
