"""From pages to a folder of HTML."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from lakeferry.site import places, shell
from lakeferry.site.markdown import Rendered, render
from lakeferry.site.places import INDEX, Places
from lakeferry.site.shell import Group

_HERE: Final = Path(__file__).parent
_BUNDLED: Final = ("site.css", "search.js")
_GROUP: Final = re.compile(r"^\*\*(?P<title>.+?)\*\*(?P<more>[^\n]*)$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+\.md)\)")


def build(root: Path, out: Path) -> int:
    """How many pages were made. Raises LookupError where a link leads nowhere."""
    found = Places.find(root)
    shutil.rmtree(out, ignore_errors=True)
    listed, needed, rendered = [], set(), {}
    for source in found.pages:
        rendered[source], files = _rendered(found, source)
        needed |= files
    groups = navigation((root / INDEX).read_text(encoding="utf-8"), {source: one.title for source, one in rendered.items()})
    for source, place in found.pages.items():
        _write(out / place, shell.page(rendered[source], source=source, places=found, groups=groups))
        listed += _entries(rendered[source], place)
    for source in needed:
        _copy(root / source, out / places.file(source))
    for name in _BUNDLED:
        _copy(_HERE / name, out / name)
    _write(out / "index.js", f"const INDEX = {json.dumps(listed, ensure_ascii=False, separators=(',', ':'))};\n")
    return len(found.pages)


def navigation(index: str, titles: Mapping[PurePosixPath, str]) -> list[Group]:
    """What docs/README.md lists: bold words, and below each the pages that they are about, by their titles."""
    parts = list(_GROUP.finditer(index))
    ends = [*(part.start() for part in parts[1:]), len(index)]
    groups = []
    for part, end in zip(parts, ends, strict=True):
        more = part["more"].removeprefix(":").strip() if part["more"].startswith(":") else ""
        listed = [INDEX.parent / target for target in _LINK.findall(index[part.end() : end])]
        links = [(titles[page], page) for page in listed]
        groups.append(Group(f"{part['title']}: {more}" if more else part["title"], links))
    return groups


def _rendered(found: Places, source: PurePosixPath) -> tuple[Rendered, set[PurePosixPath]]:
    files = set()

    def target(link: str) -> str:
        there, needed = found.target(source, link)
        if needed:
            files.add(needed)
        return there

    return render((found.root / source).read_text(encoding="utf-8"), target), files


def _entries(rendered: Rendered, place: PurePosixPath) -> list[tuple[str, str, str]]:
    """For the search: words, page's title, address. Made tables of columns are not looked through."""
    return [
        (heading.text, rendered.title, place.as_posix() + (f"#{heading.anchor}" if heading.level > 1 else ""))
        for heading in rendered.headings
    ]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
