"""How commands speak: people read standard error, programs read one JSON document on standard output.

Exit codes: 0 done · 1 failed · 2 wrong input · 3 this machine is not set up · 5 not yet, try later · 6 stopped ·
7 kept back by a check.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

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
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)

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
        shown = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            shown.add_row(*row)
        # A terminal may be narrow; a file never is.
        self.err.print(shown, no_wrap=True, width=None if self.err.is_terminal else 200)

    def document(self, ok: bool, **fields: Any) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps({"ok": ok} | fields, ensure_ascii=False, default=str) + "\n")

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[str], None]]:
        """A piece of work that takes a while. Yields a function that tells how far it is."""
        if not self.lively:
            yield lambda _: None
            return
        with self.err.status(title) as status:
            yield lambda detail: status.update(f"{title}  {detail}")


def fail(voice: Voice, failure: CommandFailed) -> NoReturn:
    voice.document(
        False, code=failure.code, message=failure.message, hint=failure.hint, details=failure.details, exit_code=failure.exit_code
    )
    voice.err.print(f"{failure.code}  {failure.message}", style="bold", markup=False)
    if failure.hint:
        voice.err.print(f"→ {failure.hint}", markup=False)
    sys.exit(failure.exit_code)


@contextmanager
def told(voice: Voice) -> Iterator[None]:
    """Turns what ends a command into its message and exit code."""
    try:
        yield
    except CommandFailed as failure:
        fail(voice, failure)
    except KeyboardInterrupt:
        fail(voice, CommandFailed(STOPPED, "STOPPED", "stopped; nothing is left half done", "Run the command again"))
