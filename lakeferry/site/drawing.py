"""Draws nodes and arrows as SVG: what stands on something else stands to its left, and what belongs together is framed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

import attrs

Point = tuple[float, float]

_LINE, _LETTER, _PAD = 17, 7.2, 12
_GAP_X, _GAP_Y, _FRAME, _GAP_CLUSTERS = 52, 12, 18, 56
_TITLE: Final = 26
#: Longer words go below the picture.
_SHORT: Final = 8


@attrs.frozen
class Node:
    name: str
    words: tuple[str, ...]
    cluster: str = ""

    @property
    def width(self) -> float:
        return max(len(line) for line in self.words) * _LETTER + 2 * _PAD

    @property
    def height(self) -> float:
        return len(self.words) * _LINE + _PAD


@attrs.frozen
class Cluster:
    name: str
    title: str


@attrs.frozen
class Arrow:
    source: str
    target: str
    words: str = ""
    dashed: bool = False
    thick: bool = False


@attrs.frozen
class Box:
    x: float
    y: float
    width: float
    height: float

    def across(self, part: float) -> float:
        return self.x + self.width * part

    def down(self, part: float) -> float:
        return self.y + self.height * part


def svg(clusters: Sequence[Cluster], nodes: Sequence[Node], arrows: Sequence[Arrow]) -> str:
    """Clusters lie below one another, so that the picture is no wider than a page."""
    boxes: dict[str, Box] = {}
    frames: list[tuple[Cluster, Box]] = []
    top = 0.0
    for cluster in [*clusters, Cluster("", "")]:
        mine = [node for node in nodes if node.cluster == cluster.name]
        if mine:
            frame = _place(mine, _ranks(mine, arrows), boxes, top)
            boxes[cluster.name] = frame
            frames += [(cluster, frame)] if cluster.name else []
            top = frame.y + frame.height + _GAP_CLUSTERS
    where = {node.name: node.cluster for node in nodes}
    width, height = max(box.x + box.width for box in boxes.values()) + 4, top - _GAP_CLUSTERS + 4
    what = f"{len(nodes)} boxes and {len(arrows)} arrows; the text around says what they mean"
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="-2 -2 {width:.0f} {height:.0f}"'
    style = f'style="min-width:min({width:.0f}px,42rem)" role="img" aria-label="{what}"'
    body = "".join([*_frames(frames), *_arrows(arrows, boxes, where), *_nodes(nodes, boxes)])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{_HEAD}{body}</svg>'


def legend(arrows: Sequence[Arrow]) -> list[tuple[str, str]]:
    """Words that are too long for an arrow, each with the sign that stands for them in the picture."""
    return [_sign(words, number) for number, words in enumerate(_long(arrows))]


def _sign(words: str, number: int) -> tuple[str, str]:
    """A number that the words begin with, else a letter."""
    first, _, rest = words.partition(" ")
    return (first, rest) if first.isdecimal() else (chr(ord("a") + number), words)


def _ranks(nodes: Sequence[Node], arrows: Sequence[Arrow]) -> dict[str, int]:
    """Which column: one more than the furthest of those that lead to it, within its cluster."""
    names = {node.name for node in nodes}
    inner = [(one.source, one.target) for one in arrows if {one.source, one.target} <= names and one.source != one.target]
    ranks = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in inner:
            ranks[target] = min(max(ranks[target], ranks[source] + 1), len(names) - 1)
    return ranks


def _place(nodes: Sequence[Node], ranks: dict[str, int], boxes: dict[str, Box], top: float) -> Box:
    """Puts the nodes into columns and gives the frame around them."""
    x, bottom = float(_FRAME), top
    for rank in sorted(set(ranks.values())):
        column = [node for node in nodes if ranks[node.name] == rank]
        y, widest = top + _TITLE + _FRAME, max(node.width for node in column)
        for node in column:
            boxes[node.name] = Box(x, y, widest, node.height)
            y += node.height + _GAP_Y
        x, bottom = x + widest + _GAP_X, max(bottom, y)
    return Box(0, top, x - _GAP_X + _FRAME, bottom + _FRAME - _GAP_Y - top)


def _frames(frames: Sequence[tuple[Cluster, Box]]) -> Iterator[str]:
    for cluster, box in frames:
        yield f'<rect class="frame" x="0" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8"/>\n'
        yield f'<text class="title" x="{_FRAME}" y="{box.y + _TITLE:.0f}">{escape(cluster.title)}</text>\n'


def _nodes(nodes: Sequence[Node], boxes: dict[str, Box]) -> Iterator[str]:
    for node in nodes:
        box = boxes[node.name]
        yield f'<rect class="node" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="5"/>\n'
        for number, words in enumerate(node.words):
            y = box.y + _PAD / 2 + (number + 0.75) * _LINE
            yield f'<text class="words" x="{box.across(0.5):.0f}" y="{y:.0f}">{escape(words)}</text>\n'


def _arrows(arrows: Sequence[Arrow], boxes: dict[str, Box], where: dict[str, str]) -> Iterator[str]:
    signs = {whole: sign for whole, (sign, _) in zip(_long(arrows), legend(arrows), strict=True)}
    met: Counter[tuple[str, str]] = Counter()
    for arrow in arrows:
        pair = min(arrow.source, arrow.target), max(arrow.source, arrow.target)
        met[pair] += 1
        inside = where.get(arrow.source) == where.get(arrow.target, "-")
        (x1, y1), (dx1, dy1), (x2, y2), (dx2, dy2) = _way(boxes[arrow.source], boxes[arrow.target], met[pair], beside=inside)
        kind = " ".join(word for word, is_so in (("dashed", arrow.dashed), ("thick", arrow.thick)) if is_so)
        path = f"M{x1:.0f} {y1:.0f} C{x1 + dx1:.0f} {y1 + dy1:.0f} {x2 + dx2:.0f} {y2 + dy2:.0f} {x2:.0f} {y2:.0f}"
        yield f'<path class="arrow {kind}" d="{path}" marker-end="url(#head)"/>\n'
        if words := signs.get(arrow.words, arrow.words):
            x, y = (x1 + x2) / 2 + 3 * (dx1 + dx2) / 8, (y1 + y2) / 2 + 3 * (dy1 + dy2) / 8
            yield f'<text class="label" x="{x:.0f}" y="{y + 4:.0f}">{escape(words)}</text>\n'


def _way(source: Box, target: Box, nth: int, *, beside: bool) -> tuple[Point, Point, Point, Point]:
    """Where an arrow begins and ends, and how it leaves and comes. The `nth` between two boxes keeps off the others.

    `beside`: both are of one cluster, where arrows go from side to side; else they go up or down.
    """
    part = (0.5, 0.3, 0.7, 0.15, 0.85)[(nth - 1) % 5]
    if not beside:
        down = target.y >= source.y
        bend = _GAP_CLUSTERS * (0.6 if down else -0.6)
        return (source.across(part), source.down(down)), (0, bend), (target.across(part), target.down(not down)), (0, -bend)
    if target.x >= source.x + source.width:
        bend = (target.x - source.x - source.width) / 2
        return (source.across(1), source.down(part)), (bend, 0), (target.x, target.down(part)), (-bend, 0)
    bend = _GAP_X / 2
    return (source.x, source.down(part)), (-bend, 0), (target.x, target.down(part)), (-bend, 0)


def _long(arrows: Sequence[Arrow]) -> list[str]:
    return list(dict.fromkeys(arrow.words for arrow in arrows if len(arrow.words) > _SHORT))


_HEAD: Final = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" '
    'orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>\n'
)
