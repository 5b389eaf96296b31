"""The example of the constructs, beside everything that another team has: deployed with the CDK's own command
line, used, and destroyed.

The tests depend on each other: each continues where the previous one ended, as in
docs/how-to/use-the-constructs.md.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import time

import attrs
import boto3
import pytest

from lakeferry.deployment.context import Addresses
from lakeferry.local import target
from lakeferry.local.bootstrap import ROOT
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.environments import SimulatedEnvironment
from tests.support.waiting import until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
STACK = "Trades"
TOPIC = "Sales.Trades"
JOB = "trades-prod-hourly_trades"
TABLES = "acme-trade-tables"
FILES = "acme-trade-files"
MANIFESTS = "trades-prod/exports/hourly_trades/manifests/"
_DAY = 86_400
_RUN_SECONDS = 300.0
_ENDED = ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR")


def run_cdk(variables, *words):
    done = subprocess.run(
        [sys.executable, "-m", "lakeferry.deployment.cdk", *words],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


@attrs.frozen
class Colleague:
    """A user of the same organization, who has an app of their own. `team` is what the other team told them."""

    simulators: SimulatedEnvironment
    team: dict[str, str]
    alarms: str
    folder: object

    def cdk(self, verb, *words):
        """Run the CDK's command line on the example."""
        given = {
            "cloud_key_secret": "acme/deployer",
            "environment": self.team["environment_id"],
            "cluster": self.team["cluster_id"],
            "tables": TABLES,
            "files": FILES,
            "alarms": self.alarms,
            **Addresses.read(self.simulators.variables).context(),
        }
        context = [word for name, value in given.items() for word in ("--context", f"{name}={value}")]
        app = ["--app", f"{sys.executable} -m examples.trades", "--output", str(self.folder / "cdk.out")]
        run_cdk(self.simulators.variables, verb, *app, *context, *words)

    def theirs(self):
        """Return everything at Confluent, and the tables in Glue."""
        tables = boto3.client("glue").get_tables(DatabaseName=self.team["cluster_id"])["TableList"]
        return {
            "confluent": self.simulators.confluent_objects(),
            "tables": [table["Name"] for table in tables],
        }


def list_own():
    """Return what the account has of the kinds that the example creates, but for CDK's own objects."""
    clients = {name: boto3.client(name) for name in ("iam", "logs", "glue", "lambda", "secretsmanager")}
    named = {
        "roles": [role["RoleName"] for role in clients["iam"].list_roles()["Roles"]],
        "logs": [group["logGroupName"] for group in clients["logs"].describe_log_groups()["logGroups"]],
        "jobs": [job["Name"] for job in clients["glue"].get_jobs()["Jobs"]],
        "databases": [database["Name"] for database in clients["glue"].get_databases()["DatabaseList"]],
        "functions": [
            function["FunctionName"] for function in clients["lambda"].list_functions()["Functions"]
        ],
        "secrets": [secret["Name"] for secret in clients["secretsmanager"].list_secrets()["SecretList"]],
        "alarms": [
            alarm["AlarmName"] for alarm in boto3.client("cloudwatch").describe_alarms()["MetricAlarms"]
        ],
        "schedules": [
            schedule["Name"] for schedule in boto3.client("scheduler").list_schedules()["Schedules"]
        ],
    }
    return {kind: sorted(names) for kind, names in named.items()}


def create_alarm_topic():
    """Create the topic, with the policy that docs/how-to/use-the-constructs.md asks for."""
    sns = boto3.client("sns")
    topic = sns.create_topic(Name="acme-alarms")["TopicArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": ["cloudwatch.amazonaws.com", "events.amazonaws.com"]},
        "Action": "sns:Publish",
        "Resource": topic,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sns.set_topic_attributes(TopicArn=topic, AttributeName="Policy", AttributeValue=policy)
    return topic


def receive_alarms(topic):
    """Subscribe a queue to the topic, and return a function that returns the next messages."""
    sqs = boto3.client("sqs")
    queue = sqs.create_queue(QueueName="acme-alarms")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    boto3.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def receive():
        received = sqs.receive_message(QueueUrl=queue).get("Messages", [])
        return [json.loads(message["Body"])["Message"] for message in received]

    return receive


