"""What the process of a Glue job run starts with: it runs the job's script, and ends with the server that began it.

Called by its path, in the interpreter of jobs: `python -S job_driver.py REASON SCRIPT ARGUMENT…`. Standard library only, and
nothing of this project can be imported, as on Glue. Why a run failed goes to the file REASON, in Glue's words.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path


def main() -> int:
    reason, script = Path(sys.argv[1]), sys.argv[2]
    _end_with_parent()
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        return _ended(ended, reason)
    except BaseException as error:
        traceback.print_exc()
        reason.write_text(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _ended(ended: SystemExit, reason: Path) -> int:
    """AWS doesn't document what a script that exits with 0 counts as. It fails here, so that no script relies on success."""
    reason.write_text(f"SystemExit: {ended.code}")
    if isinstance(ended.code, int):
        return ended.code or 1
    sys.stderr.write(f"{ended.code}\n")
    return 1


def _end_with_parent() -> None:
    """End with the parent, which holds the other end of standard input and writes nothing."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_kill_group_at_end_of, args=(pipe,), daemon=True).start()


def _kill_group_at_end_of(pipe: int) -> None:
    while os.read(pipe, 4096):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
