"""Pseudonyms are HMACs of a person's identifier, independent of its spelling."""

from __future__ import annotations

import boto3
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glue_jobs.pseudonyms import PseudonymKey, create_hasher
from tests.support.lake import KEY, MONDAY, column, contract, topic_of
from tests.support.oracles import pseudonym

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


def test_a_key_is_not_shown():
    assert "canary" not in repr(PseudonymKey(b"canary" * 6, "version"))


def expected(text, kind, key=KEY):
    """Return the cell that the file must have."""
    return pseudonym(text, kind, key) or ""


def hashed(*kinds):
    return [
        column(f"by_{kind}", **{"from": "who"}, nullable=True, personal={"treatment": "hash", "kind": kind})
        for kind in kinds
    ]


@pytest.mark.sampled(1)
@pytest.mark.cluster
@pytest.mark.parametrize("people", [ASCII, [*ASCII, *FOREIGN]], ids=["ASCII", "any text"])
def test_pseudonyms_are_those_of_hmac(lake, people):
    lake.commit(PEOPLE, *({"id": f"{n:02}", "at": MONDAY, "who": who} for n, who in enumerate(people)))
    run = lake.export(contract(column("id"), *hashed(*KINDS)))
    for kind in KINDS:
        assert run.column(f"by_{kind}") == [expected(who, kind) for who in people], kind
    versions = boto3.client("secretsmanager").describe_secret(SecretId=lake.target.pseudonym_secret)[
        "VersionIdsToStages"
    ]
    assert versions == {run.manifest()["pseudonyms"]["key_version"]: ["AWSCURRENT"]}


def test_the_test_data_has_several_spellings_of_a_person():
    """Otherwise the comparison above would prove nothing."""
    assert expected("Zoë", "name") == expected("Zoe\u0308", "name")
    assert len({expected(text, "email") for text in (ASCII[0], ASCII[1], FOREIGN[2])}) == 1
    assert len({expected("Ada 7", kind) for kind in KINDS}) == len(KINDS)
    assert expected("٤٩ ٣٠ ١٢٣-٤٥", "phone") == expected("49 (30) 123 45", "phone")
    assert expected("n/a", "phone") == expected("unknown", "phone") == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@given(
    st.lists(st.none() | st.text("aÄZ0+ \t\n@.\u00a0\ufb01٤", max_size=8) | st.text(max_size=8), max_size=8)
)
@example([*ASCII, *ASCII])
@example([*ASCII, *FOREIGN])
@example(["\u00a0", "\u3000 "])
def test_a_batch_has_the_pseudonyms_of_its_values(kind, values):
    assert create_hasher(KEY, kind)(pa.array(values, pa.string())).to_pylist() == [
        pseudonym(value, kind) for value in values
    ]


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


TEAM = ["Ida", "ZOË", "ida ", "Bob"]


@pytest.fixture(scope="module")
def team(lakes):
    """Return a lake with visits of three people, one of them spelled in two ways.

    Kafka has them in this order.
    """
    lake = lakes()
    visits = [{"id": f"{n}", "at": MONDAY, "who": who} for n, who in enumerate(TEAM)]
    lake.commit(PEOPLE, *visits, keys=[b"same partition"] * len(visits))
    return lake


@pytest.mark.slow
def test_rows_that_differ_only_in_hashed_columns_come_in_kafkas_order(team):
    """Their pseudonyms don't exist yet when Spark sorts, and the order of the names would tell something
    about them.
    """
    run = team.export(contract(column("at", "timestamp"), *hashed("name"), name="ties"))
    assert run.column("by_name") == [expected(who, "name") for who in TEAM]


@pytest.mark.slow
def test_rows_are_not_in_the_order_of_a_part_of_the_key_that_is_hashed(lake):
    """Deduplication leaves them in the order of the whole key, which is that of the names."""
    names = ["Dora", "Ada", "Cleo", "Bob"]
    visits = [{"id": f"{n}", "at": MONDAY, "region": "north", "who": who} for n, who in enumerate(names)]
    lake.commit(
        topic_of(("region", "string"), ("who", "string")), *visits, keys=[b"same partition"] * len(visits)
    )
    run = lake.export(contract(column("region"), *hashed("name"), deduplicate={"key": ["region", "who"]}))
    assert run.column("by_name") == [expected(who, "name") for who in names]


@pytest.mark.slow
@pytest.mark.parametrize("aggregated", [False, True])
def test_a_value_that_a_filter_leaves_out_is_not_hashed(lake, aggregated):
    """Hashing within Spark gets every row's value.

    Here only the filter keeps the expression from dividing by zero.
    """
    lake.commit(topic_of(("n", "int")), {"id": "a", "at": MONDAY, "n": 5}, {"id": "b", "at": MONDAY, "n": 0})
    (key,) = hashed("id")
    key = {name: value for name, value in key.items() if name != "from"} | {
        "expression": "cast(10 div n as string)"
    }
    sections = {"filter": [{"where": "n <> 0", "reason": "Zero."}], "delivery": {"order_by": ["by_id"]}}
    rest = column("visits", "integer", measure="count(*)") if aggregated else column("id")
    aggregate = {"aggregate": {"no_persons_because": "A test."}} if aggregated else {}
    run = lake.export(contract(key, rest, **sections, **aggregate))
    assert run.column("by_id") == [expected("2", "id")]


@pytest.mark.slow
def test_a_file_can_be_ordered_by_pseudonyms(team):
    run = team.export(contract(*hashed("name"), column("id"), name="ordered"))
    pairs = sorted((expected(who, "name"), f"{n}") for n, who in enumerate(TEAM))
    assert list(zip(run.column("by_name"), run.column("id"), strict=True)) == pairs


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("held", "state"),
    [
        ("length(by_name) = 64", "published"),
        ("by_name <> 'Bob'", "published"),
        ("by_name = 'Bob'", "blocked"),
    ],
)
def test_a_check_sees_pseudonyms_and_not_what_they_stand_for(team, held, state):
    check = {"id": "seen", "severity": "block", "message": "Seen.", "each_row": held}
    run = team.export(contract(column("id"), *hashed("name"), check=[check], name=f"checked_{len(held)}"))
    assert run.state() == state


@pytest.mark.slow
def test_spellings_of_a_person_are_one_group(team):
    visits = column("visits", "integer", measure="count(*)")
    aggregate = {"no_persons_because": "A test."}
    run = team.export(contract(*hashed("name"), visits, aggregate=aggregate, name="grouped"))
    assert dict(zip(run.column("by_name"), run.column("visits"), strict=True)) == {
        expected("Ida", "name"): "2",
        expected("Bob", "name"): "1",
        expected("Zoë", "name"): "1",
    }
