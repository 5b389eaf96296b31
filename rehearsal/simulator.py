"""A vendor's simulator in a process of its own, from its announcement to its end, which ours is at the latest."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from lakeferry.errors import CommandFailed
from simulators import processes
from simulators.processes import NotStarted

_STOP_SECONDS: Final = 10.0


@contextmanager
def running(module: str, options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What it announced: addresses, credentials. Raises CommandFailed where it doesn't start."""
    command = [sys.executable, "-m", module, "--port", "0", "--json", "--stop-with-stdin", *options]
    with tempfile.TemporaryFile() as log:
        process = processes.start(command, log)
        try:
            yield processes.announcement(process, log)
        except NotStarted as reason:
            message = "\n".join([f"{module} {reason.what}. Its last lines:", *reason.last])
            raise CommandFailed("SIMULATOR", message) from None
        finally:
            processes.stop(process, _STOP_SECONDS)
