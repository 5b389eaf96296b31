"""Output of commands.

Results go to stdout, as text or with `--json` as one JSON document. Progress and errors go to stderr.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

#: Called with a short text about the progress of the work.
Reporter = Callable[[str], object]
_GAP = "  "
#: The last column is wrapped only if it can be at least this wide.
_MIN_LAST_COLUMN = 24
_TOTALS = " · "
#: A number with an optional unit. A column of numbers is aligned to the right.
_NUMBER = re.compile(r"-?[\d,]*\.?\d+( \w+)?")
#: Keys of every JSON document. A successful command adds its own keys; a failed one adds those of FAILURE.
DOCUMENT: Final = ("ok", "code", "request_id")
FAILURE_SIGN: Final = "✗"
FAILURE: Final = ("message", "why", "hint", "docs", "details", "exit_code")


class Output:
    """The output of a command.

    `as_json` prints the JSON document instead of results; `quiet` prints only results and errors.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, verbose: bool = False, color: bool = True
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.verbose = verbose
        self.request_id = uuid.uuid4().hex[:12]
        # Rich checks NO_COLOR itself, and whether the stream is a terminal.
        no_color = None if color else True
        self.out = Console(highlight=False, emoji=False, soft_wrap=True, no_color=no_color)
        self.err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, no_color=no_color)
        self._has_spinner = False

    @property
    def is_interactive(self) -> bool:
        """Return whether progress can be animated: stderr is a terminal, and --quiet was not given."""
        return self.err.is_terminal and not self.quiet

    @property
    def can_prompt(self) -> bool:
        """Return whether a user can answer a prompt: stdin and stderr are a terminal, and --json was not
        given.
        """
        return not self.as_json and self.err.is_terminal and sys.stdin.isatty()

    def info(self, text: str) -> None:
        if not self.quiet:
            self.err.print(text, markup=False)

    def debug(self, text: str) -> None:
        """Print with --verbose only."""
        if self.verbose:
            self.err.print(text, markup=False, style="dim")

    def print(self, text: str, *, alarm: bool = False) -> None:
        """Print a result.

        `alarm` prints it in red, but the text must make sense without colour: not every terminal shows it.
        """
        if self.as_json:
            return
        line = Text(text, style="bold red" if alarm else "")
        line.highlight_words([FAILURE_SIGN], "bold red")
        # Rich clears the spinner's line only for output of the console that shows the spinner.
        (self.err if self._has_spinner and self.out.is_terminal else self.out).print(line)

    def warn(self, text: str) -> None:
        """Print a warning, also with --quiet and --json."""
        self.err.print(text, markup=False, style="bold red")

    @property
    def width(self) -> int | None:
        """Return the width of the terminal that shows results in columns, or None if stdout is not a
        terminal.
        """
        return self.out.width if self.out.is_terminal else None

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        for line in format_table(columns, rows, self.width):
            self.print(line)

    def ask(self, question: str, default: str = "") -> str:
        """Return what the user types, or `default` for an empty line. Call it only if `can_prompt`."""
        default_hint = f" [{default}]" if default else ""
        self.err.print(f"{question}{default_hint}: ", markup=False, end="")
        return sys.stdin.readline().strip() or default

    def document(self, ok: bool, **fields: Any) -> None:
        if self.as_json:
            document = {"ok": ok, "code": "DONE", "request_id": self.request_id} | fields
            sys.stdout.write(json.dumps(document, ensure_ascii=False, default=to_json_value) + "\n")

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[str], None]]:
        """Show `title` while work is in progress. Yields a function that shows details of the progress."""
        if not self.is_interactive:
            yield lambda _: None
            return
        with self.err.status(title) as status:
            self._has_spinner = True
            try:
                yield lambda detail: status.update(f"{title}  {detail}")
            finally:
                self._has_spinner = False


def find_program_name() -> str:
    """Return the command as the user has to type it: its name, or its path if the virtual environment isn't
    on PATH.
    """
    if shutil.which("lakeferry"):
        return "lakeferry"
    executable = Path(sys.executable).with_name("lakeferry")
    return min(str(executable), os.path.relpath(executable), key=len)


def format_duration(seconds: float) -> str:
    """Return a duration like 1h05m, 3m12s or 12s."""
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{seconds_left:02}s" if minutes else f"{seconds_left}s"


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return lines with aligned columns.

    If they are wider than `width`, wrap the last column or put it below each row.
    """
    whole = align(columns, rows)
    if _has_room(whole, width):
        return whole
    heads = align(columns[:-1], [row[:-1] for row in rows])
    lasts = [columns[-1], *[row[-1] for row in rows]]
    left = max(map(cell_len, heads)) + len(_GAP)
    if width is not None and left + _MIN_LAST_COLUMN <= width:
        beside: list[str] = []
        for head, last in zip(heads, lasts, strict=True):
            beside += _write_beside(head, left, last, width - left)
        if _has_room(beside, width):
            return beside
    below: list[str] = []
    for head, last in zip(heads, lasts, strict=True):
        below += [head, f"{_GAP}{last}"]
    return [line for line in below if line.strip()]


def format_answer(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> list[str]:
    """Return the lines of a query's result: aligned columns, or one line for each value if the columns are
    too wide.
    """
    texts = [[to_text(value) for value in row] for row in rows]
    whole = align(columns, texts)
    return whole if _has_room(whole, width) else list(_write_records(columns, texts))


def align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    right = [all(_NUMBER.fullmatch(cell) for cell in column) for column in zip(*rows, strict=True)]
    if not rows:
        right = [False] * len(columns)
    lines = []
    for row in (columns, *rows):
        forms = zip(row, widths, right, strict=True)
        cells = [_pad_cell(cell, width, is_right) for cell, width, is_right in forms]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def to_text(value: Any) -> str:
    """Return a value as text. Control characters are escaped, so that a terminal does not act on them."""
    if value is None:
        return "NULL"
    if isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False, default=to_json_value)
    else:
        text = str(to_json_value(value))
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def to_json_value(value: Any) -> Any:
    """Return a value that JSON has no type for as text: bytes as UTF-8 or as 0x and hexadecimal digits."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    return str(value)


def _write_beside(head: str, left: int, last: str, width: int) -> Iterator[str]:
    """Yield `head` followed by `last`, which is wrapped to `width` and begins at column `left`."""
    *before, end = last.split(_TOTALS)
    lines: list[str] = []
    for part in (*(f"{part} ·" for part in before), end):
        if lines and cell_len(f"{lines[-1]} {part}") <= width:
            lines[-1] += f" {part}"
        else:
            lines += textwrap.wrap(part, width, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        beginning = head if number == 0 else ""
        yield f"{_pad_cell(beginning, left, False)}{line}".rstrip()


def _write_records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    longest = max(map(cell_len, columns))
    for number, row in enumerate(rows, start=1):
        yield f"-- row {number}"
        yield from (
            f"{_pad_cell(name, longest, False)}{_GAP}{cell}" for name, cell in zip(columns, row, strict=True)
        )


def _has_room(lines: list[str], width: int | None) -> bool:
    return width is None or all(cell_len(line) <= width for line in lines)


def _pad_cell(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if right else cell + blanks
