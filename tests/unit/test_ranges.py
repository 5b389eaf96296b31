"""How many partitions rows are worth, and where the ranges of the first ordering column are cut."""

from __future__ import annotations

import pytest

from glue_jobs import ranges
from glue_jobs.ranges import Layout


@pytest.mark.parametrize(
    ("rows", "parallelism", "expected"),
    [
        (0, 8, 1),
        (199_999, 8, 1),
        (200_000, 8, 2),
        (5_000_000, 4, 5),
        (1_000_000, 4, 4),
        (1_000_001, 1, 2),
        (10_000_000_000, 8, 100),
    ],
)
def test_rows_are_worth_so_many_partitions(rows, parallelism, expected):
    assert ranges.wanted(rows, parallelism) == expected


def test_cuts_divide_the_sample_into_equal_parts():
    assert ranges.plan(4_000_000, [None, *reversed(range(100))], 1) == Layout(4, (25, 50, 75))


def test_a_value_that_many_rows_have_is_one_cut():
    assert ranges.plan(4_000_000, [*[1] * 50, *[2] * 50], 1) == Layout(3, (1, 2))


def test_rows_that_no_sample_describes_are_not_put_into_one_partition():
    assert ranges.plan(100_000_000, [], 8) is None
    assert ranges.plan(100_000_000, [None, None], 8) is None
    assert ranges.plan(5, [], 8) == Layout(1, ())
    assert ranges.plan(100_000_000, list(range(1_000)), 8).partitions == 100


@pytest.mark.parametrize(("number", "expected"), [(0, 933211791), (1, -559580957), (42, 29417773), (123_456, 1905992991)])
def test_a_number_has_the_hash_that_spark_gives_it(number, expected):
    """`SELECT hash(…)` in Spark 3.5."""
    assert ranges._murmur3(number) == expected
