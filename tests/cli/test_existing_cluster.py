"""A cluster of another team: from `doctor --discover` to a file and back, beside everything that they have.

The tests depend on each other: each continues where the previous one ended, as in
docs/tutorial/existing-cluster.md.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import time

import attrs
import boto3
import pytest

from config.project import PROJECT
from lakeferry.local import target
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.harness import copy_project
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer, bootstrap

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
STAGE = "shop"
TOPIC = "Sales.Trades"
_DAY = 86_400
FILE = """
[deployment]
name = "lakeferry"
stage = "shop"
owner = "sales analytics"
on_destroy = "delete"

[aws]
region = "{region}"

[confluent]
cloud_key_secret = "acme/deployer"
environment_id = "{environment_id}"
environment_name = "{environment_name}"
cluster_id = "{cluster_id}"
glue_database = "{cluster_id}"
kafka_key_secret = "acme/kafka"
schema_registry_key_secret = "acme/registry"

[alerts]
engineers = ["engineers@example.com"]
"""
EXPORT = """
[[exports]]
contract = "daily_shop"
cron = "0 6,14 * * ? *"
zone = "America/New_York"
"""


@attrs.frozen
class Colleague(Newcomer):
    """A user of the same organization. `team` is what the other team told them."""

    simulators: SimulatedEnvironment
    team: dict[str, str]

    def call(self, *words, code=0):
        return super().call(*words, "--stage", STAGE, code=code)

    def store(self, name, key):
        key_id, _, secret = key.partition(":")
        value = json.dumps({"apiKey": key_id, "apiSecret": secret})
        boto3.client("secretsmanager").create_secret(Name=name, SecretString=value)

    def theirs(self):
        """Return everything that the other team has at Confluent, in their bucket and in their database."""
        s3 = boto3.client("s3")
        listed = s3.list_objects_v2(Bucket=self.team["bucket"])["Contents"]
        objects = {
            item["Key"]: hashlib.sha256(
                s3.get_object(Bucket=self.team["bucket"], Key=item["Key"])["Body"].read()
            ).hexdigest()
            for item in listed
        }
        glue = boto3.client("glue")
        return {
            "confluent": self.simulators.confluent_objects(),
            "objects": objects,
            "tables": [
                table["Name"] for table in glue.get_tables(DatabaseName=self.team["cluster_id"])["TableList"]
            ],
            "role": boto3.client("iam").get_role(RoleName="acme-tableflow")["Role"][
                "AssumeRolePolicyDocument"
            ],
        }


@pytest.fixture(scope="module")
def colleague(tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    copy_project(root)
    opened = environments.open_environment("ACME-ANALYTICS", time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        team = simulators.ask_confluent("POST", "/team", {})
        yield Colleague(Clone(root), STAGE, simulators.variables, simulators, team)


@pytest.fixture(scope="module")
def before(colleague):
    colleague.store("acme/deployer", colleague.team["deployer_key"])
    colleague.store("acme/kafka", colleague.team["kafka_key"])
    colleague.store("acme/registry", colleague.team["schema_registry_key"])
    named = {**colleague.team, "region": os.environ["AWS_REGION"]}
    colleague.file.write_text(FILE.format(**named))
    return colleague.theirs()


def test_the_topics_of_the_cluster_are_discovered(colleague, before):
    topics = {topic["name"]: topic for topic in colleague.call("doctor", "--discover")["topics"]}
    assert sorted(topics) == ["Sales.Trades", "audit-log", "customers", "payments"]
    trades = topics[TOPIC]
    assert (trades["partitions"], trades["cleanup_policy"], trades["retention_ms"]) == (
        6,
        "delete",
        "2592000000",
    )
    assert (trades["value_schema"], trades["key_schema"], trades["in_file"]) == ("AVRO", "none", False)
    assert trades["needs"] == "existing = true, and [topics.tableflow]"
    assert topics["audit-log"]["needs"].startswith("a schema")
    assert colleague.theirs() == before


def test_a_topic_is_added_with_its_schema(colleague):
    refused = colleague.call("topics", "import", "none", code=2)
    assert (refused["code"], refused["message"]) == (
        "TOPICS-UNKNOWN",
        "the Kafka key sees no topic none in the cluster",
    )
    (imported,) = colleague.call("topics", "import", TOPIC)["topics"]
    assert (imported["topic"], imported["state"]) == (TOPIC, "written")
    (topic,) = colleague.ctx.deployment.topics
    assert (topic.name, topic.existing, topic.table) == (TOPIC, True, "sales.trades")
    again = colleague.call("topics", "import", TOPIC)["topics"]
    assert [topic["state"] for topic in again] == ["unchanged"]
    assert len(colleague.ctx.deployment.topics) == 1


def test_a_contract_is_checked_before_anything_is_deployed(colleague):
    project = colleague.clone.root / "project"
    schema = project / "topics" / f"{TOPIC}.avsc"
    daily = (PROJECT / "exports" / "daily_trades.toml").read_text()
    contract = daily.replace('name = "daily_trades"', 'name = "daily_shop"').replace(
        'topic = "stock_trades"', f'topic = "{TOPIC}"'
    )
    (project / "exports" / "daily_shop.toml").write_text(contract)
    colleague.file.write_text(colleague.file.read_text() + EXPORT)
    assert "has no tags" in colleague.call("plan", code=2)["message"]
    schema.write_text(schema.read_text().replace('"unknown"', '"reviewed"'))
    # From here on, the deployment has accounts of its own.
    text = colleague.file.read_text()
    for name in ("kafka_key_secret", "schema_registry_key_secret"):
        text = "\n".join(line for line in text.splitlines() if not line.startswith(name)) + "\n"
    colleague.file.write_text(text)


def test_it_deploys_beside_what_they_have(colleague, before):
    bootstrap(colleague.ctx, colleague.clone.root)
    checks = colleague.call("doctor")["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []
    colleague.call("deploy", "--yes")
    assert colleague.call("plan", "--check")["changes"] == []
    after = colleague.theirs()
    assert set(before["confluent"]["topics"]) == set(after["confluent"]["topics"])
    assert before["confluent"]["acls"] == after["confluent"]["acls"]
    assert sorted(after["confluent"]["tableflow_topics"]) == [TOPIC, "payments"]
    assert before["confluent"]["catalog_integrations"] == after["confluent"]["catalog_integrations"]
    assert before["objects"].items() <= after["objects"].items()


def test_the_table_is_exported(colleague):
    colleague.simulators.advance_confluent(600)
    job = colleague.output("exports", "DailyShopJobName")
    glue = colleague.ctx.client("glue")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    glue.start_job_run(JobName=job, Arguments={"--as-of": now})
    run = colleague.wait_for_run(job)
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    bucket = colleague.output("data", "LakeBucketName")
    s3 = colleague.ctx.client("s3")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="exports/daily_shop/manifests/").get("Contents", [])
    assert listed, json.dumps(colleague.call("logs", "daily_shop"))[-6000:]
    manifest = json.loads(s3.get_object(Bucket=bucket, Key=listed[-1]["Key"])["Body"].read())
    (key,) = [file["key"] for file in manifest["files"] if file["role"] == "data"]
    content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    text = gzip.decompress(content) if key.endswith(".gz") else content
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
    trades = sum(int(row["trades"]) for row in rows)
    assert trades == manifest["rows"]["lines"]["delivered"] > 100


def test_a_key_rotates_although_the_login_administers_the_environment_only(colleague):
    secret = colleague.ctx.confluent_secret("tableflow")
    held = colleague.ctx.secrets.read_key(secret).id
    colleague.call("rotate", secret, "--now", "--yes")
    assert colleague.ctx.secrets.read_key(secret).id != held


def test_status_and_monitoring_need_no_key_of_the_cluster(colleague):
    (table,) = colleague.call("status")["tables"]
    assert {name for name, hop in table.items() if isinstance(hop, dict)} == {"iceberg", "glue"}
    assert colleague.call("status", "--drift")["drift"] == []
    client = colleague.ctx.client("lambda")
    (name,) = [
        function["FunctionName"]
        for function in client.list_functions()["Functions"]
        if "-operations-Watch" in function["FunctionName"]
    ]
    measured = json.loads(client.invoke(FunctionName=name, Payload=b"{}")["Payload"].read())
    assert (measured["unmeasured"], measured["measured"] > 0) == ({}, True)


def test_keys_that_are_brought_replace_those_of_own_accounts(colleague):
    accounts = colleague.theirs()["confluent"]["service_accounts"]
    text = colleague.file.read_text()
    keys = 'kafka_key_secret = "acme/kafka"\nschema_registry_key_secret = "acme/registry"\n'
    colleague.file.write_text(text.replace("glue_database", f"{keys}glue_database"))
    colleague.call("deploy", "--yes")
    assert colleague.call("plan", "--check")["changes"] == []
    remaining = colleague.theirs()["confluent"]["service_accounts"]
    assert len(remaining) == len(accounts) - 1  # the manager still has a Tableflow key
    colleague.file.write_text(text)
    colleague.call("deploy", "--yes")


def test_a_table_of_theirs_is_refused_by_name(colleague):
    text = colleague.file.read_text()
    colleague.file.write_text(
        text + '\n[[topics]]\nname = "payments"\nexisting = true\n\n[topics.tableflow]\n'
    )
    failed = colleague.call("deploy", "--yes", code=1)
    assert "CFL-FOREIGN-TABLEFLOW" in json.dumps(failed)
    colleague.file.write_text(text)
    colleague.call("deploy", "--yes")


def test_inventory_shows_what_is_ours_and_destroy_leaves_what_is_theirs(colleague, before):
    items = colleague.call("inventory")["items"]
    tables = [(item["name"], item["verdict"]) for item in items if item["kind"] == "tableflow_topic"]
    assert tables == [(TOPIC, "managed")]
    clusters = [(item["id"], item["verdict"]) for item in items if item["kind"] == "kafka_cluster"]
    assert clusters == [(colleague.team["cluster_id"], "retained")]
    colleague.call("destroy", "--confirm", STAGE)
    left = colleague.call("inventory")["items"]
    assert [item for item in left if item["verdict"] in ("orphaned", "unknown")] == []
    after = colleague.theirs()
    assert after["confluent"] == before["confluent"]
    assert after["tables"] == before["tables"]
    assert before["objects"].items() <= after["objects"].items()
    assert after["role"] == before["role"]
