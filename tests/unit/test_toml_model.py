"""All mistakes of a file are reported together, each with key, line and remedy."""

from __future__ import annotations

from datetime import date
from typing import Literal

import attrs
import pytest

from config.toml_model import BadFile, Form, Problem, find_wrong_values, join_path, read, read_text, setting


@attrs.frozen
class Wheel:
    size: int = setting("Inches.", minimum=10, maximum=30)
    spokes: int | None = setting("How many.", default=None, minimum=0)


@attrs.frozen
class Bike:
    name: str = setting("What it is called.", form=Form("[a-z]+", "lower-case letters"))
    kind: Literal["city", "race"] = setting("What it is for.", default="city")
    bought: date = setting("The day.", name="from")
    insured: bool = setting("Whether.", default=False)
    tags: list[str] = setting("Words.", default=list, form=Form("[a-z]{1,5}", "at most five letters"))
    sold: date | None = setting(
        "The day.", default=None, check=lambda day: "too early" if day.year < 2000 else None
    )
    frame: Wheel | None = setting("One wheel.", default=None)
    wheel: list[Wheel] = setting("All wheels.", default=list)
    origin: str = attrs.field(default="here", kw_only=True)


WHOLE = """
name = "blitz"
kind = "race"
from = 2026-01-05
insured = true
tags = ["red", "fast"]
sold = 2026-02-01
frame = { size = 20, spokes = 3 }
[[wheel]]
size = 26
[[wheel]]
size = 28
spokes = 0
"""


def problems(text: str, *rules) -> list[tuple[int, str, str]]:
    """Return (line, key, message) of all problems in `text`."""
    with pytest.raises(BadFile) as bad:
        read(Bike, text, rules, name="bike.toml")
    return [(problem.line, problem.key, problem.message) for problem in bad.value.problems]


def test_a_complete_file_is_read():
    bike = read(Bike, WHOLE, name="bike.toml")
    assert bike == Bike(
        name="blitz",
        kind="race",
        bought=date(2026, 1, 5),
        insured=True,
        tags=["red", "fast"],
        sold=date(2026, 2, 1),
        frame=Wheel(size=20, spokes=3),
        wheel=[Wheel(size=26, spokes=None), Wheel(size=28, spokes=0)],
    )


def test_missing_keys_have_defaults_that_files_do_not_share():
    first, second = (read(Bike, 'name = "a"\nfrom = 2026-01-05\n', name="bike.toml") for _ in range(2))
    assert (first.kind, first.insured, first.tags, first.sold, first.origin) == (
        "city",
        False,
        [],
        None,
        "here",
    )
    first.tags.append("x")
    assert second.tags == []


def test_all_mistakes_are_reported_at_once_by_key_and_line():
    text = """# a bike
name = "BLITZ"
kind = "raze"
insured = "yes"
tags = [
  "red",
  "far too long",
]
colour = "red"
[[wheel]]
size = 8
[[wheel]]
spokes = "many"
"""
    assert problems(text) == [
        (0, "from", "missing. The day."),
        (2, "name", "'BLITZ' must be lower-case letters. What it is called."),
        (3, "kind", "'raze' is none of: city, race. Did you mean race?"),
        (4, "insured", "must be true or false, not 'yes'"),
        (5, "tags", "'far too long' must be at most five letters. Words."),
        (9, "colour", "unknown key"),
        (11, "wheel[0].size", "8 is too small: at least 10"),
        (12, "wheel[1].size", "missing. Inches."),
        (13, "wheel[1].spokes", "must be a whole number, not 'many'"),
    ]


