"""A command's wall time, processor time and memory, its children included."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import psutil

_EVERY = 0.1


@attrs.frozen
class Cost:
    """`wall` and `cpu` are seconds. `memory` is the greatest sum of proportional set sizes (PSS) in MiB.

    `cpu` and `memory` are those of the whole process tree.
    """

    wall: float
    cpu: float
    memory: int
    output: str


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Raises CalledProcessError with the command's output."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=dict(environment or os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watcher = _Watcher(process.pid)
    watcher.start()
    output, errors = process.communicate()
    wall = time.perf_counter() - started
    watcher.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), output, errors)
    return Cost(wall, watcher.cpu, watcher.peak >> 20, output)


class _Watcher(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        #: By process: the JVM ends after its parent, so nobody waits for it, and the kernel's totals lack its
        #: time.
        self._spent: dict[int, float] = {}
        self._root = psutil.Process(pid)
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(_EVERY):
            try:
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            self.peak = max(self.peak, sum(_read_memory(process.pid) for process in tree))
            for process in tree:
                with suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    self._spent[process.pid] = times.user + times.system

    @property
    def cpu(self) -> float:
        return sum(self._spent.values())

    def stop(self) -> None:
        self._done.set()
        self.join()


def _read_memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
