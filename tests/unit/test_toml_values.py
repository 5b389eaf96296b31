"""Maps, numbers, lists and choices of a TOML file: what is read, and all that is wrong with them."""

from __future__ import annotations

from typing import Literal

import attrs
import pytest

from config.toml_model import BadFile, Form, find_wrong_values, read, setting


@attrs.frozen
class Wheel:
    size: int = setting("Inches.", minimum=10, maximum=30)


@attrs.frozen
class Shop:
    name: str = setting("A name.", check=lambda name: f"{name} is closed" if name == "old" else None)
    share: float = setting("A share.", default=0.5, minimum=0, maximum=1)
    colours: dict[str, str] = setting("Colours.", default=dict, form=Form("[a-z]+", "lower case"))
    stock: dict[str, int] = setting("Numbers.", default=dict, minimum=1)
    wheels: dict[str, Wheel] = setting("By place.", default=dict)
    hours: list[int] | None = setting("Hours.", default=None, minimum=8, maximum=20)
    level: Literal[1, 2] | None = setting("A level.", default=None)


def read_shop(*lines):
    """Return the shop, or what is wrong with it by key."""
    try:
        return read(Shop, "\n".join(['name = "a"', *lines]), name="shop.toml")
    except BadFile as bad:
        return {problem.key: problem.message for problem in bad.problems}


def test_maps_numbers_and_lists_that_may_be_left_out_are_read():
    shop = read_shop(
        "share = 1",
        "colours = { sky = 'blue' }",
        "stock = { left = 1 }",
        "hours = [8, 20]",
        "level = 2",
        "[wheels.front]",
        "size = 10",
    )
    assert shop == Shop(
        name="a",
        share=1.0,
        colours={"sky": "blue"},
        stock={"left": 1},
        wheels={"front": Wheel(size=10)},
        hours=[8, 20],
        level=2,
    )
    assert type(shop.share) is float
    assert read_shop() == Shop(name="a", share=0.5, colours={}, stock={}, wheels={}, hours=None, level=None)
    assert read_shop().colours is not read_shop().colours


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("share = true", "share", "must be a number like 0.5, not true"),
        ("share = nan", "share", "must be a number like 0.5, not nan"),
        ("share = '1'", "share", "must be a number like 0.5, not '1'"),
        ("share = 1.5", "share", "1.5 is too large: at most 1"),
        ("share = -0.5", "share", "-0.5 is too small: at least 0"),
        ("colours = 'blue'", "colours", "must be a table, not 'blue'"),
        ("colours = { sky = 1 }", "colours.sky", "must be text in quotes, not 1"),
        ("colours = { sky = 'BLUE' }", "colours", "'BLUE' must be lower case. Colours."),
        ("stock = { left = 0 }", "stock", "0 is too small: at least 1"),
        ("wheels = { front = 1 }", "wheels.front", "must be a table, not 1"),
        ("wheels = { front = { size = 31 } }", "wheels.front.size", "31 is too large: at most 30"),
        ("hours = 8", "hours", "must be a list, not 8"),
        ("hours = [8, 7]", "hours", "7 is too small: at least 8"),
        ("hours = [20, 21]", "hours", "21 is too large: at most 20"),
        ("hours = [8, '9', 10]", "hours[1]", "must be a whole number, not '9'"),
        ("level = 3", "level", "3 is none of: 1, 2"),
        ("level = 0", "level", "0 is none of: 1, 2"),
        ("level = true", "level", "true is none of: 1, 2"),
        ("level = 10:30:00", "level", "10:30:00 is none of: 1, 2"),
    ],
)
def test_what_is_wrong_with_a_map_a_number_or_a_list_is_named(line, key, message):
    assert read_shop(line) == {key: message}


def test_every_item_that_is_wrong_is_reported():
    assert read_shop("stock = { a = 'x', b = 1, c = 'y' }", "hours = ['x', 9, 'y']") == {
        "stock.a": "must be a whole number, not 'x'",
        "stock.c": "must be a whole number, not 'y'",
        "hours[0]": "must be a whole number, not 'x'",
        "hours[2]": "must be a whole number, not 'y'",
    }


@pytest.mark.parametrize(("length", "shown"), [(58, "'" + "x" * 58 + "'"), (59, "'" + "x" * 56 + "…")])
def test_values_of_more_than_60_characters_are_shortened(length, shown):
    assert read_shop(f"share = '{'x' * length}'") == {"share": f"must be a number like 0.5, not {shown}"}


def test_mistakes_of_a_file_are_those_of_its_name_and_in_order():
    with pytest.raises(BadFile) as bad:
        read(
            Shop, "share = 2\nlevel = 3", [lambda shop: [("share", "no"), ("share", "no")]], name="shop.toml"
        )
    assert bad.value.name == "shop.toml"
    assert [str(problem) for problem in bad.value.problems] == [
        "file, name: missing. A name.",
        "line 1, share: 2.0 is too large: at most 1",
        "line 1, share: no",
        "line 2, level: 3 is none of: 1, 2",
    ]


def test_values_that_code_gives_are_all_looked_at():
    assert find_wrong_values(Shop, {"name": "old", "share": 2, "stock": {"a": 0}, "hours": [7]}) == [
        ("name", "old is closed"),
        ("share", "2.0 is too large: at most 1"),
        ("stock", "0 is too small: at least 1"),
        ("hours", "7 is too small: at least 8"),
    ]
