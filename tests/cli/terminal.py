"""A command on a terminal: what it asks is answered, and what the terminal showed is kept."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence

from lake import ROOT

_PIECE = 4096


def talk(words: Sequence[str], environment: Mapping[str, str], answers: Sequence[tuple[str, str]], root=ROOT) -> tuple[int, str]:
    """Exit code, and all that stood on the terminal. `answers` are pairs: what is waited for, and what is typed then."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lakeferry", *words],
        cwd=root,
        env=dict(environment) | {"TERM": "xterm", "COLUMNS": "200"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = _answered(ours, answers)
    os.close(ours)
    return process.wait(60), shown


def _answered(terminal: int, answers: Sequence[tuple[str, str]]) -> str:
    shown, at, left = "", 0, list(answers)
    while piece := _read(terminal):
        shown += piece
        if left and (found := shown.find(left[0][0], at)) >= 0:
            at = found + len(left[0][0])
            os.write(terminal, left.pop(0)[1].encode())
    assert left == [], shown
    return shown


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, _PIECE).decode(errors="replace")
    except OSError:  # the other end is closed: the command has ended
        return ""
