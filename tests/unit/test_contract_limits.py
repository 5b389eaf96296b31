"""Rules of contracts at their limits: what is still valid, what is not, and everything that is reported."""

from __future__ import annotations

import inspect

import pytest

from config.exports import check_rules, contract_rules, personal_rules
from config.exports.contracts import parse
from tests.support import samples
from tests.support.rule_kit import find_in_contract as find

ID = ("id", "text")
COUNT = ("n", "integer", 'measure = "count(*)"')
PERSONS = '[aggregate]\nperson_id = "person"\n'
NO_PERSONS = '[aggregate]\nno_persons_because = "Things."\n'
GENERALISED = 'personal = {{ treatment = "generalise", to = "{}"{} }}'
KEPT = 'personal = { treatment = "keep", reason = "Ours." }'
DROPPED = 'personal = { treatment = "drop" }'


def chart(y, more=""):
    return f'[[report.chart]]\ntitle = "T"\nx = "id"\ny = "{y}"\n{more}\n'


def headline(*names):
    return f"[report]\nheadline = {list(names)}\n"


def test_names_and_origins_of_columns_are_all_reported():
    found = find(
        ("id", "text"),
        ("twice", "text"),
        ("twice", "integer"),
        ("twice", "text", DROPPED),
        ("all", "text", 'from = "a"', 'expression = "b"', 'measure = "max(c)"'),
        ("two", "text", 'expression = "b"', 'measure = "max(c)"'),
        more=NO_PERSONS,
    )
    twice = ["twice appears 3 times. Give each column its own name"]
    assert found == {
        "column[1].name": twice,
        "column[2].name": twice,
        "column[3].name": twice,
        "column[4].expression": ["from and expression and measure exclude one another. Keep one"],
        "column[5].measure": ["expression and measure exclude one another. Keep one"],
    }


def test_a_column_is_delivered_and_none_is_called_rows():
    reserved = ["charts and checks use this name for the number of rows. Give the column another one"]
    assert find(ID, ("gone", "text", DROPPED)) == {}
    assert find(ID, ("rows", "integer"), ("rows_of_it", "integer")) == {"column[1].name": reserved}
    assert find((*ID, DROPPED), ("rows", "text", DROPPED)) == {
        "column": ["no column is delivered. Name at least one that is not dropped"],
        "column[1].name": reserved,
        "delivery.order_by[0]": ["id is not a delivered column"],
    }


@pytest.mark.parametrize(
    ("size", "is_valid"),
    [
        ("1,0", True),
        ("1,1", True),
        ("38,0", True),
        ("38,38", True),
        ("0,0", False),
        ("1,2", False),
        ("39,0", False),
        ("38,39", False),
    ],
)
def test_decimals_have_one_to_38_digits(size, is_valid):
    message = f"decimal({size}): the precision is 1 to 38, the scale at most the precision"
    found = find(ID, ("c", f"decimal({size})"))
    assert found == ({} if is_valid else {"column[1].type": [message]})


def test_a_long_value_that_is_not_allowed_is_shortened():
    found = find(ID, ("c", "integer", f'allowed = ["1", "{"x" * 41}", "1.5"]'))
    ends = "is not how integer values are written in the file. Correct it"
    assert found == {
        "column[1].allowed[1]": [f"'{'x' * 40}' {ends}"],
        "column[1].allowed[2]": [f"'1.5' {ends}"],
    }


def test_a_text_for_missing_values_is_no_value_of_any_other_type():
    columns = (ID, ("n", "integer"), ("day", "date"), ("done", "boolean"), ("gone", "boolean", DROPPED))
    assert find(*columns, delivery='null_text = "-"') == {}
    assert find(*columns, delivery='null_text = "true"') == {
        "delivery.null_text": ["'true' is also a value of done (boolean). Take another text"]
    }
    empty = {
        "delivery.null_text": [
            "a row without a value would be an empty line, which many readers skip. Give a text"
        ]
    }
    assert find(("n", "integer", "nullable = true")) == empty
    assert find(("n", "integer", "nullable = true"), ("gone", "text", DROPPED)) == empty
    assert find(("n", "integer", "nullable = true"), ID) == {}


@pytest.mark.parametrize("name", ["window", "window_start", "window_end", "run_id"])
def test_a_kept_table_has_columns_of_its_own(name):
    columns = (ID, (name, "integer", 'measure = "count(*)"'))
    assert find(*columns, more=f"{PERSONS}keep_as_table = false\n") == {}
    assert find(*columns, more=f"{PERSONS}keep_as_table = true\n") == {
        "column[1].name": [
            f"the table that is kept has a column {name} of its own. Give this one another name"
        ]
    }
    assert find(ID, COUNT, more=f"{PERSONS}keep_as_table = true\n") == {}


