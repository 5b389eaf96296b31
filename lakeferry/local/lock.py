"""A lock that keeps other processes of this machine away from something in the clone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lakeferry.errors import CommandFailed


@contextmanager
def hold_lock(file: Path, in_use: Callable[[str], CommandFailed]) -> Iterator[None]:
    """Hold the lock. It ends with its process, also with a killed one.

    Raises what `in_use` returns for the id of the process that holds it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="ascii") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            opened.seek(0)
            raise in_use(opened.read() or "unknown") from None
        opened.truncate(0)
        opened.write(str(os.getpid()))
        opened.flush()
        yield
