"""When one shuffle both deduplicates and sorts the rows, and which columns are hashed as they are written."""

from __future__ import annotations

import attrs
import pytest

from config.exports.contract import Contract, Deduplicate, Personal
from config.exports.file_model import Check
from glue_jobs.rows import _are_keys_in_ranges, _find_hashed_on_write, _is_ordered_by_key, _is_untouched
from tests.support import samples

THINGS = samples.things(
    ("id", "text"),
    ("n", "integer"),
    ("day", "date"),
    ("at", "timestamp"),
    ("amount", "decimal(9,2)"),
    ("open", "boolean"),
    ("other", "text", 'from = "meta.code"'),
    ("upper", "text", 'expression = "upper(id)"'),
    ("kept", "text", 'personal = { treatment = "keep", reason = "R." }'),
    ("hashed", "text", 'personal = { treatment = "hash", kind = "id" }'),
    ("masked", "text", 'personal = { treatment = "mask", visible = 1 }'),
)
COLUMNS = {column.name: column for column in THINGS.columns}


def contract(
    *key: str, order_by: str = "id", stage: str = "before_deduplication", explode: str = ""
) -> Contract:
    rule = Deduplicate(key=list(key)) if key else None
    text = attrs.evolve(THINGS, deduplicate=rule)
    delivery = attrs.evolve(text.delivery, order_by=order_by.split())
    window = attrs.evolve(text.window, filter_stage=stage)
    if explode:
        made = samples.things(("id", "text"), more=f'[explode]\narray = "{explode}"\nas = "item"\n')
        text = attrs.evolve(text, explode=made.explode)
    return attrs.evolve(text, delivery=delivery, window=window)


def test_a_column_is_untouched_if_its_values_sort_as_those_of_its_field():
    assert [name for name, column in COLUMNS.items() if _is_untouched(column)] == [
        "id",
        "n",
        "day",
        "at",
        "other",
        "kept",
    ]


@pytest.mark.parametrize(
    ("made", "first", "expected"),
    [
        (contract("id"), "id", True),
        (contract("id", "n"), "id", True),
        (contract("meta.code"), "other", True),
        (contract("n", "id"), "id", False),
        (contract("id"), "n", False),
        (contract("other"), "other", False),
        (contract("hashed"), "hashed", False),
        (contract("amount"), "amount", False),
        (contract("id", stage="after_deduplication"), "id", False),
        (contract(), "id", False),
    ],
)
def test_ranges_of_the_first_column_hold_whole_keys_if_it_is_the_first_part_of_the_key(made, first, expected):
    assert _are_keys_in_ranges(made, COLUMNS[first]) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (contract("id"), True),
        (contract("id", "n", order_by="id n"), True),
        (contract("meta.code", "day", order_by="other day"), True),
        (contract("id", "n"), False),
        (contract("id", order_by="id n"), False),
        (contract("id", "n", order_by="n id"), False),
        (contract("id", "amount", order_by="id amount"), False),
        (contract("id", "hashed", order_by="id hashed"), False),
        (contract("id", explode="items"), False),
        (contract(explode="items"), False),
        (contract(), False),
    ],
)
def test_deduplicated_rows_are_in_order_if_the_file_is_sorted_by_the_whole_key(made, expected):
    assert _is_ordered_by_key(made) is expected


def check(condition: str | None = None, overall: str | None = None) -> Check:
    return Check(id="c", severity="warn", message="M.", each_row=condition, overall=overall)


def hashed(*checks: Check, order_by: str = "id", **treated: str) -> set[str]:
    """Return what is hashed on write of a contract whose column `hashed` is hashed, and others as named."""
    columns = [
        attrs.evolve(column, personal=Personal(treatment="hash", kind=treated[column.name]))
        if column.name in treated
        else column
        for column in THINGS.column
    ]
    made = attrs.evolve(contract("id", order_by=order_by), column=columns, check=list(checks))
    found = _find_hashed_on_write(made)
    assert isinstance(found, frozenset)
    return set(found)


def test_columns_are_hashed_on_write_unless_the_file_is_sorted_by_them_or_a_check_names_them():
    assert hashed() == {"hashed"}
    assert hashed(upper="text") == {"hashed", "upper"}
    assert hashed(order_by="id hashed") == set()
    assert hashed(order_by="hashed id", upper="text") == {"upper"}
    assert hashed(check("length(hashed) = 64")) == set()
    assert hashed(check("n > 0"), check("hashed<>id"), upper="text") == {"upper"}
    assert hashed(check("n > 0"), check("n < id and upper = id"), upper="text") == {"hashed"}
    assert hashed(check("hashed_id = unhashed and length(rehashed) > 0")) == {"hashed"}
    assert hashed(check(overall="rows > 0")) == {"hashed"}
