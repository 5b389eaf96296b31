"""Parses an HTML page strictly: every element is closed in order, and every id is unique."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import attrs

VOID = {"meta", "link", "img", "br", "hr", "input", "col"}


@attrs.define(eq=False)
class Node:
    name: str
    attributes: dict[str, str | None]
    children: list[Node | str] = attrs.field(factory=list)

    def all(self, name: str = "", **attributes: str) -> list[Node]:
        return [node for node in self.walk() if node.name == (name or node.name) and _has(node, attributes)]

    def one(self, name: str = "", **attributes: str) -> Node:
        (found,) = self.all(name, **attributes)
        return found

    def walk(self) -> Iterator[Node]:
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child.walk()

    @property
    def text(self) -> str:
        """Return the text as a person reads it, with single blanks."""
        return re.sub(r"\s+", " ", self._text()).strip()

    def _text(self) -> str:
        inner = "".join(child if isinstance(child, str) else child._text() for child in self.children)
        return (
            f" {inner} "
            if self.name in {"td", "th", "p", "li", "dt", "dd", "text", "title", "desc"}
            else inner
        )

    def rows(self) -> list[list[str]]:
        """Return a table's cells without its headings."""
        return [
            [cell.text for cell in row.children if isinstance(cell, Node)]
            for row in self.one("tbody").all("tr")
        ]


def read(html: str) -> Node:
    """Return the root element, whose children are the page's top elements."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"left open: {[node.name for node in reader.open[1:]]}"
    ids = [node.attributes["id"] for node in reader.root.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids)), "an id is given twice"
    return reader.root


def _has(node: Node, attributes: dict[str, str]) -> bool:
    return all(node.attributes.get(key.rstrip("_")) == value for key, value in attributes.items())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), f"<{tag}> has an attribute twice"
        node = Node(tag, dict(attributes))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag, f"</{tag}> closes what it did not open"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:80]}")
