"""Which files become pages, and where on the site each file lies."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final

import attrs

INDEX: Final = PurePosixPath("docs/README.md")
#: Pages that lie beside docs/, and where files that aren't pages lie on the site.
_BESIDE: Final = PurePosixPath("project")
_FILES: Final = PurePosixPath("files")
_ELSEWHERE: Final = ("http:", "https:", "mailto:")


@attrs.frozen
class Places:
    """`pages` and `files` by their path in the tree; the value is the path on the site."""

    root: Path
    pages: dict[PurePosixPath, PurePosixPath]

    @classmethod
    def find(cls, root: Path) -> Places:
        found = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
        sources = [PurePosixPath(file.relative_to(root).as_posix()) for file in found]
        return cls(root, {source: _page(source) for source in sources})

    def target(self, page: PurePosixPath, link: str) -> tuple[str, PurePosixPath | None]:
        """A link as it is on the site, and the file that has to be copied for it. Raises LookupError where nothing is there."""
        path, hash_sign, anchor = link.partition("#")
        if link.startswith(_ELSEWHERE) or not path:
            return link, None
        source = PurePosixPath(os.path.normpath(page.parent / path))
        if source in self.pages:
            return relative(self.pages[page], self.pages[source]) + hash_sign + anchor, None
        if not (self.root / source).is_file():
            raise LookupError(f"{page}: {link} leads nowhere")
        return relative(self.pages[page], file(source)) + hash_sign + anchor, source


def relative(page: PurePosixPath, target: PurePosixPath) -> str:
    return PurePosixPath(os.path.relpath(target, page.parent)).as_posix()


def file(source: PurePosixPath) -> PurePosixPath:
    """Pictures and schemas stay what they are; other files are shown as text by every browser."""
    if source.suffix in (".svg", ".png", ".json"):
        return _FILES / source
    return _FILES / source.with_name(f"{source.name}.txt")


def _page(source: PurePosixPath) -> PurePosixPath:
    if source == INDEX:
        return PurePosixPath("index.html")
    below = source.relative_to("docs") if source.parts[0] == "docs" else _BESIDE / source
    return below.with_suffix(".html")