@pytest.mark.parametrize(
    ("line", "key", "message"),
    [
        ("name = 5", "name", "must be text in quotes, not 5"),
        ("name = ['a']", "name", "must be text in quotes, not a list"),
        ("name = { a = 1 }", "name", "must be text in quotes, not a table"),
        ("insured = 1", "insured", "must be true or false, not 1"),
        ("frame = { size = true }", "frame.size", "must be a whole number, not true"),
        ("frame = { size = 20.0 }", "frame.size", "must be a whole number, not 20.0"),
        ("frame = { size = 31 }", "frame.size", "31 is too large: at most 30"),
        ("frame = { size = 20, spokes = -1 }", "frame.spokes", "-1 is too small: at least 0"),
        ("frame = 20", "frame", "must be a table, not 20"),
        ("wheel = 20", "wheel", "must be a list, not 20"),
        ("wheel = [20]", "wheel[0]", "must be a table, not 20"),
        ("tags = 'red'", "tags", "must be a list, not 'red'"),
        ("tags = ['red', 5]", "tags[1]", "must be text in quotes, not 5"),
        ("from = '2026-01-05'", "from", "must be a date like 2026-01-05 without quotes, not '2026-01-05'"),
        (
            "from = 2026-01-05T10:00:00",
            "from",
            "must be a date like 2026-01-05 without quotes, not 2026-01-05T10:00:00",
        ),
        ("sold = 1999-12-31", "sold", "too early"),
        ("kind = 5", "kind", "5 is none of: city, race"),
        ("kind = 'boat'", "kind", "'boat' is none of: city, race"),
        ("kind = ['city']", "kind", "a list is none of: city, race"),
        ("insurd = true", "insurd", "unknown key. Did you mean insured?"),
        ("fname = 'a'", "fname", "unknown key. Did you mean name?"),
        ("bought = 2026-01-05", "bought", "unknown key"),
        ("origin = 'there'", "origin", "unknown key"),
        ("frame = { size = 20, spoke = 2 }", "frame.spoke", "unknown key. Did you mean spokes?"),
    ],
)
def test_each_rule_names_its_key(line, key, message):
    first_word = line.partition(" ")[0]
    defaults = {"name": 'name = "a"', "from": "from = 2026-01-05"}
    text = "\n".join([line, *(default for name, default in defaults.items() if name != first_word)])
    (problem,) = problems(text)
    assert problem[:2] == (1, key)
    assert problem[2].startswith(message)


def test_a_choice_that_is_no_word_is_quoted_as_toml_wants_it():
    @attrs.frozen
    class Row:
        separator: Literal[",", "\t", "blank"] = setting("Between cells.")

    with pytest.raises(BadFile) as bad:
        read(Row, "separator = '|'", name="row.toml")
    assert [problem.message for problem in bad.value.problems] == ['\'|\' is none of: ",", "\\t", blank']


def test_a_byte_order_mark_is_named():
    assert problems("\ufeff" + WHOLE) == [
        (1, "", "begins with a byte order mark, which TOML doesn't know. Save the file as UTF-8 without it")
    ]


def test_a_long_value_is_truncated_in_the_message():
    (found,) = problems(f'name = "a"\nfrom = "{"x" * 500}"\n')
    assert len(found[2]) < 130


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = "a\nfrom = 1', 1),
        ("name = 'a'\nname = 'b'", 2),
        ("x = [1,\n2", 2),
        ("= 5", 1),
        ("[a]\n[a]", 2),
    ],
)
def test_a_syntax_error_has_its_line(text, line):
    (found,) = problems(text)
    assert found[:2] == (line, "")
    assert found[2].startswith("not TOML: ")
    assert "at line" not in found[2]
    assert ("given twice" in found[2]) == ("name = 'b'" in text or "[a]\n[a]" in text)


def test_rules_are_reported_with_other_mistakes():
    def no_cheap_names(bike: Bike):
        yield "name", f"{bike.name} is taken"
        yield "wheel[1].size", "wheels differ"

    text = WHOLE.replace("insured = true", "insured = 1")
    assert problems(text, no_cheap_names) == [
        (2, "name", "blitz is taken"),
        (5, "insured", "must be true or false, not 1"),
        (12, "wheel[1].size", "wheels differ"),
    ]


