"""The rules of checks and of the unique key: each finds its mistake, with key and line."""

from __future__ import annotations

import pytest

from config.exports.contracts import parse
from config.toml_model import BadFile
from tests.support import samples

CHECK = '[[check]]\nid = "c"\nseverity = "warn"\nmessage = "M."\n{0}\n'
HEADLINE = '[report]\nheadline = ["n"]\n'


def problems(text):
    with pytest.raises(BadFile) as bad:
        parse(text, name="things.toml")
    return [(problem.key, problem.message) for problem in bad.value.problems]


def things(more="", first=""):
    columns = [
        samples.COLUMN.format(name, kind, name, "") for name, kind in (("id", "text"), ("n", "integer"))
    ]
    head = samples.HEAD.format(first="id", delivery="")
    return head.replace("[source]", f"{first}\n[source]") + "".join(columns) + more


VALID = [
    'each_row = "n > 0"\nat_most_percent = 0.5',
    'each_row = "n > 0"\nat_most_percent = 1',
    'compare = "rows"\nat_most_percent = 50',
    'compare = "n"\nat_most_percent = 250.5\nwith_windows = 8\naverage = "mean"',
]


@pytest.mark.parametrize("check", VALID)
def test_these_are_checks(check):
    assert parse(things(CHECK.format(check) + HEADLINE), name="things.toml").check[0].at_most_percent


WRONG = [
    ('each_row = "n > 0"\ncompare = "rows"\nat_most_percent = 1', "check[0]", "needs exactly one of"),
    ("at_most_percent = 1", "check[0]", "needs exactly one of each_row, overall and compare"),
    ('compare = "rows"', "check[0].at_most_percent", "missing"),
    (
        'compare = "id"\nat_most_percent = 1',
        "check[0].compare",
        "neither rows nor a column of report.headline",
    ),
    ('each_row = "n > 0"\nwith_windows = 2', "check[0].with_windows", "only a check with compare has it"),
    ('overall = "rows > 0"\naverage = "mean"', "check[0].average", "only a check with compare has it"),
    ('overall = "rows > 0"\nat_most_percent = 1', "check[0].at_most_percent", "about the whole file"),
    ('each_row = "n > 0"\nat_most_percent = 101', "check[0].at_most_percent", "not more than 100 percent"),
    ('each_row = "n > 0"\nat_most_percent = -1', "check[0].at_most_percent", "too small"),
    ('each_row = "n > 0"\nat_most_percent = nan', "check[0].at_most_percent", "must be a number like 0.5"),
    ('each_row = "n > 0"\nat_most_percent = true', "check[0].at_most_percent", "must be a number like 0.5"),
    ('each_row = "n > 0"\nat_most_percent = "1"', "check[0].at_most_percent", "must be a number like 0.5"),
    ('compare = "rows"\nat_most_percent = 1\nwith_windows = 0', "check[0].with_windows", "too small"),
]


@pytest.mark.parametrize(("check", "key", "message"), WRONG)
def test_these_are_not(check, key, message):
    found = problems(things(CHECK.format(check) + HEADLINE))
    assert any(at == key and message in text for at, text in found), found


@pytest.mark.parametrize(
    ("unique", "key", "message"),
    [
        ('["id", "m"]', "unique[1]", "m is not a delivered column"),
        ('["id", "id"]', "unique[1]", "id is named twice. Remove one of them"),
    ],
)
def test_a_key_names_delivered_columns_once(unique, key, message):
    assert problems(things(first=f"unique = {unique}")) == [(key, message)]


def test_a_key_is_read():
    assert parse(things(first='unique = ["id", "n"]'), name="things.toml").unique == ["id", "n"]


@pytest.mark.parametrize(
    ("delivery", "key", "message"),
    [
        ('also = ["jsonl", "jsonl"]', "delivery.also[1]", "jsonl is named twice. Remove one of them"),
        (
            'dialect = "machine"\nalso = ["xlsx"]',
            "delivery.also[0]",
            "a cell of a workbook holds 32,767 characters",
        ),
        ('also = ["csv"]', "delivery.also[0]", "'csv' is none of: parquet, jsonl, xlsx"),
    ],
)
def test_formats_that_are_not_possible_are_found(delivery, key, message):
    ((found_key, found),) = problems(things().replace("[[column]]", f"{delivery}\n[[column]]", 1))
    assert (found_key, message in found) == (key, True)


KEPT = 'personal = { treatment = "keep", reason = "r" }\n'


@pytest.mark.parametrize(
    ("delivery", "key", "message"),
    [
        ("attach_up_to_kb = 10", "delivery.attach_up_to_kb", "keeps personal data in n,"),
        ('attach_keeps = ["n", "m"]', "delivery.attach_keeps[1]", "m is no column that keeps its values"),
        ("attach_up_to_kb = 5001", "delivery.attach_up_to_kb", "5000"),
    ],
)
def test_a_file_with_personal_data_is_attached_only_by_name(delivery, key, message):
    text = things().replace("[[column]]", f"{delivery}\n[[column]]", 1)
    kept = text.replace('name = "n"\n', f'name = "n"\n{KEPT}', 1) if "5001" not in delivery else text
    ((found_key, found),) = problems(kept)
    assert (found_key, message in found) == (key, True)


def test_a_file_with_a_column_that_is_named_is_attached():
    delivery = 'attach_up_to_kb = 10\nattach_keeps = ["n"]'
    text = things().replace("[[column]]", f"{delivery}\n[[column]]", 1)
    kept = text.replace('name = "n"\n', f'name = "n"\n{KEPT}', 1)
    assert parse(kept, name="things.toml").delivery.attach_up_to_kb == 10
