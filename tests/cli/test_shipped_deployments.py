"""Every file in deployments/ goes through a whole deployment and away again, by the commands that users call.

dev.toml does so in test_six_commands.py. The tests of a file go on where the one before ended.
"""

from __future__ import annotations

import base64
import io
import json
import re
import signal
import struct
import time
from datetime import UTC, datetime

import attrs
import fastavro
import pytest
import requests
from command import Clone, Said
from lake import ROOT
from promises import promised
from waiting import PATIENCE, until

from lakeferry import inventory
from lakeferry.deployment import context
from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import Verdict
from lakeferry.local import target
from rehearsal import environments
from simulators import generators

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
_WEEK = {"start": datetime(2026, 11, 9, tzinfo=UTC), "end": datetime(2026, 11, 16, tzinfo=UTC)}
#: What producers of the user's own write, by topic.
ORDERS = {"sales_orders": [each.value for each in generators.sales_orders(generators.SalesMix(orders=5), seed=1, **_WEEK)]}
STAGES = sorted({file.stem for file in (ROOT / "deployments").glob("*.toml")} - {"dev"})


@attrs.frozen
class Operator:
    """Calls `lakeferry` as a user of these stand-ins."""

    clone: Clone
    worlds: environments.SimulatedEnvironment
    here: DeploymentContext

    def call(self, *words, code=0) -> Said:
        said = self.clone.run(*words, "--stage", self.here.stage, "--json", changes=self.worlds.environment, patience=1500)
        assert said.code == code, f"{words}\n{said.err[-4000:]}{said.out}"
        return said

    def produce(self, topic, values):
        """As a producer of the user's own: with the keys in Secrets Manager, by Kafka's REST interface."""
        cluster = f"{self.worlds.confluent['url']}/cmk/v2/clusters/{self.output('KafkaClusterId')}"
        cloud = self.worlds.confluent["cloud_api_key"], self.worlds.confluent["cloud_api_secret"]
        query = {"environment": self.output("EnvironmentId")}
        endpoint = requests.get(cluster, params=query, auth=cloud, timeout=30).json()["spec"]["http_endpoint"]
        registry, producer = self.secret("schema_registry"), self.secret("kafka/app_producer")
        latest = f"{registry['schema.registry.url']}/subjects/{topic}-value/versions/latest"
        schema = requests.get(latest, auth=(registry["apiKey"], registry["apiSecret"]), timeout=30).json()
        parsed = fastavro.parse_schema(json.loads(schema["schema"]))
        for value in values:
            encoded = io.BytesIO(struct.pack(">bI", 0, schema["id"]))
            encoded.seek(5)
            fastavro.schemaless_writer(encoded, parsed, value)
            body = {"value": {"type": "BINARY", "data": base64.b64encode(encoded.getvalue()).decode()}}
            records = f"{endpoint}/kafka/v3/clusters/{self.output('KafkaClusterId')}/topics/{topic}/records"
            answer = requests.post(records, json=body, auth=(producer["apiKey"], producer["apiSecret"]), timeout=30)
            assert answer.json()["error_code"] == 200, answer.text

    def secret(self, name):
        held = self.here.client("secretsmanager").get_secret_value(SecretId=f"{self.here.deployment.prefix}/confluent/{name}")
        return json.loads(held["SecretString"])

    def output(self, name):
        stack = f"{self.here.deployment.prefix}-confluent"
        (described,) = self.here.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return next(each["OutputValue"] for each in described["Outputs"] if each["OutputKey"] == name)

    def stacks(self):
        """Status by name."""
        found = self.here.client("cloudformation").describe_stacks()["Stacks"]
        return {each["StackName"]: each["StackStatus"] for each in found if each["StackName"] in self.here.stacks}


@pytest.fixture(scope="module", params=STAGES)
def operator(request, deployable):
    with context.open_context(request.param) as file:
        account, region = file.deployment.snowflake.account, file.deployment.aws.region
    with (
        environments.open_worlds(account, time.time() - 3600, region=region, flink=False) as opened,
        target.in_environment(opened.environment),
    ):
        here = DeploymentContext(file.plan, context.Addresses.read(opened.environment))
        yield Operator(deployable, opened, here)


def test_what_is_missing_is_listed_before_anything_is_created(operator):
    said = operator.call("deploy", "--yes", code=3)
    assert said.document["code"] == "DEPLOY-NOT-READY"
    assert len(said.document["details"]) == 3
    assert operator.stacks() == {}
    environments.prepare(operator.here, operator.worlds)
    line = Cdk(operator.here, operator.clone.root / "cdk.out", operator.clone.root / "cdk.log")
    line.synth(print)
    line.bootstrap(print)


def test_nobody_deploys_without_being_asked(operator):
    assert operator.call("deploy", code=2).document["code"] == "DEPLOY-NOT-CONFIRMED"
    assert operator.stacks() == {}


def test_who_stops_watching_stops_nothing_that_is_under_way(operator):
    stack = f"{operator.here.deployment.prefix}-confluent"
    process = operator.clone.start(
        "deploy", "--yes", "--stage", operator.here.stage, "--json", changes=operator.worlds.environment
    )
    until(lambda: operator.stacks().get(stack) == "CREATE_IN_PROGRESS" or process.poll() is not None, PATIENCE)
    process.send_signal(signal.SIGINT)
    said = operator.clone.said(process)
    assert (said.code, said.document["code"]) == (6, "DEPLOY-STOPPED"), said.err
    assert said.document["details"]["under_way"] == [stack]
    until(lambda: not operator.stacks()[stack].endswith("_IN_PROGRESS"), PATIENCE)
    assert operator.stacks()[stack] == "CREATE_COMPLETE"


def test_the_same_command_deploys_the_rest(operator):
    operator.call("deploy", "--yes")
    assert operator.stacks() == dict.fromkeys(operator.here.stacks, "CREATE_COMPLETE")
    assert operator.call("plan", "--check").document["changes"] == []


def test_what_producers_write_becomes_tables_and_nothing_is_wrong(operator):
    for topic in operator.here.deployment.topics:
        operator.produce(topic.name, ORDERS[topic.name])
    for _ in range(2):
        operator.worlds.advance_confluent(300)
    operator.worlds.advance_snowflake(300)
    status = operator.call("status").document
    assert status.keys() == promised("status")
    states = {hop["state"] for table in status["tables"] for hop in table.values() if isinstance(hop, dict)}
    assert states == {"ok"}
    checks = operator.call("doctor").document["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []


def test_a_protected_deployment_is_destroyed_only_after_its_protection_is_lifted(operator):
    """What the file keeps stays; nothing else does."""
    prefix, file = operator.here.deployment.prefix, operator.clone.root / "deployments" / f"{operator.here.stage}.toml"
    refused = operator.call("destroy", "--confirm", operator.here.stage, code=7).document
    assert refused["code"] == "DESTROY-PROTECTED"
    file.write_text(file.read_text().replace("deletion_protection = true", "deletion_protection = false"))
    operator.call("deploy", "--yes")
    client = operator.here.client("cloudformation")
    for stack in re.findall(rf"\b{prefix}-[a-z]+\b", refused["message"]):
        client.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    done = operator.call("destroy", "--confirm", operator.here.stage).document
    assert sorted(done["stacks"]) == sorted(operator.here.stacks)
    assert operator.stacks() == {}
    left = inventory.take(operator.here)
    assert inventory.problems(left) == []
    assert {item.kind for item in left if item.verdict is Verdict.RETAINED} >= {"bucket"}
