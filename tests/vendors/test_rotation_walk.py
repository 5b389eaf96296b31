"""docs/how-to/rotate.md is correct: each command runs and prints what the page shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from lambdas import contract
from simulators.confluent.organization import Delays
from simulators.confluent.server import ConfluentCloud
from tests.support import docs_reader
from tests.support.rotation_deployment import PATIENCE, Deployment
from tests.support.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "rotate.md"
#: Values that differ in each run.
_VARIES = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "VERSION"),
    (re.compile(r"(secret:lakeferry/kafka)-\w{6}"), r"\1"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "MOMENT"),
    (re.compile(r'("next_rotation": )[\d.]+'), r"\1MOMENT"),
    (re.compile(r'"[A-Z2-7]{16}"'), '"KEY"'),
]


class Terminal:
    """Runs the commands of the page: `lakeferry`, some of AWS's tool, and `cat`."""

    def __init__(self, deployment):
        self.deployment = deployment
        self.files = {}

    def run(self, line):
        """Return what the command prints, as JSON."""
        tool, *words = shlex.split(line)
        if tool == "cat":
            return self.files[words[0]]
        service, operation, *rest = words
        named, file = options(rest)
        query = named.pop("Query", None)
        answer = getattr(self.deployment.aws.client(service), operation.replace("-", "_"))(**named)
        answer.pop("ResponseMetadata")
        if service == "lambda":
            self.files[file] = json.loads(answer["Payload"].read())
            assert "FunctionError" not in answer
            return None
        if operation == "rotate-secret":
            self.wait(answer["VersionId"])
        return answer[query] if query else answer

    def wait(self, version):
        assert until(lambda: self.deployment.stages("kafka").get(version) == ["AWSCURRENT"], PATIENCE)


def options(words):
    """Return the parameters by their names in the API, and the file for the output."""
    given = {}
    file = ""
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            file = word
        elif not word.startswith("--cli-"):
            given["".join(part.capitalize() for part in word[2:].split("-"))] = words.pop(0)
        else:
            words.pop(0)
    return given, file


def shown():
    """Return each command of the page with the output below it."""
    for fence in docs_reader.fences(PAGE):
        if fence.language == "console":
            for command, _, below in (part.partition("\n") for part in fence.text.split("$ ")[1:]):
                yield command, below


def plain(text):
    """Replace varying values, and order versions by their labels."""
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return sorted(text.split()) if "AWSPREVIOUS" in text else text.split()


@pytest.fixture(scope="module")
def deployment(aws):
    with ConfluentCloud(delays=Delays(kafka_key=0, other_key=0), time_scale=1.0) as cloud:
        made = Deployment(aws, cloud, None, prefix="lakeferry")
        aws.functions.get_function(FunctionName=made.function)
        rules = {"ScheduleExpression": "rate(30 days)"}
        asked = {"RotationLambdaARN": made.function, "RotationRules": rules, "RotateImmediately": False}
        aws.secrets.rotate_secret(SecretId=made.kafka, **asked)
        until(lambda: len(made.stages("kafka")) == 1, PATIENCE)
        yield made


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(deployment):
    terminal = Terminal(deployment)
    commands = list(shown())
    assert [command.split()[0] for command, _ in commands].count("aws") == 6
    leaked = []
    for command, below in commands:
        if "rotate-secret" in command:
            leaked.append(deployment.key("kafka"))
        printed = terminal.run(
            command.replace("--function-name rotation", "--function-name lakeferry-rotation")
        )
        assert plain("" if printed is None else json.dumps(printed, indent=2)) == plain(below), command
    assert len(leaked) == 2
    assert deployment.live("kafka") == {deployment.key("kafka")}


def test_the_commands_wait_for_as_long_as_the_function_may_run():
    """With its default of 60 seconds, AWS's tool would call the function again while it runs."""
    calls = [command for command, _ in shown() if "lambda invoke" in command]
    waits = [int(seconds) for call in calls for seconds in re.findall(r"--cli-read-timeout (\d+)", call)]
    assert len(waits) == len(calls) == 3
    assert min(waits) > contract.ROTATION_TIMEOUT_SECONDS
