"""The model of a rehearsal's checks, the project in which commands run, and the access to the deployment that
checks share.
"""

from __future__ import annotations

import base64
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from config.deployments.model import Deployment
from config.project import DEFAULT_STAGE, PROJECT
from lakeferry.deployment import cdk, node
from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import DeploymentContext
from lakeferry.local.bootstrap import ROOT
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.events import Plan, TopicEvents, decode
from lakeferry.verification.oracle import Record
from lakeferry.verification.tables import find_database
from lambdas.shared.clock import Deadline, SystemClock
from stacks.assets import build_glue_zip

_PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.2


class CheckFailed(Exception):
    """The message says what was observed instead of what the check claims."""


def require(condition: object, message: str) -> None:
    """Raise CheckFailed with the message unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


@attrs.frozen
class Check:
    """A check that passed: what it claims, what was seen, and the same as numbers for programs."""

    claim: str
    seen: str
    numbers: dict[str, Any] = attrs.Factory(dict)


@attrs.frozen
class NotApplicable:
    """A check that has nothing to check in this deployment, and why."""

    claim: str
    why: str


Result = Check | NotApplicable


@attrs.frozen
class Phase:
    """A part of a rehearsal with the checks that passed in it. `seconds` are wall-clock time."""

    name: str
    seconds: float
    checks: list[Check]
    failure: str = ""
    not_applicable: list[NotApplicable] = attrs.Factory(list)


def wait_until(poll: Callable[[], Any], message: str, seconds: float = _PATIENCE_SECONDS) -> Any:
    """Return the first true answer of `poll`. Raises CheckFailed after `seconds`."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + seconds)
    while not (answer := poll()):
        if not deadline.left():
            raise CheckFailed(f"{message}, after {seconds:.0f} s")
        clock.sleep(_POLL_SECONDS)
    return answer


#: What the commands need of a checkout. `make setup` has installed the rest, which is linked.
_PARTS: Final = (
    "app.py", "cdk.json", "config", "glue_jobs", "lakeferry", "lambdas", "package-lock.json",
    "package.json", "simulators", "stacks",
)  # fmt: skip
_LINKS: Final = (".venv", ".venv-aws", ".jars", "build", "node_modules")
_COMMAND_SECONDS: Final = 1500.0
_SILENCE_SECONDS: Final = 300.0


def copy_project(root: Path, project: Path = PROJECT) -> None:
    """Copy a checkout to `root`, with this folder of deployments/, exports/, topics/ and flink/."""
    cdk.ensure_command_line(node.find())  # fetches it unless it is installed
    build_glue_zip()  # builds it into build/
    ignored = shutil.ignore_patterns("__pycache__")
    for part in _PARTS:
        if (ROOT / part).is_file():
            shutil.copy(ROOT / part, root / part)
        else:
            shutil.copytree(ROOT / part, root / part, ignore=ignored)
    shutil.copytree(project, root / PROJECT.name, ignore=ignored)
    for part in _LINKS:
        (root / part).symlink_to(ROOT / part)


