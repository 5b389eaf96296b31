"""`lakeferry status` of tables, exports and keys, in a deployment whose hops can be stopped one by one."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta

import attrs
import boto3
import pytest
from botocore.exceptions import ClientError

from lakeferry import inventory
from lakeferry.credentials import rotating_secrets, rotation
from lakeferry.credentials.rotating_secrets import Age
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import LATER, CommandFailed
from lakeferry.health import (
    confluent,
    doctor,
    exports,
    freshness,
    runner,
    snowflake,
    status,
    storage,
    tableflow,
    tools,
)
from lakeferry.health.freshness import Readers, TableStatus
from lakeferry.health.model import Observation, Result, State, format_hours, observe
from lakeferry.health.tableflow import Tableflow
from lakeferry.inventory import Verdict
from lakeferry.inventory.aws_kinds import list_aws_kinds
from lakeferry.output import Output
from lambdas import contract
from lambdas.handlers.monitoring import Settings
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.measurements import Connection, TableflowTables
from lambdas.monitoring.settings import Monitored, MonitoredExport, MonitoredTable
from lambdas.rotation.versions import DAY
from lambdas.shared.errors import LakeferryError
from tests.support.aws_clients import policy
from tests.support.docs_reader import fences
from tests.support.handshake_environment import TOPIC
from tests.support.lake import ROOT
from tests.support.leftovers import plant_in_aws
from tests.support.resource_environment import ManualClock
from tests.support.stand_ins import Stacks

STALE_HOURS = 12.0
EXPORT = MonitoredExport("daily_trades", "", "15 1 * * ? *", "America/New_York", 6)
JOB = {
    "Role": "arn:aws:iam::000000000000:role/none",
    "Command": {"Name": "glueetl", "ScriptLocation": "s3://none/script.py"},
}


@pytest.fixture
def readers(deployed):
    """The readers of `status`, with the settings of the deployment's watch."""
    ctx = deployed.ctx
    result = ctx.deployment
    table = MonitoredTable(TOPIC, TOPIC, deployed.cluster, "LAKE.RAW.STOCK_TRADES")
    settings = Settings(
        deployment=result.prefix,
        bucket=deployed.bucket,
        prefix="exports",
        monitored=Monitored(
            deployed.cluster, [table], [attrs.evolve(EXPORT, job=f"{result.prefix}-{EXPORT.export}")]
        ),
        metrics_key=result.confluent.cloud_key_secret,
        telemetry_url=deployed.stand_ins.cloud.url,
        tableflow_secret="",
        confluent_url=deployed.stand_ins.cloud.url,
        snowflake_secret=result.snowflake.key_secret,
        snowflake_url=deployed.stand_ins.snow.url,
    )
    return Readers(ctx, settings)


@pytest.fixture
def produce(deployed):
    """Return a function that writes a record into the topic, and waits until all hops have it."""

    def write(body):
        ctx = deployed.ctx
        key = deployed.ctx.secrets.read_key(f"{deployed.ctx.deployment.prefix}/confluent/kafka")
        kafka = ctx.confluent().kafka(deployed.location["environment_id"], deployed.cluster, key)
        value = {"type": "BINARY", "data": base64.b64encode(body).decode()}
        result = kafka.post(f"/kafka/v3/clusters/{deployed.cluster}/topics/{TOPIC}/records", {"value": value})
        ctx.clock.sleep(301)
        return result

    return write


@attrs.frozen
class FixedClock:
    at: float

    def time(self):
        return self.at

    def sleep(self, seconds):
        raise AssertionError("nothing to wait for")


def at(readers, time):
    """Return the same readers at another time. Simulators write this machine's time into AWS."""
    return attrs.evolve(readers, ctx=attrs.evolve(readers.ctx, clock=FixedClock(time)))


def seen(readers):
    (table,) = freshness.read_tables(readers, STALE_HOURS)
    return table.hops


