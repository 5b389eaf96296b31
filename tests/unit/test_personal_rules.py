"""Rules about personal data in a contract: what each treatment needs and leaves, and all that is reported."""

from __future__ import annotations

import pytest

from config.exports.personal_rules import KEYS_OF_TREATMENTS, SCANNED
from tests.support.rule_kit import find_in_contract as find

COUNT = ("n", "integer", 'measure = "count(*)"')
PERSONS = '[aggregate]\nperson_id = "person"\n'
NO_PERSONS = '[aggregate]\nno_persons_because = "Things."\n'
GENERALISED = 'personal = {{ treatment = "generalise", to = "{}"{} }}'
KEPT = 'personal = { treatment = "keep", reason = "Ours." }'
ID = ("id", "text")

#: All keys of `personal` that only some treatments have.
KEYS = {"kind": '"id"', "visible": "4", "to": '"prefix"', "size": "3", "reason": '"Ours."'}


@pytest.mark.parametrize("treatment", KEYS_OF_TREATMENTS)
def test_each_treatment_has_its_own_keys_and_needs_them(treatment):
    own = {
        "keep": ["reason"],
        "drop": [],
        "mask": ["visible"],
        "hash": ["kind"],
        "generalise": ["to", "size"],
    }[treatment]

    def look(keys):
        given = "".join(f", {name} = {KEYS[name]}" for name in keys)
        return find(ID, ("c", "text", f'personal = {{ treatment = "{treatment}"{given} }}'))

    assert look(own) == {}
    assert look(KEYS) == {
        f"column[1].personal.{name}": [f"{treatment} does not use {name}. Remove it"]
        for name in KEYS
        if name not in own
    }
    missing = {"column[1].personal": [f"{treatment} needs {name}" for name in own[:1]]}
    assert look([]) == (missing if own else {})


@pytest.mark.parametrize(
    "keys", ['"keep", reason = "Ours."', '"drop"', '"mask", visible = 2', '"hash", kind = "id"']
)
@pytest.mark.parametrize("to", ["year", "prefix"])
def test_what_values_are_generalised_to_matters_only_if_they_are_generalised(keys, to):
    treatment = keys.split('"')[1]
    found = find(ID, ("c", "text", f'personal = {{ treatment = {keys}, to = "{to}" }}'))
    assert found == {"column[1].personal.to": [f"{treatment} does not use to. Remove it"]}


@pytest.mark.parametrize(
    "keys", ['"drop"', '"mask", visible = 2', '"hash", kind = "id"', '"generalise", to = "month"']
)
def test_only_what_is_kept_may_contain_something(keys):
    treatment = keys.split('"')[1]
    found = find(ID, ("c", "text", f'personal = {{ treatment = {keys}, may_contain = ["email"] }}'))
    assert found == {"column[1].personal.may_contain": [f"{treatment} does not use may_contain. Remove it"]}


@pytest.mark.parametrize(
    ("keys", "type_"),
    [
        ('"mask", visible = 2', "text"),
        ('"hash", kind = "id"', "text"),
        ('"generalise", to = "year"', "integer"),
        ('"generalise", to = "month"', "text"),
        ('"generalise", to = "prefix", size = 1', "text"),
        ('"generalise", to = "bucket", size = 1', "integer"),
        ('"keep", reason = "Ours."', None),
        ('"drop"', None),
    ],
)
def test_each_treatment_leaves_a_type(keys, type_):
    treatment = keys.split('"')[1]
    for written in ("text", "integer", "date"):
        found = find(ID, ("c", written, f"personal = {{ treatment = {keys} }}"))
        message = f'{treatment} leaves {type_}, but the column\'s type is {written}. Write type = "{type_}"'
        assert found == ({} if type_ in (None, written) else {"column[1].personal": [message]})


def test_a_size_is_needed_by_prefixes_and_buckets_only():
    for to, type_ in (("prefix", "text"), ("bucket", "integer")):
        assert find(ID, ("c", type_, GENERALISED.format(to, ""))) == {
            "column[1].personal": ["generalise needs size"]
        }
    for to, type_ in (("year", "integer"), ("month", "text")):
        assert find(ID, ("c", type_, GENERALISED.format(to, ""))) == {}
        assert find(ID, ("c", type_, GENERALISED.format(to, ", size = 2"))) == {
            "column[1].personal.size": ["generalise does not use size. Remove it"]
        }


def test_a_measure_is_kept_or_has_no_treatment():
    measure = ("n", "integer", 'measure = "count(*)"')
    assert find(ID, (*measure, KEPT), more=PERSONS) == {}
    masked = 'personal = { treatment = "mask", visible = 2 }'
    for column in ((*measure, GENERALISED.format("year", "")), ("c", "text", 'measure = "max(x)"', masked)):
        assert find(ID, column, more=PERSONS) == {
            "column[1].personal": [
                "a measure is computed from many rows, and keep is its only treatment. Keep it with a "
                "reason, or remove personal"
            ]
        }


def test_a_column_may_contain_what_the_scan_knows():
    own = "[[personal_pattern]]\nname = 'staff'\npattern = 'P[0-9]{8}'\n"
    may_contain = 'personal = {{ treatment = "keep", reason = "Ours.", may_contain = {} }}'
    assert find(ID, ("c", "text", may_contain.format([*SCANNED, "staff"])), more=own) == {}
    known = "Known are: email, phone, iban, card, staff"
    assert find(ID, ("c", "text", may_contain.format(["staff", "mail", "post"])), more=own) == {
        f"column[1].personal.may_contain[{number}]": [f"{name} is not a kind that the scan knows. {known}"]
        for number, name in ((1, "mail"), (2, "post"))
    }
    for name in ("email", "phone", "iban", "card"):
        assert find(ID, more=own.replace("staff", name)) == {
            "personal_pattern[0].name": [
                f"{name} is a kind of the scan itself. Give the pattern another name"
            ]
        }
    twice = ["staff appears 2 times. Give each its own name"]
    assert find(ID, more=own + own) == {"personal_pattern[0].name": twice, "personal_pattern[1].name": twice}


def test_only_a_measure_among_persons_may_need_a_reason():
    because = 'shows_one_person_because = "R."'
    wrong = ["only a measure in an aggregate with person_id needs this reason. Remove it"]
    assert find(ID, (*COUNT, because), more=PERSONS) == {}
    assert find(ID, (*COUNT, because), more=NO_PERSONS) == {"column[1].shows_one_person_because": wrong}
    assert find((*ID, because), COUNT, more=PERSONS) == {"column[0].shows_one_person_because": wrong}
    assert find((*ID, because)) == {"column[0].shows_one_person_because": wrong}
