"""What all commands share: where options may stand, which stage it is, and that no trace ever reaches a user."""

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
from lake import ROOT
from typer.testing import CliRunner

from glue_jobs.errors import Blocked
from lakeferry import error_translation
from lakeferry.__main__ import app
from lakeferry.cli import app as frame
from lakeferry.errors import CommandFailed
from lambdas.shared import errors
from lambdas.shared.errors import NotFound
from lambdas.shared.redaction import Secret

KEY = Secret("cflt-a-secret-that-nobody-may-see")
planted = frame.command_group()


class Unforeseen(Exception):
    pass


#: What a command meets, and then: code, exit code, and what is said.
MET = {
    "an error of its own": (CommandFailed("STACK-BUSY", "not now", "Later"), "STACK-BUSY", 5, "not now"),
    "an error of a resource": (NotFound(errors.ADDRESS, "host x"), "NET-ADDRESS", 1, "host x"),
    "an error of an export": (Blocked("EXP-CHECK-BLOCKED", "two rows", "Correct them"), "EXP-CHECK-BLOCKED", 7, "two rows"),
    "no login": (NoCredentialsError(), "AWS-CREDENTIALS", 3, "logged in"),
    "a login that ended": (ClientError({"Error": {"Code": "ExpiredToken"}}, "ListBuckets"), "AWS-CREDENTIALS", 3, "ExpiredToken"),
    "a refusal": (ClientError({"Error": {"Code": "AccessDenied"}}, "ListBuckets"), "AWS-REFUSED", 1, "ListBuckets"),
    "no network": (EndpointConnectionError(endpoint_url="http://nowhere"), "AWS-UNREACHABLE", 1, "EndpointConnectionError"),
    "Ctrl-C": (KeyboardInterrupt(), "STOPPED", 6, "stopped"),
    "a prompt that was left": (typer.Abort(), "STOPPED", 6, "stopped"),
    "a mistake of ours": (Unforeseen(f"in row 7, {KEY.reveal()}"), "UNEXPECTED", 1, "Unforeseen in tests/cli/test_frame.py"),
}


@frame.command(planted, json_keys={"asked": "What it was asked."}, stage=True, yes=True)
def meet(call: frame.CommandContext, *, what: str = "") -> dict:
    if what in MET:
        raise MET[what][0]
    return {"asked": [call.stage, call.yes, call.output.quiet, call.output.verbose, what]}


def reading(text: str) -> str:
    raise MET[text][0]


@frame.command(planted, json_keys={"asked": "What it was asked."})
def read(call: frame.CommandContext, *, what: Annotated[str, typer.Option(callback=reading)]) -> dict:
    return {"asked": what}


@frame.command(planted, json_keys={"asked": "What it was asked."})
def plain(call: frame.CommandContext) -> dict:
    return {"asked": call.stage}


@pytest.fixture
def command():
    whole = typer.Typer(name=frame.NAME, cls=frame.Root, callback=frame.common, no_args_is_help=True)
    whole.add_typer(planted)
    return lambda *words, **around: CliRunner().invoke(whole, [*words], **around)


@pytest.mark.parametrize("place", ["meet", "read"])
@pytest.mark.parametrize("what", MET)
def test_whatever_ends_a_command_or_the_reading_of_its_words_becomes_one_message(command, what, place):
    _, code, exit_code, said = MET[what]
    answer = command(place, "--what", what, "--json")
    document = json.loads(answer.stdout)
    assert (document["code"], document["exit_code"], answer.exit_code) == (code, exit_code, exit_code)
    assert said in document["message"]
    assert document["hint"]
    assert "Traceback" not in answer.output
    assert answer.stderr.count(f"{code}  ") == 1


def test_a_mistake_of_ours_is_written_down_without_secrets(command):
    error_translation.TRACE.unlink(missing_ok=True)
    document = json.loads(command("meet", "--what", "a mistake of ours", "--json").stdout)
    assert document["details"] == {"trace": ".lakeferry/last-error.txt"}
    kept = error_translation.TRACE.read_text()
    assert "Unforeseen: in row 7, ‹secret›" in kept
    assert KEY.reveal() not in kept


def test_a_trace_is_shown_to_those_who_ask_for_it_without_secrets(command):
    shown = command("meet", "--what", "a mistake of ours", "--verbose").stderr
    assert "Traceback" in shown
    assert "‹secret›" in shown
    assert KEY.reveal() not in shown


@pytest.mark.parametrize(
    ("words", "variable", "stage"),
    [
        (("meet",), None, "dev"),
        (("meet",), "test", "test"),
        (("--stage", "prod", "meet"), "test", "prod"),
        (("meet", "--stage", "prod"), "test", "prod"),
        (("--stage", "prod", "meet", "--stage", "ci"), "test", "ci"),
    ],
)
def test_the_last_word_on_the_stage_wins(command, words, variable, stage):
    document = json.loads(command(*words, "--json", env={frame.STAGE_VARIABLE: variable}).stdout)
    assert document["asked"][0] == stage