def encoded_trade(deployed):
    """Return a record of the topic's schema: the schema's id, then one small number."""
    key = deployed.ctx.secrets.read_key(f"{deployed.ctx.deployment.prefix}/confluent/schema_registry")
    registry = deployed.ctx.confluent().registry(deployed.location["environment_id"], key)
    schema = registry.get(f"/subjects/{TOPIC}-value/versions/latest")["id"]
    return b"\0" + int(schema).to_bytes(4, "big") + b"\x02"


def test_a_table_without_a_record_has_no_problem(readers):
    found = seen(readers)
    assert found["tableflow"].state is State.OK
    assert {found[hop].state for hop in ("iceberg", "glue", "snowflake")} <= {State.WAITING, State.OK}


def test_every_hop_of_a_table_with_records_has_an_age(readers, produce, deployed):
    produce(encoded_trade(deployed))
    found = seen(readers)
    assert {hop: value.state for hop, value in found.items()} == dict.fromkeys(freshness.HOPS, State.OK)
    assert all(found[hop].value < 1 for hop in ("topic", "iceberg", "glue", "snowflake"))
    assert status.look(readers, status.Event.FIRST_TABLE)[0] == f"first table: {TOPIC} can be read"


def test_a_table_without_new_records_is_stale_at_every_hop(readers):
    found = seen(at(readers, datetime.now(UTC).timestamp() + (STALE_HOURS + 1) * 3600))
    assert {value.state for hop, value in found.items() if hop != "tableflow"} == {State.WRONG}
    assert "longer than 12 hours" in found["glue"].message


def watched_tables(readers):
    """Return the tables as the watch reads them."""
    tableflow = Tableflow(readers.ctx)
    return TableflowTables(lambda: Connection(tableflow.plane, *tableflow.query.values()))


@pytest.fixture
def skipping(readers, deployed):
    """Set Tableflow to skip records that can't be written, and back to the default afterwards."""
    location = {
        "environment": {"id": deployed.location["environment_id"]},
        "kafka_cluster": {"id": deployed.cluster},
    }
    ((_, table),) = deployed.organization.tableflow_topics.items()

    def handle(mode):
        spec = {**location, "config": {"error_handling": {"mode": mode}}}
        Tableflow(readers.ctx).plane.patch(f"/tableflow/v1/tableflow-topics/{TOPIC}", {"spec": spec})

    handle("SKIP")
    yield
    handle("SUSPEND")
    without_bad_records(deployed)
    table.skipped = []


def without_bad_records(deployed):
    """Delete the records that are not Avro from the topic.

    A record's index is not its offset, which counts per partition.
    """
    ((_, table),) = deployed.organization.tableflow_topics.items()
    messages = deployed.organization.clusters[deployed.cluster].topics[TOPIC].messages
    messages[:] = [message for message in messages if message.value != b"not avro"]
    table.position = len(messages)


@pytest.mark.usefixtures("skipping")
def test_a_record_that_tableflow_skips_is_counted_by_the_watch(readers, produce):
    produce(b"not avro")
    assert watched_tables(readers).stopped(TOPIC) == 0
    readers.ctx.clock.sleep(1)
    assert readers.topics.skipped() == 1


def test_a_record_that_cannot_be_written_suspends_the_table_and_is_named(readers, produce, deployed):
    record = produce(b"not avro")
    found = seen(readers)["tableflow"]
    assert (found.state, found.code) == (State.WRONG, "CFL-TABLEFLOW-SUSPENDED")
    assert f"partition {record['partition_id']}, offset {record['offset']}" in found.message
    assert watched_tables(readers).stopped(TOPIC) == 1
    (trouble,) = [
        problem for problem in status.list_table_problems([TableStatus(TOPIC, {"tableflow": found})])
    ]
    assert trouble.code == "CFL-TABLEFLOW-SUSPENDED"
    without_bad_records(deployed)
    deployed.resume()
    assert seen(readers)["tableflow"].state is State.OK
    assert watched_tables(readers).stopped(TOPIC) == 0


