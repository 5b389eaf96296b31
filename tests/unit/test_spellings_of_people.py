"""How people are counted whose ids are written in several ways.

Somebody who is counted twice makes a group look larger than it is. It is then shown although it may not be.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.pseudonyms import _find_spellings, spelling_of_person

KINDS = ("email", "phone", "name", "text", "id")
SAME = {
    "phone": ["+49 30 12345", "+49 (30) 123-45", "+49\t30/12345", "+493012345"],
    "email": ["Ada@Example.org", " ada@example.ORG", "ada @example.org"],
    "name": ["Ada King", "ada  king", "ADA\tKING", "adaking"],
    "text": ["No. 7", "no.7"],
    "id": ["A-17", "a-17 ", "a\n-17"],
}
#: The same, with signs beyond ASCII.
ALSO_SAME = {
    "phone": ["+٤٩ ٣٠ ١٢٣٤٥"],
    "email": ["ａｄａ＠ｅｘａｍｐｌｅ．ｏｒｇ", "ada\u200b@example.org"],
    "name": ["Ada\u00a0King", "Ada\u00adKing"],
    "text": ["Ｎｏ．７"],
    "id": ["Ａ-17"],
}


def count(texts: list[str], kind: str) -> list[str | None]:
    return _find_spellings(pa.array(texts, pa.string()), kind).to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_all_spellings_of_a_person_are_one(kind):
    assert len(set(count(SAME[kind], kind))) == 1
    assert len(set(count([*SAME[kind], *ALSO_SAME[kind]], kind))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_counts_the_same_in_every_batch(kind):
    """A batch of texts in ASCII is handled by Arrow, and any other by Python."""
    assert set(count(SAME[kind], kind)) == set(count([*SAME[kind], *ALSO_SAME[kind]], kind))


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.text("aÄZ0+ \t\n@.-\u00a0\u200b\ufb01٤", max_size=8) | st.text(max_size=8), max_size=6))
def test_each_text_of_a_batch_has_its_own_spelling(kind, texts):
    assert count(texts, kind) == [spelling_of_person(text, kind) or None for text in texts]


def test_other_people_stay_others():
    assert len(set(count(["ada", "adb", "ad a b", "7"], "name"))) == 4
    assert len(set(count(["+49 30 1", "49 30 1", "+49 31 0"], "phone"))) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_without_a_visible_sign_is_nobody(kind):
    assert count(["", " \t", "\u200b"], kind) == [None, None, None]


def test_a_number_without_digits_is_nobody():
    assert count(["n/a", "unknown", "\u00e4"], "phone") == [None, None, None]
