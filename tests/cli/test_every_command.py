"""Every command does what docs/reference/command-line.md documents. A command without a row here fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import attrs
import pytest
import typer
from typer.testing import CliRunner

from dev.docs.command_line import leaves
from lakeferry import errors, output
from lakeferry.__main__ import app
from lakeferry.cli import app as frame
from lakeferry.errors import CommandFailed
from lakeferry.local import query, target
from lakeferry.local.query import TableflowKey
from tests.support.lake import ROOT, column, contract, topic_of
from tests.support.promises import leaf, promised

CONTRACT = contract(column("id"), column("n", "integer"))
SHARED = ("--json", "--quiet", "--verbose", "--no-color")


@attrs.frozen
class Row:
    """`bad`: arguments with which the command fails in `folder`, with the error code and the exit code.

    `good`: arguments with which it succeeds. A command that needs a deployment or a demo has none: its own
    tests compare the document with `promised`.
    """

    bad: str
    code: str
    exit_code: int
    good: str | None = None


ROWS = {
    "demo": Row("--topic things", "DEMO-TOPIC", 2),
    "init": Row("", "NO-CLONE", 3),
    "export run": Row("weekly_sales --as-of 2026-11-16T06:00:00Z", "NO-BUCKET", 2),
    "export backfill": Row("weekly_sales --windows 2026-W46 --stage nosuch", "DEPLOYMENT-FILE", 2),
    "export restate": Row("weekly_sales --windows 2026-W46 --stage nosuch", "DEPLOYMENT-FILE", 2),
    "export check": Row("none.toml", "EXP-CONTRACT", 2, "mine.toml --schema things.avsc"),
    "export list": Row("extra", "USAGE", 2, ""),
    "export logs": Row("weekly_sales --stage nosuch", "DEPLOYMENT-FILE", 2),
    "export links": Row("weekly_sales --stage nosuch", "DEPLOYMENT-FILE", 2),
    "query": Row("'SELECT 1'", "NO-BUCKET", 2),
    "secrets set": Row("confluent --generate", "USAGE", 2),
    "cost": Row("--stage nosuch", "DEPLOYMENT-FILE", 2, "--stage prod"),
    "diagram": Row("--assembly none", "NO-TEMPLATES", 3),
    "forget": Row("lakeferry-nosuch-confluent Environment --stage nosuch", "DEPLOYMENT-FILE", 2),
    "inventory": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "destroy": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "rehearse": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "doctor": Row("--stage nosuch", "DOCTOR", 3),
    "topics list": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "topics import": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "plan": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "deploy": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "status": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "verify": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "rotate": Row("--now --revoke", "USAGE", 2),
    "logs": Row("--stage nosuch", "DEPLOYMENT-FILE", 2),
    "explain": Row("EXP-LAT", "UNKNOWN-CODE", 2, "EXP-SOURCE-INCOMPLETE"),
}


def lakeferry(*words, **around):
    return CliRunner().invoke(app, [*words], **around)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that commands can read from and write to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(frame.STAGE_VARIABLE, raising=False)
    monkeypatch.setenv(target.VARIABLES["bucket"], "half-a-world")
    (tmp_path / "mine.toml").write_text(CONTRACT)
    (tmp_path / "things.avsc").write_text(json.dumps(topic_of(("n", "int")).schema))
    return tmp_path


def test_every_command_has_a_row():
    assert set(ROWS) == {words for words, _ in leaves(typer.main.get_command(app))}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", [words for words, row in ROWS.items() if row.good is not None])
def test_the_document_of_a_successful_command_is_as_documented(words):
    answer = lakeferry(*words.split(), *ROWS[words].good.split(), "--json")
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert (document["ok"], document["code"]) == (True, "DONE")
    assert document.keys() == promised(words)
    assert document["request_id"]


def test_the_exit_code_of_a_refused_repair_is_one_of_deploy():
    assert errors.find_entry("REPAIR-REFUSED").exit_code in leaf("deploy").callback.declared.exits


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", ROWS)
def test_a_failed_command_prints_one_document(words):
    row = ROWS[words]
    answer = lakeferry(*words.split(), *_split(row.bad), "--json")
    document = json.loads(answer.stdout)
    assert answer.stdout.count("\n") == 1
    assert document.keys() == {*output.DOCUMENT, *output.FAILURE}
    assert (document["ok"], document["code"], document["exit_code"], answer.exit_code) == (
        False, row.code, row.exit_code, row.exit_code,
    )  # fmt: skip
    assert document["docs"] == errors.find_entry(row.code).page
    assert row.exit_code in leaf(words).callback.declared.exits


@pytest.mark.slow
@pytest.mark.parametrize("words", ROWS)
def test_a_failed_command_ends_its_process_with_its_exit_code(folder, words):
    row = ROWS[words]
    command = [sys.executable, "-m", "lakeferry", *words.split(), *_split(row.bad), "--json"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, json.loads(done.stdout)["code"]) == (row.exit_code, row.code), done.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", ROWS)
def test_a_failure_is_printed_once_without_colours_or_a_trace(words):
    row = ROWS[words]
    answer = lakeferry(*words.split(), *_split(row.bad))
    assert answer.exit_code == row.exit_code
    assert (answer.stdout.count(f"{row.code}  "), answer.stderr.count(f"{row.code}  ")) == (0, 1)
    assert f"docs/reference/errors.md#{row.code.lower()}" in answer.stderr
    assert "\x1b" not in answer.stderr
    assert "Traceback" not in answer.output


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", ROWS)
def test_every_command_takes_the_common_options(words):
    row = ROWS[words]
    answer = lakeferry(*words.split(), *_split(row.bad), *SHARED)
    assert json.loads(answer.stdout)["code"] == row.code


#: Options that a command would ignore, and what the refusal names.
IGNORED = {
    "demo --stage prod": "every stage",
    "query 'SELECT 1' --engine athena": "--stage",
    "query 'SELECT 1' --stage prod --catalog glue": "--engine",
    "export run weekly_sales --as-of 2026-11-16T06:00:00Z --no-wait": "--stage",
    "export run weekly_sales --stage prod --out copies": "--out",
    "export run weekly_sales --stage prod --master local[4]": "--master",
    "export run weekly_sales": "--as-of",
    "export list --all": "--stage",
    "export check mine.toml --stage prod": "every stage",
    "destroy --yes": "lakeferry destroy --confirm STAGE",
    "query 'SELECT 1' --yes": "never prompts",
    "rehearse --keep --faults 7": "--keep",
    "rehearse --example --stage prod": "--stage",
    "status --minutes 3": "--wait-for",
    "logs --last 3": "--last",
    "logs --follow": "--follow",
    "logs weekly_sales --follow --last 3": "--last",
    "verify --assumptions --glue-probe weekly_sales": "--glue-probe",
    "export run weekly_sales --as-of 2026-11-16T06:00:00Z --dry-run --out copies": "--out",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", IGNORED)
def test_an_option_that_would_be_ignored_is_refused(words):
    answer = lakeferry(*_split(words), "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, "USAGE")
    assert IGNORED[words] in document["message"] + document["hint"]


@pytest.mark.usefixtures("folder")
def test_a_query_of_tableflows_catalog_needs_no_bucket_and_no_demo(monkeypatch):
    monkeypatch.delenv(query.TABLEFLOW_SECRET, raising=False)
    answer = lakeferry("query", "SELECT 1", "--catalog", "tableflow", "--json")
    assert json.loads(answer.stdout)["code"] == "QUERY-TABLEFLOW-SECRET"


def test_an_error_of_a_query_does_not_show_the_secret_of_tableflows_key(monkeypatch):
    """DuckDB's message contains the address, and this one contains the secret."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, value)
    secret = "planted-" * 8
    with pytest.raises(CommandFailed) as failed:
        query.query_tableflow(
            "SELECT 1", TableflowKey("key", secret, f"http://127.0.0.1:9/{secret}", "lkc-1")
        )
    assert failed.value.code == "QUERY"
    assert "http://127.0.0.1:9/‹secret›/v1/oauth/tokens" in failed.value.message
    assert secret not in failed.value.message + str(failed.value.hint)