@pytest.mark.parametrize(("url", "hops"), [("telemetry_url", ["topic"]), ("snowflake_url", ["snowflake"])])
def test_a_hop_that_does_not_answer_does_not_hide_others(readers, url, hops):
    deaf = attrs.evolve(readers, settings=attrs.evolve(readers.settings, **{url: "http://127.0.0.1:9"}))
    found = seen(deaf)
    assert [hop for hop, value in found.items() if value.state is State.UNKNOWN] == hops
    assert "NET-UNREACHABLE" in found[hops[0]].code


def test_a_topic_without_tableflow_is_a_problem(readers):
    off = "Tableflow is off for this topic; `lakeferry deploy --repair` turns it on again"
    assert freshness.observe_topic(Tableflow(readers.ctx).topics.get("nosuch")) == Observation(
        State.WRONG, message=off
    )


@pytest.mark.parametrize(
    ("document", "state", "message"),
    [
        ({"status": {"phase": "RUNNING"}}, State.OK, "running"),
        ({"status": {"phase": "PENDING"}}, State.WAITING, "pending"),
        ({}, State.WAITING, "pending"),
        ({"status": {"phase": "FAILED", "error_message": "no role"}}, State.WRONG, "failed: no role"),
        ({"spec": {"suspended": True}, "status": {"phase": "RUNNING"}}, State.WRONG, "suspended: no reason given"),
        (
            {"status": {"phase": "RUNNING", "failing_table_formats": [{"error_message": "bad"}]}}, State.WRONG, "running: bad",
        ),
    ],
)  # fmt: skip
def test_each_phase_of_tableflow_has_a_state(document, state, message):
    found = freshness.observe_topic(tableflow.parse_topic(document))
    assert (found.state, found.message) == (state, message)


@pytest.fixture
def job(readers):
    glue = boto3.client("glue")
    name = f"{readers.settings.deployment}-{EXPORT.export}"
    glue.create_job(Name=name, **JOB)
    yield name
    glue.delete_job(JobName=name)


def standing(readers):
    (found,) = exports.read_exports(readers)
    return found


def put(readers, key, document):
    body = json.dumps(document).encode()
    boto3.client("s3").put_object(
        Bucket=readers.settings.bucket, Key=f"exports/{EXPORT.export}/{key}", Body=body
    )


def empty(readers):
    bucket = boto3.resource("s3").Bucket(readers.settings.bucket)
    bucket.objects.filter(Prefix="exports/").delete()


@pytest.mark.usefixtures("job")
def test_an_export_before_its_first_run_waits(readers):
    now = datetime.now(UTC).timestamp()
    found = standing(at(readers, now))
    assert (found.last, found.published) == (None, 0)
    assert [observation.state for observation in found.observations] == [State.WAITING]
    assert found.next_run > now
    assert "America/New_York" in found.next_run_text


@pytest.mark.usefixtures("job")
def test_an_export_that_has_not_run_when_it_should_have_is_late(readers):
    (one,) = standing(at(readers, datetime.now(UTC).timestamp() + 3 * DAY)).observations
    assert one.state is State.WRONG
    assert one.message.endswith("late")


def waited(readers, event):
    """Return how `status` failed to see the event in five minutes, and how many seconds it waited."""
    before = readers.ctx.clock.time()
    with pytest.raises(CommandFailed) as failed:
        status.wait(Output(quiet=True), readers, event, 5)
    return failed.value, readers.ctx.clock.time() - before


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_status_waits_no_longer_than_its_limit(readers):
    failure, seconds = waited(readers, status.Event.FIRST_EXPORT)
    assert (failure.exit_code, failure.code) == (LATER, "STATUS-LATER")
    assert 300 <= seconds < 320


@pytest.fixture
def faults(deployed):
    """Return a function that sets the rules of answers of AWS until the end of the test."""
    yield lambda *rules: deployed.aws_faults.rule(*({"fault": "error", "times": 0, **rule} for rule in rules))
    deployed.aws_faults.clear()


