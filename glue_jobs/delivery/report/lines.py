"""The line of a chart: its points, where it is broken, its ticks and the labels below it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import chain, pairwise
from typing import Final

import attrs

from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.scales import choose_ticks, to_percent, to_share, write_ticks

_FOOT: Final = 12

_PLOT_TOP = 16

_PLOT_HEIGHT = 170

_PLOT_WIDTH = 1000

_PLOT_EDGE = 12

#: Slices of the width. If there are more than two points for each, only the lowest and highest of a slice are
#: drawn, which gives the same line.
_SLICES: Final = 300

_DOTS: Final = 62


@attrs.frozen
class Point:
    x: float
    label: str
    value: Decimal


@attrs.frozen
class Line:
    """`ticks` are (text, height, is zero); `feet`, the labels below the axis, are (lines of text, position,
    anchor).
    """

    path: str
    dots: str
    ticks: Sequence[tuple[str, str, bool]]
    feet: Sequence[tuple[list[str], str, str]]
    class_: str
    is_broken: bool


def find_gap(points: Sequence[Point]) -> float | None:
    """Return the distance above which points have a gap between them, or None if their distances are not
    regular.
    """
    steps = Counter(round(after.x - before.x, 6) for before, after in pairwise(points))
    if not steps:
        return None
    ((usual, times),) = steps.most_common(1)
    return usual * 1.5 if times * 2 > len(points) - 1 and len(points) > 3 else None


def draw_line(points: Sequence[Point], gap: float | None) -> Line:
    """Return the line's positions. It is broken where two points are further apart than `gap`."""
    values = [point.value for point in points]
    first = points[0].x
    span = points[-1].x - points[0].x
    ticks = choose_ticks(values, whole=all(value == value.to_integral_value() for value in values))
    along = [(point.x - first) / span if span else 0.5 for point in points]
    across = [_PLOT_EDGE + share * (_PLOT_WIDTH - 2 * _PLOT_EDGE) for share in along]
    positions = [
        (x, (1 - to_share(value, ticks[0], ticks[-1])) * _PLOT_HEIGHT)
        for x, value in zip(across, values, strict=True)
    ]
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(points), 1)
        if gap is not None and after.x - before.x > gap
    ]
    runs = [positions[start:end] for start, end in pairwise([0, *breaks, len(positions)])]
    strokes = []
    for run in runs:
        corners = "L".join(f"{x:.1f} {y:.1f}" for x, y in _keep_extremes(run))
        strokes.append(f"M{corners}")
    dotted_runs = runs
    if len(points) > _DOTS:
        dotted_runs = [run for run in runs if len(run) == 1]
    texts = write_ticks(ticks)
    longest = max(map(len, texts))
    heights = [
        f"{_PLOT_TOP + (1 - to_share(tick, ticks[0], ticks[-1])) * _PLOT_HEIGHT:.1f}" for tick in ticks
    ]
    return Line(
        path="".join(strokes),
        dots="".join(f"M{x:.1f} {y:.1f}h0" for x, y in chain.from_iterable(dotted_runs)),
        ticks=[(text, height, not tick) for text, height, tick in zip(texts, heights, ticks, strict=True)],
        feet=_label_axis(points, along),
        class_=next((f"y{letters}" for letters in (4, 8) if longest <= letters), "y14"),
        is_broken=len(runs) > 1,
    )


def _keep_extremes(run: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(run) <= 2 * _SLICES:
        return list(run)
    slices: dict[int, list[tuple[float, float]]] = {}
    for position in run:
        slices.setdefault(int(position[0] * _SLICES / _PLOT_WIDTH), []).append(position)
    extremes: set[tuple[float, float]] = set()
    for positions in slices.values():
        extremes.add(min(positions, key=lambda position: position[1]))
        extremes.add(max(positions, key=lambda position: position[1]))
    return sorted(extremes)


def _label_axis(points: Sequence[Point], along: Sequence[float]) -> list[tuple[list[str], str, str]]:
    """Label the first and the last point, and one near the middle if there is one.

    A single point is in the middle.
    """
    if len(points) == 1:
        return [(_wrap_label(points[0]), "50%", "middle")]
    nearest = min(range(len(points)), key=lambda index: abs(along[index] - 0.5))
    labels = [(_wrap_label(points[0]), "0", "start")]
    if 0.4 < along[nearest] < 0.6:
        labels.append((_wrap_label(points[nearest]), to_percent(along[nearest]), "middle"))
    return [*labels, (_wrap_label(points[-1]), "100%", "end")]


def _wrap_label(point: Point) -> list[str]:
    """Wrap a label to at most two short lines, so that three labels fit side by side."""
    return [
        wording.cut_to_width(part, _FOOT)
        for part in textwrap.wrap(point.label, _FOOT, max_lines=2, placeholder="…")
    ]
