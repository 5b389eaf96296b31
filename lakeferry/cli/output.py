"""How commands speak: results go to standard output, as text or with `--json` as one document; all else to standard error.

Exit codes: 0 done · 1 failed · 2 wrong input · 3 not ready: this machine, or something that `doctor` looks at · 4 there are
changes (`plan --check`) · 5 not yet, try later · 6 stopped · 7 kept back by a check.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from lakeferry import errors
from lakeferry.cli import tables

DONE, FAILED, WRONG_INPUT, NOT_SET_UP, CHANGES, LATER, STOPPED, KEPT_BACK = range(8)
#: Keys of every document. A command's own keys stand beside the first group, those of what failed are the second.
DOCUMENT: Final = ("ok", "code", "request_id")
FAILURE_SIGN: Final = "✗"
FAILURE: Final = ("message", "why", "hint", "docs", "details", "exit_code")


class CommandFailed(Exception):
    """Ends a command: one message for people, the same in fields for programs.

    The catalogue of errors has the code, and with it the exit code. `hint` says what to do here, where that is more than the
    catalogue's remedy. Raises UnknownCode.
    """

    def __init__(self, code: str, message: str, hint: str = "", details: Any = None, *, why: str = "", trace: str = "") -> None:
        super().__init__(message)
        entry = errors.entry(code)
        self.exit_code = entry.exit_code
        self.page = entry.page
        self.code = code
        self.message = message
        self.why = why
        self.hint = hint or errors.plain(entry.remedy)
        self.details = details
        self.trace = trace


class Voice:
    """One command's output. `as_json` prints the document in place of results; `quiet` prints only results and errors."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False, color: bool = True) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.request_id = uuid.uuid4().hex[:12]
        # Rich itself looks at NO_COLOR, and at whether this is a terminal.
        self.out, self.err = (
            Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=True, no_color=None if color else True)
            for stderr in (False, True)
        )
        self._spins = False

    @property
    def lively(self) -> bool:
        """Whether moving progress makes sense."""
        return self.err.is_terminal and not self.quiet

    @property
    def may_ask(self) -> bool:
        """Whether somebody is there to answer."""
        return not self.as_json and self.err.is_terminal and sys.stdin.isatty()

    def say(self, text: str) -> None:
        if not self.quiet:
            self.err.print(text, markup=False)

    def detail(self, text: str) -> None:
        """Told with --verbose only."""
        if self.verbose:
            self.err.print(text, markup=False, style="dim")

    def result(self, text: str, *, alarm: bool = False) -> None:
        """What the user asked for. The words of an alarm have to say it too: red is not seen everywhere."""
        if self.as_json:
            return
        shown = Text(text, style="bold red" if alarm else "")
        shown.highlight_words([FAILURE_SIGN], "bold red")
        # Rich erases a spinner's line only for what its own console prints.
        (self.err if self._spins and self.out.is_terminal else self.out).print(shown)

    def warn(self, text: str) -> None:
        """Also when quiet or with --json: what the user should know beside the result."""
        self.err.print(text, markup=False, style="bold red")

    @property
    def width(self) -> int | None:
        """Of the terminal that shows results; None where they go into a file, which is never too narrow."""
        return self.out.width if self.out.is_terminal else None

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        for line in tables.told(columns, rows, self.width):
            self.result(line)

    def ask(self, question: str, default: str = "") -> str:
        """What somebody types; `default` where that is nothing. Only where `may_ask`."""
        shown = f" [{default}]" if default else ""
        self.err.print(f"{question}{shown}: ", markup=False, end="")
        return sys.stdin.readline().strip() or default

    def document(self, ok: bool, **fields: Any) -> None:
        if self.as_json:
            own = {"ok": ok, "code": "DONE", "request_id": self.request_id} | fields
            sys.stdout.write(json.dumps(own, ensure_ascii=False, default=tables.plain) + "\n")

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[str], None]]:
        """A piece of work that takes a while. Yields a function that tells how far it is."""
        if not self.lively:
            yield lambda _: None
            return
        with self.err.status(title) as status:
            self._spins = True
            try:
                yield lambda detail: status.update(f"{title}  {detail}")
            finally:
                self._spins = False


def fail(voice: Voice, failure: CommandFailed) -> NoReturn:
    fields = {"code": failure.code, "message": failure.message, "why": failure.why, "hint": failure.hint, "docs": failure.page}
    voice.document(False, **fields, details=failure.details, exit_code=failure.exit_code)
    voice.err.print(f"{failure.code}  {failure.message}", style="bold", markup=False)
    if failure.why:
        voice.err.print(f"  Likely cause: {failure.why}", markup=False)
    voice.err.print(f"→ {failure.hint}", markup=False)
    voice.err.print(f"  {failure.page}", markup=False)
    if failure.trace:
        voice.detail(failure.trace)
    sys.exit(failure.exit_code)


def command() -> str:
    """How the user can call us from here: by name, or where the virtual environment isn't on the path, by its place."""
    if shutil.which("lakeferry"):
        return "lakeferry"
    place = Path(sys.executable).with_name("lakeferry")
    return min(str(place), os.path.relpath(place), key=len)


@contextmanager
def told(voice: Voice) -> Iterator[None]:
    """Turns whatever ends a command into its message and exit code; nobody ever sees a trace who didn't ask for it."""
    try:
        yield
    except CommandFailed as failure:
        fail(voice, failure)
    except (KeyboardInterrupt, typer.Abort):
        fail(voice, CommandFailed("STOPPED", "stopped before the end", "Run the command again"))
    except (BrokenPipeError, typer.Exit):
        raise  # typer ends quietly, also where whoever read our output has gone
    except Exception as error:
        from lakeferry.cli import troubles  # noqa: PLC0415 - it knows every room's errors, and most commands need none of them

        fail(voice, troubles.as_failure(error))
