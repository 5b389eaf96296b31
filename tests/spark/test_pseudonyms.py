"""Pseudonyms are HMACs of a person's identifier, independent of its spelling."""

from __future__ import annotations

import boto3
import pytest
from lake import KEY, MONDAY, column, contract, topic_of
from oracles import pseudonym

KINDS = ("email", "phone", "name", "text", "id")
PEOPLE = topic_of(("who", ["null", "string"], None))
ASCII = [
    "Ada@Example.ORG",
    " ada@example.org\t",
    "+49 (30) 123-45",
    "Ada  King",
    "ada\nking",
    "A=1",
    "n/a",
    "+",
    "x" * 200,
    "",
    " \t",
    None,
]
FOREIGN = [
    "Zoë",
    "Zoe\u0308",
    "ＡＤＡ＠ｅｘａｍｐｌｅ．ｏｒｇ",
    "Straße",
    "İpek",
    "ﬁ",
    "\u00a0Ada",
    "名前",
    "😀 ada",
    "٤٩ ٣٠ ١٢٣-٤٥",
]


def expected(text, kind, key=KEY):
    """Return the cell that the file must have."""
    return pseudonym(text, kind, key) or ""


def hashed(*kinds):
    return [
        column(f"by_{kind}", **{"from": "who"}, nullable=True, personal={"treatment": "hash", "kind": kind}) for kind in kinds
    ]


@pytest.mark.cluster
@pytest.mark.parametrize("people", [ASCII, [*ASCII, *FOREIGN]], ids=["native", "with Python"])
def test_pseudonyms_are_those_of_hmac(lake, people):
    lake.commit(PEOPLE, *({"id": f"{n:02}", "at": MONDAY, "who": who} for n, who in enumerate(people)))
    run = lake.export(contract(column("id"), *hashed(*KINDS)))
    for kind in KINDS:
        assert run.column(f"by_{kind}") == [expected(who, kind) for who in people], kind
    versions = boto3.client("secretsmanager").describe_secret(SecretId=lake.target.pseudonym_secret)["VersionIdsToStages"]
    assert versions == {run.manifest()["pseudonyms"]["key_version"]: ["AWSCURRENT"]}


def test_the_test_data_has_several_spellings_of_a_person():
    """Otherwise the comparison above would prove nothing."""
    assert expected("Zoë", "name") == expected("Zoe\u0308", "name")
    assert len({expected(text, "email") for text in (ASCII[0], ASCII[1], FOREIGN[2])}) == 1
    assert len({expected("Ada 7", kind) for kind in KINDS}) == len(KINDS)
    assert expected("٤٩ ٣٠ ١٢٣-٤٥", "phone") == expected("49 (30) 123 45", "phone")
    assert expected("n/a", "phone") == expected("unknown", "phone") == ""


@pytest.fixture(scope="module")
def people(lakes):
    lake = lakes()
    lake.commit(PEOPLE, {"id": "a", "at": MONDAY, "who": "ada"})
    return lake


def test_whoever_knows_all_names_but_not_the_key_finds_nobody(people):
    """With the key, the same search finds everybody."""
    found = set(people.export(contract(column("id"), *hashed("name"), name="attacked")).column("by_name"))
    guesses = {expected("ada", "name", key) for key in (b"", b"\0" * 32, b"ada")}
    assert found.isdisjoint(guesses)
    assert found == {expected("ada", "name")}
