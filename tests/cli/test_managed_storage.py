"""A deployment whose table is in Confluent's storage, and one of another team that reads the same table with a
key that it was given.

The tests depend on each other: each continues where the previous one ended.
"""

from __future__ import annotations

import json
import os
import time

import attrs
import boto3
import pytest

from lakeferry.local import target
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.harness import copy_project
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer, bootstrap

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
STAGE = "stored"
_DAY = 86_400
FILE = """
[deployment]
name = "lakeferry"
stage = "stored"
owner = "market data"
on_destroy = "delete"

[aws]
region = "{region}"

[confluent]
cloud_key_secret = "acme/deployer"

[[topics]]
name = "stock_trades"
partitions = 1
datagen = "STOCK_TRADES"
datagen_interval_ms = 30000

[topics.tableflow]
storage = "managed"

[[exports]]
contract = "daily_trades"
cron = "0 6,14 * * ? *"
zone = "America/New_York"

[alerts]
engineers = ["engineers@example.com"]
"""


#: The same table, for a team that has neither the cluster nor a login of Confluent.
BORROWED = """
[deployment]
name = "lakeferry"
stage = "borrowed"
owner = "risk"
on_destroy = "delete"

[aws]
region = "{region}"

[source]
catalog_uri = "{catalog_uri}"
cluster_id = "{cluster_id}"
tableflow_key_secret = "risk/tableflow"
schema_registry_url = "https://psrc-abc12.{region}.aws.confluent.cloud"
schema_registry_key_secret = "risk/registry"

[[topics]]
name = "stock_trades"
partitions = 1

[[exports]]
contract = "daily_trades"
cron = "0 6,14 * * ? *"
zone = "America/New_York"

[alerts]
engineers = ["engineers@example.com"]
"""