@pytest.fixture(scope="module")
def colleague(tmp_path_factory):
    opened = environments.open_environment("ACME-ANALYTICS", time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        team = simulators.ask_confluent("POST", "/team", {})
        region = os.environ["AWS_REGION"]
        for bucket in (TABLES, FILES):
            boto3.client("s3").create_bucket(
                Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region}
            )
        key_id, _, secret = team["deployer_key"].partition(":")
        boto3.client("secretsmanager").create_secret(
            Name="acme/deployer", SecretString=json.dumps({"apiKey": key_id, "apiSecret": secret})
        )
        alarms = create_alarm_topic()
        folder = tmp_path_factory.mktemp("example")
        account = boto3.client("sts").get_caller_identity()["Account"]
        run_cdk(simulators.variables, "bootstrap", "--app", "", f"aws://{account}/{region}")
        yield Colleague(simulators, team, alarms, folder)


@pytest.fixture(scope="module")
def before(colleague):
    return colleague.theirs(), list_own()


def test_it_deploys_beside_what_they_have(colleague, before):
    colleague.cdk("deploy", "--require-approval", "never", "--progress", "events")
    found, _ = before
    after = colleague.theirs()
    assert set(found["confluent"]["topics"]) == set(after["confluent"]["topics"])
    assert found["confluent"]["catalog_integrations"] == after["confluent"]["catalog_integrations"]
    assert sorted(after["confluent"]["tableflow_topics"]) == [TOPIC, "payments"]
    assert set(after["tables"]) - set(found["tables"]) == {TOPIC.lower()}


def test_the_table_is_exported_with_a_role_that_reads_this_table_only(colleague):
    colleague.simulators.advance_confluent(600)
    glue = boto3.client("glue")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    glue.start_job_run(JobName=JOB, Arguments={"--as-of": now})

    def find_ended():
        (run,) = glue.get_job_runs(JobName=JOB)["JobRuns"]
        return run if run["JobRunState"] in _ENDED else None

    run = until(find_ended, _RUN_SECONDS)
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    s3 = boto3.client("s3")
    listed = s3.list_objects_v2(Bucket=FILES, Prefix=MANIFESTS).get("Contents", [])
    assert listed
    manifest = json.loads(s3.get_object(Bucket=FILES, Key=listed[-1]["Key"])["Body"].read())
    (key,) = [file["key"] for file in manifest["files"] if file["role"] == "data"]
    content = s3.get_object(Bucket=FILES, Key=key)["Body"].read()
    text = gzip.decompress(content) if key.endswith(".gz") else content
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
    trades = sum(int(row["trades"]) for row in rows)
    assert trades == manifest["rows"]["lines"]["delivered"] > 100


def test_a_run_that_fails_is_reported_to_the_callers_topic(colleague):
    receive = receive_alarms(colleague.alarms)
    glue = boto3.client("glue")
    run = glue.start_job_run(JobName=JOB, Arguments={"--as-of": "yesterday"})["JobRunId"]
    (message,) = until(receive, _RUN_SECONDS)
    # EventBridge sends a text with quotes.
    assert json.loads(message).startswith(f"Glue job {JOB} failed in run {run}")


def test_a_key_rotates(colleague):
    secrets = boto3.client("secretsmanager")
    (name,) = [
        secret["Name"]
        for secret in secrets.list_secrets()["SecretList"]
        if secret["Name"].startswith("trades-prod/confluent/") and "Tableflow" in secret["Name"]
    ]

    def read_key_id():
        return json.loads(secrets.get_secret_value(SecretId=name)["SecretString"])["apiKey"]

    held = read_key_id()
    secrets.rotate_secret(SecretId=name)
    assert until(lambda: read_key_id() != held, _RUN_SECONDS)


def test_destroy_leaves_what_was_there_before(colleague, before):
    colleague.cdk("destroy", "--force", "--progress", "events")
    found, own = before
    assert colleague.theirs() == found
    assert list_own() == own
    stacks = boto3.client("cloudformation").list_stacks()["StackSummaries"]
    left = [stack["StackName"] for stack in stacks if stack["StackStatus"] != "DELETE_COMPLETE"]
    assert left == ["CDKToolkit"]
