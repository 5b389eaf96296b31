"""A chart as it is handed to the page: its texts, its bars and their places, its line and its notes."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import attrs
import pytest

from config.exports.file_model import Chart
from glue_jobs.delivery.report.charts import Bar, Figure, figure
from glue_jobs.delivery.verify import FileStats
from tests.support import samples

CONTRACT = samples.things(
    ("word", "text"),
    ("day", "date"),
    ("at", "timestamp"),
    ("share", "decimal(9,2)"),
    ("money", "decimal(20,2)", 'unit = "EUR"'),
    ("sales", "decimal(20,2)", 'per = "word"'),
)


def drawn(values: dict, x: str = "word", y: str = "money", kind: str = "bar", **changes) -> Figure:
    """Return the figure of a series. `changes` are of the chart, or of what is known about the file."""
    of_file = {name: changes.pop(name) for name in ("rows", "whole", "is_cut", "units") if name in changes}
    series = {label: Decimal(value) for label, value in values.items()}
    chart = Chart(title="The chart", x=x, y=y, kind=kind, **changes)
    contract = attrs.evolve(CONTRACT, report=attrs.evolve(CONTRACT.report, chart=[chart]))
    whole = Decimal(of_file.get("whole", sum(series.values())))
    stats = FileStats(
        rows=of_file.get("rows", sum(map(int, series.values()))),
        totals={name: {"sum": whole} for name in ("money", "sales")},
        units={"sales": of_file.get("units", {})},
        series=[series],
        cut_series=[of_file.get("is_cut", False)],
    )
    return figure(0, contract, stats)


def shown(found: Figure) -> list[tuple[str, Decimal, str]]:
    return [(mark.label, mark.value, mark.kind) for mark in found.marks]


def test_a_figure_of_bars_has_everything_about_them():
    found = drawn({"a": 30, "b": -10, None: 5})
    assert (found.title, found.subject, found.x_title, found.measure) == (
        "The chart",
        "Money (EUR) by Word",
        "Word",
        "Money",
    )
    assert found.bars == [
        Bar("a", Decimal(30), "one", "25.00%", "75.00%", "25.00%"),
        Bar("none", Decimal(5), "none", "25.00%", "12.50%", "25.00%"),
        Bar("b", Decimal(-10), "one", "0.00%", "25.00%", "25.00%"),
    ]
    assert found.marks == [Bar(bar.label, bar.value, bar.kind) for bar in found.bars]
    assert found.description == ("Bars for 3 values, from a to b. Highest: a, 30. Lowest: b, −10.")
    assert (found.line, found.notes) == (None, [])


@pytest.mark.parametrize(
    ("x", "y", "more", "subject", "measure"),
    [
        ("word", "rows", {}, "Rows by Word", "Rows"),
        ("day", "rows", {}, "Rows by Day", "Rows"),
        ("at", "money", {}, "Money (EUR) by At, UTC", "Money"),
        ("word", "sales", {"only": "USD"}, "Sales (USD) by Word", "Sales"),
    ],
)
def test_the_subject_names_measure_unit_and_axis(x, y, more, subject, measure):
    label = "2026-11-09T00:00:00+00:00" if x == "at" else "2026-11-09"
    found = drawn({label: 2}, x, y, **more)
    assert (found.subject, found.measure) == (subject, measure)


def test_a_chart_without_values_is_empty():
    found = drawn({})
    assert found == Figure("The chart", "Money (EUR) by Word", "Word", "Money")


def test_a_chart_of_one_value_describes_it():
    assert drawn({"a": 3}).description == "One value: a, 3."
    only_none = drawn({None: 3}, kind="line")
    assert (only_none.description, only_none.line) == ("One value: none, 3.", None)
    assert shown(only_none) == [("none", Decimal(3), "none")]
    assert len(only_none.bars) == 1


def test_a_line_has_its_points_and_describes_them():
    found = drawn({"2026-11-11": 4, "2026-11-09": 2, None: 7, "2026-11-10": 9}, "day", kind="line")
    assert shown(found) == [
        ("Mon 9 Nov 2026", Decimal(2), "one"),
        ("Tue 10 Nov 2026", Decimal(9), "one"),
        ("Wed 11 Nov 2026", Decimal(4), "one"),
        ("none", Decimal(7), "none"),
    ]
    assert found.description == (
        "A line for 4 values, from Mon 9 Nov 2026 to none. Highest: Tue 10 Nov 2026, 9. "
        "Lowest: Mon 9 Nov 2026, 2."
    )
    assert found.notes == ["Rows without a value on this axis are not drawn: 7."]
    assert (found.bars, found.line.path.count("L")) == ((), 2)


def test_a_line_without_a_value_for_missing_labels_has_no_note_about_them():
    assert drawn({"a": 1, "b": 2, None: 0}, kind="line").notes == []
    assert drawn({"a": 1, "b": 2}, kind="line").notes == []


LIMIT = (
    "This chart compares the first 5,000 values of Word in the file with one another; the file has others."
)


def test_what_a_chart_leaves_out_is_in_its_notes():
    assert drawn({"a": 1}, is_cut=True, whole=9).notes == [LIMIT]
    line = drawn({"a": 1, "b": 2, None: 3}, kind="line", is_cut=True, whole=1_234)
    assert line.notes == [
        "Rows without a value on this axis are not drawn: 3.",
        f"{LIMIT} These others, 1,228 in all, are not drawn.",
    ]


def days(amount: int, skipped: set[int] = frozenset()) -> dict[str, int]:
    start = date(2026, 1, 1)
    every = [
        (start + timedelta(days=number)).isoformat() for number in range(amount) if number not in skipped
    ]
    return dict.fromkeys(every, 1)


@pytest.mark.parametrize(("amount", "is_line"), [(31, False), (32, True)])
def test_an_axis_with_an_order_has_at_most_thirty_one_bars(amount, is_line):
    found = drawn(days(amount), "day")
    assert (found.line is not None, len(found.bars)) == (is_line, 0 if is_line else amount)
    assert found.description.startswith(f"{'A line' if is_line else 'Bars'} for {amount} values")


def test_a_line_is_broken_on_an_axis_of_equal_distances_only():
    broken = drawn(days(40, {20}), "day")
    assert broken.line.is_broken
    assert broken.notes == ["Where the line is broken, the file has no rows."]
    shares = {f"{number}.00": 1 for number in range(40) if number != 20}
    assert not drawn(shares, "share").line.is_broken
    words = {f"w{number:02}": 1 for number in range(40) if number != 20}
    assert not drawn(words, kind="line").line.is_broken


@pytest.mark.parametrize(
    ("amount", "is_cut", "bars", "last"),
    [
        (12, False, 12, ("w11", 89, "one")),
        (13, False, 13, ("w12", 88, "one")),
        (14, False, 13, ("2 others", 88 + 87, "other")),
        (12, True, 13, ("others", 500, "other")),
        (13, True, 13, ("more than 1 other", 500 + 88, "other")),
        (14, True, 13, ("more than 2 others", 500 + 88 + 87, "other")),
    ],
)
def test_the_smallest_of_many_categories_are_others(amount, is_cut, bars, last):
    values = {f"w{number:02}": 100 - number for number in range(amount)}
    whole = sum(values.values()) + 500 * is_cut
    found = drawn(values, is_cut=is_cut, whole=whole)
    assert len(found.bars) == bars
    assert shown(found)[-1] == (last[0], Decimal(last[1]), last[2])
    assert sum(mark.value for mark in found.marks) == whole


def test_ordered_bars_end_with_those_without_a_label_and_others():
    found = drawn({"2026-11-10": 1, None: 5, "2026-11-09": 9}, "day", is_cut=True, whole=20)
    assert shown(found) == [
        ("Mon 9 Nov 2026", Decimal(9), "one"),
        ("Tue 10 Nov 2026", Decimal(1), "one"),
        ("none", Decimal(5), "none"),
        ("others", Decimal(5), "other"),
    ]


def test_equal_bars_are_in_the_order_of_their_labels_and_those_without_one_first():
    found = drawn({"c": 2, "a": 2, None: 2, "b": 2})
    assert [mark.label for mark in found.marks] == ["none", "a", "b", "c"]


def test_others_of_rows_are_those_of_the_file():
    found = drawn({"a": 3, "b": 4}, y="rows", is_cut=True, rows=100)
    assert shown(found)[-1] == ("others", Decimal(93), "other")


def test_others_make_up_for_the_bars_if_the_numbers_of_the_file_add_up_to_nothing():
    assert shown(drawn({"a": 3}, is_cut=True, whole=0))[-1] == ("others", Decimal(-3), "other")


def test_others_of_a_unit_are_those_with_the_unit():
    units = {"EUR": Decimal(50), "USD": Decimal(20)}
    found = drawn({"a": 3}, y="sales", only="USD", units=units, is_cut=True)
    assert shown(found)[-1] == ("others", Decimal(17), "other")
    like_a_formula = drawn({"a": 3}, y="sales", only="-x", units={"'-x": Decimal(9)}, is_cut=True)
    assert shown(like_a_formula)[-1] == ("others", Decimal(6), "other")
    unknown = drawn({}, y="sales", only="GBP", units=units)
    assert (unknown.marks, unknown.subject) == ((), "Sales (GBP) by Word")


@pytest.mark.parametrize(
    ("label", "value", "short"),
    [
        ("a" * 37, "1", "a" * 37),
        ("a" * 38, "1", "a" * 36 + "…"),
        ("a" * 40, "1000", "a" * 32 + "…"),
        ("京" * 19, "1", "京" * 17 + "…"),
        ("a" * 40, "1" * 14 + ".00", "a" * 16 + "…"),
        ("a" * 40, f"{10**14}.123456", "a" * 15 + "…"),
    ],
)
def test_a_label_leaves_room_for_its_value(label, value, short):
    assert Bar(label, Decimal(value)).short_label == short


def test_long_titles_are_cut_and_long_labels_only_in_descriptions():
    long = "w" * 50
    found = drawn({long: 1, "b": 0})
    assert found.description == (
        f"Bars for 2 values, from {'w' * 39}… to b. Highest: {'w' * 39}…, 1. Lowest: b, 0."
    )
    assert found.marks[0].label == long
