"""The line of each key in any TOML syntax, tested with generated texts whose lines are known."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.toml_lines import find_key_lines

WAYS = '''# comment with [brackets] and "quotes
title = "x" # = [not] a key

[owner]
"quoted key" = 1
'single' = 2
dotted.key.deep = 3
date = 2026-01-01 10:00:00
text = """
[not_a_table]
no = "key"
\\""" still text"""
raw = \'\'\'
C:\\new # not a comment\'\'\'

[[item]]
name = "a"
tags = [
  "one", # with ] bracket
  # a line of comment
  "two]",
  { deep = [1,
    2] },
]
[item.size]
wide = 1
[[item]]
name = 'b'
inline = { a = 1, b = { c = [ "}" ] }, "d" = "e" }
[[item.part]]
x = 1
[[item.part]]
x = 2
[other.table]
y = inf
'''


def test_every_way_of_writing_a_key():
    assert tomllib.loads(WAYS)
    assert find_key_lines(WAYS) == {
        "title": 2,
        "owner": 4,
        "owner.quoted key": 5,
        "owner.single": 6,
        "owner.dotted.key.deep": 7,
        "owner.date": 8,
        "owner.text": 9,
        "owner.raw": 13,
        "item[0]": 16,
        "item[0].name": 17,
        "item[0].tags": 18,
        "item[0].tags[0]": 19,
        "item[0].tags[1]": 21,
        "item[0].tags[2]": 22,
        "item[0].tags[2].deep": 22,
        "item[0].tags[2].deep[0]": 22,
        "item[0].tags[2].deep[1]": 23,
        "item[0].size": 25,
        "item[0].size.wide": 26,
        "item[1]": 27,
        "item[1].name": 28,
        "item[1].inline": 29,
        "item[1].inline.a": 29,
        "item[1].inline.b": 29,
        "item[1].inline.b.c": 29,
        "item[1].inline.b.c[0]": 29,
        "item[1].inline.d": 29,
        "item[1].part[0]": 30,
        "item[1].part[0].x": 31,
        "item[1].part[1]": 32,
        "item[1].part[1].x": 33,
        "other.table": 34,
        "other.table.y": 35,
    }


@pytest.mark.parametrize("text", ["", "# only a comment", "\n\n", "a = 1"])
def test_short_texts(text):
    assert find_key_lines(text) == ({"a": 1} if "a =" in text else {})


def test_windows_line_ends_count_once():
    assert find_key_lines("a = 1\r\n\r\nb = 'x'\r\n") == {"a": 1, "b": 3}


class Page:
    """Writes TOML, and records the line of each key."""

    def __init__(self, draw) -> None:
        self._draw = draw
        self.text = ""
        self.lines: dict[str, int] = {}

    def note(self, path: str) -> None:
        self.lines[path] = self.text.count("\n") + 1

    def pair(self, path: str, key: str) -> None:
        self.gap()
        self.note(f"{path}.{key}" if path else key)
        self.text += f"{self._draw(st.sampled_from([key, repr(key), chr(34) + key + chr(34)]))} ="
        self.value(f"{path}.{key}" if path else key, 0)
        self.text += self._draw(st.sampled_from(["\n", " # x = [1]\n", "  \n"]))

    def gap(self) -> None:
        self.text += self._draw(st.sampled_from(["", "", "\n", '# [a] "\n', "  "]))

    def value(self, path: str, depth: int) -> None:
        kind = self._draw(st.integers(0, 2 if depth < 3 else 0))
        if kind == 1:
            self.array(path, depth)
        elif kind == 2:
            self.inline(path, depth)
        else:
            self.text += " " + self._draw(st.sampled_from(SCALARS))

    def array(self, path: str, depth: int) -> None:
        self.text += " ["
        for index in range(self._draw(st.integers(0, 3))):
            self.text += self._draw(st.sampled_from(["", "\n", " # ] ' \n ", "\n\n"]))
            self.note(f"{path}[{index}]")
            self.value(f"{path}[{index}]", depth + 1)
            self.text += self._draw(st.sampled_from([",", " ,\n", ", # , ]\n"]))
        self.text += "]"

    def inline(self, path: str, depth: int) -> None:
        self.text += " {"
        for index in range(self._draw(st.integers(0, 3))):
            self.text += ", " if index else " "
            self.note(f"{path}.k{index}")
            self.text += f"k{index} ="
            self.value(f"{path}.k{index}", depth + 1)
        self.text += "}"


SCALARS = [
    "1", "-1.5e3", "true", "2026-01-05", "2026-01-05 10:00:00", "nan", '"a # [b] = {c}"', "'\\'", '"\\""', '""', "''",
    '"""a\n[b]\nc = "1" """', "'''\nx = '1'\n'''", '"""""" ', '"""\\""""""', '""""two quotes """"',
]  # fmt: skip


@given(st.data())
def test_every_key_of_any_text_is_on_the_line_where_it_was_written(data):
    page = Page(data.draw)
    for number in range(data.draw(st.integers(0, 3))):
        page.pair("", f"key{number}")
    counts = {"list": 0, "more": 0}
    for number in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from(["table", "list", "more"]))
        page.gap()
        if name == "table":
            path = f"table{number}"
            page.note(path)
            page.text += f"[ {path} ]\n"
        else:
            path = f"{name}[{counts[name]}]"
            counts[name] += 1
            page.note(path)
            page.text += f"[[{name}]] # [x]\n"
        for index in range(data.draw(st.integers(0, 3))):
            page.pair(path, f"inner-{index}")
    tomllib.loads(page.text)
    assert find_key_lines(page.text) == page.lines
