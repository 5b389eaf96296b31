"""The report's page: one file that loads nothing, reads well on any screen and on paper, and stays small."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

import attrs

from glue_jobs.delivery.report.markup import Html, bullets, joined, prose, tag
from glue_jobs.delivery.report.page_style import STYLE


@attrs.frozen
class Limits:
    """How much a section shows: `items` of a list, `text` characters of a contract's texts, the rest of first rows."""

    items: int
    text: int
    rows: int
    columns: int
    cell: int


@attrs.frozen
class Section:
    """`name` is the anchor."""

    name: str
    title: str
    body: Sequence[Html]


def document(title: Html, header: Html, sections: Sequence[Section]) -> str:
    # A hash instead of 'unsafe-inline': not even a style attribute could slip in.
    style = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="format-detection", content="telephone=no"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    links = [tag("a", prose(section.title), href=f"#{section.name}") for section in sections]
    contents = tag("nav", bullets(links), aria_label="On this page")
    body = tag("body", header, contents, tag("main", *[_drawn(section) for section in sections]))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def more(shown: int, of: int, what: str, where: str) -> Html:
    """Says that a list was cut; nothing where it wasn't."""
    if shown >= of:
        return Html("")
    return tag("p", prose(f"{of - shown:,} more {what} are not shown here; {where} has all of them."), class_="aside")


def _drawn(section: Section) -> Html:
    heading = tag("h2", prose(section.title), id=section.name)
    return tag("section", heading, joined(section.body, "\n"), aria_labelledby=section.name)
