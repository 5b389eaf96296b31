"""`lakeferry explain` prints an error of the catalogue, and similar codes for an unknown one."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from lakeferry import errors
from lakeferry.__main__ import app
from tests.support.lake import ROOT
from tests.support.promises import promised


def explain(*words):
    return CliRunner().invoke(app, ["explain", *words])


@pytest.mark.parametrize(
    "code", ["EXP-CHECK-BLOCKED", "NO-BUCKET", "CFL-AUTH", "ROT-LIMIT", "MAIL-BUSY", "WATCH-NO-TABLE"]
)
def test_an_error_is_shown_with_its_cause_and_its_remedy(code):
    answer = explain(code)
    entry = errors.find_entry(code)
    assert (answer.exit_code, answer.stderr) == (0, "")
    wanted = (entry.title, errors.to_plain_text(entry.cause), errors.to_plain_text(entry.remedy), entry.page)
    assert [part for part in wanted if part not in answer.stdout] == []
    assert "](" not in answer.stdout
    assert ("Exit code" in answer.stdout) == (code in ("EXP-CHECK-BLOCKED", "NO-BUCKET", "CFL-AUTH"))


def test_the_document_has_the_same_text():
    document = json.loads(explain("EXP-CHECK-BLOCKED", "--json").stdout)
    assert document.keys() == promised("explain")
    (error,) = document["errors"]
    assert (error["exit_code"], error["part"]) == (7, "exports")
    assert (ROOT / error["docs"].partition("#")[0]).is_file()


def test_without_a_code_all_errors_are_listed():
    listed = json.loads(explain("--json").stdout)["errors"]
    assert [error["code"] for error in listed] == list(errors.load_catalogue())
    shown = explain().stdout
    assert [code for code in errors.load_catalogue() if code not in shown] == []


def test_lower_case_works():
    assert explain("exp-source-incomplete").exit_code == 0


@pytest.mark.parametrize(
    ("unknown", "similar"),
    [
        ("EXP-SOURCE-INCOMP", "EXP-SOURCE-INCOMPLETE"),
        ("exp source incomplete", "EXP-SOURCE-INCOMPLETE"),
        ("CFL-RATES", "CFL-RATE"),
        ("TRUST", "SNF-TRUST-ROLE"),
        ("CASTT", "EXP-CAST"),
    ],
)
def test_an_unknown_code_gets_similar_ones(unknown, similar):
    document = json.loads(explain(unknown, "--json").stdout)
    assert document["code"] == "UNKNOWN-CODE"
    assert similar in document["hint"]


def test_a_code_similar_to_none_leads_to_the_list():
    assert "lists all" in json.loads(explain("9999", "--json").stdout)["hint"]
