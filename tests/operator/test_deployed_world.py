"""From nothing to a deployment and a look at everything, by the commands that users call, in three worlds of stand-ins.

It takes some minutes, and its tests go on where the one before ended: each tells what an operator does next.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest
from lake import ROOT
from promises import promised
from waiting import until

from lakeferry import ground, world
from lakeferry.cdk_runs import Cdk
from lakeferry.console import CommandFailed, Voice
from lakeferry.deploying import flow
from lakeferry.ground import Ground
from lakeferry.planning import taking
from lakeferry.rehearsal import worlds

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]

#: compression.type can't be set on Confluent Cloud, which the file's check can't know.
REFUSED = """
[[topics]]
name = "refused"
config = { "compression.type" = "gzip" }
"""
CONFLUENT = "lakeferry-dev-confluent"


@attrs.frozen
class Said:
    code: int
    document: dict
    err: str


@attrs.frozen
class Operator:
    """Calls `lakeferry` as a user of these worlds."""

    worlds: object
    here: Ground

    def start(self, *words):
        command = [sys.executable, "-m", "lakeferry", *words, "--stage", "dev", "--json"]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.worlds.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, process):
        out, err = process.communicate()
        assert out.count(b"\n") == 1, out + err
        said = Said(process.returncode, json.loads(out), err.decode())
        assert said.document["code"] != "UNEXPECTED", said
        return said

    def call(self, *words):
        return self.end(self.start(*words))

    def status(self, stack):
        found = [each for each in self.client.describe_stacks()["Stacks"] if each["StackName"] == stack]
        return found[0]["StackStatus"] if found else ""

    @property
    def client(self):
        return self.here.client("cloudformation")


@pytest.fixture(scope="module")
def operator():
    with ground.of("dev") as file:
        account = file.deployment.snowflake.account
    with worlds.open_worlds(account, time.time() - 3600) as opened, world.in_environment(opened.environment):
        here = Ground(file.plan, ground.Addresses.read(opened.environment))
        yield Operator(opened, here)


def test_what_is_missing_is_told_at_once_before_anything_is_made(operator):
    said = operator.call("deploy", "--yes")
    assert (said.code, said.document["code"]) == (3, "DEPLOY-NOT-READY")
    assert len(said.document["details"]) == 3
    worlds.prepare(operator.here, operator.worlds)
    subprocess.run(
        [sys.executable, "-m", "lakeferry.cdk", "bootstrap", "aws://000000000000/eu-west-1"],
        cwd=ROOT, env=operator.worlds.environment, check=True, capture_output=True,
    )  # fmt: skip


def test_the_plan_of_the_first_deployment_makes_everything(operator):
    said = operator.call("plan")
    assert (said.code, said.document.keys()) == (0, promised("plan"))
    assert {change["action"] for change in said.document["changes"]} == {"made"}
    assert len(said.document["phases"]) == 5
    assert said.document["cost"]["high"] > said.document["cost"]["low"] > 0
    assert operator.status(CONFLUENT) == ""


def test_nobody_deploys_without_being_asked(operator):
    said = operator.call("deploy")
    assert (said.code, said.document["code"]) == (2, "DEPLOY-NOT-CONFIRMED")
    assert operator.status(CONFLUENT) == ""


def test_who_stops_watching_stops_nothing_that_is_under_way(operator):
    process = operator.start("deploy", "--yes")
    until(lambda: operator.status(CONFLUENT) == "CREATE_IN_PROGRESS" or process.poll() is not None, patience=300.0)
    process.send_signal(signal.SIGINT)
    said = operator.end(process)
    assert (said.code, said.document["code"]) == (6, "DEPLOY-STOPPED")
    assert said.document["details"]["under_way"] == [CONFLUENT]
    until(lambda: not operator.status(CONFLUENT).endswith("_IN_PROGRESS"), patience=300.0)
    assert operator.status(CONFLUENT) == "CREATE_COMPLETE"


def test_the_same_command_does_the_rest_and_says_what_exists(operator):
    said = operator.call("deploy", "--yes")
    assert said.code == 0, said.err
    assert said.document.keys() == promised("deploy")
    assert {change["stack"].rpartition("-")[2] for change in said.document["changes"]} == {"snowflake", "exports", "operations"}
    exists = {thing["name"]: thing["value"] for thing in said.document["exists"]}
    assert {"ClusterPage", "LakeBucketName", "SchemaName", "DashboardPage", "DailyTradesFiles"} <= exists.keys()
    assert "[3/5] lakeferry-dev-snowflake made" in said.err
    assert any("destroy --plan" in words for words in said.document["next"])


def test_what_is_deployed_is_what_is_wanted(operator):
    said = operator.call("plan", "--check")
    assert (said.code, said.document["changes"], said.document["settings"]) == (0, [], [])


def test_status_waits_for_the_first_table_and_finds_all_well(operator):
    operator.worlds.advance_confluent(300)
    operator.worlds.advance_confluent(300)
    operator.worlds.advance_snowflake(300)
    said = operator.call("status", "--wait-for", "first-table", "--minutes", "3")
    assert said.code == 0, said.err
    assert said.document.keys() == promised("status")
    assert {hop["state"] for table in said.document["tables"] for hop in table.values() if isinstance(hop, dict)} == {"ok"}
    assert [one["vendor"] for one in said.document["secrets"] if one["place"] == "RSA_PUBLIC_KEY"] == ["snowflake"]
    assert "the first run comes at" in str(said.document["exports"])


def test_keys_are_rotated_by_hand_and_revoked(operator):
    said = operator.call("rotate", "snowflake/reader", "--now", "--yes")
    assert (said.code, said.document.keys()) == (0, promised("rotate"))
    again = operator.call("rotate", "snowflake/reader", "--now", "--yes")
    assert (again.code, again.document["code"]) == (1, "ROTATE-FAILED")
    assert "ROT-IN-GRACE" in again.document["message"]
    leaked = operator.call("rotate", "snowflake", "--revoke", "--yes")
    assert leaked.code == 0, leaked.err
    (first, second) = leaked.document["revoked"]
    assert len(first["revoked"]) == len(second["revoked"]) == 1
    (left,) = operator.call("rotate", "snowflake").document["secrets"]
    assert [key["id"] for key in left["keys"]] == [second["kept"]]


def test_nobody_rotates_without_being_asked_and_a_wrong_name_is_told(operator):
    said = operator.call("rotate", "snowflake", "--now")
    assert (said.code, said.document["code"]) == (2, "ROTATE-NOT-CONFIRMED")
    said = operator.call("rotate", "nosuch", "--now", "--yes")
    assert (said.code, said.document["code"]) == (2, "ROTATE-UNKNOWN")


def test_logs_are_found_by_what_they_are_of(operator):
    named = operator.call("logs")
    assert (named.code, named.document.keys()) == (0, promised("logs"))
    assert named.document["names"][:2] == ["daily_trades", "confluent"]
    (run,) = operator.call("logs", "rotation").document["runs"]
    assert any('"message": "current"' in line["text"] for line in run["lines"])
    assert operator.call("logs", "daily_trades").document["runs"] == []


def test_a_deployment_that_fails_tells_its_cause_and_what_stands(operator, tmp_path, capsys):
    (tmp_path / "dev.toml").write_text((ROOT / "deployments" / "dev.toml").read_text() + REFUSED)
    cdk = Cdk(operator.here, folder=Path(tmp_path / "assembly"))
    taking.synthesised(cdk, lambda _: None, tmp_path)
    with pytest.raises(CommandFailed) as failed:
        flow.deploy(Voice(), operator.here, cdk, yes=True)
    assert (failed.value.exit_code, failed.value.code) == (1, "DEPLOY-FAILED")
    assert f"topic RefusedTopic in {CONFLUENT}: CFL-INVALID" in failed.value.message
    assert "lakeferry explain CFL-INVALID" in failed.value.hint
    assert failed.value.details["states"][CONFLUENT] == "UPDATE_ROLLBACK_COMPLETE"
    assert f"{CONFLUENT}: stands as it was before" in capsys.readouterr().out
    assert operator.call("plan", "--check").code == 0


def test_the_day_ends_with_nothing_left(operator):
    said = operator.call("destroy", "--yes", "dev")
    assert said.code == 0, said.err
    assert sorted(said.document["stacks"]) == sorted(operator.here.stacks)
    assert said.document["removed"] == []
    gone = operator.call("status")
    assert (gone.code, gone.document["code"]) == (2, "NOT-DEPLOYED")