def test_an_aggregate_has_measures_groups_and_an_answer_about_persons():
    answer = "give exactly one of `person_id`, the field that identifies a person, and `no_persons_because`"
    assert find(ID, COUNT, more=PERSONS) == find(ID, COUNT, more=NO_PERSONS) == {}
    assert find(ID, more="[aggregate]\n") == {
        "aggregate": [answer, 'no column is a measure. Add one such as measure = "count(*)"']
    }
    assert find(COUNT, more=f'{PERSONS}no_persons_because = "None."\n') == {
        "aggregate": [
            "every column is a measure, so there is nothing to group by. Add a column to group by",
            answer,
        ]
    }
    assert find(ID, COUNT, ("m", "integer", 'measure = "max(x)"')) == {
        "column[1].measure": ["a measure needs an [aggregate] section"],
        "column[2].measure": ["a measure needs an [aggregate] section"],
    }


def test_what_a_report_names_is_delivered_and_a_number():
    columns = (ID, ("n", "integer"), ("d", "decimal(3,1)"), ("gone", "integer", DROPPED))
    assert find(*columns, more=headline("n", "d") + chart("rows") + chart("n") + chart("d")) == {}
    found = find(
        *columns,
        more=headline("n", "gone", "id", "nothing")
        + chart("gone")
        + chart("total")
        + chart("rows").replace('x = "id"', 'x = "gone"'),
    )
    not_a_number = "{} is not a delivered numeric column"
    assert found == {
        "report.headline[1]": [not_a_number.format("gone")],
        "report.headline[2]": [not_a_number.format("id")],
        "report.headline[3]": [not_a_number.format("nothing")],
        "report.chart[0].y": ["gone is neither rows nor a delivered numeric column"],
        "report.chart[1].y": ["total is neither rows nor a delivered numeric column"],
        "report.chart[2].x": ["gone is not a delivered column"],
    }


MIXED = (
    '{} may add up several currencies. Name the column that holds the currency by per = "…", or give a unit such '
    "as EUR"
)


def test_the_unit_of_a_number_is_in_a_delivered_column_of_text():
    currency = ("currency", "text")
    money = ("sales", "decimal(9,2)", 'per = "currency"')
    only = 'only = "EUR"'
    assert find(ID, currency, money, more=headline("sales") + chart("sales", only)) == {}
    assert find(ID, currency, money, more=chart("rows")) == {}
    assert find(ID, currency, money, more=chart("sales")) == {
        "report.chart[0]": ['the unit of sales varies by currency. Choose one, such as only = "EUR"']
    }
    assert find(ID, currency, money, more=chart("rows", only)) == {
        "report.chart[0].only": ["the unit of rows does not vary. Remove only"]
    }
    assert find(ID, (*currency, DROPPED), money) == {
        "column[2].per": ["currency is not a delivered column of text"]
    }
    for kind in ("integer", "timestamp"):
        assert find(ID, ("currency", kind), money) == {
            "column[2].per": ["currency is not a delivered column of text"]
        }
    assert find(ID, currency, ("note", "text", 'per = "currency"')) == {
        "column[2].per": ["note is not a number, so it has no unit. Remove per"]
    }


@pytest.mark.parametrize(
    ("column", "is_mixed"),
    [
        (("sales", "decimal(9,2)"), True),
        (("sales", "integer"), False),
        (("sales", "decimal(9,2)", 'unit = "EUR"'), False),
        (("sales", "integer", 'unit = "Currency of the order"'), True),
        (("sales", "integer", 'unit = "several currencies"'), True),
        (("sales", "integer", 'unit = "concurrency"'), False),
        (("sales", "decimal(9,2)", 'unit = "order currency"', 'per = "currency_code"'), False),
    ],
)
def test_amounts_that_may_be_in_several_currencies_are_not_added_up(column, is_mixed):
    only = 'only = "EUR"' if "per" in str(column) else ""
    found = find(ID, ("currency_code", "text"), column, more=headline("sales") + chart("sales", only))
    message = [MIXED.format("sales")]
    assert found == ({"report.headline[0]": message, "report.chart[0].y": message} if is_mixed else {})
    if "unit" not in str(column):
        assert find(ID, column, more=headline("sales")) == {}, "no column says that there are currencies"


