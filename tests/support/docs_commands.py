"""Checks commands on documentation pages against the command line's parser and the Makefile, without running
them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer._click.exceptions import UsageError

from tests.support import docs_reader

NAMES = ("lakeferry", ".venv/bin/lakeferry")
_INLINE = re.compile(r"`((?:\.venv/bin/)?(?:lakeferry|make) [^`\n]+)`")
#: A step of a workflow of GitHub or GitLab.
_STEP = re.compile(
    r"^\s*(?:- |run: |script: |- run: )\[?((?:\.venv/bin/)?(?:lakeferry|make) [^\]\n]+)\]?$", re.MULTILINE
)
_TARGET = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)
_VARIABLE = re.compile(r"\$\((\w+)\)")
#: Placeholders that the reader fills in.
_BLANK = re.compile(r"[…<>|]|^\S+ [A-Z]+\b")


class Command(NamedTuple):
    """A command on a page. `whole`: a reader can copy it as it is, so no argument may be missing."""

    page: Path
    line: str
    whole: bool


def find_on_pages(root: Path) -> Iterator[Command]:
    """Return every line of a shell snippet that calls `lakeferry` or `make`, and every such command within a
    sentence.
    """
    for page in docs_reader.pages(root):
        for fence in docs_reader.fences(page):
            if fence.language in ("sh", "console"):
                yield from (Command(page, line, True) for line in _lines(fence.text))
        sentences = docs_reader.prose(page, keep_code=True)
        yield from (
            Command(page, line, False) for line in _INLINE.findall(sentences) if not _BLANK.search(line)
        )


def find_in_workflows(root: Path) -> Iterator[Command]:
    """Return every step of the workflows that calls `lakeferry` or `make`."""
    for file in (*root.glob(".github/workflows/*.yml"), *root.glob("docs/ci/*.yml")):
        yield from (Command(file, line, True) for line in _STEP.findall(file.read_text(encoding="utf-8")))


def wrong(app: typer.Typer, root: Path) -> list[str]:
    found = []
    for page, line, item in (*find_on_pages(root), *find_in_workflows(root)):
        if result := wrong_line(app, root / "Makefile", line, whole=item):
            found.append(f"{page.relative_to(root)}: {result}")
    return found


def wrong_line(app: typer.Typer, makefile: Path, line: str, *, whole: bool = False) -> str | None:
    """Return what is wrong with a command line. A command other than `lakeferry` and `make` is wrong too."""
    words = shlex.split(line.removeprefix("$ "), comments=True)
    if words[:1] == ["make"]:
        return wrong_targets(makefile.read_text(encoding="utf-8"), words[1:])
    if words and words[0] in NAMES:
        return wrong_words(app, words[1:], whole=whole)
    return f"no command of ours: {line}"


def wrong_words(app: typer.Typer, words: list[str], *, whole: bool = False) -> str | None:
    """Return typer's error for a command line, without running it.

    A sentence may name a command without its arguments.
    """
    command: Any = typer.main.get_command(app)
    rest = list(words)
    line = " ".join(words)
    while hasattr(command, "commands"):
        before = _options_before(command, rest)
        if before is None:
            return f"no such option before a command: {line}"
        if not rest:
            return f"no whole command: {line}" if whole and not before else None
        if rest[0] not in command.commands:
            return f"no command {line}"
        command = command.commands[rest.pop(0)]
    try:
        command.make_context(words[0], rest)
    except UsageError as error:
        result = error.format_message()
        is_named = not whole and (
            result.startswith("Missing argument") or result.endswith("requires an argument.")
        )
        return None if is_named else f"{line}: {result}"
    return None


def wrong_targets(makefile: str, words: list[str]) -> str | None:
    targets = set(_TARGET.findall(makefile))
    variables = set(_VARIABLE.findall(makefile))
    given = [word for word in words if "=" not in word and not word.startswith("-")]
    for word in words:
        if word.startswith("--"):
            return f"make would take {word} for an option of its own"
        name = word.partition("=")[0]
        if "=" in word and name not in variables:
            return f"the Makefile knows no {name}"
    unknown = [word for word in given if word not in targets]
    return f"no target {', '.join(unknown)}" if unknown else None


def _options_before(command: Any, rest: list[str]) -> int | None:
    """Remove a group's options and their values from `rest`, and count them.

    Return None for an unknown option.
    """
    known = {
        name: parameter
        for parameter in command.get_params(typer.Context(command))
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    count = 0
    while rest and rest[0].startswith("-"):
        name, equals, _ = rest.pop(0).partition("=")
        if (option := known.get(name)) is None:
            return None
        if not equals and not option.is_flag and rest:
            rest.pop(0)
        count += 1
    return count


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        plain = line.removeprefix("$ ")
        if plain.split(" ")[0] in (*NAMES, "make"):
            yield plain
