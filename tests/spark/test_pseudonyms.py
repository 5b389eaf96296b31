"""Pseudonyms are HMACs of what a person is called, whatever the spelling; and nothing leaves without the right key."""

from __future__ import annotations

import base64
import json

import attrs
import boto3
import pytest
from lake import KEY, MONDAY, column, contract, topic_of
from oracles import pseudonym

from glue_jobs.errors import ExportError

KINDS = ("email", "phone", "name", "text", "id")
PEOPLE = topic_of(("who", ["null", "string"], None))
ASCII = ["Ada@Example.ORG", " ada@example.org\t", "+49 (30) 123-45", "Ada  King", "ada\nking", "A=1", "x" * 200, "", " \t", None]
FOREIGN = ["Zoë", "Zoe\u0308", "ＡＤＡ＠ｅｘａｍｐｌｅ．ｏｒｇ", "Straße", "İpek", "ﬁ", "\u00a0Ada", "名前", "😀 ada"]


def expected(text, kind, key=KEY):
    """The cell that the file should have."""
    return pseudonym(text, kind, key) or ""


def hashed(*kinds):
    return [
        column(f"by_{kind}", **{"from": "who"}, nullable=True, personal={"treatment": "hash", "kind": kind}) for kind in kinds
    ]


@pytest.mark.parametrize("people", [ASCII, [*ASCII, *FOREIGN]], ids=["native", "with Python"])
def test_pseudonyms_are_those_of_hmac(lake, people):
    lake.commit(PEOPLE, *({"id": f"{n:02}", "at": MONDAY, "who": who} for n, who in enumerate(people)))
    run = lake.export(contract(column("id"), *hashed(*KINDS)))
    for kind in KINDS:
        assert run.column(f"by_{kind}") == [expected(who, kind) for who in people], kind
    versions = boto3.client("secretsmanager").describe_secret(SecretId=lake.world.pseudonym_secret)["VersionIdsToStages"]
    assert versions == {run.manifest()["pseudonyms"]["key_version"]: ["AWSCURRENT"]}


def test_spellings_of_one_person_are_one_person():
    """So that the comparison above means something: several of its values are spellings of each other."""
    assert expected("Zoë", "name") == expected("Zoe\u0308", "name")
    assert len({expected(text, "email") for text in (ASCII[0], ASCII[1], FOREIGN[2])}) == 1
    assert len({expected("Ada", kind) for kind in KINDS}) == len(KINDS)


@pytest.fixture(scope="module")
def people(lakes):
    lake = lakes()
    lake.commit(PEOPLE, {"id": "a", "at": MONDAY, "who": "ada"})
    return lake


def secret(key):
    return json.dumps({"key": base64.b64encode(key).decode()})


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("", None, "EXP-KEY-MISSING"),
        ("nobody-made-it", None, "EXP-KEY-UNREADABLE"),
        ("no-json", "ada", "EXP-KEY-FORM"),
        ("no-key", "{}", "EXP-KEY-FORM"),
        ("too-short", secret(KEY[:31]), "EXP-KEY-FORM"),
        ("too-long", secret(KEY * 3), "EXP-KEY-FORM"),
    ],
)
def test_without_its_key_nothing_leaves(people, name, value, code):
    if value is not None:
        boto3.client("secretsmanager").create_secret(Name=name, SecretString=value)
    lake = attrs.evolve(people, world=attrs.evolve(people.world, pseudonym_secret=name))
    with pytest.raises(ExportError) as caught:
        lake.export(contract(column("id"), *hashed("name"), name="no_key"))
    assert caught.value.code == code
    assert lake.published("no_key") == lake.keys("exports/no_key/data/") == []
    assert value is None or value not in str(caught.value)


def test_a_key_that_is_changed_during_a_run_counts_in_the_next_one(lake):
    secrets = boto3.client("secretsmanager")
    new = bytes(reversed(KEY))
    lake.commit(PEOPLE, *({"id": f"{n}", "at": MONDAY, "who": "ada"} for n in range(3)))

    def tell(_window, phase):
        if phase == "compute":
            secrets.put_secret_value(SecretId=lake.world.pseudonym_secret, SecretString=secret(new))

    text = contract(column("id"), *hashed("name"))
    before = lake.export(text, tell=tell)
    assert set(before.column("by_name")) == {expected("ada", "name")}
    first = before.manifest()["pseudonyms"]
    after = lake.export(text)
    assert set(after.column("by_name")) == {expected("ada", "name", new)}
    manifest = after.manifest()
    assert (manifest["generation"], manifest["pseudonyms"] == first) == (2, False)


def test_whoever_knows_all_names_but_not_the_key_finds_nobody(people):
    """With the key the same search finds everybody, so it can."""
    found = set(people.export(contract(column("id"), *hashed("name"), name="attacked")).column("by_name"))
    guesses = {expected("ada", "name", key) for key in (b"", b"\0" * 32, b"ada")}
    assert found.isdisjoint(guesses)
    assert found == {expected("ada", "name")}
