"""The charts of the report: which values are drawn, their positions, and a description in words.

The template writes the SVG, which fits any width: horizontal positions are shares of the width, and text
keeps its size.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from typing import Final

import attrs

from config.exports.contract import Chart, Column, Contract
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.verify import EXACT, SERIES_LIMIT, FileStats

#: The most categories with a bar of their own, and the most values of an ordered axis that are drawn as bars.
_CATEGORIES: Final = 12
_ORDERED_BARS: Final = 31
_NONE: Final = "none"
#: How many letters fit in a line on the narrowest screen, and in a line of a label below an axis.
_LETTERS: Final = 38
_FOOT: Final = 12
_PLOT_TOP = 16
_PLOT_HEIGHT = 170
_PLOT_WIDTH = 1000
_PLOT_EDGE = 12
#: Slices of the width. If there are more than two points for each, only the lowest and highest of a slice are
#: drawn, which gives the same line.
_SLICES: Final = 300
_DOTS: Final = 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class Axis:
    """Where labels are and how they are shown.

    `position` is None for words, which have no scale. If the scale is `even`, labels are expected at equal
    distances, and the line is broken where one is missing.
    """

    position: Callable[[str], float] | None
    shown: Callable[[str], str]
    even: bool = False

    def sort(self, labels: Iterable[str]) -> list[str]:
        return sorted(labels) if self.position is None else sorted(labels, key=self.position)


@attrs.frozen
class Bar:
    """`kind` is one, other (many categories together) or none (rows without a value).

    `x`, `width`, `zero` are in percent.
    """

    label: str
    value: Decimal
    kind: str = "one"
    x: str = ""
    width: str = ""
    zero: str = ""

    @property
    def short_label(self) -> str:
        return wording.cut(_cut(self.label, max(8, _LETTERS - len(wording.short(self.value)))), _LETTERS)


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


@attrs.frozen
class Figure:
    """What is drawn: `bars`, `line`, or nothing. `marks` are all its values, for the table below it."""

    title: str
    subject: str
    x_title: str
    measure: str
    description: str = ""
    marks: Sequence[Bar] = ()
    bars: Sequence[Bar] = ()
    line: Line | None = None
    notes: Sequence[str] = ()


@attrs.frozen
class _Series:
    """The data of a chart. `without` is the value of rows without a label.

    If the axis has more labels than a series can have (`is_cut`), `rest` is the value of the others.
    """

    chart: Chart
    axis: Axis
    x: Column
    y: Column | None
    values: dict[str, Decimal]
    without: Decimal | None
    rest: Decimal
    is_cut: bool

    @property
    def ordered(self) -> bool:
        return self.axis.position is not None or self.chart.kind == "line"

    @property
    def drawn_as_bars(self) -> bool:
        return self.chart.kind == "bar" and not (self.ordered and len(self.values) > _ORDERED_BARS)


def figure(index: int, contract: Contract, stats: FileStats) -> Figure:
    """Return the figure of a chart, which is given by its index in the contract."""
    chart = contract.report.chart[index]
    series = _series(index, contract, stats)
    measure = series.y.title if series.y else "Rows"
    zone = ", UTC" if series.x.type == "timestamp" else ""
    subject = (
        f"{wording.named(measure, series.y.unit if series.y else None)} by "
        f"{wording.prose(series.x.title, 80)}{zone}"
    )
    empty = Figure(chart.title, subject, series.x.title[:120], measure[:120])
    if not series.values and series.without is None:
        return empty
    if series.drawn_as_bars or not series.values:
        marks = _bars(series)
        kind = "Bars" if series.drawn_as_bars else "A bar"
        notes = [_compared(series)] if series.is_cut else []
        described = attrs.evolve(empty, marks=marks, description=_description(kind, marks))
        return attrs.evolve(described, bars=_placed(marks), notes=notes)
    points = _points(series)
    marks = [*[Bar(point.label, point.value) for point in points], *_none(series)]
    line = _line(points, _gap(points) if series.axis.even else None)
    notes = _notes(series, line)
    return attrs.evolve(empty, marks=marks, description=_description("A line", marks), line=line, notes=notes)


def _axis(column: Column, labels: Iterable[str]) -> Axis:
    """Return the axis for a column.

    If a label can't be read as its type (a date after 9999), all are treated as words.
    """
    axis = _AXES.get(column.type) or (_NUMBERS if column.numeric else _WORDS)
    try:
        for label in labels:
            axis.shown(label)
            if axis.position:
                axis.position(label)
    except (ValueError, ArithmeticError):
        return _WORDS
    return axis


def _series(index: int, contract: Contract, stats: FileStats) -> _Series:
    chart = contract.report.chart[index]
    values = stats.series[index]
    columns = {column.name: column for column in contract.columns}
    y = None if chart.y == "rows" else columns[chart.y]
    if y and chart.only is not None:
        whole = stats.units[y.name].get(chart.only)
        y = attrs.evolve(y, unit=chart.only)
    else:
        whole = stats.totals[y.name]["sum"] if y else Decimal(stats.rows)
    known = {label: value for label, value in values.items() if label is not None}
    axis = _axis(columns[chart.x], known)
    rest = EXACT.subtract(whole or Decimal(0), _sum(values.values()))
    return _Series(chart, axis, columns[chart.x], y, known, values.get(None), rest, stats.cut_series[index])


def _bars(series: _Series) -> list[Bar]:
    shown = series.axis.shown
    if series.ordered:
        marks = [Bar(shown(label), series.values[label]) for label in series.axis.sort(series.values)]
        return [*marks, *_none(series), *_other(series, 0, series.rest)]
    every = [*[Bar(label, value) for label, value in series.values.items()], *_none(series)]
    ranked = sorted(every, key=lambda mark: (-mark.value.copy_abs(), mark.kind, mark.label))
    # A single category too many gets its own bar, because "other" would take as much space.
    kept = ranked if len(ranked) <= _CATEGORIES + 1 and not series.is_cut else ranked[:_CATEGORIES]
    others = ranked[len(kept) :]
    other = _other(series, len(others), _sum([series.rest, *[mark.value for mark in others]]))
    largest_first = sorted(kept, key=lambda mark: (-mark.value, mark.kind, mark.label))
    return [*[attrs.evolve(mark, label=shown(mark.label)) for mark in largest_first], *other]


def _none(series: _Series) -> list[Bar]:
    return [] if series.without is None else [Bar(_NONE, series.without, "none")]


def _other(series: _Series, amount: int, value: Decimal) -> list[Bar]:
    if not amount and not series.is_cut:
        return []
    more = "more than " if series.is_cut else ""
    return [Bar(f"{more}{wording.count(amount, 'other')}" if amount else "others", value, "other")]


def _placed(marks: Sequence[Bar]) -> list[Bar]:
    least, most = _range([mark.value for mark in marks])
    zero = _share(Decimal(0), least, most)
    ends = [_share(mark.value, least, most) for mark in marks]
    return [
        attrs.evolve(mark, x=_percent(min(zero, end)), width=_percent(abs(end - zero)), zero=_percent(zero))
        for mark, end in zip(marks, ends, strict=True)
    ]


def _points(series: _Series) -> list[Point]:
    labels = series.axis.sort(series.values)
    position = series.axis.position or {label: float(index) for index, label in enumerate(labels)}.__getitem__
    return [Point(position(label), series.axis.shown(label), series.values[label]) for label in labels]


def _gap(points: Sequence[Point]) -> float | None:
    """Return the distance above which points have a gap between them, or None if their distances are not
    regular.
    """
    steps = Counter(round(after.x - before.x, 6) for before, after in pairwise(points))
    if not steps:
        return None
    usual, times = min(steps.most_common(), key=lambda item: (-item[1], item[0]))
    return usual * 1.5 if times * 2 > len(points) - 1 and len(points) > 3 else None


def _notes(series: _Series, line: Line) -> list[str]:
    return [
        *(["Where the line is broken, the file has no rows."] if line.is_broken else []),
        *(
            [f"Rows without a value on this axis are not drawn: {wording.number(series.without)}."]
            if series.without
            else []
        ),
        *([f"{_compared(series)} {_not_drawn(series)}"] if series.is_cut else []),
    ]


def _not_drawn(series: _Series) -> str:
    return f"These others, {wording.number(series.rest)} in all, are not drawn."


def _compared(series: _Series) -> str:
    first = f"the first {SERIES_LIMIT:,} values of {wording.prose(series.x.title, 80)} in the file"
    return f"This chart compares {first} with one another; the file has others."


def _description(kind: str, marks: Sequence[Bar]) -> str:
    """Describe the chart in words, for readers who can't see it."""
    highest = max(marks, key=lambda mark: mark.value)
    lowest = min(marks, key=lambda mark: mark.value)
    if len(marks) == 1:
        return f"One value: {_in_words(highest)}."
    return (
        f"{kind} for {wording.count(len(marks), 'value')}, from {_cut(marks[0].label, 40)} to "
        f"{_cut(marks[-1].label, 40)}. Highest: {_in_words(highest)}. Lowest: {_in_words(lowest)}."
    )


