"""What a chart draws, its text alternative and its list, for every kind of axis and value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import attrs
import pytest

from config.exports.contract import Contract
from glue_jobs.delivery import report
from tests.support import page_reader, samples

COLUMNS = (
    ("word", "text", "nullable = true"),
    ("day", "date", "nullable = true"),
    ("at", "timestamp", "nullable = true"),
    ("size", "integer", "nullable = true"),
    ("money", "decimal(20,2)", "nullable = true", 'unit = "EUR"'),
)
CHART = """[report]
[[report.chart]]
title = "The chart"
x = "{x}"
y = "{y}"
kind = "{kind}"
"""


def charted(x: str, y: str, kind: str) -> Contract:
    return samples.things(*COLUMNS, more=CHART.format(x=x, y=y, kind=kind))


def figure(rows, x: str, y: str = "money", kind: str = "bar") -> page_reader.Node:
    """Return the chart of rows given as (value of the axis, money)."""
    contract = charted(x, y, kind)
    blank = dict.fromkeys(column.name for column in contract.columns)
    whole = [blank | {x: label, "money": Decimal(money)} for label, money in rows]
    return drawn(samples.delivered(contract, whole))


def drawn(delivered) -> page_reader.Node:
    return page_reader.read(report.render_html(delivered)).one("figure")


def listed(found: page_reader.Node) -> list[list[str]]:
    return found.one("table").rows()


def widths(found: page_reader.Node) -> list[tuple[float, float]]:
    """Return the start and end of each bar in percent."""
    bars = [
        [float((bar.attributes[name] or "").rstrip("%")) for name in ("x", "width")]
        for bar in found.all("rect")
    ]
    return [(start, start + width) for start, width in bars]


def path(found: page_reader.Node, class_: str = "line") -> str:
    return found.one("path", class_=class_).attributes["d"]


def test_bars_start_with_the_largest_category_and_include_null():
    found = figure([("b", 2), ("a", 6), (None, 3), ("a", 2)], "word")
    assert listed(found) == [["a", "8.00"], ["none", "3.00"], ["b", "2.00"]]
    assert widths(found) == [(0, 100), (0, 37.5), (0, 25)]
    assert found.all("rect")[1].attributes["class"] == "bar none"
    assert found.one("figcaption").text == "The chart Money (EUR) by Word"


def test_many_categories_end_with_others_and_add_up():
    found = figure([(f"w{number:02}", 100 - number) for number in range(40)], "word")
    rows = listed(found)
    assert len(rows) == 13
    assert rows[-1][0] == "28 others"
    assert sum(Decimal(value.replace(",", "")) for _, value in rows) == sum(
        100 - number for number in range(40)
    )


def test_one_category_too_many_gets_its_own_bar():
    assert "w12" in [row[0] for row in listed(figure([(f"w{number:02}", 1) for number in range(13)], "word"))]


def test_values_that_inspection_dropped_count_as_others():
    contract = charted("word", "rows", "bar")
    whole = [
        dict.fromkeys(column.name for column in contract.columns) | {"word": f"w{number}"}
        for number in range(5_050)
    ]
    rows = listed(drawn(samples.delivered(contract, whole)))
    assert rows[-1] == ["more than 4,988 others", "5,038"]


@pytest.mark.parametrize("kind", ["bar", "line"])
@pytest.mark.parametrize("x", ["word", "at"])
def test_a_chart_says_that_the_axis_has_further_values_even_if_they_amount_to_nothing(kind, x):
    start = datetime(2026, 11, 9, tzinfo=UTC)
    labels = {
        "word": [f"w{number}" for number in range(5_002)],
        "at": [start + timedelta(seconds=number) for number in range(5_002)],
    }[x]
    amounts = [*[1] * 5_000, 7, -7]
    whole = figure(list(zip(labels, amounts, strict=True)), x, kind=kind)
    said = f"This chart compares the first 5,000 values of {x.capitalize()} in the file"
    assert said in whole.text
    drawn_as_bars = x == "word" and kind == "bar"
    assert ("more than 4,988 others" in whole.text) == drawn_as_bars
    assert ("These others, 0.00 in all, are not drawn." in whole.text) != drawn_as_bars
    assert said not in figure(list(zip(labels, amounts, strict=True))[:5_000], x, kind=kind).text


def test_negative_bars_point_the_other_way():
    found = figure([("gain", 30), ("loss", -10)], "word")
    assert widths(found) == [(25, 100), (0, 25)]
    assert [bar.attributes["class"] for bar in found.all("rect")] == ["bar one", "bar one minus"]
    assert "−10.00" in found.one("svg").text


def test_negative_values_come_after_positive_ones():
    rows = listed(figure([("loss", -50), ("small", 5), ("gain", 30)], "word"))
    assert [row[0] for row in rows] == ["gain", "small", "loss"]


def test_the_largest_negative_values_are_not_among_the_others():
    rows = [(f"w{number:02}", 1) for number in range(30)] + [("loss", -50)]
    assert ["loss", "−50.00"] in listed(figure(rows, "word"))


@pytest.mark.parametrize("kind", ["bar", "line"])
@pytest.mark.parametrize("x", ["word", "day"])
def test_nothing_but_zeros_can_be_drawn(kind, x):
    values = {"word": ["a", "b"], "day": [date(2026, 11, 9), date(2026, 11, 10)]}[x]
    found = figure([(value, 0) for value in values], x, kind=kind)
    assert [row[1] for row in listed(found)] == ["0.00", "0.00"]
    assert "nan" not in str(found).lower()


def test_days_keep_their_order_as_bars():
    days = [date(2026, 11, 11), date(2026, 11, 9), date(2026, 11, 10)]
    rows = listed(figure([(day, 5 + place) for place, day in enumerate(days)] + [(None, 99)], "day"))
    assert [row[0] for row in rows] == ["Mon 9 Nov 2026", "Tue 10 Nov 2026", "Wed 11 Nov 2026", "none"]


def test_numbers_are_ordered_as_numbers():
    assert [row[0] for row in listed(figure([(2026, 1), (9, 1), (-1, 1)], "size"))] == ["−1", "9", "2026"]


def test_many_days_become_a_line():
    days = [(date(2026, 1, 1) + timedelta(days=number), number) for number in range(60)]
    found = figure(days, "day")
    assert not found.all("rect")
    assert path(found).count("L") == 59


def test_a_line_is_broken_where_rows_are_missing():
    hours = [datetime(2026, 11, 9, hour, tzinfo=UTC) for hour in range(24) if hour not in (5, 6, 15)]
    found = figure([(hour, 1) for hour in hours], "at", kind="line")
    assert path(found).count("M") == 3
    assert "Where the line is broken, the file has no rows." in found.text
    assert listed(found)[0][0] == "Mon 9 Nov 2026, 00:00"


def test_a_line_over_irregular_times_is_unbroken():
    times = [datetime(2026, 11, 9, tzinfo=UTC) + timedelta(seconds=number**2) for number in range(20)]
    found = figure([(moment, 1) for moment in times], "at", kind="line")
    assert path(found).count("M") == 1
    assert "broken" not in found.text


def test_a_line_of_texts_follows_their_order():
    rows = listed(figure([("2026-02", 1), ("2026-01", 5), ("2026-03", 3)], "word", kind="line"))
    assert [row[0] for row in rows] == ["2026-01", "2026-02", "2026-03"]


def test_rows_that_a_line_cannot_show_are_mentioned():
    found = figure([(1, 5), (2, 6), (None, 7)], "size", kind="line")
    assert "Rows without a value on this axis are not drawn: 7.00." in found.text
    assert ["none", "7.00"] in listed(found)


def test_rows_with_null_only_are_one_bar():
    assert listed(figure([(None, 7)], "day", kind="line")) == [["none", "7.00"]]


def test_a_single_point_is_a_dot():
    found = figure([(4, 7)], "size", kind="line")
    assert path(found, "dots") == "M500.0 21.2h0"
    assert "One value: 4, 7.00." in found.one("desc").text


def test_a_truncated_list_is_marked():
    start = datetime(2026, 11, 9, tzinfo=UTC)
    found = figure([(start + timedelta(seconds=number), 1) for number in range(300)], "at", kind="line")
    assert len(listed(found)) == 250
    assert "(the first 250 of 300)" in found.one("caption").text


def test_invalid_dates_are_treated_as_texts():
    contract = charted("day", "rows", "line")
    whole = [dict.fromkeys(column.name for column in contract.columns) | {"day": date(2026, 11, 9)}]
    made = samples.delivered(contract, whole)
    odd = attrs.evolve(made.stats, series=[{"+10000-01-01": Decimal(1), "2026-11-09": Decimal(1)}])
    assert [row[0] for row in listed(drawn(attrs.evolve(made, stats=odd)))] == ["+10000-01-01", "2026-11-09"]


def test_a_long_name_is_truncated_in_the_chart_only():
    name = "A name that is much too long for the picture"
    found = figure([(name, 1_234_567)], "word")
    assert found.one("svg").all("text")[0].text == "A name that is much too l…"
    assert listed(found) == [[name, "1,234,567.00"]]
    assert "—" not in found.text


def test_the_empty_text_is_not_the_missing_one():
    assert [row[0] for row in listed(figure([("", 2), (None, 1)], "word"))] == ["“”", "none"]


def test_the_text_alternative_describes_the_chart():
    found = figure([("a", 8), ("b", -2), ("c", 3)], "word")
    assert found.one("svg").one("title").text == "The chart"
    assert found.one("desc").text == "Bars for 3 values, from a to b. Highest: a, 8.00. Lowest: b, −2.00."
