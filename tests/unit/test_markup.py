"""Whatever a text holds, it stays text, can be seen, and can be written as UTF-8."""

from __future__ import annotations

import html
import unicodedata

import page_reader
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.delivery.report.markup import Html, named, prose, said, table, tag, verbatim

TEXTS = st.text(st.characters(), max_size=60)


@given(TEXTS)
def test_any_text_stays_text(text):
    written = tag("p", verbatim(text, 500))
    found = page_reader.read(written.encode().decode()).one("p")
    assert all(isinstance(child, str) for child in found.children)
    shown = "".join(found.children)
    assert not [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cs") or unicodedata.bidirectional(sign) in _TURNS]


_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Cf", "Zl", "Zp"]), max_size=60))
def test_a_text_that_can_be_seen_is_shown_as_it_is(text):
    assert html.unescape(verbatim(text, 500)) == text


def test_signs_that_hide_are_named():
    assert verbatim("a\r\nb\nc", 50) == "a↵b↵c"
    assert verbatim("\x00\u202e\ufeff\ud800", 50) == "‹U+0000›‹U+202E›‹U+FEFF›‹U+D800›"


def test_joiners_that_scripts_and_emoji_need_stay():
    assert verbatim("می‌خواهم 👩‍🚀", 50) == "می‌خواهم 👩‍🚀"


def test_a_long_text_is_cut_where_one_sees_it():
    assert verbatim("x" * 500, 10) == "xxxxxxxxx…"
    assert verbatim("x" * 10, 10) == "xxxxxxxxxx"


def test_prose_has_no_line_breaks():
    assert prose(" two\n  lines\t") == "two lines"


def test_attributes_are_escaped():
    found = page_reader.read(tag("p", title="\"><script>'")).one("p")
    assert found.attributes == {"title": "\"><script>'"}


def test_values_of_a_sentence_are_not_templates():
    assert said("<{what}>", what=prose("{0} {what} <b>")) == "&lt;{0} {what} &lt;b&gt;&gt;"


def test_a_unit_is_told_once():
    assert named("Shares", "shares") == "Shares"
    assert named("Order lines", "lines") == "Order lines"
    assert named("Amount", "m") == "Amount (m)"
    assert named("Sales", None) == "Sales"


def test_a_table_says_what_its_cells_belong_to():
    found = page_reader.read(table("t", prose("All"), ["Name", "Count"], [[prose("a"), Html("1")]], numeric={1}))
    region, cell = found.one("div"), found.one("td")
    assert found.one("caption").attributes["id"] == region.attributes["aria-labelledby"]
    assert [head.attributes["scope"] for head in found.all("th")] == ["col", "col", "row"]
    assert cell.attributes == {"class": "n"}
