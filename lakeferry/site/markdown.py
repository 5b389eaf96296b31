"""A page's Markdown as HTML, with the anchors that GitHub gives to headings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Final

import attrs
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lakeferry.site import flowchart

_COMMENT: Final = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_MERMAID: Final = "mermaid"


@attrs.frozen
class Heading:
    level: int
    anchor: str
    text: str


@attrs.frozen
class Rendered:
    title: str
    html: str
    headings: list[Heading]
    words: str


def render(text: str, target: Callable[[str], str]) -> Rendered:
    """`target` says where a link or picture leads on the site."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(_COMMENT.sub("", text))
    headings = _anchored(tokens)
    for token in tokens:
        for child in token.children or []:
            _redirect(child, target)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    html = parser.renderer.render(tokens, parser.options, {})
    title = next((heading.text for heading in headings if heading.level == 1), "")
    return Rendered(title, html, headings, " ".join(_plain(token) for token in tokens if token.type == "inline"))


def anchor(text: str, taken: set[str]) -> str:
    """GitHub's: small letters, digits, hyphens for spaces, and a number where another heading has it."""
    bare = "".join(sign for sign in text.lower() if sign.isalnum() or sign in " -_").replace(" ", "-")
    number = next(n for n in range(1000) if (f"{bare}-{n}" if n else bare) not in taken)
    return f"{bare}-{number}" if number else bare


def _anchored(tokens: Sequence[Token]) -> list[Heading]:
    found: list[Heading] = []
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            text = _plain(inline)
            heading = Heading(int(opening.tag[1]), anchor(text, {one.anchor for one in found}), text)
            opening.attrSet("id", heading.anchor)
            found.append(heading)
    return found


def _plain(inline: Token) -> str:
    return "".join(child.content or " " * (child.type == "softbreak") for child in inline.children or [])


def _redirect(token: Token, target: Callable[[str], str]) -> None:
    for name in ("href", "src"):
        if link := token.attrGet(name):
            token.attrSet(name, target(str(link)))


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    if token.info == _MERMAID and (picture := flowchart.picture(token.content)):
        return f'<div class="wide flow" tabindex="0">{picture}</div>\n'
    return f'<pre class="{escape(token.info or "text")}" tabindex="0"><code>{escape(token.content)}</code></pre>\n'
