"""How commands speak: people read standard error, programs read one JSON document on standard output.

Exit codes: 0 done · 1 failed · 2 wrong input · 3 this machine is not set up · 5 not yet, try later · 6 stopped ·
7 kept back by a check.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from lakeferry import tables

DONE, FAILED, WRONG_INPUT, NOT_SET_UP, LATER, STOPPED, KEPT_BACK = 0, 1, 2, 3, 5, 6, 7


class CommandFailed(Exception):
    """Ends a command: one message for people, the same in fields for programs."""

    def __init__(self, exit_code: int, code: str, message: str, hint: str = "", details: Any = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details


class Voice:
    """One command's output. `as_json` leaves standard output to the document; `quiet` tells only results and errors."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)

    @property
    def lively(self) -> bool:
        """Whether moving progress makes sense."""
        return self.err.is_terminal and not self.quiet

    def say(self, text: str) -> None:
        if not self.quiet:
            self.err.print(text, markup=False)

    def result(self, text: str) -> None:
        """Told also when quiet."""
        self.err.print(text, markup=False)

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        # A terminal may be narrow; a file never is.
        for line in tables.told(columns, rows, self.err.width if self.err.is_terminal else None):
            self.err.print(line, markup=False)

    def document(self, ok: bool, **fields: Any) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps({"ok": ok} | fields, ensure_ascii=False, default=tables.plain) + "\n")

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[str], None]]:
        """A piece of work that takes a while. Yields a function that tells how far it is."""
        if not self.lively:
            yield lambda _: None
            return
        with self.err.status(title) as status:
            yield lambda detail: status.update(f"{title}  {detail}")


def fail(voice: Voice, failure: CommandFailed) -> NoReturn:
    page = f"docs/reference/errors.md#{failure.code.lower()}"
    fields = {"code": failure.code, "message": failure.message, "hint": failure.hint, "docs": page}
    voice.document(False, **fields, details=failure.details, exit_code=failure.exit_code)
    voice.err.print(f"{failure.code}  {failure.message}", style="bold", markup=False)
    if failure.hint:
        voice.err.print(f"→ {failure.hint}", markup=False)
    voice.err.print(f"  {page}", markup=False)
    sys.exit(failure.exit_code)


def command() -> str:
    """How the user can call us from here: by name, or where the virtual environment isn't on the path, by its place."""
    if shutil.which("lakeferry"):
        return "lakeferry"
    place = Path(sys.executable).with_name("lakeferry")
    return min(str(place), os.path.relpath(place), key=len)


@contextmanager
def told(voice: Voice) -> Iterator[None]:
    """Turns what ends a command into its message and exit code."""
    try:
        yield
    except CommandFailed as failure:
        fail(voice, failure)
    except KeyboardInterrupt:
        fail(voice, CommandFailed(STOPPED, "STOPPED", "stopped; nothing is left half done", "Run the command again"))