def _in_words(mark: Bar) -> str:
    return f"{_cut(mark.label, 40)}, {wording.short(mark.value)}"


def _line(points: Sequence[Point], gap: float | None) -> Line:
    """Return the line's positions. It is broken where two points are further apart than `gap`."""
    values = [point.value for point in points]
    first = points[0].x
    span = points[-1].x - points[0].x
    ticks = _scale(values, whole=all(value == value.to_integral_value() for value in values))
    along = [(point.x - first) / span if span else 0.5 for point in points]
    across = [_PLOT_EDGE + share * (_PLOT_WIDTH - 2 * _PLOT_EDGE) for share in along]
    positions = [
        (x, (1 - _share(value, ticks[0], ticks[-1])) * _PLOT_HEIGHT)
        for x, value in zip(across, values, strict=True)
    ]
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(points), 1)
        if gap is not None and after.x - before.x > gap
    ]
    runs = [positions[start:end] for start, end in pairwise([0, *breaks, len(positions)])]
    alone = [position for run in runs for position in run if len(points) <= _DOTS or len(run) == 1]
    texts = _tick_texts(ticks)
    heights = [f"{_PLOT_TOP + (1 - _share(tick, ticks[0], ticks[-1])) * _PLOT_HEIGHT:.1f}" for tick in ticks]
    return Line(
        path="".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(run)) for run in runs),
        dots="".join(f"M{x:.1f} {y:.1f}h0" for x, y in alone),
        ticks=[(text, height, not tick) for text, height, tick in zip(texts, heights, ticks, strict=True)],
        feet=_feet(points, along),
        class_=next((f"y{letters}" for letters in (4, 8) if max(map(len, texts)) <= letters), "y14"),
        is_broken=len(runs) > 1,
    )


