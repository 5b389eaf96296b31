"""Bars and lines as inline SVG that fits any width: places across are shares of the width, letters keep their size."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

import attrs

from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.markup import Html, joined, tag, verbatim
from glue_jobs.delivery.verify import EXACT

_BAR_STEP = 38
#: How many letters fit beside each other on the narrowest screen.
_LETTERS = 38
_PLOT_TOP, _PLOT_HEIGHT, _PLOT_WIDTH = 16, 170, 1000
_PLOT_EDGE = 12
#: More points than this are thinned to the lowest and highest of each slice, which draws the same line.
_SLICES = 300
_DOTS = 62
#: Strokes as wide across as along, however the plot is stretched.
_EVEN = "non-scaling-stroke"
_FOOT = 12


@attrs.frozen
class Bar:
    """`kind` is one, other (many categories together) or none (the rows without a value)."""

    label: str
    value: Decimal
    kind: str = "one"


@attrs.frozen
class Point:
    x: float
    label: str
    value: Decimal


def bars(marks: Sequence[Bar], name: str, head: Html) -> Html:
    least, most = _range([mark.value for mark in marks])
    rows = [_bar(mark, place * _BAR_STEP, least, most) for place, mark in enumerate(marks)]
    return _picture(name, head, rows, len(marks) * _BAR_STEP, None)


def line(points: Sequence[Point], name: str, head: Html, *, gap: float | None) -> Html:
    """The line is broken where two points lie further apart than `gap`."""
    values = [point.value for point in points]
    ticks = scale(values, whole=all(value == value.to_integral_value() for value in values))
    runs = [[_place(point, points, ticks) for point in run] for run in _unbroken(points, gap)]
    drawn = [tag("path", class_="line", vector_effect=_EVEN, d="".join(_path(_thinned(run)) for run in runs))]
    alone = [place for run in runs for place in run if len(points) <= _DOTS or len(run) == 1]
    if alone:
        drawn.append(tag("path", class_="dots", vector_effect=_EVEN, d="".join(f"M{x:.1f} {y:.1f}h0" for x, y in alone)))
    box = f"0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}"
    plot = tag(
        "svg", *drawn, y=_PLOT_TOP, width="100%", height=_PLOT_HEIGHT, viewBox=box, preserveAspectRatio="none", overflow="visible"
    )
    room = max(map(len, _told(ticks)))
    class_ = next((f"y{letters}" for letters in (4, 8) if room <= letters), "y14")
    return _picture(name, head, [*_grid(ticks), plot, *_feet(points)], _PLOT_TOP + _PLOT_HEIGHT + 40, class_)


def scale(values: Iterable[Decimal], *, whole: bool) -> list[Decimal]:
    """Round numbers at even steps, among them 0, that enclose the values."""
    least, most = _range(list(values))
    step = _step(EXACT.divide(most - least, Decimal(4)))
    if whole:
        step = max(step, Decimal(1))
    first, last = (least / step).to_integral_value("ROUND_FLOOR"), (most / step).to_integral_value("ROUND_CEILING")
    return [EXACT.multiply(step, Decimal(number)) for number in range(int(first), int(last) + 1)]


def cut(label: str, letters: int) -> str:
    """Letters of East Asian scripts are twice as wide."""
    width = 0
    for place, letter in enumerate(label):
        width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width > letters:
            return label[: max(1, place - 1)] + "…"
    return label


def _picture(name: str, head: Html, parts: Iterable[Html], height: int, class_: str | None) -> Html:
    labels = f"{name}-title {name}-text"
    return tag("svg", head, *parts, role="img", aria_labelledby=labels, width="100%", height=height, class_=class_)


def _bar(mark: Bar, top: int, least: Decimal, most: Decimal) -> Html:
    zero, end = _share(Decimal(0), least, most), _share(mark.value, least, most)
    value = wording.short(mark.value)
    label = verbatim(cut(mark.label, max(8, _LETTERS - len(value))), _LETTERS)
    kind = f"bar {mark.kind}" + (" minus" if mark.value < 0 else "")
    base = _percent(zero)
    return joined(
        [
            tag("text", label, y=top + 14, class_="none" if mark.kind == "none" else None),
            tag("text", verbatim(value, 60), x="100%", y=top + 14, class_="value"),
            tag("rect", class_=kind, x=_percent(min(zero, end)), y=top + 20, width=_percent(abs(end - zero)), height=11),
            tag("line", class_="axis", x1=base, x2=base, y1=top + 18, y2=top + 33),
        ]
    )


def _range(values: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Always with 0 in it, so that lengths can be compared, and never of no extent."""
    least, most = min([Decimal(0), *values]), max([Decimal(0), *values])
    return (least, most) if least < most else (Decimal(0), Decimal(1))