@pytest.fixture
def watched(deployed):
    """Deploy what `status` reads its settings from: the function of monitoring, with one table; and the
    alarms' topic.
    """
    result = deployed.ctx.deployment
    key = "settings.json"
    settings = {"tables": [{"topic": TOPIC, "name": TOPIC, "snowflake": "STOCK_TRADES"}]}
    boto3.client("s3").put_object(Bucket=deployed.bucket, Key=key, Body=json.dumps(settings).encode())
    variables = {
        contract.PROJECT: result.identity.name,
        contract.STAGE: result.identity.stage,
        contract.LAKE_BUCKET: deployed.bucket,
        contract.LAKE_PREFIX: "exports",
        contract.SETTINGS: f"s3://{deployed.bucket}/{key}",
        contract.CLUSTER: deployed.cluster,
        contract.SNOWFLAKE_SCHEMA: "LAKE.RAW",
        contract.CLOUD_KEY_SECRET: result.confluent.cloud_key_secret,
        contract.SNOWFLAKE_SECRET: result.snowflake.key_secret,
        contract.CONFLUENT_URL: deployed.stand_ins.cloud.url,
        contract.SNOWFLAKE_URL: deployed.stand_ins.snow.url,
    }
    function = {
        "Handler": contract.WATCH,
        "Runtime": "python3.12",
        "Role": "arn:aws:iam::000000000000:role/none",
        "Code": {"ZipFile": "pass"},
        "Environment": {"Variables": variables},
    }
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": f"{result.prefix}-alarms"}}
    resources = {"Watch": {"Type": "AWS::Lambda::Function", "Properties": function}, "Topic": topic}
    name = Stacks(deployed.ctx).make("operations", resources)
    yield deployed.ctx
    Stacks(deployed.ctx).delete(name)


@attrs.define
class Arriving:
    """A clock with which something happens during the first wait."""

    clock: object
    happens: object
    slept: float = 0

    def time(self):
        return self.clock.time()

    def sleep(self, seconds):
        self.clock.sleep(seconds)
        if not self.slept:
            self.happens()
        self.slept += seconds


def test_the_status_after_a_wait_is_that_of_then(watched, produce, deployed, faults):
    """At first the table seems to have no data, and its topic has had no record for hours; then a record
    arrives.
    """
    record = encoded_trade(deployed)
    produce(record)
    watched.clock.sleep(STALE_HOURS * 3600)
    refusal = {"status": 400, "shape": "aws-json", "code": "EntityNotFoundException"}
    faults({"times": 2, "headers": {"x-amz-target": "AWSGlue.GetTable"}, **refusal})
    clock = Arriving(watched.clock, lambda: produce(record))
    ctx = attrs.evolve(watched, clock=clock)
    event = status.Event.FIRST_TABLE
    found = status.report_status(Output(quiet=True), ctx, wait_for=event, minutes=30, with_drift=False)
    assert clock.slept
    assert [found["tables"][0][hop]["state"] for hop in freshness.HOPS] == ["ok"] * 5


