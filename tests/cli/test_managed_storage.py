"""A deployment whose table is in Confluent's storage: from `init` to a file and back.

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


@attrs.frozen
class Owner(Newcomer):
    simulators: SimulatedEnvironment

    def call(self, *words, code=0):
        return super().call(*words, "--stage", STAGE, code=code)

    def export(self, as_of):
        """Run the job in the embedded Glue, and return its run and the manifests."""
        job = self.output("exports", "DailyTradesJobName")
        self.ctx.client("glue").start_job_run(JobName=job, Arguments={"--as-of": as_of})
        return self.wait_for_run(job)


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    root = tmp_path_factory.mktemp("stored")
    copy_project(root)
    opened = environments.open_environment("ACME-ANALYTICS", time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        key = simulators.confluent
        value = {"apiKey": key["cloud_api_key"], "apiSecret": key["cloud_api_secret"]}
        boto3.client("secretsmanager").create_secret(Name="acme/deployer", SecretString=json.dumps(value))
        made = Owner(Clone(root), STAGE, simulators.variables, simulators)
        made.file.write_text(FILE.format(region=os.environ["AWS_REGION"]))
        yield made


def test_it_deploys_without_access_of_confluent_to_the_account(owner):
    bootstrap(owner.ctx, owner.clone.root)
    owner.call("deploy", "--yes")
    assert owner.call("plan", "--check")["changes"] == []
    roles = [role["RoleName"] for role in boto3.client("iam").list_roles()["Roles"]]
    assert owner.ctx.role_name("tableflow") not in roles
    assert owner.simulators.confluent_objects().get("provider_integrations") in (None, [], {})


def read_record(s3, bucket):
    """Return the record of the only run."""
    (record,) = s3.list_objects_v2(Bucket=bucket, Prefix="exports/daily_trades/runs/")["Contents"]
    return s3.get_object(Bucket=bucket, Key=record["Key"])["Body"].read().decode()


def test_the_table_is_exported(owner):
    owner.simulators.advance_confluent(1.5 * _DAY)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = owner.export(now)
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    bucket = owner.output("data", "LakeBucketName")
    s3 = owner.ctx.client("s3")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="exports/daily_trades/manifests/").get("Contents", [])
    assert listed, read_record(s3, bucket)
    manifest = json.loads(s3.get_object(Bucket=bucket, Key=listed[-1]["Key"])["Body"].read())
    assert manifest["rows"]["lines"]["delivered"] > 100


def test_nobody_s_login_is_in_what_the_job_was_given(owner):
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
    client = owner.ctx.client("lambda")
    (name,) = [
        function["FunctionName"]
        for function in client.list_functions()["Functions"]
        if "-operations-Watch" in function["FunctionName"]
    ]
    measured = json.loads(client.invoke(FunctionName=name, Payload=b"{}")["Payload"].read())
    assert (measured["unmeasured"], measured["measured"] > 0) == ({}, True)


def test_the_key_of_the_exports_rotates(owner):
    secret = owner.ctx.confluent_secret("tableflow/table_reader")
    held = owner.ctx.secrets.read_key(secret).id
    owner.call("rotate", secret, "--now", "--yes")
    assert owner.ctx.secrets.read_key(secret).id != held
    assert owner.call("status", "--drift")["drift"] == []


def test_nothing_is_left(owner):
    owner.call("destroy", "--confirm", STAGE)
    items = owner.call("inventory")["items"]
    assert [item for item in items if item["verdict"] in ("orphaned", "unknown")] == []
