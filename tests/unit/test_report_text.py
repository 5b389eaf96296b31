"""The report's templates print any text as visible text that can be encoded as UTF-8."""

from __future__ import annotations

import html
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.delivery.report import environment
from glue_jobs.delivery.report.wording import named, prose
from tests.support import page_reader

TEXTS = st.text(st.characters(), max_size=60)
TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def rendered(value: object, template: str = "{{ value|cut(500) }}") -> str:
    return environment().from_string(template).render(value=value)


@given(TEXTS)
def test_any_text_stays_text(text):
    written = rendered(text, "<p>{{ value }}</p>")
    found = page_reader.read(written.encode().decode()).one("p")
    assert all(isinstance(child, str) for child in found.children)
    shown = "".join(found.children)
    assert not [
        sign
        for sign in shown
        if unicodedata.category(sign) in ("Cc", "Cs") or unicodedata.bidirectional(sign) in TURNS
    ]


@given(TEXTS)
def test_a_text_that_went_through_a_macro_is_escaped_once(text):
    template = (
        "{% macro twice(one) %}{{ one }}{{ caller(one) }}{% endmacro %}<p>{% call(x) twice(value) %}{{ x "
        "}}{% endcall %}</p>"
    )
    assert rendered(text, template) == "<p>" + 2 * rendered(text, "{{ value }}") + "</p>"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Cf", "Zl", "Zp"]), max_size=60))
def test_a_visible_text_is_not_changed(text):
    assert html.unescape(rendered(text)) == text


def test_invisible_characters_are_named():
    assert rendered("a\r\nb\nc") == "a↵b↵c"
    assert rendered("\x00\u202e\ufeff\ud800") == "‹U+0000›‹U+202E›‹U+FEFF›‹U+D800›"


def test_joiners_that_scripts_and_emoji_need_stay():
    assert rendered("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"


def test_a_long_text_is_truncated_visibly():
    assert rendered("x" * 500, "{{ value|cut(10) }}") == "xxxxxxxxx…"
    assert rendered("x" * 10, "{{ value|cut(10) }}") == "xxxxxxxxxx"


def test_prose_has_no_line_breaks():
    assert prose(" two\n  lines\t") == "two lines"


def test_attributes_are_escaped():
    found = page_reader.read(rendered("\"><script>'", '<p title="{{ value }}"></p>')).one("p")
    assert found.attributes == {"title": "\"><script>'"}


def test_values_are_not_templates():
    assert rendered("{{ 7 * 7 }} {% raw %} <b>") == "{{ 7 * 7 }} {% raw %} &lt;b&gt;"


def test_a_unit_is_named_once():
    assert named("Shares", "shares") == "Shares"
    assert named("Order lines", "lines") == "Order lines"
    assert named("Amount", "m") == "Amount (m)"
    assert named("Sales", None) == "Sales"
