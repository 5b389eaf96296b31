"""A chart of the contract: what of its series is drawn, in words, and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from itertools import pairwise

import attrs

from exports.contract import Chart, Column, Contract
from glue_jobs.delivery.report import drawing, wording
from glue_jobs.delivery.report.axes import Axis, axis_of
from glue_jobs.delivery.report.drawing import Bar, Point
from glue_jobs.delivery.report.markup import Html, joined, named, prose, said, table, tag, verbatim
from glue_jobs.delivery.verify import EXACT, FileStats

#: Categories that get a bar of their own, and values of an axis with an order that are drawn as bars.
_CATEGORIES = 12
_ORDERED_BARS = 31
_NONE = "none"


@attrs.frozen
class Series:
    """What a chart is drawn from. `rest` is what the series doesn't hold of the whole: it stops after so many labels."""

    chart: Chart
    axis: Axis
    x: Column
    y: Column | None
    values: dict[str, Decimal]
    without: Decimal | None
    rest: Decimal

    @property
    def measure(self) -> str:
        return self.y.title if self.y else "Rows"

    @property
    def ordered(self) -> bool:
        return self.axis.position is not None or self.chart.kind == "line"

    @property
    def drawn_as_bars(self) -> bool:
        return self.chart.kind == "bar" and not (self.ordered and len(self.values) > _ORDERED_BARS)


def figure(place: int, contract: Contract, stats: FileStats, items: int) -> Html:
    """The contract's chart at `place`. At most `items` values are listed."""
    series = _series(contract.report.chart[place], stats.series[place], contract, stats)
    name = f"chart-{place + 1}"
    title = tag("figcaption", tag("h3", prose(series.chart.title, 120)), tag("p", _subject(series)))
    if not series.values and series.without is None:
        return tag("figure", title, tag("p", prose("No rows, so there is nothing to draw.")))
    as_bars = series.drawn_as_bars or not series.values
    return tag("figure", title, *(_as_bars if as_bars else _as_line)(series, name, items))


def _series(chart: Chart, values: dict[str | None, Decimal], contract: Contract, stats: FileStats) -> Series:
    columns = {column.name: column for column in contract.columns}
    y = None if chart.y == "rows" else columns[chart.y]
    if y and chart.only is not None:
        whole = stats.units[y.name].get(chart.only)
        y = attrs.evolve(y, unit=chart.only)
    else:
        whole = stats.totals[y.name]["sum"] if y else Decimal(stats.rows)
    known = {label: value for label, value in values.items() if label is not None}
    axis = axis_of(columns[chart.x], known)
    rest = EXACT.subtract(whole or Decimal(0), _sum(values.values()))
    return Series(chart, axis, columns[chart.x], y, known, values.get(None), rest)


def _subject(series: Series) -> Html:
    y = named(series.measure, series.y.unit if series.y else None)
    zone = prose(", UTC" if series.x.type == "timestamp" else "")
    return said("{y} by {x}{zone}", y=y, x=prose(series.x.title, 80), zone=zone)


def _as_bars(series: Series, name: str, items: int) -> list[Html]:
    marks = _bars(series)
    kind = "Bars" if series.drawn_as_bars else "A bar"
    return [
        drawing.bars(marks, name, _alternative(series, name, kind, marks)),
        _listing(series, name, marks[:items], len(marks)),
    ]


def _bars(series: Series) -> list[Bar]:
    shown = series.axis.shown
    if series.ordered:
        marks = [Bar(shown(label), series.values[label]) for label in series.axis.in_order(series.values)]
        return [*marks, *_none(series), *_other(series, 0, series.rest)]
    every = [*[Bar(label, value) for label, value in series.values.items()], *_none(series)]
    ranked = sorted(every, key=lambda mark: (-mark.value.copy_abs(), mark.kind, mark.label))
    # One more than fits gets its own bar, because "other" would take the room.
    kept = ranked if len(ranked) <= _CATEGORIES + 1 and not series.rest else ranked[:_CATEGORIES]
    others = ranked[len(kept) :]
    other = _other(series, len(others), _sum([series.rest, *[mark.value for mark in others]]))
    largest_first = sorted(kept, key=lambda mark: (-mark.value, mark.kind, mark.label))
    return [*[attrs.evolve(mark, label=shown(mark.label)) for mark in largest_first], *other]


