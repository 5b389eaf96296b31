"""Changes of single values in a TOML text keep comments, order and everything else."""

from __future__ import annotations

import tomllib

import pytest

from lakeferry.init import editing

TEXT = """\
# Of the team.
[aws]
region = "eu-west-1"        # where # it is
zones = [
  "a",                      # the first
  "b",
]
odd = "a # b"

# About topics.
[[topics]]
name = "one"

[topics.tableflow]
days = 7

# Between the two.
[[topics]]
name = "two"
tableflow = { days = 3 }

[alerts]
on = true
"""


@pytest.mark.parametrize(
    ("table", "key", "value", "line"),
    [
        ("aws", "region", "eu-north-1", 'region = "eu-north-1"        # where # it is'),
        ("aws", "odd", 'quote " and \\', 'odd = "quote \\" and \\\\"'),
        ("aws", "zones", ["c", "d"], 'zones = ["c", "d"]'),
        ("aws", "account", "1", 'account = "1"'),
        ("topics[0].tableflow", "days", 9, "days = 9"),
        ("topics[1]", "name", "zwei", 'name = "zwei"'),
        ("alerts", "on", False, "on = false"),
        ("new", "key", "v", 'key = "v"'),
    ],
)
def test_a_value_is_set_and_nothing_else_changes(table, key, value, line):
    after = editing.set_value(TEXT, table, key, value)
    assert line in after.splitlines()
    assert reached(tomllib.loads(after), f"{table}.{key}") == value
    assert without(tomllib.loads(after), table, key) == without(tomllib.loads(TEXT), table, key)
    assert [
        comment
        for comment in ("# Of the team.", "# About topics.", "# Between the two.")
        if comment not in after
    ] == []


def test_a_key_is_removed_with_its_whole_value():
    after = editing.remove_key(TEXT, "aws", "zones")
    assert "first" not in after
    assert tomllib.loads(after)["aws"] == {"region": "eu-west-1", "odd": "a # b"}
    assert editing.remove_key(TEXT, "aws", "nosuch") == TEXT


def test_tables_are_removed_with_subtables_and_comments_between_stay():
    after = editing.remove_tables(TEXT, "topics", [True, True])
    assert tomllib.loads(after).keys() == {"aws", "alerts"}
    assert "# About topics." in after
    assert "# Between the two." in after


@pytest.mark.parametrize(("unwanted", "left"), [([True, False], "two"), ([False, True], "one")])
def test_one_table_of_several_is_removed(unwanted, left):
    after = tomllib.loads(editing.remove_tables(TEXT, "topics", unwanted))
    assert [topic["name"] for topic in after["topics"]] == [left]


def test_tables_with_a_longer_name_stay():
    text = '[[topics]]\nname = "a"\n\n[topics_of_ours]\nx = 1\n'
    assert tomllib.loads(editing.remove_tables(text, "topics", [True])) == {"topics_of_ours": {"x": 1}}


def test_a_table_written_in_one_line_has_no_header():
    assert editing.has_table(TEXT, "topics[0].tableflow")
    assert not editing.has_table(TEXT, "topics[1].tableflow")
    assert not editing.has_table(TEXT, "nosuch")


def reached(data, path):
    for part in path.replace("]", "").replace("[", ".").split("."):
        data = data[int(part)] if part.isdecimal() else data[part]
    return data


def without(data, table, key):
    """Return the data without the key, and without its table if that is empty."""
    target = data
    for part in table.replace("]", "").replace("[", ".").split("."):
        target = target[int(part)] if part.isdecimal() else target.setdefault(part, {})
    target.pop(key, None)
    return {name: value for name, value in data.items() if value != {}}
