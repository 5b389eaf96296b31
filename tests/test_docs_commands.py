"""Commands on pages are valid `lakeferry` and `make` commands. The tests of the checker plant defects."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeferry.__main__ import app
from tests.support import docs_commands

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = ROOT / "Makefile"


def test_commands_on_pages_are_valid():
    found = list(docs_commands.find_on_pages(ROOT))
    assert len([row for row in found if row.whole]) > 60
    assert len([row for row in found if not row.whole]) > 40
    assert docs_commands.wrong(app, ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        "lakeferry demo --evnets orders.jsonl",
        "lakeferry export backfill weekly_sales",
        "lakeferry export chekc mine.toml",
        "lakeferry export check",
        ".venv/bin/lakeferry query",
        "lakeferry export",
        "lakeferry --stage dev cost",
        "lakeferry cost --stge dev",
        "lakeferry dcotor",
        "$ lakeferry demo extra",
        "make dmeo",
        "make synth STGAE=dev",
        "make demo tset",
        "make rehearse --keep",
        "npx cdk deploy",
    ],
)
def test_wrong_commands_are_found(line):
    assert docs_commands.wrong_line(app, MAKEFILE, line, whole=True)


@pytest.mark.parametrize(
    "line",
    [
        "lakeferry --install-completion",
        "lakeferry cost --stage prod",
        "lakeferry cost  # dear",
        "make synth STAGE=prod",
        "make rehearse KEEP=1",
        "make",
    ],
)
def test_right_commands_pass(line):
    assert docs_commands.wrong_line(app, MAKEFILE, line, whole=True) is None


def test_a_sentence_may_name_a_command_alone_but_not_a_wrong_one():
    assert docs_commands.wrong_line(app, MAKEFILE, "lakeferry export check") is None
    assert docs_commands.wrong_line(app, MAKEFILE, "lakeferry export chekc")
    assert docs_commands.wrong_line(app, MAKEFILE, "lakeferry export check --schmea x")


def test_commands_are_found_in_snippets_and_in_sentences(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "Makefile").write_text("demo: setup\nsetup:\n")
    page = tmp_path / "README.md"
    page.write_text(
        "Run `make demo`, or `lakeferry explain …`.\n\n```sh\nsource x\nlakeferry query \\\n  --catalgo "
        "glue 'SELECT 1'\n```\n```console\n$ make tset\nmake no command, output\n```\n```text\nlakeferry "
        "nonsense\n```\n"
    )
    assert [item.line for item in docs_commands.find_on_pages(tmp_path)] == [
        "lakeferry query    --catalgo glue 'SELECT 1'",
        "make tset",
        "make no command, output",
        "make demo",
    ]
    assert len(docs_commands.wrong(app, tmp_path)) == 3


def test_commands_find_in_workflows_are_checked(tmp_path):
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / "Makefile").write_text("demo: setup\nsetup:\n")
    (tmp_path / ".github" / "workflows" / "check.yml").write_text(
        "      - run: make tset\n        run: .venv/bin/lakeferry --yes deploy\n  script: [make demo]\n"
    )
    lines = [item.line for item in docs_commands.find_in_workflows(tmp_path)]
    assert lines == ["make tset", ".venv/bin/lakeferry --yes deploy", "make demo"]
    assert len(docs_commands.wrong(app, tmp_path)) == 2
    assert len(list(docs_commands.find_in_workflows(ROOT))) > 20


def test_an_unknown_option_is_found():
    assert docs_commands.wrong_words(app, ["cost", "--no-such-option"])
    assert docs_commands.wrong_words(app, ["no-such-command"])
