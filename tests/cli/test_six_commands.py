"""From a clone to a deployment and a file in six commands, in stand-ins: what the tutorial shows is what they say.

The tests go on where the one before ended: the same deployment is changed, its keys are rotated, and it is destroyed.

After a change that is meant: `UPDATE_TRANSCRIPT=1 pytest tests/cli/test_six_commands.py`, then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import boto3
import pytest
from command import Said
from deployment_kit import bootstrap
from lake import ROOT
from promises import promised
from terminal import talk
from waiting import PATIENCE, until

from lakeferry import output
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import Addresses, DeploymentContext, load_deployment
from lakeferry.local import target
from lambdas.snowflake import sql
from rehearsal import environments
from rehearsal.checks import exports
from rehearsal.harness import Harness

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
#: compression.type can't be set on Confluent Cloud, which the file's check can't know.
REFUSED = """
[[topics]]
name = "refused"
config = { "compression.type" = "gzip" }
"""
#: Another export, whose job others may start and look at.
MORE = """
[[exports]]
contract = "mine"
cron = "0 6 * * ? *"
zone = "UTC"
"""
CONFLUENT = "lakeferry-dev-confluent"
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
    (re.compile(r"concurrent executions: \d+"), "concurrent executions: …"),
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
    with environments.open_environment("myorganization-myaccount", begins) as three, target.in_environment(three.variables):
        yield Day(deployable.root, three).lived()


class Day:
    def __init__(self, root, three):
        self.root, self.three = root, three
        self.said: dict[str, Said] = {}

    def lived(self):
        environments.make_deployer(self.three)
        self.lakeferry("init", *INIT)
        key = {"apiKey": self.three.confluent["cloud_api_key"], "apiSecret": self.three.confluent["cloud_api_secret"]}
        self.lakeferry("secrets set confluent", stdin=json.dumps(key))
        made = self.lakeferry("secrets set snowflake", "--generate")
        (statement,) = re.findall(r"ALTER USER [^;\n]+", made.out)
        environments.admin(self.three).run(sql.Sql(statement))
        self.lakeferry("secrets set snowflake", "--generate")
        ctx = DeploymentContext(load_deployment("dev"), Addresses.read(os.environ))
        cdk = bootstrap(ctx, self.root)
        for words in ("doctor", "plan", "deploy --yes"):
            self.lakeferry(words)
        for seconds in (1300.0, 40.0, 310.0):
            self.three.advance_confluent(seconds)
        self.three.advance_snowflake(120.0)
        self.harness = Harness(ctx, self.three, cdk, self.root)
        self.lakeferry("status")
        return self

    def lakeferry(self, words, *more, stdin=""):
        """With both streams in one, as a terminal shows them."""
        done = self._run(words, *more, input=stdin, stderr=subprocess.STDOUT)
        self.said[words] = Said(done.returncode, done.stdout, "")
        return self.said[words]

    def document(self, words, code=0):
        """The JSON document of a command that ends with `code`."""
        done = self._run(words, "--json", input="", stderr=subprocess.PIPE)
        assert done.returncode == code, done.stderr[-3000:]
        return Said(done.returncode, done.stdout, done.stderr).document

    @property
    def environment(self):
        return {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}

    def _run(self, words, *more, **streams):
        command = [sys.executable, "-m", "lakeferry", *words.split(), *more]
        return subprocess.run(
            command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, text=True, timeout=900, **streams
        )

    def interrupted(self, words, begun):
        """What a command says that gets Ctrl-C once `begun` holds."""
        command = [sys.executable, "-m", "lakeferry", *words.split(), "--json"]
        process = subprocess.Popen(
            command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until(lambda: begun() or process.poll() is not None, PATIENCE)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        return Said(process.returncode, out, err)

    def transcript(self):
        return "\n" + "\n".join(self._block(words) for words in SHOWN) + "\n"

    def _block(self, words):
        """What `deploy` says before it begins is what `plan` says."""
        result = self.said[words].out
        if words.startswith("deploy"):
            result = result[result.index("Deployed ") :]
        return f"```console\n$ lakeferry {LABELS.get(words, words)}\n{steady(result)}\n```\n"


def test_six_commands_lead_to_a_deployment(day):
    for words in ("init", "secrets set confluent", "secrets set snowflake", "doctor", "plan", "deploy --yes"):
        assert day.said[words].code == 0, (words, day.said[words].out[-3000:])
    stacks = boto3.client("cloudformation").list_stacks()["StackSummaries"]
    made = {each["StackName"]: each["StackStatus"] for each in stacks if each["StackName"].startswith("lakeferry-dev-")}
    assert set(made.values()) == {"CREATE_COMPLETE"}
    assert len(made) == 5


def test_and_to_a_file(day):
    checks = exports.published(day.harness) if exports.subscriptions(day.harness) else []
    assert checks[0].numbers["rows"] > 0


def test_the_tutorial_shows_what_they_say(day):
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition(BEGIN)[2].partition(END)[0]
    if os.environ.get("UPDATE_TRANSCRIPT"):
        shown = day.transcript()
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(before + BEGIN + shown + END + rest.partition(END)[2], encoding="utf-8")
    assert shown == day.transcript()


def test_a_deployment_that_fails_names_its_cause_and_leaves_what_was(day):
    file = day.root / "deployments" / "dev.toml"
    before = file.read_text()
    file.write_text(before + REFUSED)
    failed = day.document("deploy --yes", code=1)
    file.write_text(before)
    assert failed["code"] == "DEPLOY-FAILED"
    assert f"topic RefusedTopic in {CONFLUENT}: CFL-INVALID" in failed["message"]
    assert "lakeferry explain CFL-INVALID" in failed["hint"]
    assert failed["details"]["states"][CONFLUENT] == "UPDATE_ROLLBACK_COMPLETE"
    again = day.document("deploy --yes")
    assert again.keys() == promised("deploy")
    assert (again["changes"], again["settings"]) == ([], [])
    assert {thing["name"] for thing in again["outputs"]} >= {"ClusterPage", "LakeBucketName", "SchemaName", "DailyTradesFiles"}
    assert any("destroy --plan" in words for words in again["next"])


def test_permissions_that_grow_are_shown_whole_and_a_refusal_leaves_everything_as_it_was(day):
    file = day.root / "deployments" / "dev.toml"
    before, stacks = file.read_text(), updated(day)
    contract = day.root / "exports" / "mine.toml"
    contract.write_text((day.root / "exports" / "daily_trades.toml").read_text().replace('"daily_trades"', '"mine"', 1))
    file.write_text(before + MORE)
    words, question = ["deploy", "--stage", "dev"], "Approve these permissions and deploy? Type yes"
    code, shown = talk(words, day.environment, [(question, "no\n")], day.root)
    file.write_text(before)
    contract.unlink()
    assert code == 6, shown
    asked = shown[shown.index("BROADER PERMISSIONS:") :]
    for allowed in ("glue:StartJobRun", "glue:GetJobRun"):
        assert re.search(rf"\+ allow {allowed} on arn:aws:glue:\S+:job/lakeferry-dev-mine", asked)
    assert asked.index(question) > asked.rindex("+ allow")
    assert "cancelled; nothing was changed" in asked
    assert updated(day) == stacks


def updated(day):
    """Of each stack, its status and when it was changed last."""
    client = boto3.client("cloudformation")
    stacks = [client.describe_stacks(StackName=name)["Stacks"][0] for name in day.harness.ctx.stacks]
    return {one["StackName"]: (one["StackStatus"], one.get("LastUpdatedTime")) for one in stacks}


def test_the_plan_of_what_is_deployed_is_empty(day):
    plan = day.document("plan --check")
    assert plan.keys() == promised("plan")
    assert (plan["changes"], plan["settings"]) == ([], [])
    assert plan["cost"]["high"] > plan["cost"]["low"] > 0


def test_status_looks_at_every_hop(day):
    """Trades of long ago are all that is wrong."""
    said = day.document("status", code=1)
    status = said["details"]
    assert {*status, *output.DOCUMENT} == promised("status")
    wrong = {hop for table in status["tables"] for hop, seen in table.items() if isinstance(seen, dict) and seen["state"] != "ok"}
    assert wrong == {"topic"}
    assert [one["vendor"] for one in status["secrets"] if one["label"] == "RSA_PUBLIC_KEY"] == ["snowflake"]


def test_keys_are_rotated_manually_and_revoked(day):
    assert day.document("rotate snowflake --now", code=2)["code"] == "ROTATE-NOT-CONFIRMED"
    assert day.document("rotate nosuch --now --yes", code=2)["code"] == "ROTATE-UNKNOWN"
    assert day.document("rotate snowflake/reader --now --yes").keys() == promised("rotate")
    again = day.document("rotate snowflake/reader --now --yes", code=1)
    assert again["code"] == "ROTATE-FAILED"
    assert "ROT-IN-GRACE" in again["message"]
    first, second = day.document("rotate snowflake --revoke --yes")["revoked"]
    assert len(first["revoked"]) == len(second["revoked"]) == 1
    (left,) = day.document("rotate snowflake")["secrets"]
    assert [key["id"] for key in left["keys"]] == [second["kept"]]


def test_an_interrupted_rotation_claims_no_result(day):
    (known,) = day.document("rotate snowflake")["secrets"]
    name, client = known["secret"], boto3.client("secretsmanager")

    def labels():
        return client.describe_secret(SecretId=name)["VersionIdsToStages"]

    before = labels()
    said = day.interrupted(f"rotate {name} --now --yes", lambda: labels().keys() != before.keys())
    assert (said.code, said.document["code"]) == (6, "ROTATE-STOPPED"), said.err
    assert said.document["message"].startswith(f"interrupted while watching {name}; a rotation that has started continues in AWS")
    assert f"rotate {name}" in said.document["hint"]
    (new,) = labels().keys() - before.keys()
    until(lambda: "AWSCURRENT" in labels()[new], PATIENCE)


def test_logs_are_listed_by_what_wrote_them(day):
    named = day.document("logs")
    assert named.keys() == promised("logs")
    assert named["names"][:2] == ["daily_trades", "confluent"]
    (functions,) = day.document("logs rotation")["runs"]
    assert any('"message": "current"' in line["text"] for line in functions["lines"])
    (job,) = day.document("logs daily_trades")["runs"]
    assert job["state"] == "SUCCEEDED"


def test_what_somebody_deleted_at_confluent_is_created_again(day):
    here = day.harness.ctx
    outputs = deployed.require_part(here, "confluent").outputs
    tableflow = here.confluent().tableflow(here.secrets.read_key("lakeferry-dev/confluent/tableflow"))
    of_cluster = {"environment": outputs["EnvironmentId"], "spec.kafka_cluster": outputs["KafkaClusterId"]}
    path = "/tableflow/v1/tableflow-topics/stock_trades_with_totals"
    before = day.three.confluent_objects()
    tableflow.delete(path, **of_cluster)
    day.three.advance_confluent(120.0)
    assert tableflow.read(path, **of_cluster) is None
    status = day.document("status --drift", code=1)["details"]
    (table,) = [one for one in status["tables"] if one["table"] == "stock_trades_with_totals"]
    assert "Tableflow is off for this topic; `lakeferry deploy --repair`" in table["tableflow"]["message"]
    (missing,) = [one for one in status["drift"] if one["system"] == "Confluent"]
    assert (missing["name"], missing["status"]) == ("StockTradesWithTotalsTable", "DELETED")
    repaired = day.document("deploy --repair --yes")
    assert [change["logical_id"] for change in repaired["changes"]] == ["StockTradesWithTotalsTable"]
    assert repaired["losses"] == []
    assert {thing["name"] for thing in repaired["outputs"]} >= {"ClusterPage", "LakeBucketName"}
    assert tableflow.read(path, **of_cluster) is not None
    assert day.three.confluent_objects() == before
    assert day.document("plan --check")["changes"] == []


def test_the_day_ends_with_nothing_left(day):
    done = day.document("destroy --confirm dev")
    assert sorted(done["stacks"]) == sorted(day.harness.ctx.stacks)
    assert done["removed"] == []
    assert day.document("status", code=2)["code"] == "NOT-DEPLOYED"


def test_what_varies_is_distinguished_from_what_does_not():
    assert steady("made lkc-abc123 in 12.3 s") == "made lkc-… in … s"
    assert steady("2 tables") == "2 tables"