def _none(series: Series) -> list[Bar]:
    return [] if series.without is None else [Bar(_NONE, series.without, "none")]


def _other(series: Series, amount: int, value: Decimal) -> list[Bar]:
    if not amount and not series.rest:
        return []
    more = "more than " if series.rest else ""
    return [Bar(f"{more}{wording.count(amount, 'other')}" if amount else "others", value, "other")]


def _as_line(series: Series, name: str, items: int) -> list[Html]:
    labels = series.axis.in_order(series.values)
    position = series.axis.position or {label: float(place) for place, label in enumerate(labels)}.__getitem__
    points = [Point(position(label), series.axis.shown(label), series.values[label]) for label in labels]
    gap = _gap(points) if series.axis.even else None
    marks = [*[Bar(point.label, point.value) for point in points], *_none(series)]
    broken = gap is not None and any(after.x - before.x > gap for before, after in pairwise(points))
    asides = [
        *(["Where the line is broken, the file has no rows."] if broken else []),
        *([f"Rows without a value on this axis are not drawn: {wording.number(series.without)}."] if series.without else []),
        *([f"Further values, {wording.number(series.rest)} in all, are not drawn."] if series.rest else []),
    ]
    return [
        drawing.line(points, name, _alternative(series, name, "A line", marks), gap=gap),
        *[tag("p", prose(aside), class_="aside") for aside in asides],
        _listing(series, name, marks[:items], len(marks)),
    ]


def _gap(points: Sequence[Point]) -> float | None:
    """A distance that nothing but a hole is as wide as; None where points come at no regular distance."""
    steps = Counter(round(after.x - before.x, 6) for before, after in pairwise(points))
    if not steps:
        return None
    usual, times = min(steps.most_common(), key=lambda item: (-item[1], item[0]))
    return usual * 1.5 if times * 2 > len(points) - 1 and len(points) > 3 else None


def _alternative(series: Series, name: str, kind: str, marks: Sequence[Bar]) -> Html:
    """What the picture says, for those who don't see it."""
    highest, lowest = max(marks, key=_value), min(marks, key=_value)
    if len(marks) == 1:
        text = f"One value: {_told(highest)}."
    else:
        text = (
            f"{kind} for {wording.count(len(marks), 'value')}, from {drawing.cut(marks[0].label, 40)} to "
            f"{drawing.cut(marks[-1].label, 40)}. Highest: {_told(highest)}. Lowest: {_told(lowest)}."
        )
    return joined([tag("title", prose(series.chart.title, 120), id=f"{name}-title"), tag("desc", prose(text), id=f"{name}-text")])


def _told(mark: Bar) -> str:
    return f"{drawing.cut(mark.label, 40)}, {wording.short(mark.value)}"


def _value(mark: Bar) -> Decimal:
    return mark.value


def _listing(series: Series, name: str, marks: Sequence[Bar], of: int) -> Html:
    rows = [[_label(mark), verbatim(wording.number(mark.value), 160)] for mark in marks]
    cut = prose(f" (the first {wording.number(len(marks))} of {wording.number(of)})" if len(marks) < of else "")
    caption = said("{title}{cut}", title=prose(series.chart.title, 120), cut=cut)
    numbers = table(f"{name}-numbers", caption, [series.x.title[:120], series.measure[:120]], rows, numeric={1})
    return tag("details", tag("summary", prose("The numbers of this chart")), numbers)


def _label(mark: Bar) -> Html:
    return tag("i", prose(mark.label)) if mark.kind != "one" else verbatim(mark.label, 120)


def _sum(values: Iterable[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal(0))
