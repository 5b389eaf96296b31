"""The geometry of a line: its axes, its scale, where it is broken, and what is left of many points."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise

import pytest

from config.exports.contract import Column
from glue_jobs.delivery.report import scales
from glue_jobs.delivery.report.axes import choose_axis
from glue_jobs.delivery.report.lines import Point, draw_line, find_gap

#: Seconds since 1970 in the year 2026. Differences of such floats are exact to less than a microsecond only.
NOW = 1_794_182_400.0


def points(*positions: float, value: int = 1) -> list[Point]:
    return [Point(position, f"at {position:g}", Decimal(value)) for position in positions]


def valued(*values: str | int) -> list[Point]:
    """Return points at equal distances with these values."""
    return [Point(float(place), f"p{place}", Decimal(value)) for place, value in enumerate(values)]


@pytest.mark.parametrize(
    ("positions", "gap"),
    [
        ([], None),
        ([5], None),
        ([0, 2], None),
        ([0, 2, 4], None),
        ([0, 2, 4, 6], 3),
        ([0, 2, 4, 10], 3),
        ([0, 2, 8, 10, 12], 3),
        ([0, 2, 4, 7, 11], None),  # half of the distances are equal, but not most of them
        ([0, 2, 4, 6, 9, 13], 3),
        ([0, 1, 3, 6, 10], None),
        ([NOW + place / 10 for place in range(20)], 0.15),
        ([NOW + place**2 / 10**6 for place in range(20)], None),
    ],
)
def test_a_gap_is_longer_than_one_and_a_half_times_the_distance_that_most_points_have(positions, gap):
    assert find_gap(points(*positions)) == pytest.approx(gap)


def test_a_line_has_its_points_between_round_numbers():
    line = draw_line(valued(0, 10, 5), None)
    assert line.path == "M12.0 170.0L500.0 0.0L988.0 85.0"
    assert line.dots == "M12.0 170.0h0M500.0 0.0h0M988.0 85.0h0"
    assert line.ticks == [("0", "186.0", True), ("5", "101.0", False), ("10", "16.0", False)]
    assert line.feet == [(["p0"], "0", "start"), (["p1"], "50.00%", "middle"), (["p2"], "100%", "end")]
    assert (line.class_, line.is_broken) == ("y4", False)


def test_a_line_with_negative_values_has_its_zero_in_between():
    line = draw_line(valued(-5, 5), None)
    assert line.path == "M12.0 170.0L988.0 0.0"
    assert [(text, is_zero) for text, _, is_zero in line.ticks] == [("−5", False), ("0", True), ("5", False)]


def test_a_single_point_is_in_the_middle():
    line = draw_line(points(7), 1.5)
    assert (line.path, line.dots) == ("M500.0 0.0", "M500.0 0.0h0")
    assert line.feet == [(["at 7"], "50%", "middle")]
    assert not line.is_broken


def test_a_line_is_broken_where_the_distance_exceeds_the_gap():
    across = points(0, 1, 2.5, 4.1, 6.1)
    assert draw_line(across, 1.5).path.count("M") == 3
    assert draw_line(across, 1.6).path.count("M") == 2
    assert draw_line(across, 2).is_broken is False
    assert draw_line(across, None).path.count("M") == 1
    broken = draw_line(across, 1.5)
    assert re.findall(r"[\d.]+ 0\.0", broken.path) == [
        f"{12 + x / 6.1 * 976:.1f} 0.0" for x in (0, 1, 2.5, 4.1, 6.1)
    ]
    assert broken.is_broken


def test_many_points_have_no_dots_but_those_that_stand_alone():
    assert draw_line(points(*range(62)), None).dots.count("M") == 62
    assert draw_line(points(*range(63)), None).dots == ""
    alone = draw_line(points(*range(62), 70), 1.5)
    assert alone.dots == "M988.0 0.0h0"


def test_of_very_many_points_the_extremes_of_each_slice_are_drawn():
    """The line looks the same: within a slice of the width, it covers the same heights."""
    values = [(place * 7919) % 1000 for place in range(6_000)]
    every = valued(*values)
    line = draw_line(every, None)
    heights: dict[int, set[float]] = defaultdict(set)
    for place, value in enumerate(values):
        x = 12 + place / 5_999 * 976
        heights[int(x * 300 / 1000)].add(round((1 - value / 1000) * 170, 1))
    drawn: dict[int, list[float]] = defaultdict(list)
    corners = [tuple(map(float, corner.split())) for corner in line.path.removeprefix("M").split("L")]
    for x, y in corners:
        drawn[int(x * 300 / 1000)].append(y)
    assert [x for x, _ in corners] == sorted(x for x, _ in corners)
    assert len(corners) == 2 * len(heights)
    both = [(min(drawn[slice_]), max(drawn[slice_])) == (min(of), max(of)) for slice_, of in heights.items()]
    assert sum(both) > 0.9 * len(both), "some are rounded into the slice beside theirs"


@pytest.mark.parametrize(("amount", "drawn"), [(600, 600), (601, 601), (1_200, 594)])
def test_only_a_line_of_more_than_two_points_for_each_slice_is_thinned_out(amount, drawn):
    zigzag = valued(*(place % 2 for place in range(amount)))
    corners = draw_line(zigzag, None).path.count("L") + 1
    assert corners <= drawn
    assert (corners == amount) == (amount <= 600)


@pytest.mark.parametrize(
    ("positions", "middle"),
    [
        ([0, 10], []),
        ([0, 4, 10], []),
        ([0, 6, 10], []),
        ([0, 4.1, 10], [(["at 4.1"], "41.00%", "middle")]),
        ([0, 5.9, 10], [(["at 5.9"], "59.00%", "middle")]),
        ([0, 4.2, 4.9, 5.3, 10], [(["at 4.9"], "49.00%", "middle")]),
        ([10, 11, 15, 16, 20], [(["at 15"], "50.00%", "middle")]),
    ],
)
def test_a_point_near_the_middle_has_a_label(positions, middle):
    first, *between, last = draw_line(points(*positions), None).feet
    assert between == middle
    assert first == ([f"at {positions[0]:g}"], "0", "start")
    assert last == ([f"at {positions[-1]:g}"], "100%", "end")


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("short", ["short"]),
        ("twelve signs", ["twelve signs"]),
        ("Mon 9 Nov 2026, 00:00", ["Mon 9 Nov", "2026, 00:00"]),
        ("one two three four five six seven", ["one two", "three four…"]),
        ("abcdefghijklmnopqrst", ["abcdefghijkl", "mnopqrst"]),
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijkl", "…"]),
        ("北京市朝阳区", ["北京市朝阳区"]),
        ("北京市朝阳区三里屯", ["北京市朝阳…"]),
    ],
)
def test_a_label_has_at_most_two_lines_of_twelve_letters(label, parts):
    assert draw_line([Point(0.0, label, Decimal(1))], None).feet == [(parts, "50%", "middle")]


@pytest.mark.parametrize(
    ("greatest", "class_"),
    [("100", "y4"), ("1000", "y8"), ("0.004", "y8"), ("200000", "y8"), ("3000000", "y14")],
)
def test_the_space_beside_a_line_depends_on_its_longest_tick(greatest, class_):
    assert draw_line(valued(0, greatest), None).class_ == class_


@pytest.mark.parametrize(
    ("values", "whole", "ticks"),
    [
        ([], True, "0 1"),
        (["0"], True, "0 1"),
        (["1"], True, "0 1"),
        (["1"], False, "0.0 0.5 1.0"),
        (["4"], True, "0 1 2 3 4"),
        (["5"], True, "0 2 4 6"),
        (["8"], True, "0 2 4 6 8"),
        (["9"], True, "0 5 10"),
        (["20"], True, "0 5 10 15 20"),
        (["21"], True, "0 10 20 30"),
        (["-3", "2"], True, "-4 -2 0 2"),
        (["-7"], True, "-8 -6 -4 -2 0"),
        (["0.03", "0.01"], False, "0.00 0.01 0.02 0.03"),
        (["0.0007"], False, "0.0000 0.0002 0.0004 0.0006 0.0008"),
        (["4E+30"], True, "0 1E+30 2E+30 3E+30 4E+30"),
    ],
)
def test_ticks_are_round_numbers_that_enclose_zero_and_the_values(values, whole, ticks):
    found = scales.choose_ticks(map(Decimal, values), whole=whole)
    assert found == [Decimal(tick) for tick in ticks.split()]
    assert 2 <= len(found) <= 6


def test_ticks_of_whole_numbers_are_whole():
    texts = [text for text, _, _ in draw_line(valued(1, 2), None).ticks]
    assert texts == ["0", "1", "2"]
    texts = [text for text, _, _ in draw_line(valued(1, "1.5"), None).ticks]
    assert texts == ["0.0", "0.5", "1.0", "1.5"]


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ("0 500000", ["0", "500,000"]),
        ("0 999999", ["0", "999,999"]),
        ("0 500000 1000000", ["0", "0.5 million", "1 million"]),
        ("-2000000 0 1000", ["−2 million", "0", "0.001 million"]),
        ("0 1E+9", ["0", "1 billion"]),
        ("0 999E+6", ["0", "999 million"]),
        ("0 2.5E+12", ["0", "2.5 trillion"]),
        ("0 999E+12", ["0", "999 trillion"]),
        ("0 1E+15", ["0", "1.00 × 10^15"]),
        ("-1E+15 0", ["−1.00 × 10^15", "0"]),
    ],
)
def test_large_ticks_are_in_millions_billions_or_trillions(ticks, texts):
    assert scales.write_ticks([Decimal(tick) for tick in ticks.split()]) == texts


@pytest.mark.parametrize(
    ("values", "bounds"),
    [([], (0, 1)), ([0], (0, 1)), ([5], (0, 5)), ([-5], (-5, 0)), ([-5, 7, 2], (-5, 7))],
)
def test_bounds_enclose_zero_and_differ(values, bounds):
    assert scales.enclose_zero([Decimal(value) for value in values]) == bounds


def test_a_share_is_of_the_distance_between_the_bounds():
    shares = [scales.to_share(Decimal(value), Decimal(-5), Decimal(15)) for value in (-5, 0, 5, 15)]
    assert shares == [0, 0.25, 0.5, 1]
    assert [scales.to_percent(share) for share in (0, 1 / 3, 1)] == ["0.00%", "33.33%", "100.00%"]


@pytest.mark.parametrize(
    ("type_", "labels", "shown", "steps", "is_even"),
    [
        ("date", ["2026-11-09", "2026-02-28"], ["Sat 28 Feb 2026", "Mon 9 Nov 2026"], [254], True),
        (
            "timestamp",
            ["2026-11-09T13:05:01+00:00", "2026-11-09T13:05:00+00:00", "2026-11-09T13:05:00.5+00:00"],
            ["Mon 9 Nov 2026, 13:05", "Mon 9 Nov 2026, 13:05:00", "Mon 9 Nov 2026, 13:05:01"],
            [0.5, 0.5],
            True,
        ),
        ("integer", ["2026", "9", "-10"], ["−10", "9", "2026"], [19, 2017], True),
        (
            "decimal(9,2)",
            ["2026.00", "9.50", "-10.00"],
            ["−10.00", "9.50", "2,026.00"],
            [19.5, 2016.5],
            False,
        ),
        ("text", ["b", "", "a10", "a9"], ["“”", "a10", "a9", "b"], None, False),
        ("text", ["9", "1e3", "10", "007"], ["007", "10", "1e3", "9"], None, False),
        ("boolean", ["true", "false"], ["false", "true"], None, False),
    ],
)
def test_an_axis_orders_and_shows_the_labels_of_its_type(type_, labels, shown, steps, is_even):
    axis = choose_axis(Column(name="x", type=type_, title="X", description="X."), labels)
    ordered = axis.sort(labels)
    assert [axis.show(label) for label in ordered] == shown
    assert axis.even == is_even
    if steps is None:
        assert axis.position is None
    else:
        positions = [axis.position(label) for label in ordered]
        assert [after - before for before, after in pairwise(positions)] == steps


@pytest.mark.parametrize(
    ("type_", "labels"),
    [
        ("date", ["2026-11-09", "+10000-01-01"]),
        ("timestamp", ["2026-11-09T13:05:00+00:00", "+10000-01-01T00:00:00+00:00"]),
        ("decimal(9,2)", ["1.00", "many"]),
        ("decimal(9,2)", ["1.00", "inf"]),
        ("integer", ["1", "many"]),
    ],
)
def test_labels_of_which_one_is_not_of_the_type_are_words(type_, labels):
    axis = choose_axis(Column(name="x", type=type_, title="X", description="X."), labels)
    assert (axis.position, axis.even) == (None, False)
    assert axis.sort(labels) == sorted(labels)
