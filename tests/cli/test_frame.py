"""Behaviour that all commands share: options, stage, exit codes, and messages without a traceback."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Annotated

import pytest
import typer
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from typer.testing import CliRunner

from glue_jobs.errors import Blocked
from lakeferry import error_translation
from lakeferry.__main__ import app
from lakeferry.cli import app as frame
from lakeferry.errors import CommandFailed
from lambdas.shared import errors
from lambdas.shared.errors import NotFound
from lambdas.shared.redaction import Secret
from tests.support.lake import ROOT

KEY = Secret("cflt-a-secret-that-nobody-may-see")
planted = frame.command_group()


class Unforeseen(Exception):
    pass


#: The exception that a command raises; then the error code, the exit code, and what the message contains.
FAILURES = {
    "an error of its own": (CommandFailed("STACK-BUSY", "not now", "Later"), "STACK-BUSY", 5, "not now"),
    "an error of a resource": (NotFound(errors.ADDRESS, "host x"), "NET-ADDRESS", 1, "host x"),
    "an error of an export": (
        Blocked("EXP-CHECK-BLOCKED", "two rows", "Correct them"),
        "EXP-CHECK-BLOCKED",
        7,
        "two rows",
    ),
    "no login": (NoCredentialsError(), "AWS-CREDENTIALS", 3, "logged in"),
    "a login that ended": (
        ClientError({"Error": {"Code": "ExpiredToken"}}, "ListBuckets"),
        "AWS-CREDENTIALS",
        3,
        "ExpiredToken",
    ),
    "a refusal": (
        ClientError({"Error": {"Code": "AccessDenied"}}, "ListBuckets"),
        "AWS-REFUSED",
        1,
        "ListBuckets",
    ),
    "too many calls": (
        ClientError({"Error": {"Code": "Throttling"}}, "ListStacks"),
        "AWS-REFUSED",
        1,
        "ListStacks: Throttling",
    ),
    "no network": (
        EndpointConnectionError(endpoint_url="http://nowhere"),
        "AWS-UNREACHABLE",
        1,
        "EndpointConnectionError",
    ),
    "Ctrl-C": (KeyboardInterrupt(), "STOPPED", 6, "interrupted"),
    "a prompt that was left": (typer.Abort(), "STOPPED", 6, "interrupted"),
    "an unexpected error": (
        Unforeseen(f"in row 7, {KEY.reveal()}"),
        "UNEXPECTED",
        1,
        "Unforeseen in tests/cli/test_frame.py",
    ),
}


@frame.command(planted, json_keys={"asked": "What it was asked."}, stage=True, yes=True)
def work(call: frame.CommandContext, *, what: str = "") -> dict:
    if what in FAILURES:
        raise FAILURES[what][0]
    return {"asked": [call.stage, call.yes, call.output.quiet, call.output.verbose, what]}


def parse_what(text: str) -> str:
    raise FAILURES[text][0]


@frame.command(planted, json_keys={"asked": "What it was asked."})
def read(call: frame.CommandContext, *, what: Annotated[str, typer.Option(callback=parse_what)]) -> dict:
    return {"asked": what}


@frame.command(planted, json_keys={"asked": "What it was asked."})
def plain(call: frame.CommandContext) -> dict:
    return {"asked": call.stage}


@pytest.fixture
def command():
    root = typer.Typer(name=frame.NAME, cls=frame.Root, callback=frame.common, no_args_is_help=True)
    root.add_typer(planted)
    return lambda *words, **around: CliRunner().invoke(root, [*words], **around)


@pytest.mark.parametrize("name", ["work", "read"])
@pytest.mark.parametrize("what", FAILURES)
def test_an_exception_of_a_command_or_of_a_parser_becomes_one_message(command, what, name):
    _, code, exit_code, expected_message = FAILURES[what]
    answer = command(name, "--what", what, "--json")
    document = json.loads(answer.stdout)
    assert (document["code"], document["exit_code"], answer.exit_code) == (code, exit_code, exit_code)
    assert expected_message in document["message"]
    assert document["hint"]
    assert "Traceback" not in answer.output
    assert answer.stderr.count(f"{code}  ") == 1


def test_too_many_calls_are_not_explained_by_a_missing_permission(command):
    hints = {
        subject: json.loads(command("work", "--what", subject, "--json").stdout)["hint"]
        for subject in ("too many calls", "a refusal")
    }
    assert "again in a minute" in hints["too many calls"]
    assert "role" not in hints["too many calls"]
    assert "role" in hints["a refusal"]


def test_an_unexpected_error_is_saved_without_secrets(command):
    error_translation.TRACE.unlink(missing_ok=True)
    document = json.loads(command("work", "--what", "an unexpected error", "--json").stdout)
    assert document["details"] == {"trace": ".lakeferry/last-error.txt"}
    kept = error_translation.TRACE.read_text()
    assert "Unforeseen: in row 7, ‹secret›" in kept
    assert KEY.reveal() not in kept


def test_verbose_shows_a_trace_without_secrets(command):
    shown = command("work", "--what", "an unexpected error", "--verbose").stderr
    assert "Traceback" in shown
    assert "‹secret›" in shown
    assert KEY.reveal() not in shown


@pytest.mark.parametrize(
    ("words", "variable", "stage"),
    [
        (("work",), None, "dev"),
        (("work",), "test", "test"),
        (("work", "--stage", "prod"), "test", "prod"),
        (("work", "--stage", "prod", "--stage", "ci"), "test", "ci"),
    ],
)
def test_the_last_stage_option_wins(command, words, variable, stage):
    document = json.loads(command(*words, "--json", env={frame.STAGE_VARIABLE: variable}).stdout)
    assert document["asked"][0] == stage


def test_a_command_takes_all_shared_options(command):
    answer = command("work", "--yes", "--quiet", "--json", "--verbose", env={frame.STAGE_VARIABLE: None})
    assert json.loads(answer.stdout)["asked"] == ["dev", True, True, True, ""]


@pytest.mark.parametrize("words", [("--stage", "prod", "cost"), ("-q", "cost"), ("export", "--json", "list")])
def test_a_shared_option_before_the_command_gets_advice(words):
    answer = CliRunner().invoke(app, [*words])
    assert answer.exit_code == 2
    assert "at the end of the command" in answer.stderr


@pytest.mark.parametrize(
    "words",
    [("plain", "--stage", "prod"), ("plain", "--yes"), ("plain", "-y")],
)
def test_an_option_that_a_command_does_not_use_is_refused(command, words):
    answer = command(*words, "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["code"]) == (2, "USAGE")
    assert answer.exit_code == 2


#: Arguments that can't be parsed, and what the message contains.
USAGE = {
    "no command": ((), None),
    "no command, but an option": (("--quiet",), "--quiet"),
    "an unknown command": (("cots",), "Did you mean 'cost'?"),
    "an unknown option": (("cost", "--stgae", "dev"), "--stage"),
    "an option without its value": (("cost", "--stage"), "requires an argument"),
    "a value for a flag": (("cost", "--json=5"), "does not take a value"),
    "a missing argument": (("query",), "sql"),
    "a value that can't be": (("query", "SELECT 1", "--catalog", "hive"), "hive"),
    "a group alone, with an option": (("export", "--quiet"), "--quiet"),
}


@pytest.mark.parametrize("case", USAGE)
def test_arguments_that_cannot_be_parsed_are_wrong_input(case):
    words, expected_message = USAGE[case]
    answer = CliRunner().invoke(app, [*words])
    assert answer.exit_code == 2
    if expected_message is None:
        assert "Usage:" in answer.output
        return
    assert answer.stdout == ""
    assert expected_message in answer.stderr
    assert "--help" in answer.stderr
    document = (
        json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
        if "--stage" not in words[-1:]
        else None
    )
    assert document is None or (document["code"], document["exit_code"]) == ("USAGE", 2)


def test_json_after_two_dashes_is_an_argument():
    answer = CliRunner().invoke(app, ["export", "list", "--", "--json"])
    assert (answer.exit_code, answer.stdout) == (2, "")


def test_a_closed_pipe_prints_no_error(command):
    FAILURES["a closed pipe"] = (BrokenPipeError(32, "Broken pipe"), "", 1, "")
    answer = command("work", "--what", "a closed pipe", "--json")
    assert (answer.exit_code, answer.output) == (1, "")


#: The command line, the index of the word that is being typed, and its completions.
COMPLETED = {
    "a command": ("lakeferry ex", 1, {"export", "explain"}),
    "a command of a group": ("lakeferry export l", 2, {"links", "list", "logs"}),
    "an option": ("lakeferry cost --st", 2, {"--stage"}),
    "a stage": ("lakeferry cost --stage d", 3, {"dev"}),
    "an error's code": ("lakeferry explain EXP-CHE", 2, {"EXP-CHECK-BLOCKED", "EXP-CHECKSUM"}),
    "one of several values": ("lakeferry secrets set c", 3, {"confluent"}),
}


@pytest.mark.parametrize("case", COMPLETED)
def test_the_shell_completes(case):
    line, word, wanted = COMPLETED[case]
    environment = {"_LAKEFERRY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    answer = CliRunner().invoke(app, [], env=environment)
    assert (answer.exit_code, set(answer.stdout.split())) == (0, wanted)


def test_the_completion_script_can_be_shown():
    """The command detects bash as its parent process."""
    line = f"{shlex.quote(sys.executable)} -m lakeferry --show-completion; exit $?"
    answer = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    assert "_LAKEFERRY_COMPLETE" in answer.stdout


@pytest.mark.parametrize(("words", "variables"), [((), {"NO_COLOR": "1"}), (("--no-color",), {})])
def test_colours_can_be_turned_off(words, variables):
    coloured, plain = (
        CliRunner()
        .invoke(
            app,
            ["export", "check", "nosuch.toml", *options],
            env={"FORCE_COLOR": "1", "NO_COLOR": None, **set_},
        )
        .stderr
        for options, set_ in (((), {}), (words, variables))
    )
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", plain) is None
    assert "EXP-CONTRACT" in coloured, coloured


@frame.command(planted, json_keys={"rows": "What was asked for."})
def show(call: frame.CommandContext) -> dict:
    call.output.info("working")
    call.output.print("✗ the result")
    call.output.table(["a", "b"], [["one", "two"]])
    call.output.warn("beware")
    return {"rows": []}


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        ((), "✗ the result\na    b\none  two\n", "working\nbeware\n"),
        (("--quiet",), "✗ the result\na    b\none  two\n", "beware\n"),
        (("--json",), None, "working\nbeware\n"),
    ],
)
def test_results_are_on_standard_output_and_all_else_on_standard_error(command, words, out, err):
    answer = command("show", *words)
    assert (answer.exit_code, answer.stderr) == (0, err)
    if out is None:
        assert json.loads(answer.stdout)["rows"] == []
    else:
        assert answer.stdout == out


def test_failures_are_red_where_there_are_colours(command):
    answer = command("show", env={"FORCE_COLOR": "1", "NO_COLOR": None, "TERM": "xterm"})
    assert "\x1b[1;31m✗\x1b[0m the result" in answer.stdout