def test_options_before_and_after_the_command_add_up(command):
    answer = command("--yes", "--quiet", "--json", "meet", "--verbose", env={frame.STAGE_VARIABLE: None})
    assert json.loads(answer.stdout)["asked"] == ["dev", True, True, True, ""]


@pytest.mark.parametrize(
    "words", [("--stage", "prod", "plain"), ("plain", "--stage", "prod"), ("--yes", "plain"), ("plain", "--yes")]
)
def test_an_option_that_a_command_has_no_use_for_is_refused(command, words):
    answer = command(*words, "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["code"]) == (2, "USAGE")
    assert answer.exit_code == 2


#: Words that can't be understood, and what is said of them.
USAGE = {
    "no command": ((), None),
    "no command, but an option": (("--quiet",), "Missing command"),
    "an unknown command": (("cots",), "Did you mean 'cost'?"),
    "an unknown option": (("cost", "--stgae", "dev"), "--stage"),
    "an option without its value": (("cost", "--stage"), "--stage"),
    "a missing argument": (("query",), "sql"),
    "a value that can't be": (("query", "SELECT 1", "--catalog", "hive"), "hive"),
    "a group alone, with an option": (("export", "--quiet"), "--quiet"),
}


@pytest.mark.parametrize("case", USAGE)
def test_words_that_cannot_be_understood_are_wrong_input(case):
    words, said = USAGE[case]
    answer = CliRunner().invoke(app, [*words])
    assert answer.exit_code == 2
    if said is None:
        assert "Usage:" in answer.output
        return
    assert answer.stdout == ""
    assert said in answer.stderr
    assert "--help" in answer.stderr
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout) if "--stage" not in words[-1:] else None
    assert document is None or (document["code"], document["exit_code"]) == ("USAGE", 2)


def test_json_after_two_dashes_is_no_option():
    answer = CliRunner().invoke(app, ["export", "list", "--", "--json"])
    assert (answer.exit_code, answer.stdout) == (2, "")


def test_a_reader_that_goes_away_is_no_error(command):
    MET["a closed pipe"] = (BrokenPipeError(32, "Broken pipe"), "", 1, "")
    answer = command("meet", "--what", "a closed pipe", "--json")
    assert (answer.exit_code, answer.output) == (1, "")


#: What stands on the line, the number of the word that is being typed, and what completes it.
COMPLETED = {
    "a command": ("lakeferry ex", 1, {"export", "explain"}),
    "a command of a group": ("lakeferry export l", 2, {"list"}),
    "an option": ("lakeferry cost --st", 2, {"--stage"}),
    "a stage": ("lakeferry cost --stage d", 3, {"dev"}),
    "a stage before the command": ("lakeferry --stage pr", 2, {"prod"}),
    "an error's code": ("lakeferry explain EXP-CHE", 2, {"EXP-CHECK-BLOCKED", "EXP-CHECKSUM"}),
    "one of several values": ("lakeferry secrets set c", 3, {"confluent"}),
}


@pytest.mark.parametrize("case", COMPLETED)
def test_the_shell_completes(case):
    line, word, wanted = COMPLETED[case]
    environment = {"_LAKEFERRY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    answer = CliRunner().invoke(app, [], env=environment)
    assert (answer.exit_code, set(answer.stdout.split())) == (0, wanted)


def test_what_installs_completion_can_be_looked_at():
    """In bash, which the command looks for among its parents."""
    line = f"{shlex.quote(sys.executable)} -m lakeferry --show-completion; exit $?"
    answer = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    assert "_LAKEFERRY_COMPLETE" in answer.stdout


@pytest.mark.parametrize(("words", "variables"), [((), {"NO_COLOR": "1"}), (("--no-color",), {})])
def test_colours_can_be_turned_off(words, variables):
    coloured, plain = (
        CliRunner()
        .invoke(app, ["export", "check", "nosuch.toml", *more], env={"FORCE_COLOR": "1", "NO_COLOR": None, **set_})
        .stderr
        for more, set_ in (((), {}), (words, variables))
    )
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", plain) is None
    assert "EXP-CONTRACT" in coloured, coloured


@frame.command(planted, json_keys={"rows": "What was asked for."})
def answers(call: frame.CommandContext) -> dict:
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
    answer = command("answers", *words)
    assert (answer.exit_code, answer.stderr) == (0, err)
    if out is None:
        assert json.loads(answer.stdout)["rows"] == []
    else:
        assert answer.stdout == out


def test_what_is_wrong_is_red_where_there_are_colours(command):
    answer = command("answers", env={"FORCE_COLOR": "1", "NO_COLOR": None, "TERM": "xterm"})
    assert "\x1b[1;31m✗\x1b[0m the result" in answer.stdout
