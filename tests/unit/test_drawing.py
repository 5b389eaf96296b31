"""Scales, letters and thinned lines."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise

import page_reader
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.delivery.report import drawing
from glue_jobs.delivery.report.markup import Html


def test_a_line_of_thousands_of_points_keeps_its_extremes():
    for place in range(2_500, 2_520):
        values = dict.fromkeys(range(5_000), 5) | {place: 1_000, place + 900: -300}
        points = [drawing.Point(17.0 * number, "", Decimal(value)) for number, value in values.items()]
        found = page_reader.read(drawing.line(points, "x", Html(""), gap=None))
        heights = [
            float(height) for height in re.findall(r"[ML][\d.]+ ([\d.]+)", found.one("path", class_="line").attributes["d"])
        ]
        assert len(heights) <= 2 * 301
        # The scale goes from -500 to 1,000 over 170 pixels.
        assert min(heights) == 0
        assert heights.index(min(heights)) < heights.index(max(heights))
        assert max(heights) == pytest.approx(170 * 1_300 / 1_500, abs=0.1)


@given(st.lists(st.decimals(-(10**12), 10**12, places=3), min_size=1, max_size=30), st.booleans())
def test_a_scale_is_round_and_encloses_its_values(values, whole):
    ticks = drawing.scale(values, whole=whole)
    assert ticks[0] <= min([*values, Decimal(0)])
    assert ticks[-1] >= max([*values, Decimal(0)])
    assert Decimal(0) in ticks
    assert 2 <= len(ticks) <= 7
    steps = {after - before for before, after in pairwise(ticks)}
    assert len(steps) == 1
    assert str(steps.pop().normalize()).lstrip("0.")[0] in "125"


@pytest.mark.parametrize(
    ("most", "last"),
    [
        ("3", "3"),
        ("900000", "0.5 million"),
        ("4500000", "6 million"),
        ("900", "1,000"),
        ("3e12", "3 trillion"),
        ("8e20", "8.00 × 10^20"),
    ],
)
def test_ticks_of_great_numbers_are_short(most, last):
    points = [drawing.Point(0.0, "a", Decimal(0)), drawing.Point(1.0, "b", Decimal(most))]
    texts = [node.text for node in page_reader.read(drawing.line(points, "x", Html(""), gap=None)).all("text")]
    assert last in texts


def test_wide_letters_take_twice_the_room():
    assert drawing.cut("日本語の名前", 8) == "日本語…"
    assert drawing.cut("nihongo", 8) == "nihongo"