def _thinned(run: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(run) <= 2 * _SLICES:
        return list(run)
    slices: dict[int, list[tuple[float, float]]] = {}
    for position in run:
        slices.setdefault(int(position[0] * _SLICES / _PLOT_WIDTH), []).append(position)
    extremes = [
        {min(points, key=lambda at: at[1]), max(points, key=lambda at: at[1])} for points in slices.values()
    ]
    return sorted(position for points in extremes for position in points)


def _feet(points: Sequence[Point], along: Sequence[float]) -> list[tuple[list[str], str, str]]:
    """Label the first and the last point, and one near the middle if there is one.

    A single point is in the middle.
    """
    if len(points) == 1:
        return [(_foot(points[0]), "50%", "middle")]
    nearest = min(range(len(points)), key=lambda index: abs(along[index] - 0.5))
    middle = (
        [(_foot(points[nearest]), _percent(along[nearest]), "middle")] if 0.4 < along[nearest] < 0.6 else []
    )
    return [(_foot(points[0]), "0", "start"), *middle, (_foot(points[-1]), "100%", "end")]


def _foot(point: Point) -> list[str]:
    """Wrap a label to at most two short lines, so that three labels fit side by side."""
    return [_cut(part, _FOOT) for part in textwrap.wrap(point.label, _FOOT, max_lines=2, placeholder="…")]


def _scale(values: Iterable[Decimal], *, whole: bool) -> list[Decimal]:
    """Return round numbers at equal distances that include 0 and enclose the values."""
    least, most = _range(list(values))
    step = _step(EXACT.divide(most - least, Decimal(4)))
    if whole:
        step = max(step, Decimal(1))
    first = (least / step).to_integral_value("ROUND_FLOOR")
    last = (most / step).to_integral_value("ROUND_CEILING")
    return [EXACT.multiply(step, Decimal(number)) for number in range(int(first), int(last) + 1)]


def _tick_texts(ticks: Sequence[Decimal]) -> list[str]:
    """Return the texts of ticks. Large numbers are given in millions, billions or trillions."""
    most = max(ticks[-1], -ticks[0])
    for name, power in (("trillion", 12), ("billion", 9), ("million", 6)):
        if Decimal(10) ** power <= most < Decimal(10) ** 15:
            return [
                f"{wording.number(tick.scaleb(-power).normalize())} {name}" if tick else "0" for tick in ticks
            ]
    return [wording.short(tick) for tick in ticks]


def _range(values: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Return bounds that enclose 0, so that lengths can be compared, and that always differ."""
    least = min([Decimal(0), *values])
    most = max([Decimal(0), *values])
    return (least, most) if least < most else (Decimal(0), Decimal(1))


def _step(least: Decimal) -> Decimal:
    """Return the next greater of 1, 2 and 5 times a power of ten."""
    exponent = least.adjusted()
    steps = [Decimal((0, (digit,), exponent)) for digit in (1, 2, 5)]
    return next((step for step in steps if step >= least), Decimal((0, (1,), exponent + 1)))


def _share(value: Decimal, least: Decimal, most: Decimal) -> float:
    return float(value - least) / float(most - least)


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"


def _sum(values: Iterable[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal(0))


def _cut(label: str, letters: int) -> str:
    """Cut a label to a width; letters of East Asian scripts are twice as wide."""
    width = 0
    for index, letter in enumerate(label):
        width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width > letters:
            return label[: max(1, index - 1)] + "…"
    return label


def _shown_time(label: str) -> str:
    moment = datetime.fromisoformat(label)
    exact = moment.second or moment.microsecond
    return (
        f"{wording.short_day(moment)}, {moment:%H:%M:%S}"
        if exact
        else f"{wording.short_day(moment)}, {moment:%H:%M}"
    )


def _seconds(label: str) -> float:
    return (datetime.fromisoformat(label) - _EPOCH).total_seconds()


_NUMBERS = Axis(float, lambda label: wording.short(Decimal(label)))
_WORDS = Axis(None, lambda label: label or "“”")
_AXES: Final = {
    "date": Axis(
        lambda label: float(date.fromisoformat(label).toordinal()),
        lambda label: wording.short_day(date.fromisoformat(label)),
        even=True,
    ),
    "timestamp": Axis(_seconds, _shown_time, even=True),
    # Years have no thousands separators.
    "integer": Axis(float, lambda label: label.replace("-", wording.MINUS), even=True),
}
