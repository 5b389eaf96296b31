"""From a clone to a deployment and a file in six commands, in the rehearsal's worlds: what the tutorial shows is what they say.

After a change that is meant: `UPDATE_TRANSCRIPT=1 pytest tests/cli/test_six_commands.py`, then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import boto3
import pytest
from command import Said
from lake import ROOT

from lakeferry import world
from lakeferry.cdk_runs import Cdk
from lakeferry.ground import Addresses, Ground
from lakeferry.plans import plan_of
from lakeferry.rehearsal import worlds
from lakeferry.rehearsal.proofs import exports
from lakeferry.rehearsal.stage import Stage
from lambdas.snowflake import sql

#: The whole day is the set-up of the first test.
pytestmark = pytest.mark.timeout(2700)
PAGE = ROOT / "docs" / "tutorial" / "in-your-own-accounts.md"
BEGIN, END = "<!-- transcript -->\n", "<!-- end of transcript -->\n"
INIT = (
    "--yes",
    "--snowflake",
    "myorganization-myaccount",
    "--recipients",
    "analysts@example.com",
    "--engineers",
    "engineers@example.com",
)
#: As a user types it, where the test needs other words.
LABELS = {"secrets set snowflake": "secrets set snowflake --generate", "deploy --yes": "deploy"}
SHOWN = ("init", "secrets set confluent", "secrets set snowflake", "doctor", "plan", "deploy --yes", "status")
#: What differs from run to run, and what stands for it on the page.
_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? s\b"), "… s"),
    (re.compile(r"\b(\d+m)?\d+s\b"), "…"),
    (re.compile(r"\b(env|lkc|lfcp|sa|cspi|tci|u|lsrc|lcc)-[a-z0-9]{4,}\b"), r"\1-…"),
    (re.compile(r"127\.0\.0\.1:\d+"), "…"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b"), "…"),
    (re.compile(r"(:secret:\S+)-[0-9a-f]{6}\b"), r"\1-…"),
    (re.compile(r"SHA256:[A-Za-z0-9+/]{43}="), "SHA256:…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?( UTC|Z)?"), "…"),
    (re.compile(r"\b[A-Z0-9]{16}\b"), "…"),
    (re.compile(r"\b\d+\.\d+ (days|hours)"), "…"),
    (re.compile(r"s3://\S+\.metadata\.json"), "s3://…"),
    (re.compile(r"(bucket[0-9a-f]{8})-[0-9a-f]{13}"), r"\1-…"),
    (re.compile(r"(Java: 17|uv:|Python: 3\.11|Node: \d+).*"), r"\1 …"),
    (re.compile(r"calls at once: \d+"), "calls at once: …"),
    (re.compile(r" {2,}"), "  "),
)
#: How far it is, which depends on the machine.
_PROGRESS = re.compile(r"^(\[\d/\d\].*| {8}.*)\n", re.MULTILINE)


def steady(text: str) -> str:
    text = _PROGRESS.sub("", text)
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.fixture(scope="module")
def day(deployable):
    """What each command said, in the order in which the README has them."""
    begins = exports.first_window().end.timestamp() - 900
    with worlds.open_worlds("myorganization-myaccount", begins) as three, world.in_environment(three.environment):
        yield Day(deployable.root, three).lived()


class Day:
    def __init__(self, root, three):
        self.root, self.three = root, three
        self.said: dict[str, Said] = {}

    def lived(self):
        worlds.make_deployer(self.three)
        self.lakeferry("init", *INIT)
        key = {"apiKey": self.three.confluent["cloud_api_key"], "apiSecret": self.three.confluent["cloud_api_secret"]}
        self.lakeferry("secrets set confluent", stdin=json.dumps(key))
        made = self.lakeferry("secrets set snowflake", "--generate")
        (statement,) = re.findall(r"ALTER USER [^;\n]+", made.out)
        worlds.admin(self.three).run(sql.Sql(statement))
        self.lakeferry("secrets set snowflake", "--generate")
        here = Ground(plan_of("dev"), Addresses.read(os.environ))
        line = Cdk(here, self.root / "cdk.out", self.root / "cdk.log")
        line.synth(print)
        line.bootstrap(print)
        for words in ("doctor", "plan", "deploy --yes"):
            self.lakeferry(words)
        for seconds in (1300.0, 40.0, 310.0):
            self.three.advance_confluent(seconds)
        self.three.advance_snowflake(120.0)
        self.stage = Stage(here, self.three, line, self.root)
        self.lakeferry("status")
        return self

    def lakeferry(self, words, *more, stdin=""):
        here = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}
        command = [sys.executable, "-m", "lakeferry", *words.split(), *more]
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}  # as a terminal shows them
        done = subprocess.run(command, cwd=self.root, env=here, input=stdin, text=True, timeout=900, **both)
        self.said[words] = Said(done.returncode, done.stdout, "")
        return self.said[words]

    def transcript(self):
        return "\n" + "\n".join(self._block(words) for words in SHOWN) + "\n"

    def _block(self, words):
        """What `deploy` says before it begins is what `plan` says."""
        told = self.said[words].out
        if words.startswith("deploy"):
            told = told[told.index("Deployed ") :]
        return f"```console\n$ lakeferry {LABELS.get(words, words)}\n{steady(told)}\n```\n"


def test_six_commands_lead_to_a_deployment(day):
    for words in ("init", "secrets set confluent", "secrets set snowflake", "doctor", "plan", "deploy --yes"):
        assert day.said[words].code == 0, (words, day.said[words].out[-3000:])
    stacks = boto3.client("cloudformation").list_stacks()["StackSummaries"]
    made = {each["StackName"]: each["StackStatus"] for each in stacks if each["StackName"].startswith("lakeferry-dev-")}
    assert set(made.values()) == {"CREATE_COMPLETE"}
    assert len(made) == 5


def test_and_to_a_file(day):
    proofs = exports.published(day.stage) if exports.subscriptions(day.stage) else []
    assert proofs[0].numbers["rows"] > 0


def test_the_tutorial_shows_what_they_say(day):
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition(BEGIN)[2].partition(END)[0]
    if os.environ.get("UPDATE_TRANSCRIPT"):
        shown = day.transcript()
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(before + BEGIN + shown + END + rest.partition(END)[2], encoding="utf-8")
    assert shown == day.transcript()


def test_what_varies_is_told_from_what_does_not():
    assert steady("made lkc-abc123 in 12.3 s") == "made lkc-… in … s"
    assert steady("2 tables") == "2 tables"
