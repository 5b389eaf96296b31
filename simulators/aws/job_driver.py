"""The main program of a Glue job run: runs the job's script, and ends when the server that started it ends.

It is started by its path with the interpreter of the job: `python -S job_driver.py REASON SCRIPT ARGUMENT…`.
It uses only the standard library: as on Glue, this project can't be imported. If the run fails, the file
REASON gets the text of Glue's ErrorMessage.
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
    reason = Path(sys.argv[1])
    script = sys.argv[2]
    _end_with_parent()
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as exit_:
        return _report_exit(exit_, reason)
    except BaseException as error:
        traceback.print_exc()
        reason.write_text(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _report_exit(exit_: SystemExit, reason: Path) -> int:
    """Return the exit code after sys.exit.

    AWS doesn't document whether sys.exit(0) is a success, so here it fails the run.
    """
    reason.write_text(f"SystemExit: {exit_.code}")
    if isinstance(exit_.code, int):
        return exit_.code or 1
    sys.stderr.write(f"{exit_.code}\n")
    return 1


def _end_with_parent() -> None:
    """End when the parent ends.

    The parent holds the other end of the pipe at standard input, and writes nothing to it.
    """
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