def test_only_numbers_that_no_row_is_grouped_by_are_said_to_add_up():
    plain = ("n", "integer", "adds_up = true")
    assert find(ID, plain) == {}
    assert find(ID, ("n", "integer", 'measure = "max(x)"', "adds_up = true"), more=PERSONS) == {}
    assert find(ID, ("m", "integer", "adds_up = false"), COUNT, more=PERSONS) == {}
    for adds_up in ("true", "false"):
        assert find(ID, ("c", "text", f"adds_up = {adds_up}")) == {
            "column[1].adds_up": ["c is not a number. Remove adds_up"]
        }
    grouped = "is a column by which rows are grouped"
    assert find(ID, ("m", "integer", "adds_up = true"), COUNT, more=PERSONS + headline("m") + chart("m")) == {
        "column[1].adds_up": [f"m {grouped}, so it does not add up. Remove adds_up"],
        "report.headline[0]": [f"m does not add up: it {grouped}. Name another column, or remove it"],
        "report.chart[0].y": [f"m does not add up: it {grouped}. Name another column, or remove it"],
    }


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (["adds_up = false", 'unit = "%"'], "the contract says so (adds_up = false)"),
        (['unit = "%"', "adds_up = true"], None),
        (['unit = " % "'], "its unit is  % . If its values may be added, write adds_up = true"),
        (['unit = "Percent"'], "its unit is Percent. If its values may be added, write adds_up = true"),
        (
            [f'unit = "{"k" * 40}/h"'],
            f"its unit is {'k' * 40}. If its values may be added, write adds_up = true",
        ),
        (
            ['unit = "%"', GENERALISED.format("bucket", ", size = 5")],
            "its values are generalised. If they may be added, write adds_up = true",
        ),
        ([KEPT], None),
        (['unit = "EUR"'], None),
        ([], None),
    ],
)
def test_why_a_column_does_not_add_up(keys, why):
    ends = ". Name another column, or remove it"
    found = find(ID, ("n", "integer", *keys), more=headline("n") + chart("n"))
    message = [f"n does not add up: {why}{ends}"]
    assert found == ({"report.headline[0]": message, "report.chart[0].y": message} if why else {})


def test_a_measure_adds_up_whatever_its_unit():
    share = ("n", "integer", 'measure = "sum(x)"', 'unit = "%"')
    assert find(ID, share, more=PERSONS + headline("n")) == {}


def test_a_window_may_come_after_a_deduplication_that_exists():
    after = 'filter_stage = "after_deduplication"'
    text = samples.HEAD.format(first="id", delivery="") + samples.COLUMN.format("id", "text", "Id", "")
    later = text.replace("from = 2026-11-01", f"from = 2026-11-01\n{after}")
    assert parse(text + '[deduplicate]\nkey = ["id"]\n', name="x").deduplicate.key == ["id"]
    assert (
        parse(later + '[deduplicate]\nkey = ["id"]\n', name="x").window.filter_stage == "after_deduplication"
    )


def test_a_filter_of_lines_needs_an_array_and_one_of_events_does_not():
    condition = '[[filter]]\nwhere = "true"\nreason = "R."\non = "{}"\n'
    both = condition.format("events") + condition.format("lines")
    assert find(ID, more=both) == {
        "filter[1].on": ["there is no [explode] section, so there are no lines. Use events"]
    }
    assert find(ID, more=f'{both}[explode]\narray = "items"\nas = "item"\n') == {}


def test_attached_files_name_exactly_what_they_keep():
    columns = (ID, ("mail", "text", KEPT), ("phone", "text", KEPT), ("gone", "text", DROPPED))
    all_of_them = 'attach_keeps = ["mail", "phone"]'
    assert find(*columns, delivery=f"attach_up_to_kb = 1\n{all_of_them}") == {}
    assert find(*columns, delivery=all_of_them) == {}
    assert find(*columns, delivery="attach_up_to_kb = 0") == {}
    assert find(ID, delivery="attach_up_to_kb = 1") == {}
    unnamed = (
        "the file keeps personal data in mail, phone, and everybody to whom a mail is forwarded can read it. "
        "If they may, name the columns as attach_keeps. Otherwise leave attach_up_to_kb out, or give the "
        "columns another treatment"
    )
    assert find(*columns, delivery="attach_up_to_kb = 1") == {"delivery.attach_up_to_kb": [unnamed]}
    assert find(*columns, delivery='attach_up_to_kb = 1\nattach_keeps = ["mail", "id", "gone"]') == {
        "delivery.attach_up_to_kb": [unnamed.replace("mail, phone", "phone")],
        "delivery.attach_keeps[1]": ["id is no column that keeps its values. Remove it"],
        "delivery.attach_keeps[2]": ["gone is no column that keeps its values. Remove it"],
    }


def test_each_other_format_is_delivered_once():
    assert find(ID, delivery='also = ["xlsx", "jsonl", "parquet"]') == {}
    assert find(ID, delivery='dialect = "machine"\nalso = ["parquet", "jsonl"]') == {}
    cell = (
        "a cell of a workbook holds 32,767 characters, and all files have the same texts. Set dialect = "
        '"excel"'
    )
    assert find(ID, delivery='dialect = "machine"\nalso = ["jsonl", "xlsx", "jsonl"]') == {
        "delivery.also[1]": [cell],
        "delivery.also[2]": ["jsonl is named twice. Remove one of them"],
    }


def test_every_rule_about_a_contract_is_applied():
    defined = {
        function
        for module in (check_rules, contract_rules, personal_rules)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and list(inspect.signature(function).parameters) == ["contract"]
    }
    assert len(contract_rules.RULES) == len(defined)
    assert set(contract_rules.RULES) == defined