@attrs.define
class Project:
    """A copy of the project, in `root`.

    `printed` has the output of each command that `show` ran, by the command's words.
    """

    root: Path
    stage: str
    printed: dict[str, str] = attrs.Factory(dict)

    @property
    def folder(self) -> Path:
        """Return the folder of deployments/, exports/, topics/ and flink/."""
        return self.root / "project"

    @property
    def file(self) -> Path:
        return self.folder / "deployments" / f"{self.stage}.toml"

    def show(self, words: str, *more: str, stdin: str = "", ends: int | None = 0) -> str:
        """Run a command as `read` does, and keep what it printed, for the transcript of a tutorial."""
        self.printed[words] = self.read(words, *more, stdin=stdin, ends=ends)
        return self.printed[words]

    def read(self, words: str, *more: str, stdin: str = "", ends: int | None = 0) -> str:
        """Run a command and return standard output and standard error together, as a terminal shows them.

        Raises CheckFailed if it ends with another code than `ends`; None takes any.
        """
        process = subprocess.run(
            self._build_command(words, *more), cwd=self.root, env=self._build_environment(), input=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_COMMAND_SECONDS,
        )  # fmt: skip
        if ends is not None and process.returncode != ends:
            raise CheckFailed(
                f"lakeferry {words} ended with code {process.returncode}:\n{process.stdout[-3000:]}"
            )
        return process.stdout

    def run(self, words: str, *more: str, code: int | None = 0) -> dict[str, Any]:
        """Run a command with --json and return its document.

        Raises CheckFailed if it ends with another code; None takes any.
        """
        process = self._start(words, *more)
        return self._document(process, words, code)

    def interrupt(self, words: str, begun: Callable[[], object], code: int) -> dict[str, Any]:
        """Send Ctrl-C to a command once `begun` returns true, and return its document. Raises CheckFailed."""
        process = self._start(words)
        wait_until(lambda: begun() or process.poll() is not None, f"lakeferry {words} has not begun")
        process.send_signal(signal.SIGINT)
        return self._document(process, words, code)

    def talk(self, words: str, answers: Sequence[tuple[str, str]]) -> tuple[int, str]:
        """Run a command on a terminal, as the function `talk` does."""
        return talk([*words.split(), *self._stage()], self._build_environment(), answers, self.root)

    def _start(self, words: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._build_command(words, *more, "--json"), cwd=self.root, env=self._build_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def _build_command(self, words: str, *more: str) -> list[str]:
        given = [*words.split(), *more]
        stage = [] if "--stage" in given else self._stage()
        return [sys.executable, "-m", "lakeferry", *given, *stage]

    def _stage(self) -> list[str]:
        """Return the option for the stage, none for the default stage."""
        return [] if self.stage == DEFAULT_STAGE else ["--stage", self.stage]

    @staticmethod
    def _build_environment() -> dict[str, str]:
        return {**os.environ, "NO_COLOR": "1", "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}

    @staticmethod
    def _document(process: subprocess.Popen[str], words: str, code: int | None) -> dict[str, Any]:
        out, err = process.communicate(timeout=_COMMAND_SECONDS)
        if code is not None and process.returncode != code:
            raise CheckFailed(
                f"lakeferry {words} ended with code {process.returncode}, not "
                f"{code}:\n{err[-3000:]}{out[-1000:]}"
            )
        document: dict[str, Any] = json.loads(out)
        return document


def talk(
    words: Sequence[str], environment: Mapping[str, str], answers: Sequence[tuple[str, str]], root: Path
) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and what the terminal showed.

    `answers` are pairs: a text to wait for, and what to type then. Raises CheckFailed if one of the texts
    never appears, or if the command neither ends nor shows anything for five minutes.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lakeferry", *words],
        cwd=root,
        env={**environment, "TERM": "xterm", "COLUMNS": "200"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    output = ""
    position = 0
    remaining_answers = list(answers)
    while piece := _read(ours, process):
        output += piece
        if remaining_answers and (start := output.find(remaining_answers[0][0], position)) >= 0:
            position = start + len(remaining_answers[0][0])
            os.write(ours, remaining_answers.pop(0)[1].encode())
    os.close(ours)
    code = process.wait(_COMMAND_SECONDS)
    if remaining_answers:
        raise CheckFailed(f"the terminal never showed {remaining_answers[0][0]!r}:\n{output}")
    return code, output


def _read(terminal: int, process: subprocess.Popen[bytes]) -> str:
    """Return what the terminal shows next, "" at its end. Kill a command that shows nothing any more."""
    ready, _, _ = select.select([terminal], [], [], _SILENCE_SECONDS)
    if not ready:
        process.kill()
        return ""
    try:
        return os.read(terminal, 4096).decode(errors="replace")
    except OSError:  # the other end is closed: the command has ended
        return ""


@attrs.frozen
class TopicRecords:
    """`schema` is the Avro schema of the values, "" for a topic without records and without a schema."""

    schema: str
    records: list[Record]

    @classmethod
    def from_events(cls, events: TopicEvents) -> TopicRecords:
        """Return what was written into a table that exists, with the offsets that Kafka would give it."""
        offsets: dict[int, int] = {}
        records = []
        for record in events.records:
            offset = offsets.get(record.partition, 0)
            offsets[record.partition] = offset + 1
            records.append(attrs.evolve(record, offset=offset))
        return cls(events.schema, records)

    @property
    def values(self) -> list[dict[str, Any]]:
        return [decode(base64.b64decode(record.avro), self.schema) for record in self.records]


@attrs.define
class Harness:
    """A deployment in the simulators, and the project that its user works in. The rehearsal writes its files
    to `out`.

    `cdk` does what a user does without Lakeferry (bootstrap). Runs with faults also deploy with it. `plan`
    has the events and the exports. `cloud_key` is that of the file's owner, as a secret has it. `initial` are
    Confluent's objects before the deployment, by kind.
    """

    ctx: DeploymentContext
    simulators: SimulatedEnvironment
    project: Project
    cdk: Cdk
    out: Path
    plan: Plan
    is_example: bool = False
    cloud_key: dict[str, str] = attrs.Factory(dict)
    initial: dict[str, list[str]] = attrs.Factory(dict)

    @property
    def deployment(self) -> Deployment:
        return self.ctx.deployment

    @property
    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        confluent = self.deployment.confluent
        existing = confluent.cluster_id if confluent else None
        return existing or self.output("confluent", "KafkaClusterId")

    @property
    def database(self) -> str:
        """Return the Glue database of the tables."""
        return find_database(self.ctx)

    def output(self, part: str, name: str) -> str:
        """Return an output of the stack `<prefix>-<part>`. Raises CheckFailed if it has no such output."""
        stack = f"{self.ctx.deployment.prefix}-{part}"
        (described,) = self.ctx.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        for output in described.get("Outputs", []):
            if output["OutputKey"] == name:
                return str(output["OutputValue"])
        raise CheckFailed(f"stack {stack} has no output {name}")

    def secret(self, secret_id: str) -> dict[str, str]:
        value = self.ctx.client("secretsmanager").get_secret_value(SecretId=secret_id)
        fields: dict[str, str] = json.loads(value["SecretString"])
        return fields

    def read_topic(self, topic: str) -> TopicRecords:
        """Return the topic's records as their producers wrote them. Raises CheckFailed for a topic with
        records that can't be read.
        """
        if self.deployment.source and self.deployment.source.glue:
            return TopicRecords.from_events(self.plan.events[topic])
        answer = self.simulators.ask_confluent("POST", "/records", {"topic": topic})
        bad = [record for record in answer["records"] if "problem" in record]
        require(not bad, f"topic {topic} has {len(bad)} records that can't be read")
        names = [field.name for field in attrs.fields(Record)]
        records = [
            Record(**{name: record[name] for name in names if name in record})
            for record in answer["records"]
            if record["value"] is not None
        ]
        return TopicRecords(answer["schema"], records)

    def objects(self, bucket: str, prefix: str) -> list[str]:
        pages = self.ctx.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def content(self, bucket: str, key: str) -> bytes:
        body: bytes = self.ctx.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return body