@pytest.mark.usefixtures("job")
def test_a_login_that_ends_during_a_wait_ends_it(readers, faults):
    ended = (
        "<ErrorResponse><Error><Code>ExpiredToken</Code><Message>injected</Message></Error></ErrorResponse>"
    )
    faults(
        {
            "headers": {"x-amz-target": "AWSGlue.GetJobRuns"},
            "status": 400,
            "shape": "aws-json",
            "code": "ExpiredTokenException",
        },
        {"headers": {"authorization": "*/sts/aws4_request*"}, "status": 403, "body": ended},
    )
    failure, seconds = waited(readers, status.Event.FIRST_EXPORT)
    assert (failure.code, seconds) == ("AWS-CREDENTIALS", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_what_cannot_be_read_during_a_wait_is_named(readers, faults):
    refusal = {"status": 400, "shape": "aws-json", "code": "AccessDeniedException"}
    faults({"headers": {"x-amz-target": "AWSGlue.GetJobRuns"}, **refusal})
    failure, _ = waited(readers, status.Event.FIRST_EXPORT)
    assert failure.code == "STATUS-LATER"
    assert "daily_trades: unknown: AWS-REFUSED  reading from AWS: AccessDeniedException" in failure.message


def test_a_suspended_table_ends_a_wait(readers, produce, deployed):
    produce(b"not avro")
    table = attrs.evolve(readers.settings.monitored.tables[0], database="nothing-is-here-yet")
    monitored = attrs.evolve(readers.settings.monitored, tables=[table])
    readers = attrs.evolve(readers, settings=attrs.evolve(readers.settings, monitored=monitored))
    failure, seconds = waited(readers, status.Event.FIRST_TABLE)
    without_bad_records(deployed)
    deployed.resume()
    assert (failure.code, seconds) == ("STATUS-WRONG", 0)
    assert f"{TOPIC}, Tableflow: CFL-TABLEFLOW-SUSPENDED  suspended: " in failure.message


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_a_late_export_is_named_while_its_next_run_is_awaited(readers, faults):
    clock = ManualClock()
    clock.now = datetime.now(UTC).timestamp() + 3 * DAY
    faults(
        {
            "headers": {"x-amz-target": "AWSGlue.GetJobRuns"},
            "status": 200,
            "body": json.dumps({"JobRuns": []}),
        }
    )
    readers = attrs.evolve(readers, ctx=attrs.evolve(readers.ctx, clock=clock))
    failure, _ = waited(readers, status.Event.FIRST_EXPORT)
    assert (failure.code, "late" in failure.message) == ("STATUS-LATER", True)


@pytest.mark.usefixtures("job")
def test_the_last_run_is_reported_with_its_record(readers, faults):
    """A run outside of Glue, begun later, has a record too."""
    began = datetime.now(UTC)
    later = began + timedelta(minutes=5)
    run = {
        "Id": "jr_1",
        "StartedOn": began.timestamp(),
        "CompletedOn": later.timestamp(),
        "JobRunState": "FAILED",
    }
    faults(
        {
            "headers": {"x-amz-target": "AWSGlue.GetJobRuns"},
            "status": 200,
            "body": json.dumps({"JobRuns": [run]}),
        }
    )
    windows = [{"window": "2026-11-20", "state": "published"}, {"window": "2026-11-21", "state": "blocked"}]
    record = {"job_run_id": "jr_1", "state": "blocked", "reason": "EXP-CHECK  two rows", "windows": windows}
    put(readers, f"runs/{began:%Y%m%dT%H%M%SZ}-1.json", record)
    put(readers, f"runs/{later:%Y%m%dT%H%M%SZ}-2.json", {"job_run_id": None, "state": "done", "windows": []})
    put(readers, "manifests/2026-11-20.json", {})
    found = standing(readers)
    assert found.published == 1
    assert status.look(readers, status.Event.FIRST_EXPORT)[0] == "first export: daily_trades (1 windows)"
    assert (found.last.record, found.last.windows) == (
        "blocked",
        ("2026-11-20 published", "2026-11-21 blocked"),
    )
    assert "EXP-CHECK  two rows" in found.observations[0].message
    empty(readers)


def test_an_error_of_a_probe_becomes_an_unknown_state():
    def denied():
        raise LakeferryError(monitoring_errors.NO_VALUE, "secret x")

    assert observe(denied) == Observation(State.UNKNOWN, message="secret x", code="WATCH-NO-VALUE")
    assert observe(lambda: 1.5) == 1.5


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (monitoring_errors.NO_COMMIT, "no record has arrived yet"),
        (monitoring_errors.NO_TABLE, "no table yet"),
    ],
)
def test_a_table_without_records_is_described_in_words(row, words):
    def empty():
        raise LakeferryError(row, "s3://bucket/00000-a.metadata.json")

    found = observe(empty)
    assert (found.state, found.code) == (State.WAITING, row.code)
    (problem,) = status.list_table_problems([TableStatus("orders", {"iceberg": found})])
    assert words in problem.message
    assert "s3://" not in problem.message
    assert row.code not in problem.message


@pytest.mark.parametrize(
    ("hours", "text"), [(0.005, "18 s"), (0.5, "30 min"), (3.25, "3.2 h"), (60, "2.5 days")]
)
def test_ages_are_formatted_for_people(hours, text):
    assert format_hours(hours) == text