def test_a_rule_is_skipped_if_its_values_could_not_be_read():
    def wants_the_name(bike: Bike):
        yield "name", bike.name.upper()

    def repeats_the_kind(bike: Bike):
        yield "kind", f"{bike.kind} is taken"

    assert problems("from = 2026-01-05", wants_the_name) == [(0, "name", "missing. What it is called.")]
    (found,) = problems(WHOLE.replace('"race"', '"raze"'), repeats_the_kind)
    assert found[2].startswith("'raze' is none of")


def test_an_exception_in_a_rule_is_raised():
    def broken(bike: Bike):
        yield "name", bike.nickname

    with pytest.raises(AttributeError):
        read(Bike, WHOLE, [broken], name="bike.toml")


def test_a_finding_without_a_line_of_its_own_is_reported_at_the_table_around_it():
    def about_what_is_not_there(bike: Bike):
        yield "wheel[1].rim.colour", "none"
        yield "frame.bell", "none"
        yield "nothing", "none"

    found = problems(WHOLE, about_what_is_not_there)
    assert [(line, key) for line, key, _ in found] == [
        (0, "nothing"),
        (8, "frame.bell"),
        (11, "wheel[1].rim.colour"),
    ]


def test_the_message_is_for_people():
    bad = BadFile("bike.toml", [Problem(3, "kind", "no"), Problem(0, "", "cannot be read")])
    assert str(bad) == "bike.toml: 2 mistakes\n  line 3, kind: no\n  file: cannot be read"
    assert str(BadFile("a.toml", [Problem(3, "kind", "no")])).startswith("a.toml: 1 mistake\n")


def test_paths_are_written_as_in_toml_with_indexes():
    assert join_path(["column", "[2]", "personal", "kind"]) == "column[2].personal.kind"


def test_values_that_code_gives_have_the_limits_of_the_file():
    @attrs.frozen
    class Given:
        name: str = setting("A name.", form=Form("[a-z]+", "lower case"))
        secret: str | None = setting(
            "A secret's name.", default=None, form=Form("[a-z]+", "a name", quoted=False)
        )
        days: list[int] = setting("Days.", default=list, minimum=1)
        mode: Literal["ON", "OFF"] = setting("A mode.", default="ON")

    def find(**values):
        return dict(find_wrong_values(Given, values))

    assert find(name="a", secret=None, days=[1], mode="OFF", unknown=1) == {}
    assert find() == {}
    assert find(name="A", days=[0], mode="ONN") == {
        "name": "'A' must be lower case. A name.",
        "days": "0 is too small: at least 1",
        "mode": "'ONN' is none of: ON, OFF. Did you mean ON?",
    }
    assert find(secret="S3cret!") == {
        "secret": "the value, which is not shown here, must be a name. A secret's name."
    }
    assert find(days="1")["days"].startswith("must be a list")


def test_a_file_that_cannot_be_read_has_one_mistake(tmp_path):
    file = tmp_path / "bike.toml"
    with pytest.raises(BadFile) as bad:
        read_text(file, "the bike")
    assert (bad.value.name, bad.value.problems) == (
        "the bike",
        [Problem(0, "", "cannot be read: No such file or directory")],
    )
    file.write_bytes(b"\xff")
    with pytest.raises(BadFile) as bad:
        read_text(file, "the bike")
    assert bad.value.problems == [Problem(0, "", "cannot be read: it is not UTF-8")]
    file.write_bytes("name = 'Müller'".encode())
    assert read_text(file, "the bike") == "name = 'Müller'"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = 1\n[b]\n[b]", 3, "not TOML: a key or table is given twice (Cannot declare ('b',) twice)"),
        ("a = 1\na = 2", 2, "not TOML: a key or table is given twice (Cannot overwrite a value)"),
        ("a = {b = 1, b = 2}", 1, "not TOML: a key or table is given twice (Duplicate inline table key 'b')"),
        ("a = 1\nb = [", 2, "not TOML: Invalid value"),
        ("a = 1\nb c", 2, "not TOML: Expected '=' after a key in a key/value pair"),
    ],
)
def test_what_is_no_toml_is_explained(text, line, message):
    assert problems(text) == [(line, "", message)]
