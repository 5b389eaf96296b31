"""The number of partitions for rows, and the ranges of the first ordering column."""

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
def test_the_number_of_partitions_depends_on_the_rows(rows, parallelism, expected):
    assert ranges.wanted(rows, parallelism) == expected


def test_cuts_divide_the_sample_into_equal_parts():
    assert ranges.plan(4_000_000, [None, *reversed(range(100))], 1) == Layout(4, (25, 50, 75))


def test_a_frequent_value_is_one_cut():
    assert ranges.plan(4_000_000, [*[1] * 50, *[2] * 50], 1) == Layout(3, (1, 2))


def test_rows_without_a_sample_are_not_in_one_partition():
    assert ranges.plan(100_000_000, [], 8) is None
    assert ranges.plan(100_000_000, [None, None], 8) is None
    assert ranges.plan(5, [], 8) == Layout(1, ())
    assert ranges.plan(100_000_000, list(range(1_000)), 8).partitions == 100


@pytest.mark.parametrize(("number", "expected"), [(0, 933211791), (1, -559580957), (42, 29417773), (123_456, 1905992991)])
def test_a_number_has_the_hash_that_spark_gives_it(number, expected):
    """The expected value is that of `SELECT hash(…)` in Spark 3.5."""
    assert ranges._murmur3(number) == expected