@pytest.mark.parametrize("words", ROWS)
def test_every_command_has_help_and_refuses_unknown_arguments(words):
    shown = lakeferry(*words.split(), "--help", env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert leaf(words).help.split(".")[0][:40] in shown.stdout
    assert "<bool>" not in shown.stdout
    refused = lakeferry(*words.split(), "--nosuch", "--json")
    assert (refused.exit_code, json.loads(refused.stdout)["code"]) == (2, "USAGE")


@pytest.mark.parametrize("words", ROWS)
def test_the_reference_explains_results_and_exit_codes(words):
    declared = leaf(words).callback.declared
    assert declared.json_keys
    assert all(declared.json_keys.values())
    assert set(frame.EXITS) <= set(declared.exits) <= set(range(8))
    page = (
        (ROOT / "docs" / "reference" / "command-line.md")
        .read_text()
        .partition(f"## lakeferry {words}\n")[2]
        .partition("\n## ")[0]
    )
    assert [key for key in declared.json_keys if f"| `{key}` |" not in page] == []
    assert f"Exit codes: {', '.join(map(str, declared.exits))} " in page


def test_characters_that_a_terminal_cannot_encode_are_escaped():
    command = [sys.executable, "-m", "lakeferry", "doctor", "--stage", "nosuch"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, timeout=120
    )
    assert done.returncode == 3, done.stderr
    assert b"\\u2192 Create one with" in done.stdout


@pytest.mark.slow
def test_a_first_plan_needs_no_account(clone):
    nobody = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    }
    planned = clone.run("plan", "--stage", "prod", changes=nobody)
    assert planned.code == 0, planned.err
    assert planned.out.startswith("NOT COMPARED: nobody is logged in to AWS")
    assert "lakeferry-prod in eu-central-1: " in planned.out
    document = clone.run("plan", "--stage", "prod", "--json", changes=nobody).document
    assert document.keys() == promised("plan")
    assert document["account"] == ""
    assert {change["action"] for change in document["changes"]} == {"create"}
    compared = clone.run("plan", "--stage", "prod", "--check", "--json", changes=nobody)
    assert (compared.code, compared.document["code"]) == (3, "AWS-CREDENTIALS")


def _split(text):
    import shlex

    return shlex.split(text)
