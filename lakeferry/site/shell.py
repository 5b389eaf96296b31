"""What stands around a page's text: its head, the list of pages, what is on this page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import PurePosixPath
from typing import Final

import attrs

from lakeferry.site.markdown import Rendered
from lakeferry.site.places import INDEX, Places, relative

#: Fewer headings need no list of them, and more make none that helps.
_LISTED: Final = range(3, 41)


@attrs.frozen
class Group:
    """A part of the list of pages."""

    title: str
    links: list[tuple[str, PurePosixPath]]


def page(rendered: Rendered, *, source: PurePosixPath, places: Places, groups: list[Group]) -> str:
    here = places.pages[source]

    def to(name: str) -> str:
        return relative(here, PurePosixPath(name))

    title = "Lakeferry" if source == INDEX else f"{rendered.title} · Lakeferry"
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{to("site.css")}">
<script defer src="{to("index.js")}"></script>
<script defer src="{to("search.js")}" data-root="{to("index.html").removesuffix("index.html")}"></script>
</head>
<body>
<a class="skip" href="#text">To the text</a>
<header>
<a class="name" href="{to("index.html")}">Lakeferry</a>
<search><input id="search" type="search" placeholder="Search headings and codes" aria-label="Search headings and codes" hidden>
<ul id="found" hidden></ul></search>
</header>
<div class="columns">
<nav aria-label="Pages"><details id="pages"><summary>Pages</summary>
{"".join(_groups(groups, source, places))}</details></nav>
<main id="text">
{rendered.html}<footer>Made from <code>{escape(str(source))}</code>.</footer>
</main>
{_contents(rendered)}</div>
</body>
</html>
"""


def _groups(groups: list[Group], source: PurePosixPath, places: Places) -> Iterator[str]:
    for group in groups:
        yield f"<h2>{escape(group.title)}</h2>\n<ul>\n"
        for label, target in group.links:
            current = ' aria-current="page"' if target == source else ""
            href = relative(places.pages[source], places.pages[target])
            yield f'<li><a href="{href}"{current}>{escape(label)}</a></li>\n'
        yield "</ul>\n"


def _contents(rendered: Rendered) -> str:
    listed = [heading for heading in rendered.headings if heading.level == 2]
    if len(listed) not in _LISTED:
        return ""
    links = "".join(f'<li><a href="#{heading.anchor}">{escape(heading.text)}</a></li>\n' for heading in listed)
    return f'<aside aria-label="On this page"><h2>On this page</h2>\n<ul>\n{links}</ul>\n</aside>\n'
