"""Properties as CloudFormation sends them: all as text, sometimes from an earlier release, sometimes with
several mistakes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.shared.errors import BadProperties
from lambdas.shared.properties import Properties, parse, prop


@attrs.frozen
class Shelf(Properties):
    name: str = prop("What it is called.")
    boards: int = prop("How many boards.", default=3)
    wooden: bool = prop("Whether it is of wood.", default=False)
    width: int | None = prop("How wide.", default=None)
    wall: str = prop("Where it hangs.", default="north", one_of=("north", "south"))
    books: list[str] = prop("What stands in it.", default=list)
    labels: dict[str, str] = prop("What is written on it.", default=dict)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.boards > 9:
            yield "boards", "are too many"


def test_text_is_converted_to_its_type():
    given = {
        "name": "a",
        "boards": "4",
        "wooden": "true",
        "width": "80",
        "books": ["x"],
        "labels": {"n": "1"},
    }
    assert parse(Shelf, given, strict=True) == Shelf(
        name="a", boards=4, wooden=True, width=80, books=["x"], labels={"n": "1"}
    )


@pytest.mark.parametrize("true", [True, "true", "True", "TRUE"])
def test_a_boolean_in_any_spelling(true):
    assert parse(Shelf, {"name": "a", "wooden": true}, strict=True).wooden is True


def test_numbers_that_are_meant_as_text_stay_text():
    assert parse(Shelf, {"name": 7, "labels": {"a": 1, "b": True}}, strict=True).labels == {
        "a": "1",
        "b": "true",
    }


def test_absent_properties_get_their_own_defaults():
    one = parse(Shelf, {"name": "a"}, strict=True)
    other = parse(Shelf, {"name": "a"}, strict=True)
    assert one == Shelf(name="a")
    assert one.books is not other.books


def test_properties_that_cloudformation_adds_are_accepted():
    given = {"name": "a", "ServiceToken": "arn", "ServiceTimeout": "60", "kind": "shelf"}
    assert parse(Shelf, given, strict=True) == Shelf(name="a")


@pytest.mark.parametrize("given", [["x"], {"x": "y"}, None])
def test_what_is_not_text_is_refused_as_text(given):
    with pytest.raises(BadProperties, match="name: must be text"):
        parse(Shelf, {"name": given}, strict=True)


def test_all_mistakes_are_reported_at_once_by_name():
    given = {
        "boards": "many",
        "wooden": "perhaps",
        "wall": "east",
        "books": "x",
        "labels": [],
        "bords": "1",
        "width": {},
    }
    with pytest.raises(BadProperties) as bad:
        parse(Shelf, given, strict=True)
    assert dict(bad.value.problems) == {
        "boards": "'many' is not a whole number",
        "books": "must be a list",
        "bords": "no such property; did you mean boards?",
        "labels": "must be a map",
        "name": "is missing. What it is called.",
        "wall": "'east' is none of north, south. Where it hangs.",
        "width": "{} is not a whole number",
        "wooden": "'perhaps' is neither true nor false",
    }
    assert "LF-PROPERTIES" in str(bad.value)


def test_mistakes_between_properties_are_reported_too():
    with pytest.raises(BadProperties, match="boards: are too many"):
        parse(Shelf, {"name": "a", "boards": "10"}, strict=True)


def test_lenient_parsing_ignores_properties_of_other_releases():
    assert parse(Shelf, {"name": "a", "colour": "red"}, strict=False) == Shelf(name="a")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([field.name for field in attrs.fields(Shelf)]), VALUES))
def test_nothing_but_bad_properties_is_ever_raised(given):
    with contextlib.suppress(BadProperties):
        assert isinstance(parse(Shelf, given, strict=True), Shelf)