def age(**more):
    result = {
        "age_days": 3.0,
        "next_rotation": None,
        "overdue_days": 0.0,
        "pending_days": 0.0,
        "label": "",
        "keys": (),
    }
    return Age(secret="s", vendor="confluent", **{**result, **more})


@pytest.mark.parametrize(
    ("of", "expected_message"),
    [
        (age(), []),
        (age(age_days=46.0), ["46 days old"]),
        (age(age_days=100.0, by_hand=True), []),
        (age(age_days=400.0, by_hand=True), ["400 days old; the limit is 180"]),
        (age(overdue_days=2.0), ["2 days overdue"]),
        (age(overdue_days=0.2), []),
        (age(pending_days=3.0), ["under way for 3 days"]),
    ],
)
def test_problems_of_a_key_are_reported(deployed, of, expected_message):
    found = list(rotation.list_troubles(deployed.ctx.deployment, of))
    assert len(found) == len(expected_message)
    assert all(words in line for words, line in zip(expected_message, found, strict=True))


def test_a_slot_and_a_secret_that_could_not_be_read_are_shown(deployed, capsys):
    keys = (
        {"id": "SHA256:a", "label": "RSA_PUBLIC_KEY", "since": ""},
        {"id": "SHA256:b", "label": "RSA_PUBLIC_KEY_2", "since": ""},
    )
    found = [age(label="RSA_PUBLIC_KEY_2", keys=keys), age(trouble="NET-UNREACHABLE  no connection")]
    rotation.show(Output(), deployed.ctx.deployment, found)
    printed = capsys.readouterr().out
    assert re.search(r"SHA256:b +RSA_PUBLIC_KEY_2 +SHA256:a \(RSA_PUBLIC_KEY\)", printed)
    assert "? s: not asked: NET-UNREACHABLE  no connection" in printed


PAGE = ROOT / "docs" / "how-to" / "deploy-from-ci.md"


@pytest.fixture
def deployer(readers, monkeypatch):
    """Return a function that assumes the role for CI of the documentation, without some actions."""
    ctx = readers.ctx
    iam = boto3.client("iam")
    name = "ci"
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ctx.account}:root"},
        "Action": "sts:AssumeRole",
    }
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))
    (text,) = [fence.text for fence in fences(PAGE) if "cloudformation:Describe*" in fence.text]
    result = ctx.deployment
    for placeholder, real in (
        ("111122223333", ctx.account),
        ("lakeferry-dev", result.prefix),
        ("secret:lakeferry/", f"secret:{result.identity.name}/"),
        ("budgets:ViewBudget", "budgets:DescribeBudgets"),  # the embedded AWS knows only the name of the call
    ):
        assert placeholder in text
        text = text.replace(placeholder, real)

    def become(*without):
        document = json.loads(text)
        document["Statement"] = [
            statement for statement in document["Statement"] if statement["Action"] not in without
        ]
        for statement in document["Statement"]:
            if isinstance(statement["Action"], list):
                statement["Action"] = [action for action in statement["Action"] if action not in without]
        iam.put_role_policy(RoleName=name, PolicyName="deploy", PolicyDocument=json.dumps(document))
        role = f"arn:aws:iam::{ctx.account}:role/{name}"
        given = boto3.client("sts").assume_role(RoleArn=role, RoleSessionName="ci")["Credentials"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", given["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given["SecretAccessKey"])
        monkeypatch.setenv("AWS_SESSION_TOKEN", given["SessionToken"])
        return attrs.evolve(readers, ctx=DeploymentContext(ctx.loaded, ctx.addresses, ctx.clock))

    yield become
    iam.delete_role_policy(RoleName=name, PolicyName="deploy")
    iam.delete_role(RoleName=name)


