"""Reads the Mermaid flowcharts that our pages have: nodes, subgraphs, arrows with and without words."""

from __future__ import annotations

import re
from html import escape
from typing import Final

import attrs

from lakeferry.site import drawing
from lakeferry.site.drawing import Arrow, Cluster, Node

_NODE: Final = re.compile(r"^(\w+)(?:[\[({]+\"?(.+?)\"?[\])}]+)?$")
_SUBGRAPH: Final = re.compile(r"^subgraph (\w+) ?\[\"?(.+?)\"?\]$")
#: `a --> b`, `a -->|words| b`, `a -- words --> b`, `a -. "words" .-> b`, `a == "words" ==> b`, `a -.-> b`.
_ARROW: Final = re.compile(r"^(.+?) (--|-\.|==)(?: ?\"?([^\"]*?)\"? ?)?(-->|->|\.->|==>|>)(?:\|(.+?)\|)? (.+)$")
_BREAK: Final = re.compile(r"<br ?/?>")


@attrs.define
class _Reading:
    clusters: dict[str, Cluster] = attrs.Factory(dict)
    nodes: dict[str, Node] = attrs.Factory(dict)
    arrows: list[Arrow] = attrs.Factory(list)
    inside: str = ""

    def node(self, text: str) -> str:
        """The id of a node or subgraph, which is noted where it is new. Raises ValueError."""
        if (found := _NODE.match(text.strip())) is None:
            raise ValueError(f"no node: {text}")
        name, label = found[1], found[2]
        if name not in self.clusters and (name not in self.nodes or label):
            words = tuple(_BREAK.split(label or name))
            self.nodes[name] = Node(name, words, self.inside or self._before(name))
        return name

    def _before(self, name: str) -> str:
        return self.nodes[name].cluster if name in self.nodes else ""


def picture(mermaid: str) -> str:
    """The flowchart as HTML; "" where it is another sort of picture. Raises ValueError where a line can't be read."""
    first, *lines = [line.strip() for line in mermaid.splitlines() if line.strip()]
    if not first.startswith("flowchart"):
        return ""
    reading = _Reading()
    for line in lines:
        _line(reading, line)
    drawn = drawing.svg(list(reading.clusters.values()), list(reading.nodes.values()), reading.arrows)
    listed = "".join(f"<li><b>{escape(sign)}</b> {escape(words)}</li>" for sign, words in drawing.legend(reading.arrows))
    return f"{drawn}<ul>{listed}</ul>" if listed else drawn


def _line(reading: _Reading, line: str) -> None:
    if line == "end":
        reading.inside = ""
    elif found := _SUBGRAPH.match(line):
        reading.inside = found[1]
        reading.clusters[found[1]] = Cluster(found[1], found[2])
    elif found := _ARROW.match(line):
        source, target = reading.node(found[1]), reading.node(found[6])
        dashed = "." in found[2] + found[4]
        reading.arrows.append(Arrow(source, target, found[5] or found[3] or "", dashed=dashed, thick="=" in found[2]))
    else:
        reading.node(line)
