"""Rows with the same unique key are counted while the file is read back, in blocks of any size."""

from __future__ import annotations

from collections import Counter

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.delivery.checks import UNIQUE, explain_failures, list_implied_checks
from glue_jobs.delivery.unique import KeyCounter
from tests.support import samples

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.int64()), ("c", pa.string())])
ROWS = st.lists(
    st.tuples(st.sampled_from([None, "", "x", "y"]), st.sampled_from([None, 1, 2]), st.sampled_from("pq")),
    max_size=40,
)


def null_first(row):
    return [(value is not None, "" if value is None else value) for value in row]


def counted(rows, size, key, sorted_by):
    counter = KeyCounter(key, sorted_by)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        counter.add(pa.table(dict(zip("abc", map(list, zip(*block, strict=True)), strict=True)), SCHEMA))
    counter.finish()
    return counter.rows, counter.keys


def expected(rows, key):
    repeated = [
        amount
        for amount in Counter(tuple(row["abc".index(name)] for name in key) for row in rows).values()
        if amount > 1
    ]
    return sum(repeated), len(repeated)


@given(ROWS, st.integers(1, 7), st.sampled_from([["a"], ["a", "b"], ["b", "a"], ["a", "b", "c"]]))
def test_a_sorted_file_is_counted_near_each_row(rows, size, key):
    rows = sorted(rows, key=null_first)
    assert counted(rows, size, key, ["a", "b"]) == expected(rows, key)


@given(ROWS, st.integers(1, 7), st.sampled_from([["a"], ["b", "c"]]))
def test_a_file_in_any_order_is_counted_as_a_whole(rows, size, key):
    assert counted(rows, size, key, []) == expected(rows, key)


def test_rows_that_can_not_repeat_are_not_held():
    counter = KeyCounter(["a", "b"], ["a", "c"])
    for name in "vwxyz":
        counter.add(pa.table({"a": [name] * 3, "b": [1, 2, 3], "c": ["p"] * 3}, SCHEMA))
        assert sum(table.num_rows for table in counter._held) == 3


def things(unique):
    made = samples.things(("id", "text"), ("n", "integer"), ("by", "text"))
    return attrs.evolve(made, unique=unique)


def read_back(contract, *rows):
    body = "".join(f"{','.join(row)}\r\n" for row in rows)
    header = ",".join(column.name for column in contract.columns)
    return samples.inspected(contract, f"\ufeff{header}\r\n{body}".encode())


def test_a_repeated_key_blocks_and_the_message_has_the_key_and_no_value():
    contract = things(["id", "n"])
    stats = read_back(
        contract,
        ("secret-a", "1", "x"),
        ("secret-a", "1", "y"),
        ("secret-a", "2", "x"),
        ("secret-b", "1", "x"),
    )
    (failed,) = [check for check in list_implied_checks(contract, stats) if check.has_failed]
    assert (failed.id, failed.severity, failed.failed) == (UNIQUE, "block", 2)
    found, remedy = explain_failures([failed], contract, stats)
    assert found == (
        "2 of 4 rows have the same id, n as another row (1 different value), and `unique` says that it "
        "identifies a row"
    )
    assert remedy.endswith("or name all columns that identify a row in `unique`, or deduplicate by them")
    assert "secret" not in found + remedy


def test_a_key_without_repetition_passes():
    contract = things(["id"])
    stats = read_back(contract, ("a", "1", "x"), ("b", "1", "x"))
    (check,) = [check for check in list_implied_checks(contract, stats) if check.id == UNIQUE]
    assert (check.passed, check.message) == (True, "Rows have the same id.")


@pytest.mark.parametrize("rows", [[("", "1", "x"), ("", "1", "x")], [('""', "1", "x"), ('""', "1", "x")]])
def test_missing_and_empty_values_are_values_of_a_key(rows):
    contract = attrs.evolve(
        samples.things(("id", "text", "nullable = true"), ("n", "integer"), ("by", "text")), unique=["id"]
    )
    assert read_back(contract, *rows).repeated_rows == 2


def test_a_contract_without_a_key_has_no_such_check():
    contract = things([])
    stats = read_back(contract, ("a", "1", "x"), ("a", "1", "x"))
    assert UNIQUE not in {check.id for check in list_implied_checks(contract, stats)}
    assert stats.repeated_rows == 0