def results_of(readers, other):
    """Yield the results of doctor, inventory and status, and the tags of all left-overs of another
    deployment.
    """
    ctx = readers.ctx
    other = DeploymentContext(other.loaded, other.addresses, other.clock)
    probes = [probe for probe in doctor.list_probes(ctx) if probe.group is not tools.GROUP]
    yield {(check.group, check.name, check.result) for check in runner.run(probes)}
    yield {(item.system, item.kind, item.name, item.verdict) for item in inventory.collect(ctx)}
    yield {
        (kind.name, found.name, *sorted(found.tags().items()))
        for kind in list_aws_kinds(other.deployment)
        for found in kind.find(other)
    }
    yield {
        (hop, value.state)
        for table in freshness.read_tables(readers, STALE_HOURS)
        for hop, value in table.hops.items()
    }
    yield {
        (export.export, seen.state)
        for export in exports.read_exports(readers)
        for seen in export.observations
    }
    yield {(one.secret, one.trouble) for one in rotating_secrets.read_manual_ages(ctx)}
    yield {exports.observe_engineers(readers)}


@pytest.mark.slow
def test_without_permission_to_read_keys_doctor_looks_at_aws_only(deployer):
    ctx = deployer("secretsmanager:GetSecretValue").ctx
    looked = {group: group.look(ctx) for group in (confluent, snowflake)}
    for group, (key, *value) in looked.items():
        assert (key.name, key.result, "secrets set" in key.fix) == (group.KEY, Result.WARN, False)
        assert {check.result for check in value} == {Result.SKIPPED}
    assert {check.result for check in storage.check_chosen_buckets(ctx)} == {Result.OK}


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_the_role_for_ci_sees_what_the_root_user_sees(readers, deployer, deployed):
    other = deployed.stand_ins.deployment(prepared=False)
    kinds = {kind for kind, _ in plant_in_aws(other)}
    assert {kind.name for kind in list_aws_kinds(other.deployment) if any(kind.find(other))} >= kinds - {
        "glue_table"
    }
    as_root = list(results_of(readers, other))
    for seen_as_root, seen_by_role in zip(as_root, results_of(deployer(), other), strict=True):
        assert seen_by_role == seen_as_root
    lacking = {
        item.kind
        for item in inventory.collect(deployer("iam:ListRoles").ctx)
        if item.verdict is Verdict.UNKNOWN
    }
    assert lacking == {"role"}


@pytest.mark.slow
def test_the_role_for_ci_removes_the_protection_of_the_deployments_stacks_only(deployed, deployer):
    """`deploy` does so where the first creation of a stack was rolled back."""
    names = f"{deployed.ctx.deployment.prefix}-again", "stack-of-somebody-else"
    root = boto3.client("cloudformation")
    template = {"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}
    for name in names:
        root.create_stack(StackName=name, TemplateBody=json.dumps(template), EnableTerminationProtection=True)
        root.get_waiter("stack_create_complete").wait(
            StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 300}
        )
    role = deployer().ctx.client("cloudformation")
    ids = [role.describe_stacks(StackName=name)["Stacks"][0]["StackId"] for name in names]
    role.update_termination_protection(StackName=ids[0], EnableTerminationProtection=False)
    with pytest.raises(ClientError, match="AccessDenied"):
        role.update_termination_protection(StackName=ids[1], EnableTerminationProtection=False)
    for name in names:
        root.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        root.delete_stack(StackName=name)


@pytest.mark.slow
def test_the_role_for_ci_starts_and_stops_runs_of_the_deployments_jobs_only(deployed, deployer):
    root = boto3.client("glue")
    names = f"{deployed.ctx.deployment.prefix}-any", "job-of-somebody-else"
    for name in names:
        command = {"Name": "glueetl", "ScriptLocation": "s3://none/script.py"}
        root.create_job(Name=name, Role="arn:aws:iam::000000000000:role/none", Command=command)
    role = deployer().ctx.client("glue")
    run = role.start_job_run(JobName=names[0])["JobRunId"]
    role.batch_stop_job_run(JobName=names[0], JobRunIds=[run])
    with pytest.raises(ClientError, match="AccessDenied"):
        role.start_job_run(JobName=names[1])
    for name in names:
        root.delete_job(JobName=name)