@attrs.frozen
class Team(Newcomer):
    simulators: SimulatedEnvironment

    def call(self, *words, code=0):
        return super().call(*words, "--stage", self.stage, code=code)

    def export(self):
        """Run the job in the embedded Glue, and return the manifest of the newest window."""
        job = self.output("exports", "DailyTradesJobName")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.ctx.client("glue").start_job_run(JobName=job, Arguments={"--as-of": now})
        run = self.wait_for_run(job)
        assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
        bucket = self.output("data", "LakeBucketName")
        listed = self._list(bucket, "manifests")
        assert listed, self._read(bucket, self._list(bucket, "runs")[-1])
        return json.loads(self._read(bucket, listed[-1]))

    def _list(self, bucket, folder):
        prefix = f"exports/daily_trades/{folder}/"
        listed = self.ctx.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for item in listed.get("Contents", [])]

    def _read(self, bucket, key):
        return self.ctx.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode()

    def measure(self):
        """Run the monitoring function and return its answer."""
        client = self.ctx.client("lambda")
        (name,) = [
            function["FunctionName"]
            for function in client.list_functions()["Functions"]
            if f"{self.ctx.deployment.prefix}-operations-Watch" in function["FunctionName"]
        ]
        return json.loads(client.invoke(FunctionName=name, Payload=b"{}")["Payload"].read())


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    root = tmp_path_factory.mktemp("stored")
    copy_project(root)
    opened = environments.open_environment("ACME-ANALYTICS", time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        key = simulators.confluent
        value = {"apiKey": key["cloud_api_key"], "apiSecret": key["cloud_api_secret"]}
        boto3.client("secretsmanager").create_secret(Name="acme/deployer", SecretString=json.dumps(value))
        made = Team(Clone(root), STAGE, simulators.variables, simulators)
        made.file.write_text(FILE.format(region=os.environ["AWS_REGION"]))
        yield made


def test_it_deploys_without_access_of_confluent_to_the_account(owner):
    bootstrap(owner.ctx, owner.clone.root)
    owner.call("deploy", "--yes")
    assert owner.call("plan", "--check")["changes"] == []
    roles = [role["RoleName"] for role in boto3.client("iam").list_roles()["Roles"]]
    assert owner.ctx.role_name("tableflow") not in roles
    assert owner.simulators.confluent_objects().get("provider_integrations") in (None, [], {})


def test_the_table_is_exported(owner):
    behind = time.time() - owner.simulators.confluent_now()
    owner.simulators.advance_confluent(behind)
    assert owner.export()["rows"]["lines"]["delivered"] > 100


def test_the_key_is_not_among_the_arguments_of_the_job(owner):
    job = owner.ctx.client("glue").get_job(JobName=owner.output("exports", "DailyTradesJobName"))["Job"]
    name = owner.ctx.confluent_secret("tableflow/table_reader")
    assert job["DefaultArguments"]["--tableflow-secret"] == name
    assert owner.ctx.secrets.read_key(name).secret.reveal() not in json.dumps(job, default=str)


def test_status_doctor_and_monitoring_read_the_catalog(owner):
    (table,) = owner.call("status")["tables"]
    hops = {name: hop["state"] for name, hop in table.items() if isinstance(hop, dict)}
    assert hops == {"topic": "ok", "tableflow": "ok", "iceberg": "ok"}
    checks = owner.call("doctor")["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []
    (shown,) = [check for check in checks if check["name"] == "table of stock_trades in Confluent's storage"]
    assert shown["result"] == "ok"
    measured = owner.measure()
    assert (measured["unmeasured"], measured["measured"] > 0) == ({}, True)


def test_the_key_of_the_exports_rotates(owner):
    secret = owner.ctx.confluent_secret("tableflow/table_reader")
    held = owner.ctx.secrets.read_key(secret).id
    owner.call("rotate", secret, "--now", "--yes")
    assert owner.ctx.secrets.read_key(secret).id != held
    assert owner.call("status", "--drift")["drift"] == []


@pytest.fixture(scope="module")
def borrower(owner):
    """Return another team, which got a key for the table, and the addresses that the console shows."""
    held_secrets = {"risk/tableflow": "tableflow/table_reader", "risk/registry": "schema_registry"}
    for name, held_secret in held_secrets.items():
        key = owner.ctx.secrets.read_key(owner.ctx.confluent_secret(held_secret))
        value = json.dumps({"apiKey": key.id, "apiSecret": key.secret.reveal()})
        boto3.client("secretsmanager").create_secret(Name=name, SecretString=value)
    made = attrs.evolve(owner, stage="borrowed")
    shown = {
        "region": os.environ["AWS_REGION"],
        "catalog_uri": owner.output("confluent", "CatalogUri"),
        "cluster_id": owner.output("confluent", "KafkaClusterId"),
    }
    made.file.write_text(BORROWED.format(**shown))
    return made


def test_another_team_finds_the_table_and_its_schema(borrower):
    tables = borrower.call("topics", "list")["tables"]
    assert tables == [{"name": "stock_trades", "iceberg": True, "in_file": True}]
    schema = borrower.clone.root / "project" / "topics" / "stock_trades.avsc"
    shipped = schema.read_text()
    schema.unlink()
    (imported,) = borrower.call("topics", "import")["topics"]
    names = {field["name"] for field in json.loads(schema.read_text())["fields"]}
    assert (imported["state"], names >= {"symbol", "quantity", "price"}) == ("written", True)
    assert (imported["read_from"], imported["why"]) == ("Schema Registry", "")
    schema.write_text(shipped)


def test_the_same_window_has_the_same_rows_for_another_team(owner, borrower):
    checks = borrower.call("doctor")["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []
    borrower.call("deploy", "--yes")
    theirs = borrower.export()
    assert theirs["rows"]["lines"] == owner.export()["rows"]["lines"]
    (table,) = borrower.call("status")["tables"]
    assert {name for name, hop in table.items() if isinstance(hop, dict)} == {"iceberg"}
    assert borrower.measure()["unmeasured"] == {}
    borrower.call("destroy", "--confirm", "borrowed")


def test_a_key_that_may_not_read_is_named(borrower):
    value = json.dumps({"apiKey": "NOBODY", "apiSecret": "cflt-unknown"})
    boto3.client("secretsmanager").put_secret_value(SecretId="risk/tableflow", SecretString=value)
    refused = borrower.call("topics", "list", code=1)
    assert (refused["code"], "risk/tableflow" in refused["message"]) == ("TABLEFLOW-KEY", True)
    assert "cflt-unknown" not in json.dumps(refused)


def test_nothing_is_left(owner):
    owner.call("destroy", "--confirm", STAGE)
    items = owner.call("inventory")["items"]
    assert [item for item in items if item["verdict"] in ("orphaned", "unknown")] == []