def _step(least: Decimal) -> Decimal:
    """The next greater of 1, 2 and 5 times a power of ten."""
    exponent = least.adjusted()
    steps = [Decimal((0, (digit,), exponent)) for digit in (1, 2, 5)]
    return next((step for step in steps if step >= least), Decimal((0, (1,), exponent + 1)))


def _share(value: Decimal, least: Decimal, most: Decimal) -> float:
    return float(value - least) / float(most - least)


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"


def _place(point: Point, points: Sequence[Point], ticks: Sequence[Decimal]) -> tuple[float, float]:
    across = _PLOT_EDGE + _along(point, points) * (_PLOT_WIDTH - 2 * _PLOT_EDGE)
    return across, (1 - _share(point.value, ticks[0], ticks[-1])) * _PLOT_HEIGHT


def _along(point: Point, points: Sequence[Point]) -> float:
    first, last = points[0].x, points[-1].x
    return (point.x - first) / (last - first) if last > first else 0.5


def _unbroken(points: Sequence[Point], gap: float | None) -> Iterator[list[Point]]:
    run = [points[0]]
    for before, point in pairwise(points):
        if gap is not None and point.x - before.x > gap:
            yield run
            run = []
        run.append(point)
    yield run


def _path(run: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)


def _thinned(run: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(run) <= 2 * _SLICES:
        return list(run)
    slices: dict[int, list[tuple[float, float]]] = {}
    for place in run:
        slices.setdefault(int(place[0] * _SLICES / _PLOT_WIDTH), []).append(place)
    extremes = [{min(few, key=_height), max(few, key=_height)} for few in slices.values()]
    return sorted(place for few in extremes for place in few)


def _height(place: tuple[float, float]) -> float:
    return place[1]


def _grid(ticks: Sequence[Decimal]) -> Iterator[Html]:
    for tick, told in zip(ticks, _told(ticks), strict=True):
        height = f"{_PLOT_TOP + (1 - _share(tick, ticks[0], ticks[-1])) * _PLOT_HEIGHT:.1f}"
        yield tag("line", class_="grid" if tick else "axis", x1=0, x2="100%", y1=height, y2=height)
        yield tag("text", verbatim(told, 60), x=-8, y=height, dy=4, text_anchor="end", class_="tick")


def _told(ticks: Sequence[Decimal]) -> list[str]:
    """Millions and more get their name, which round numbers bear well."""
    most = max(ticks[-1], -ticks[0])
    for name, power in (("trillion", 12), ("billion", 9), ("million", 6)):
        if Decimal(10) ** power <= most < Decimal(10) ** 15:
            return [f"{wording.number(tick.scaleb(-power).normalize())} {name}" if tick else "0" for tick in ticks]
    return [wording.short(tick) for tick in ticks]


def _feet(points: Sequence[Point]) -> Iterator[Html]:
    """The names of the first and the last point, and of one in the middle where there is one."""
    if len(points) == 1:
        yield from _foot(points[0], "50%", "middle")
        return
    yield from _foot(points[0], "0", "start")
    middle = min(points, key=lambda point: (abs(_along(point, points) - 0.5), point.x))
    if 0.4 < _along(middle, points) < 0.6:
        yield from _foot(middle, _percent(_along(middle, points)), "middle")
    yield from _foot(points[-1], "100%", "end")


def _foot(point: Point, x: str, anchor: str) -> Iterator[Html]:
    """On two short lines at most, so that three feet find room beside each other."""
    top = _PLOT_TOP + _PLOT_HEIGHT + 18
    for place, part in enumerate(textwrap.wrap(point.label, _FOOT, max_lines=2, placeholder="…")):
        label = verbatim(cut(part, _FOOT), 40)
        yield tag("text", label, x=x, y=top + 16 * place, text_anchor=anchor, class_=f"tick {anchor}")
