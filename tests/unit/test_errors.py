"""The catalogue of errors has exactly the codes that the code raises.

A misspelt code is found without running its line.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from glue_jobs import errors as job_errors
from lakeferry import errors
from lakeferry.errors import CommandFailed
from lambdas.rotation import errors as rotation_errors
from lambdas.shared import errors as shared_errors
from lambdas.shared.errors import ErrorKind, LakeferryError

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = errors.load_catalogue()
OF_LAMBDAS = ("resources", "rotation", "notifications", "monitoring")
KINDS = {
    name: kind
    for name, kind in vars(job_errors).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}
COMMAND = re.compile(r'CommandFailed\(\s*"([^"]*)"')
JOB = re.compile(rf'\b({"|".join(KINDS)})\(\s*"([^"]*)"')
#: Codes in tables, and codes that a command raises before there is a job, are included.
NAMED = re.compile(r'"(EXP(?:-[A-Z]+)+)"')
#: Codes of the functions that commands name.
ELSEWHERE = re.compile(r'"((?:CFL|SNF|LF|NET|ROT|MAIL|WATCH)(?:-[A-Z]+)+)"')


def sources(*packages):
    return "\n".join(
        file.read_text() for package in packages for file in sorted((ROOT / package).rglob("*.py"))
    )


def of(part):
    return {code for code, entry in CATALOGUE.items() if entry.part == part}


LAKEFERRY = sources("lakeferry")
JOBS = sources("glue_jobs")


def test_every_code_that_a_command_raises_is_in_the_catalogue():
    assert set(COMMAND.findall(LAKEFERRY)) - CATALOGUE.keys() == set()


def test_a_misspelt_code_of_a_command_is_found():
    assert COMMAND.findall('raise CommandFailed(\n    "NOT-DEPLYOED",') == ["NOT-DEPLYOED"]
    with pytest.raises(errors.UnknownCode, match="NOT-DEPLYOED"):
        CommandFailed("NOT-DEPLYOED", "there is nothing")


def test_every_code_of_the_commands_is_raised():
    assert of("commands") - set(COMMAND.findall(LAKEFERRY)) == set()


def test_every_code_of_a_lambda_that_a_command_names_is_in_the_catalogue():
    named = set(ELSEWHERE.findall(LAKEFERRY))
    assert "CFL-TABLEFLOW-FAILED" in named
    assert named - CATALOGUE.keys() == set()


def test_the_catalogue_has_exactly_the_codes_of_exports():
    raised = (
        {code for _, code in JOB.findall(JOBS)} | set(NAMED.findall(JOBS)) | set(NAMED.findall(LAKEFERRY))
    )
    assert raised == of("exports")


def test_the_exit_code_of_a_job_is_that_of_the_catalogue():
    known = [(code, KINDS[kind].exit_code) for kind, code in JOB.findall(JOBS)]
    assert [(code, exit_code) for code, exit_code in known if CATALOGUE[code].exit_code != exit_code] == []
    assert {exit_code for _, exit_code in known} == {1, 2, 7}


def test_the_catalogue_has_exactly_the_errors_of_the_functions():
    codes = [kind.code for kind in errors.list_kinds()]
    assert sorted(codes) == sorted(code for part in OF_LAMBDAS for code in of(part))


@pytest.mark.parametrize("module", errors.MODULES, ids=lambda module: module.__name__)
def test_every_error_of_a_lambda_is_raised(module):
    folder = Path(module.__file__).parent
    users = [folder.parent] if module is shared_errors else [folder, folder.parent / "handlers"]
    code = "\n".join(file.read_text() for user in users for file in user.rglob("*.py"))
    used = set(re.findall(r"(?:rows|errors)\.([A-Z_]+)\b", code)) | set(
        re.findall(r"[(,] ?([A-Z_]+)[,)]", code)
    )
    assert {name for name, value in vars(module).items() if isinstance(value, ErrorKind)} - used == set()


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)
def test_an_entry_is_complete(entry):
    assert re.fullmatch(r"[A-Z]{2,}(-[A-Z]+)*", entry.code)
    assert entry.part in errors.PARTS
    assert 1 <= entry.exit_code <= 7
    assert not entry.title.endswith(".")
    assert entry.cause.endswith(".")
    assert entry.remedy.endswith(".")
    assert entry.cause.rstrip(".") != entry.title


def test_an_error_of_a_function_has_its_remedy_from_the_catalogue():
    assert rotation_errors.IN_GRACE.remedy == errors.to_plain_text(errors.find_entry("ROT-IN-GRACE").remedy)


def test_an_error_has_a_place_on_the_page_of_errors():
    page, _, anchor = errors.find_entry("ROT-IN-GRACE").page.partition("#")
    assert anchor == "rot-in-grace"
    assert "### ROT-IN-GRACE" in (ROOT / page).read_text(encoding="utf-8")


def test_errors_of_runs_of_commands_and_of_resources_end_commands():
    parts = {entry.part for entry in CATALOGUE.values() if entry.ends_commands}
    assert parts == {"exports", "commands", "resources"}
    assert {entry.part for entry in CATALOGUE.values()} - parts == {*OF_LAMBDAS} - {"resources"}


def test_an_error_whose_table_has_no_exit_code_is_a_failure():
    document = tomllib.loads((ROOT / "config" / "errors.toml").read_text(encoding="utf-8"))
    listed = {
        code: (part, table["title"], table.get("exit", 1), table["cause"].split(), table["remedy"].split())
        for part, tables in document.items()
        for code, table in tables.items()
    }
    assert listed == {
        code: (entry.part, entry.title, entry.exit_code, entry.cause.split(), entry.remedy.split())
        for code, entry in CATALOGUE.items()
    }
    assert not [entry.code for entry in CATALOGUE.values() if "\n" in entry.cause + entry.remedy]
    assert list(CATALOGUE) == [code for tables in document.values() for code in sorted(tables)]
    assert {entry.exit_code for entry in CATALOGUE.values()} > {1}


def test_an_error_that_a_function_reports_is_read_back():
    error = LakeferryError(rotation_errors.IN_GRACE, "slot 2 of user U")
    error.doing = "rotating: "
    reported = errors.read(f"Error: {error}")
    assert (reported.entry, reported.what) == (
        errors.find_entry("ROT-IN-GRACE"),
        "rotating: slot 2 of user U",
    )
    assert str(reported) == "ROT-IN-GRACE  rotating: slot 2 of user U"


@pytest.mark.parametrize(
    "message", ["Task timed out after 900.00 seconds", "NOT-OURS  x. What to do: z.", ""]
)
def test_other_messages_are_not_read_as_errors(message):
    assert errors.read(message) is None


def test_without_a_hint_a_command_prints_the_remedy_of_the_catalogue():
    assert CommandFailed("NO-BUCKET", "there is nothing").hint.endswith(
        "(docs/how-to/run-an-export.md#on-your-machine)."
    )
    assert CommandFailed("NO-BUCKET", "there is nothing", "Set it").hint == "Set it"


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (
            "[IAM](iam.md) and [keys](../how-to/rotate.md#x)",
            "IAM (docs/reference/iam.md) and keys (docs/how-to/rotate.md#x)",
        ),
        ("[site](https://example.com/a)", "site (https://example.com/a)"),
        ("`code` stays", "`code` stays"),
    ],
)
def test_links_become_files(markdown, text):
    assert errors.to_plain_text(markdown) == text


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.iceberg.exceptions.RuntimeIOException: ConnectionClosedException: Premature end of "
        "Content-Length",
        "java.net.SocketTimeoutException: Read timed out",
        "java.net.SocketException: Connection reset",
    ],
)
def test_a_connection_that_breaks_while_spark_reads_is_a_problem_with_storage(text):
    error = job_errors.translate(RuntimeError(text))
    assert (type(error), error.code) == (job_errors.StorageProblem, "EXP-AWS-FAILED")
