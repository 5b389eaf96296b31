"""The charts of the report: which values are drawn, their positions, and a description in words.

The template writes the SVG, which fits any width: horizontal positions are shares of the width, and text
keeps its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Final

import attrs

from config.exports.contract import Column, Contract
from config.exports.file_model import Chart
from glue_jobs.delivery.csv import guarded
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.axes import Axis, choose_axis
from glue_jobs.delivery.report.lines import Line, Point, draw_line, find_gap
from glue_jobs.delivery.report.scales import enclose_zero, to_percent, to_share
from glue_jobs.delivery.verify import EXACT, SERIES_LIMIT, FileStats

#: The most categories with a bar of their own, and the most values of an ordered axis that are drawn as bars.
_CATEGORIES: Final = 12
_ORDERED_BARS: Final = 31
_NONE: Final = "none"
#: How many letters fit in a line on the narrowest screen, and in a line of a label below an axis.
_LETTERS: Final = 38


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
        return wording.cut(
            wording.cut_to_width(self.label, max(8, _LETTERS - len(wording.short(self.value)))), _LETTERS
        )


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
    """The data of a chart. `without_label` is the value of rows without a label.

    If the axis has more labels than a series can have (`is_cut`), `value_of_others` is the value of the
    others.
    """

    chart: Chart
    axis: Axis
    x: Column
    y: Column | None
    values: dict[str, Decimal]
    without_label: Decimal | None
    value_of_others: Decimal
    is_cut: bool

    @property
    def is_ordered(self) -> bool:
        return self.axis.position is not None

    @property
    def is_drawn_as_bars(self) -> bool:
        return self.chart.kind == "bar" and not (self.is_ordered and len(self.values) > _ORDERED_BARS)


def figure(index: int, contract: Contract, stats: FileStats) -> Figure:
    """Return the figure of a chart, which is given by its index in the contract."""
    chart = contract.report.chart[index]
    series = _read_series(index, contract, stats)
    measure = series.y.title if series.y else "Rows"
    unit = series.y.unit if series.y else None
    zone = ", UTC" if series.x.type == "timestamp" else ""
    subject = f"{wording.named(measure, unit)} by {wording.prose(series.x.title, 80)}{zone}"
    empty = Figure(chart.title, subject, series.x.title[:120], measure[:120])
    if not series.values and series.without_label is None:
        return empty
    if series.is_drawn_as_bars or not series.values:
        marks = _list_bars(series)
        kind = "Bars" if series.is_drawn_as_bars else "A bar"
        notes = [_explain_limit(series)] if series.is_cut else []
        described = attrs.evolve(empty, marks=marks, description=_describe(kind, marks))
        return attrs.evolve(described, bars=_place_bars(marks), notes=notes)
    points = _list_points(series)
    marks = [*[Bar(point.label, point.value) for point in points], *_list_bar_without_label(series)]
    line = draw_line(points, find_gap(points) if series.axis.even else None)
    notes = _write_notes(series, line)
    return attrs.evolve(empty, marks=marks, description=_describe("A line", marks), line=line, notes=notes)


def _read_series(index: int, contract: Contract, stats: FileStats) -> _Series:
    chart = contract.report.chart[index]
    values = stats.series[index]
    columns = {column.name: column for column in contract.columns}
    y = None if chart.y == "rows" else columns[chart.y]
    if y and chart.only is not None:
        whole = stats.units[y.name].get(guarded(chart.only))
        y = attrs.evolve(y, unit=chart.only)
    else:
        whole = stats.totals[y.name]["sum"] if y else Decimal(stats.rows)
    labelled = {label: value for label, value in values.items() if label is not None}
    axis = choose_axis(columns[chart.x], labelled)
    value_of_others = EXACT.subtract(whole or Decimal(0), _add_up(values.values()))
    return _Series(
        chart, axis, columns[chart.x], y, labelled, values.get(None), value_of_others, stats.cut_series[index]
    )


def _list_bars(series: _Series) -> list[Bar]:
    show = series.axis.show
    if series.is_ordered:
        marks = [Bar(show(label), series.values[label]) for label in series.axis.sort(series.values)]
        return [
            *marks,
            *_list_bar_without_label(series),
            *_list_bar_of_others(series, 0, series.value_of_others),
        ]
    every = [*[Bar(label, value) for label, value in series.values.items()], *_list_bar_without_label(series)]
    ranked = sorted(every, key=lambda mark: (-mark.value.copy_abs(), mark.kind, mark.label))
    # A single category too many gets its own bar, because "other" would take as much space.
    shown_bars = ranked if len(ranked) <= _CATEGORIES + 1 and not series.is_cut else ranked[:_CATEGORIES]
    others = ranked[len(shown_bars) :]
    value_of_others = _add_up([series.value_of_others, *[mark.value for mark in others]])
    other = _list_bar_of_others(series, len(others), value_of_others)
    largest_first = sorted(shown_bars, key=lambda mark: (-mark.value, mark.kind, mark.label))
    return [*[attrs.evolve(mark, label=show(mark.label)) for mark in largest_first], *other]


def _list_bar_without_label(series: _Series) -> list[Bar]:
    return [] if series.without_label is None else [Bar(_NONE, series.without_label, "none")]


def _list_bar_of_others(series: _Series, amount: int, value: Decimal) -> list[Bar]:
    if not amount and not series.is_cut:
        return []
    more = "more than " if series.is_cut else ""
    label = f"{more}{wording.count(amount, 'other')}" if amount else "others"
    return [Bar(label, value, "other")]


def _place_bars(marks: Sequence[Bar]) -> list[Bar]:
    least, most = enclose_zero([mark.value for mark in marks])
    zero = to_share(Decimal(0), least, most)
    ends = [to_share(mark.value, least, most) for mark in marks]
    return [
        attrs.evolve(
            mark, x=to_percent(min(zero, end)), width=to_percent(abs(end - zero)), zero=to_percent(zero)
        )
        for mark, end in zip(marks, ends, strict=True)
    ]


def _list_points(series: _Series) -> list[Point]:
    labels = series.axis.sort(series.values)
    ranks = {label: float(index) for index, label in enumerate(labels)}
    position = series.axis.position or ranks.__getitem__
    return [Point(position(label), series.axis.show(label), series.values[label]) for label in labels]


def _write_notes(series: _Series, line: Line) -> list[str]:
    notes = []
    if line.is_broken:
        notes.append("Where the line is broken, the file has no rows.")
    if series.without_label:
        rows = wording.number(series.without_label)
        notes.append(f"Rows without a value on this axis are not drawn: {rows}.")
    if series.is_cut:
        others = wording.number(series.value_of_others)
        notes.append(f"{_explain_limit(series)} These others, {others} in all, are not drawn.")
    return notes


def _explain_limit(series: _Series) -> str:
    first = f"the first {SERIES_LIMIT:,} values of {wording.prose(series.x.title, 80)} in the file"
    return f"This chart compares {first} with one another; the file has others."


def _describe(kind: str, marks: Sequence[Bar]) -> str:
    """Describe the chart in words, for readers who can't see it."""
    highest = max(marks, key=lambda mark: mark.value)
    lowest = min(marks, key=lambda mark: mark.value)
    if len(marks) == 1:
        return f"One value: {_describe_bar(highest)}."
    first_label = wording.cut_to_width(marks[0].label, 40)
    last_label = wording.cut_to_width(marks[-1].label, 40)
    return (
        f"{kind} for {wording.count(len(marks), 'value')}, from {first_label} to {last_label}. "
        f"Highest: {_describe_bar(highest)}. Lowest: {_describe_bar(lowest)}."
    )


def _describe_bar(mark: Bar) -> str:
    return f"{wording.cut_to_width(mark.label, 40)}, {wording.short(mark.value)}"


def _add_up(values: Iterable[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal(0))
