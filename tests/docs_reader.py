"""What the pages of the documentation hold, and what is wrong with them, as lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer._click.exceptions import UsageError

from exports import contract as contracts
from exports import toml_model
from exports.contract import Contract
from exports.toml_model import BadFile

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
_NAMES = ("lakeferry", ".venv/bin/lakeferry")
#: A page that sources point at, with the heading if they name one.
_POINTER = re.compile(r"docs/[\w./-]+\.(?:md|json)(?:#[\w-]+)?")


class Fence(NamedTuple):
    language: str
    text: str


def pages(root: Path) -> list[Path]:
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def fences(page: Path) -> list[Fence]:
    return [Fence(*found) for found in _FENCE.findall(page.read_text(encoding="utf-8"))]


def broken_links(root: Path) -> list[str]:
    """Links to files that don't exist, or to headings that the page doesn't have. Other sites are not asked."""
    return [
        f"{page.relative_to(root)}: {target}"
        for page in pages(root)
        for target in _LINK.findall(_prose(page))
        if "://" not in target and not _leads_somewhere(page, target)
    ]


def pages_without_a_link(root: Path) -> list[str]:
    """Pages of docs/ that docs/README.md doesn't name."""
    index = root / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in _LINK.findall(_prose(index))}
    everything = sorted((root / "docs").rglob("*.md"))
    return [str(page.relative_to(root)) for page in everything if page != index and page.resolve() not in linked]


def broken_pointers(root: Path, packages: tuple[str, ...]) -> list[str]:
    """Pages that messages and comments of the sources name, and that aren't there."""
    found = []
    for source in (file for package in packages for file in sorted((root / package).rglob("*.py"))):
        for pointer in _POINTER.findall(source.read_text(encoding="utf-8")):
            if not _leads_somewhere(root / "README.md", pointer):
                found.append(f"{source.relative_to(root)}: {pointer}")
    return found


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(_prose(page, keep_code=True)):
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = "".join(sign for sign in bare if sign.isalnum() or sign in " -_").replace(" ", "-")
        number = next(n for n in range(100) if (f"{anchor}-{n}" if n else anchor) not in found)
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def commands(text: str) -> list[list[str]]:
    """The words of the commands of ours in a shell snippet."""
    lines = [line.removeprefix("$ ") for line in text.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.split(" ")[0] in _NAMES]


def wrong_command(app: typer.Typer, words: list[str]) -> str | None:
    """What typer says against a command line, without running it."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            return f"no command {' '.join(words)}"
        command = command.commands[rest.pop(0)]
    try:
        command.make_context(words[0], rest)
    except UsageError as error:
        return f"{' '.join(words)}: {error.format_message()}"
    return None


def is_whole(toml: str) -> bool:
    return all(part in toml for part in ("version = ", "[source]", "[delivery]"))


def toml_mistakes(toml: str) -> list[str]:
    """What is wrong with a contract; of a part of one, only what doesn't come from the rest being missing."""
    try:
        if is_whole(toml):
            contracts.parse(toml, name="snippet")
        else:
            toml_model.read(Contract, toml, name="snippet")
    except BadFile as bad:
        return [str(one) for one in bad.problems if is_whole(toml) or not one.message.startswith("missing")]
    return []


def _prose(page: Path, *, keep_code: bool = False) -> str:
    """The page without its fences, and unless told otherwise without inline code."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return text if keep_code else re.sub(r"`[^`\n]*`", "", text)


def _leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    return file.is_file() and (not anchor or anchor in anchors(file))


def all_commands(root: Path) -> Iterator[tuple[Path, list[str]]]:
    for page in pages(root):
        for fence in fences(page):
            if fence.language in ("sh", "console"):
                yield from ((page, words) for words in commands(fence.text))
