"""The documentation agrees with the code: pages, links, commands and snippets.

Each check has a test that it finds a defect.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import attrs
import duckdb
import pytest
from jsonschema import Draft202012Validator

from config.deployments.model import Rotation
from config.exports import check, contracts, topic_schema
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from dev.docs import documents, pages
from glue_jobs.delivery import csv
from lakeferry import errors
from lakeferry.cli import app
from lakeferry.deployment import context
from lakeferry.local import query, target
from lakeferry.plan import cost, render
from lambdas import contract
from lambdas.confluent import secret_fields as confluent_fields
from lambdas.confluent.services import base
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.snowflake import keypair
from lambdas.snowflake import secret_fields as snowflake_fields
from simulators.data.events import read_json_lines
from simulators.tableflow.topic import Topic
from tests.support import docs_reader, shipped

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("config", "dev", "examples", "glue_jobs", "lakeferry", "lambdas", "simulators", "stacks")
TUTORIAL = ROOT / "docs" / "tutorial" / "first-export.md"
RESULT = ROOT / "docs" / "for-analysts.md"


def snippets(language):
    return [
        pytest.param(fence.text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in docs_reader.pages(ROOT)
        for number, fence in enumerate(docs_reader.fences(page))
        if fence.language == language
    ]


def only(page, language):
    """The one snippet of this language on a page."""
    (text,) = [fence.text for fence in docs_reader.fences(page) if fence.language == language]
    return text


# --- pages that are generated from the code


def test_generated_pages_are_up_to_date():
    assert pages.stale() == [], "run `python -m dev.docs`"


def test_a_changed_a_missing_and_an_outdated_page_are_found(tmp_path):
    pages.write(tmp_path)
    assert pages.stale(tmp_path) == []
    changed = tmp_path / "expressions.md"
    changed.write_text(changed.read_text().replace("`abs`", "`absolute`"))
    (tmp_path / "iam.md").unlink()
    (tmp_path / "old.md").write_text("# Old\n")
    assert pages.stale(tmp_path) == ["expressions.md", "iam.md", "old.md"]


def test_the_schema_for_editors_accepts_shipped_files_and_refuses_mistakes():
    schema = json.loads((pages.FOLDER / "export.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    for name in (*shipped.EXPORTS, *shipped.FLINK_EXPORTS):
        document = json.loads(
            json.dumps(
                tomllib.loads((ROOT / "project" / "exports" / f"{name}.toml").read_text()), default=str
            )
        )
        Draft202012Validator(schema).validate(document)
        (wrong,) = Draft202012Validator(schema).iter_errors(document | {"windwo": {}})
        assert "windwo" in wrong.message


def test_a_key_without_a_description_stops_the_generation():
    with pytest.raises(LookupError, match=r"differ: rows\.new"):
        documents._describe("Manifest", "", [{"rows": {"new": 1}}], {})


@pytest.mark.parametrize(
    ("file", "function"), [("export.py", "_explain"), ("window.py", "_describe_incomplete")]
)
def test_keys_of_a_window_that_was_not_published_are_described(file, function):
    """These keys are literals in the sources; the page must describe each of them."""
    tree = ast.parse((ROOT / "glue_jobs" / file).read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    (body,) = [node for node in functions if node.name == function]
    written = {key.value for node in ast.walk(body) if isinstance(node, ast.Dict) for key in node.keys}
    assert {"window", "state", "reason"} <= written
    assert {f"windows[].{key}" for key in written} <= documents._RUN.keys()


SECRETS = (pages.FOLDER / "secrets.md").read_text()
CONNECTION = base.Connection("sa-1", "r", "env-1", "o", "lkc-1", "lfcp-1", "e", "u", "n")
FIELDS = {
    f"Confluent Cloud: {service}": list(
        confluent_fields.build_fields(service, ApiKey("id", Secret("s")), CONNECTION)
    )
    for service in confluent_fields.SERVICES
} | {
    "Snowflake: a user's key pair": list(
        snowflake_fields.build_fields(
            keypair.make(), snowflake_fields.Connection("a", "u", "h", "r", "w", "n")
        )
    )
}


@pytest.mark.parametrize("heading", FIELDS)
def test_each_field_of_a_secret_is_described(heading):
    """The page is written by hand, because the code doesn't contain the explanations."""
    section = SECRETS.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)`", section, re.MULTILINE) == FIELDS[heading]


def test_the_settings_of_a_rotation_are_described():
    wanted = (
        contract.ROTATION_KEEP,
        contract.ROTATION_GRACE_DAYS,
        contract.CLOUD_KEY_SECRET,
        contract.ROTATION_ROLE_TAG,
    )
    section = SECRETS.partition("## Rotation\n")[2]
    assert [name for name in wanted if f"| `{name}` |" not in section] == []
    assert str(Rotation().every_days) in section.split()
    assert f"| `{contract.ROTATION_KEEP}` | {contract.KEYS_KEPT} |" in section
    assert f"| `{contract.ROTATION_GRACE_DAYS}` | {contract.GRACE_DAYS:g} |" in section


# --- links


def test_links_are_valid():
    assert docs_reader.broken_links(ROOT) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "# One\n[ok](docs/a.md#the-second-one) [no](docs/b.md) [no](docs/a.md#third) `[code](x.md)`\n"
    )
    (tmp_path / "docs" / "a.md").write_text(
        "# A\n## The `second` one\n[up](../README.md) [no](#nowhere)\n```text\n[code](y.md)\n```\n"
    )
    assert docs_reader.broken_links(tmp_path) == [
        "README.md: docs/b.md",
        "README.md: docs/a.md#third",
        "docs/a.md: #nowhere",
    ]


def test_every_page_is_in_the_index():
    assert docs_reader.pages_without_a_link(ROOT) == []


def test_a_page_outside_the_index_is_found(tmp_path):
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text("[a](how-to/a.md)\n")
    for name in "ab":
        (tmp_path / "docs" / "how-to" / f"{name}.md").write_text("# Page\n")
    assert docs_reader.pages_without_a_link(tmp_path) == ["docs/how-to/b.md"]


def test_pages_named_in_sources_exist():
    assert docs_reader.broken_pointers(ROOT, PACKAGES) == []


def test_a_missing_page_named_in_a_source_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Here\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "one.py").write_text('A = "see docs/a.md#here, docs/a.md#there, and docs/b.md"\n')
    (tmp_path / "Makefile").write_text("# See docs/a.md and docs/c.md.\n")
    assert docs_reader.broken_pointers(tmp_path, ("code",)) == [
        "Makefile: docs/c.md",
        "code/one.py: docs/a.md#there",
        "code/one.py: docs/b.md",
    ]


def test_files_named_in_sentences_exist():
    assert docs_reader.broken_names(ROOT) == []


def test_a_missing_file_named_in_a_sentence_is_found(tmp_path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "README.md").write_text(
        "`stacks/`, `stacks/lake.py`, `project/exports/weekly.toml`, `exports/weekly/data`, `out/a.py`\n"
    )
    assert docs_reader.broken_names(tmp_path) == [
        "README.md: stacks/lake.py",
        "README.md: project/exports/weekly.toml",
    ]


def test_texts_for_readers_are_in_plain_english():
    names = {file.name for file in docs_reader.other_texts(ROOT)}
    assert {
        "Makefile", "pyproject.toml", "check.yml", "gitlab-ci.yml", "how-it-flows.svg", "dev.toml",
        "weekly_sales.toml", "create.sql", "errors.toml", "report.html.j2", "requirements.in",
    } <= names  # fmt: skip
    assert docs_reader.stock_phrases(ROOT) == []


def test_stock_phrases_are_found(tmp_path):
    shipped_files = tmp_path / "tests" / "data" / "shipped"
    shipped_files.mkdir(parents=True)
    (shipped_files / "dev.toml").write_text("# Secrets never stand here.\nsimply_put = 1\n")
    (tmp_path / "CHANGELOG.md").write_text("# Simply changed\nIn order to test, e.g. this. `for ever`\n")
    assert docs_reader.stock_phrases(tmp_path) == [
        "CHANGELOG.md: Simply",
        "CHANGELOG.md: In order to",
        "CHANGELOG.md: e.g.",
        "tests/data/shipped/dev.toml: never stand here",
    ]


def test_each_error_code_has_a_heading_that_messages_link_to():
    page = docs_reader.anchors(ROOT / errors.PAGE)
    assert [
        entry.page for entry in errors.load_catalogue().values() if entry.page.partition("#")[2] not in page
    ] == []


OF_LAMBDAS = {
    value for value in vars(contract).values() if isinstance(value, str) and value.startswith("LAKEFERRY_")
}


@pytest.mark.parametrize("page", docs_reader.pages(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_codes_and_variables_on_pages_exist(page):
    text = page.read_text()
    assert set(re.findall(r"\b(?:EXP|DEMO)-[A-Z-]*[A-Z]\b", text)) <= errors.load_catalogue().keys()
    assert set(re.findall(r"\bLAKEFERRY_[A-Z_]+[A-Z]\b", text)) <= {
        *target.VARIABLES.values(),
        query.TABLEFLOW_SECRET,
        context.FUNCTIONS,
        app.STAGE_VARIABLE,
        *OF_LAMBDAS,
    }


# --- snippets


@pytest.mark.parametrize("text", snippets("toml"))
def test_contracts_on_pages_can_be_read(text):
    assert docs_reader.toml_mistakes(text) == []


@pytest.mark.parametrize(
    ("wrong", "expected_message"),
    [
        ('[window]\nevrey = "day"\n', "evrey: unknown key"),
        ('[window]\nevery = "week"\n', "none of: day, iso_week, month, quarter"),
        ("[delivery]\norder_by = 3\n", "must be a list"),
        ('[[exports]]\ncrn = "0 6 ? * MON *"\n', "crn: unknown key"),
        ('[aws]\nglue_workers = "two"\n', "must be a whole number"),
    ],
)
def test_wrong_parts_of_contracts_are_found(wrong, expected_message):
    assert any(expected_message in mistake for mistake in docs_reader.toml_mistakes(wrong))


def test_a_wrong_whole_contract_is_found():
    assert docs_reader.toml_mistakes(only(TUTORIAL, "toml").replace('"delivery_id"]', '"number"]')) != []


@pytest.mark.parametrize("text", snippets("json"))
def test_json_on_pages_can_be_read(text):
    json.loads(text)


@pytest.mark.parametrize("text", snippets("python"))
def test_python_on_pages_compiles(text):
    compile(text, "page", "exec")


def test_the_steps_of_the_tutorial_agree(tmp_path):
    avro = json.loads(only(TUTORIAL, "json"))
    events = tmp_path / "deliveries.jsonl"
    events.write_text(only(TUTORIAL, "jsonl"))
    topic = Topic("deliveries", avro, avro["lakeferry:key"], avro["lakeferry:time"])
    assert len({event["delivery_id"] for event in read_json_lines(events, topic)}) == 5
    rules = check.rules(topic_schema.from_avro(avro, "deliveries"), NOT_JUDGED)
    contract = contracts.parse(only(TUTORIAL, "toml"), name="mine", more_rules=rules)
    assert [column.name for column in contract.hashed] == ["recipient"]
    assert (
        csv.build_header(contract.columns, contract.delivery).decode().strip("\ufeff\r\n")
        in TUTORIAL.read_text()
    )


def test_the_tutorial_shows_the_real_refusal():
    avro = json.loads(only(TUTORIAL, "json"))
    text = re.sub(r"^personal = .*\n", "", only(TUTORIAL, "toml"), flags=re.MULTILINE)
    with pytest.raises(BadFile) as refused:
        contracts.parse(
            text, name="mine", more_rules=check.rules(topic_schema.from_avro(avro, "deliveries"), NOT_JUDGED)
        )
    (problem,) = refused.value.problems
    assert str(problem) in TUTORIAL.read_text()


def test_the_result_can_be_read_as_shown(tmp_path, monkeypatch, capsys):
    sales = contracts.load("weekly_sales")
    cells = {column.name: _cell(column) for column in sales.columns}
    header = csv.build_header(sales.columns, sales.delivery)
    totals = [("0.10", "EUR"), ("0.20", "EUR"), ("5.00", "USD")]
    lines = [cells | {"line_total": total, "currency": currency} for total, currency in totals]
    rows = [",".join(line.values()) for line in lines]
    file = tmp_path / "out" / "weekly_sales" / "2026-W46" / "weekly_sales_2026-W46.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(header + "".join(f"{row}\r\n" for row in rows).encode())
    monkeypatch.chdir(tmp_path)
    with_pandas = next(fence.text for fence in docs_reader.fences(RESULT) if "import pandas" in fence.text)
    exec(compile(with_pandas, "page", "exec"), {})
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line[0] in ("EUR", "USD")] == [["EUR", "0.30"], ["USD", "5.00"]]
    with duckdb.connect() as connection:
        by_day = connection.execute(only(RESULT, "sql")).fetchall()
    assert [(currency, str(total)) for _, currency, total in by_day] == [("EUR", "0.30"), ("USD", "5.00")]


def test_no_example_adds_up_amounts_of_several_currencies_or_prices():
    """Each statement that sums amounts groups them by currency."""
    wrong = [
        f"{page.relative_to(ROOT)}: {fence.text.splitlines()[0]}"
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for fence in docs_reader.fences(page)
        if fence.language in ("sh", "bash", "sql", "python", "console") and _mixes_units(fence.text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT day, sum(line_total) FROM sales GROUP BY day",
        'print(sales["line_total"].sum())',
        "sql 'SELECT symbol, SUM(price) FROM t GROUP BY symbol'",
    ],
)
def test_an_example_that_adds_up_several_currencies_is_found(text):
    assert _mixes_units(text)


def _mixes_units(text):
    sums = re.search(r"(?i)sum\(\s*\w*(?:line_total|price|sales)|(?:line_total|price|sales)\W+sum\(", text)
    by_currency = re.search(r"(?i)(?:group by|groupby)[^\n]*currency", text)
    return bool(sums) and not by_currency


def _cell(column):
    result = {
        "integer": "1",
        "date": "2026-11-12",
        "timestamp": "2026-11-12T19:32:39.107000Z",
        "boolean": "true",
        "text": "08",
    }
    return result.get(column.type, "1.00")


# --- README and CI


def test_readme_is_short_and_names_the_two_commands():
    readme = ROOT / "README.md"
    assert readme.read_text().count("\n") <= 150
    shown = [
        fence.text.splitlines()[0] for fence in docs_reader.fences(readme) if fence.language == "console"
    ]
    assert shown == ["$ make demo", "$ make test"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test"} <= set(targets)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/in-your-own-accounts.md"])
def test_the_cost_of_a_day_on_the_page_is_the_calculated_one(page):
    a_day = render.format_day_cost(cost.estimate(shipped.load("dev")))
    assert f"between {a_day.replace(' to ', ' and ')}" in (ROOT / page).read_text()


@attrs.frozen
class Ran:
    """The result of .ci/run with a stub in place of `make`."""

    exit_code: int
    last: str
    called: str


@pytest.fixture
def ci_run(tmp_path):
    """Return a function that runs .ci/run with a stub of `make`, which prints its arguments and lines and
    exits with a code.
    """
    make = tmp_path / "make"

    def run(output, code):
        make.write_text(
            f'#!/bin/bash\necho "$PWD: make $*" > "{tmp_path}/called"\nprintf "%s\\n" {output}\nexit {code}\n'
        )
        make.chmod(0o755)
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        answer = subprocess.run(
            [ROOT / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        return Ran(
            answer.returncode, answer.stdout.splitlines()[-1], (tmp_path / "called").read_text().strip()
        )

    return run


def test_ci_runs_the_test_command_of_the_readme(ci_run):
    (command,) = [
        fence.text.splitlines()[0].removeprefix("$ ")
        for fence in docs_reader.fences(ROOT / "README.md")
        if fence.language == "console" and "make test" in fence.text
    ]
    assert ci_run("'12 passed in 3.21s'", 0) == Ran(0, "12 passed in 3.21s", f"{ROOT}: {command}")


def test_ci_ends_with_the_closing_line_and_the_code_of_a_failure(ci_run):
    output = (
        "'FAILED tests/test_x.py::test_y' '1 failed, 11 passed in 63.21s (0:01:03)' 'make: *** "
        "[Makefile:12: test] Error 1'"
    )
    ran = ci_run(output, 2)
    assert (ran.exit_code, ran.last) == (2, "1 failed, 11 passed in 63.21s (0:01:03)")


def test_ci_ends_with_the_last_line_of_output_when_no_test_ran(ci_run):
    ran = ci_run("'setup failed: no network'", 2)
    assert (ran.exit_code, ran.last) == (2, "setup failed: no network")
