"""Reads the documentation pages, and lists what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from config import toml_model
from config.deployments.model import Deployment
from config.exports import contracts
from config.exports.contract import Contract
from config.toml_model import BadFile
from tests.support import shipped

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
#: A path below one of our folders, as a sentence names it. Below exports only contracts, because buckets have
#: that folder too.
_NAME = re.compile(
    r"`((?:(?:docs|tests|stacks|lambdas|glue_jobs|simulators|config|dev|project/(?:deployments|topics|flink)|\.github|\.devcontainer)/"
    r"[\w./-]*|lakeferry/[\w./-]*\.\w+|project/exports/\w+\.toml))`"
)
#: TOML tables of deployment files that contracts don't have.
_OF_DEPLOYMENT = re.compile(
    r"^\[+(?:deployment|aws|network|encryption|confluent|topics|statements|snowflake|rotation|exports"
    r"|alerts|mail)\b",
    re.MULTILINE,
)
#: A page that a source file names, with the heading if there is one.
_POINTER = re.compile(r"docs/[\w./-]+\.(?:md|json)(?:#[\w-]+)?")


#: Files with sentences for readers that are neither pages nor Python. Below project/ only those that ship,
#: because users add their own.
_OTHER_TEXTS = (
    "Makefile",
    "pyproject.toml",
    "requirements*.in",
    ".pre-commit-config.yaml",
    ".github/workflows/*.yml",
    "docs/**/*.yml",
    "docs/**/*.svg",
    *(f"project/exports/{name}.toml" for name in (*shipped.EXPORTS, *shipped.FLINK_EXPORTS)),
    *(f"project/flink/{name}/*" for name in shipped.STATEMENTS),
    "tests/data/shipped/*.toml",
    "config/errors.toml",
    "lakeferry/plan/prices.toml",
    "glue_jobs/**/*.j2",
    "glue_jobs/*.in",
    "lambdas/*.in",
    "simulators/**/*.in",
)
#: Phrases that readers stumble over, or that plain English leaves out.
_STOCK_PHRASE = re.compile(
    r"\b(?:in order to|and so on|for ever|simply|utili[sz]e\w*|leverag\w+|seamless\w*|robust\w*|stand-ins?"
    r"|without a trace|counte?d? up its|replace[sd]? it by|whom to ask|tell(?:s|ing)? why|of one's own"
    r"|never stands? here|e\.g\.|i\.e\.|etc\.)(?!\w)",
    re.IGNORECASE,
)


class Fence(NamedTuple):
    language: str
    text: str


def pages(root: Path) -> list[Path]:
    return [
        *sorted(root.glob("*.md")),
        *sorted((root / ".github").glob("*.md")),
        *sorted((root / "docs").rglob("*.md")),
    ]


def other_texts(root: Path) -> list[Path]:
    """Return the files with sentences that are neither pages nor Python."""
    files = {file for pattern in _OTHER_TEXTS for file in root.glob(pattern)}
    return sorted(files)


def stock_phrases(root: Path) -> list[str]:
    """Return phrases of pages and other texts that plain English doesn't use."""
    problems = []
    for file in [*pages(root), *other_texts(root)]:
        text = prose(file) if file.suffix == ".md" else file.read_text(encoding="utf-8")
        problems += [f"{file.relative_to(root)}: {phrase}" for phrase in _STOCK_PHRASE.findall(text)]
    return problems


def fences(page: Path) -> list[Fence]:
    return [Fence(*item) for item in _FENCE.findall(page.read_text(encoding="utf-8"))]


def broken_links(root: Path) -> list[str]:
    """Return links to missing files and missing headings. Other sites are not checked."""
    return [
        f"{page.relative_to(root)}: {target}"
        for page in pages(root)
        for target in _LINK.findall(prose(page))
        if "://" not in target and not leads_somewhere(page, target)
    ]


def pages_without_a_link(root: Path) -> list[str]:
    """Return pages of docs/ that are neither named in docs/README.md nor linked from a generated page named
    there.
    """
    index = root / "docs" / "README.md"
    linked = _linked(index)
    linked |= {below for page in linked if page.parent.name == "reference" for below in _linked(page)}
    everything = sorted((root / "docs").rglob("*.md"))
    return [
        str(page.relative_to(root)) for page in everything if page != index and page.resolve() not in linked
    ]


def _linked(page: Path) -> set[Path]:
    found = {(page.parent / target.partition("#")[0]).resolve() for target in _LINK.findall(prose(page))}
    return {target for target in found if target.suffix == ".md" and target.is_file()}


def broken_pointers(root: Path, packages: tuple[str, ...]) -> list[str]:
    """Return pages that messages and comments name and that don't exist."""
    sources = other_texts(root)
    for package in packages:
        sources += sorted((root / package).rglob("*.py"))
    broken = []
    for source in sources:
        for pointer in _POINTER.findall(source.read_text(encoding="utf-8")):
            if not leads_somewhere(root / "README.md", pointer):
                broken.append(f"{source.relative_to(root)}: {pointer}")
    return broken


def broken_names(root: Path) -> list[str]:
    """Return files and folders that sentences name and that don't exist."""
    return [
        f"{page.relative_to(root)}: {name}"
        for page in pages(root)
        for name in _NAME.findall(prose(page, keep_code=True))
        if not (root / name).exists()
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(page, keep_code=True)):
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = "".join(sign for sign in bare if sign.isalnum() or sign in " -_").replace(" ", "-")
        number = next(n for n in range(100) if (f"{anchor}-{n}" if n else anchor) not in found)
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def is_whole(toml: str) -> bool:
    return all(part in toml for part in ("version = ", "[source]", "[delivery]"))


def toml_mistakes(toml: str) -> list[str]:
    """Return the mistakes in a contract or a deployment file.

    In a part of a file, missing keys are not reported.
    """
    try:
        if is_whole(toml):
            contracts.parse(toml, name="snippet")
        else:
            toml_model.read(Deployment if _OF_DEPLOYMENT.search(toml) else Contract, toml, name="snippet")
    except BadFile as bad:
        return [
            str(problem)
            for problem in bad.problems
            if is_whole(toml) or not problem.message.startswith("missing")
        ]
    return []


def prose(page: Path, *, keep_code: bool = False) -> str:
    """Return the page without fenced code and, unless `keep_code`, without inline code."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return text if keep_code else re.sub(r"`[^`\n]*`", "", text)


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    return file.is_file() and (not anchor or anchor in anchors(file))
