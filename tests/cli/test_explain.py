"""`lakeferry explain`: every error that anything of ours raises is told, and what nobody raises has neighbours."""

from __future__ import annotations

import json

import pytest
from lake import ROOT
from promises import promised
from typer.testing import CliRunner

from lakeferry import console, explaining
from lakeferry.__main__ import app
from lakeferry.reference import known_errors

EVERY = known_errors.by_code()


def explain(*words):
    return CliRunner().invoke(app, ["explain", *words])


@pytest.mark.parametrize("code", EVERY)
def test_every_error_is_told_with_its_cause_and_its_remedy(code):
    answer = explain(code)
    assert (answer.exit_code, answer.stderr) == (0, "")
    told = answer.stdout
    known = EVERY[code]
    wanted = (known.what, explaining.plain(known.why), explaining.plain(known.fix), console.page_of(code))
    assert [part for part in wanted if part not in told] == []
    assert "](" not in told


def test_programs_are_told_the_same():
    document = json.loads(explain("EXP-CHECK-BLOCKED", "--json").stdout)
    assert document.keys() == promised("explain")
    (error,) = document["errors"]
    assert (error["exit_codes"], error["room"]) == ([7], "Exports")
    assert (ROOT / error["docs"]).is_file()


def test_alone_it_lists_all():
    listed = json.loads(explain("--json").stdout)["errors"]
    assert [error["code"] for error in listed] == list(EVERY)
    assert all(code in explain().stdout for code in EVERY)


def test_small_letters_will_do():
    assert explain("exp-late").exit_code == 0


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("EXP-LAT", "EXP-LATE"),
        ("exp late", "EXP-LATE"),
        ("CFL-RATES", "CFL-RATE"),
        ("TRUST", "SNF-TRUST-ROLE"),
        ("CASTT", "EXP-CAST"),
    ],
)
def test_an_unknown_code_has_neighbours(asked, near):
    document = json.loads(explain(asked, "--json").stdout)
    assert document["code"] == "UNKNOWN-CODE"
    assert near in document["hint"]


def test_what_is_near_nothing_leads_to_the_list():
    assert "lists all" in json.loads(explain("9999", "--json").stdout)["hint"]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[IAM](iam.md) and [keys](../how-to/rotate.md#x)", "IAM (docs/reference/iam.md) and keys (docs/how-to/rotate.md#x)"),
        ("[site](https://example.com/a)", "site (https://example.com/a)"),
        ("`code` stays", "`code` stays"),
    ],
)
def test_links_are_told_as_places(markdown, text):
    assert explaining.plain(markdown) == text
