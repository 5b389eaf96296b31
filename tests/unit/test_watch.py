"""The watch's own measurements: late exports, ages of keys, metrics, and errors that hide no other
measurement.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import attrs
import boto3
import pytest
from botocore.stub import Stubber

from lambdas import contract
from lambdas.confluent import telemetry
from lambdas.confluent.rest_client import RestClient
from lambdas.handlers import monitoring
from lambdas.handlers.runtime import Failed, get_client
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring import measurements
from lambdas.monitoring.checks import Check, emit, list_checks, run_checks
from lambdas.monitoring.measurements import run_once
from lambdas.monitoring.settings import Monitored, MonitoredExport, MonitoredTable
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError, OutOfTime
from lambdas.shared.http import Session
from lambdas.shared.log import open_log
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import reveal_fields
from lambdas.snowflake import keypair, secret_fields
from lambdas.snowflake.client import Login
from lambdas.snowflake.secret_fields import Connection
from tests.support.resource_environment import ManualClock

_numbers = itertools.count(1)
_client = functools.cache(boto3.client)
WEEKLY = MonitoredExport("weekly_sales", "", "0 7 ? * MON *", "Europe/Berlin", 6)
MONDAY = datetime(2026, 11, 16, 6, 0, tzinfo=UTC)  # 07:00 in Berlin: W46 is due


@pytest.fixture(autouse=True, scope="module")
def _warm():
    yield
    get_client.cache_clear()
    _client.cache_clear()


@pytest.fixture
def bucket(lake_aws):
    name = f"watch-{next(_numbers)}"
    _client("s3").create_bucket(
        Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region}
    )
    return name


def publish(bucket, *labels, folder="manifests"):
    for label in labels:
        _client("s3").put_object(Bucket=bucket, Key=f"exports/weekly_sales/{folder}/{label}.json", Body=b"{}")


class Jobs:
    """Glue's jobs with their time of creation, which the watch reads."""

    def __init__(self, created):
        self.created = created

    def get_job(self, JobName):  # noqa: N803  (AWS's word)
        return {"Job": {"Name": JobName, "CreatedOn": self.created}}


def late(bucket, hours, export=WEEKLY, deployed=MONDAY - timedelta(days=365)):
    """Run the check so many hours after Monday morning."""
    now = (MONDAY + timedelta(hours=hours)).timestamp()
    return measurements.ExportResults(
        Objects(_client("s3"), bucket), "exports", Jobs(deployed), lambda: now
    ).late(export)


# --- exports


def test_n6_an_export_that_never_starts_is_late_once_its_grace_is_over(bucket):
    publish(bucket, "2026-W45")
    assert [late(bucket, hours) for hours in (0, 5.9, 6, 8, 30)] == [0, 0, 0, 2, 24]


def test_a_window_that_is_published_or_was_found_empty_is_not_late(bucket):
    publish(bucket, "2026-W46")
    assert late(bucket, 30) == 0
    publish(bucket, "2026-W47", folder="skipped")
    assert late(bucket, 30 + 7 * 24) == 0


def test_lateness_grows_over_consecutive_missed_windows(bucket):
    publish(bucket, "2026-W44")
    assert late(bucket, 30) == 24 + 7 * 24
    publish(bucket, "2026-W46")
    assert late(bucket, 30) == 0, "the newest is there; an older gap is no lateness of now"


def test_before_the_first_due_time_nothing_is_late(bucket):
    assert late(bucket, -24 * 30) == 0


def test_an_export_that_was_just_deployed_is_not_late_until_its_own_first_run_is(bucket):
    """Its contract may include years of windows that cannot be published yet."""
    deployed = MONDAY + timedelta(hours=1)
    week = 7 * 24
    assert [late(bucket, hours, deployed=deployed) for hours in (2, 8, 100, week + 5)] == [0, 0, 0, 0]
    assert late(bucket, week + 6, deployed=deployed) > 0


def test_windows_before_the_deployments_first_day_are_not_late(bucket):
    for first_day, hours in (("2026-11-09", 24), ("2026-11-16", 0)):
        assert late(bucket, 30, attrs.evolve(WEEKLY, first_day=first_day)) == hours


def test_a_result_of_another_export_is_ignored(bucket):
    _client("s3").put_object(
        Bucket=bucket, Key="exports/weekly_sales_by_region/manifests/2026-W46.json", Body=b"{}"
    )
    publish(bucket, "2026-W45")
    assert late(bucket, 8) == 2


def test_an_export_without_its_contract_is_reported(bucket):
    with pytest.raises(LakeferryError) as raised:
        late(bucket, 8, MonitoredExport("nothing_of_ours", "", WEEKLY.cron, WEEKLY.zone, 6))
    assert raised.value.kind is monitoring_errors.CONTRACT


def test_n7_recipients_who_did_not_confirm_are_counted(lake_aws):
    with Stubber(_client("sns")) as stub:
        for confirmed in ("1", "3", "4"):
            stub.add_response("get_topic_attributes", {"Attributes": {"SubscriptionsConfirmed": confirmed}})
        assert [
            measurements.count_unconfirmed(_client("sns"), "arn:aws:sns:eu-west-1:1:t", 3) for _ in range(3)
        ] == [2, 0, 0]


def test_recipients_who_can_confirm_are_told_from_those_whose_subscription_ended(lake_aws):
    attributes = {"SubscriptionsConfirmed": "1", "SubscriptionsPending": "1", "SubscriptionsDeleted": "1"}
    with Stubber(_client("sns")) as stub:
        stub.add_response("get_topic_attributes", {"Attributes": attributes})
        assert measurements.find_unreached(_client("sns"), "arn:aws:sns:eu-west-1:1:t", 3) == (1, 1)


# --- keys


def test_a_keys_age_is_that_of_the_value_that_readers_get(lake_aws):
    secrets = _client("secretsmanager")
    arn = secrets.create_secret(Name=f"lakeferry-dev/kafka-{next(_numbers)}", SecretString="{}")["ARN"]
    made = datetime.now(UTC).timestamp()
    assert measurements.SecretKeys(secrets, lambda: made + 10 * 86400).age_days(arn) == pytest.approx(
        10, abs=0.01
    )
    empty = secrets.create_secret(Name=f"lakeferry-dev/empty-{next(_numbers)}")["ARN"]
    with pytest.raises(LakeferryError) as raised:
        measurements.SecretKeys(secrets, lambda: made).age_days(empty)
    assert raised.value.kind is monitoring_errors.NO_VALUE


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        (
            "arn:aws:secretsmanager:eu-west-1:1:secret:lakeferry-dev/confluent/flink-AbCdEf",
            "lakeferry-dev/confluent/flink",
        ),
        ("lakeferry-dev/flink", "lakeferry-dev/flink"),
    ],
)
def test_a_secrets_name_is_read_from_its_arn(arn, name):
    assert measurements.read_name(arn) == name


def test_a_rotation_that_did_not_happen_is_overdue_from_the_day_that_it_was_due(lake_aws):
    described = {"RotationEnabled": True, "NextRotationDate": MONDAY}
    with Stubber(_client("secretsmanager")) as stub:
        for answer in (
            described,
            described,
            described | {"RotationEnabled": False},
            {"RotationEnabled": True},
        ):
            stub.add_response("describe_secret", answer)
        for days, overdue in ((-1, 0.0), (3, 3.0), (3, 0.0), (3, 0.0)):
            now = (MONDAY + timedelta(days=days)).timestamp()
            assert (
                measurements.SecretKeys(_client("secretsmanager"), lambda now=now: now).overdue_days("s")
                == overdue
            )


# --- topics


def test_hours_without_records_and_all_pages_of_the_vendors_answer_are_read(server):
    row = {"value": 1.0, "metric.topic": "trades"}
    pages = [
        {
            "data": [row | {"timestamp": "2026-11-16T01:00:00Z"}],
            "meta": {"pagination": {"next_page_token": "t"}},
        },
        {
            "data": [
                row | {"timestamp": "2026-11-16T03:00:00Z"},
                row | {"timestamp": "2026-11-16T05:00:00Z", "value": 0.0},
            ]
        },
    ]
    server.answers["POST /v2/metrics/cloud/query"] = [(200, page) for page in pages]
    clock = SystemClock()
    session = Session(Deadline(clock, clock.time() + 30))
    plane = RestClient(session, clock, server.url, ApiKey("K", Secret("s" * 40)))
    found = telemetry.find_last_received(plane, "lkc-1", MONDAY.timestamp() + 60)
    assert found == {"trades": datetime(2026, 11, 16, 4, 0, tzinfo=UTC).timestamp()}
    assert [sent.query for sent in server.sent] == [{}, {"page_token": "t"}]
    (asked, _) = (sent.body for sent in server.sent)
    assert asked["intervals"] == ["2026-11-09T07:00:00Z/2026-11-16T06:01:00Z"]
    assert asked["filter"] == {"field": "resource.kafka.id", "op": "EQ", "value": "lkc-1"}


# --- metrics


def test_services_of_aws_that_hang_leave_time_for_the_vendors_and_for_the_metrics():
    clock = ManualClock()

    def hanging():
        clock.sleep(30.0)
        raise LakeferryError(monitoring_errors.NO_TABLE, "no answer")

    checks = [Check("KeyAgeDays", str(number), hanging) for number in range(20)]
    checks += [Check("TopicAgeHours", "orders", lambda: 1.0), Check("GlueAgeHours", "orders", lambda: 1.0)]
    began = clock.now
    output = io.StringIO()
    measured = run_checks(checks, open_log(output), monitoring.time_left(clock, 200.0))
    assert clock.now - began <= 200 * 0.4 + 30
    assert len(measured) == len(checks)
    assert (measured["TopicAgeHours", "orders"], measured["GlueAgeHours", "orders"]) == (1.0, None)
    assert "took all the time" in output.getvalue()


def test_a_failed_check_hides_no_other():
    def broken():
        raise LakeferryError(monitoring_errors.NO_TABLE, "lkc-1.b")

    def mistaken():
        return 1 / 0

    log = io.StringIO()
    sights = [
        Check("GlueAgeHours", "a", lambda: 1.0), Check("GlueAgeHours", "b", broken),
        Check("GlueAgeHours", "c", lambda: 3.0), Check("KeyAgeDays", "k", mistaken),
        Check("ExportLateHours", "e", lambda: -5.0),
    ]  # fmt: skip
    measured = run_checks(sights, open_log(log))
    ages = {("GlueAgeHours", "a"): 1.0, ("GlueAgeHours", "b"): None, ("GlueAgeHours", "c"): 3.0}
    assert measured == {**ages, ("KeyAgeDays", "k"): None, ("ExportLateHours", "e"): 0.0}
    assert "WATCH-NO-TABLE" in log.getvalue()
    assert "ZeroDivisionError" in log.getvalue()


def emitted(measured):
    asked = []

    class CloudWatch:
        def put_metric_data(self, **given):
            asked.append(given)

    emit(CloudWatch(), measured, "lakeferry-dev", MONDAY.timestamp())
    return asked


def test_metrics_have_the_deployment_and_at_most_one_name_as_dimensions():
    """No dimension is data: there are as many metrics as names in the deployment file, and one per kind."""
    tables = [f"t{number}" for number in range(300)]
    values = {(metric, table): 1.0 for metric in contract.METRIC_DIMENSIONS for table in tables}
    calls = emitted(values)
    assert all(call["Namespace"] == contract.METRICS and len(call["MetricData"]) <= 500 for call in calls)
    data = [datum for call in calls for datum in call["MetricData"]]
    assert len(data) == len(contract.METRIC_DIMENSIONS) * (len(tables) + 2) + 1
    assert {tuple(dimension["Name"] for dimension in datum["Dimensions"]) for datum in data} == {
        ("Deployment",), ("Deployment", contract.UNMEASURED_DIMENSION),
        *(("Deployment", dimension) for dimension in contract.METRIC_DIMENSIONS.values()),
    }  # fmt: skip


def test_the_deployments_metric_aggregates_all_names():
    ages = {("GlueAgeHours", "a"): 1.0, ("GlueAgeHours", "b"): 4.0, ("GlueAgeHours", "c"): None}
    (call,) = emitted({**ages, ("KeyAgeDays", "k"): None})
    totals = {
        datum["MetricName"]: datum["StatisticValues"]
        for datum in call["MetricData"]
        if len(datum["Dimensions"]) == 1
    }
    assert totals["GlueAgeHours"] == {"SampleCount": 2, "Sum": 5.0, "Minimum": 1.0, "Maximum": 4.0}
    assert totals[contract.UNMEASURED]["Maximum"] == 1.0
    assert "KeyAgeDays" not in totals


def test_every_metric_that_is_emitted_is_in_the_contract_with_the_stacks(lake_aws):
    parsed = Monitored(
        "lkc-1",
        [MonitoredTable("t", "t", "lkc-1", "D.S.T")],
        [MonitoredExport("e", "", "", "", 6, 1, topic="arn")],
        ["rotating"],
        ["by-hand"],
        ["log"],
    )
    connections = monitoring.build_clients(_settings(parsed), SystemClock(), 0)
    assert {check.metric for check in list_checks(parsed, connections)} == set(contract.METRIC_DIMENSIONS)


def test_no_vendor_gets_time_after_the_end():
    """Two vendors have used up their shares of 105 seconds; the third one has 21 left, not another 42."""
    clock = ManualClock()
    new_session = monitoring.sessions(clock, 105)
    clock.now += 84
    third = new_session()
    clock.now += 20.5
    with pytest.raises(OutOfTime):
        third.call("GET", "http://127.0.0.1:9")


def _settings(parsed):
    return monitoring.Settings(
        "lakeferry-dev", "b", "exports", parsed, "", "https://127.0.0.1", "", "https://127.0.0.1", "", ""
    )


# --- the function


class Invocation:
    invoked_function_arn = "arn:aws:lambda:eu-west-1:000000000000:function:watch"

    def get_remaining_time_in_millis(self):
        return 60_000


@pytest.fixture
def publish_settings(bucket, monkeypatch):
    """Return a function that publishes settings as the stacks do, for the function's environment."""

    def publish(document):
        key = f"assets/{next(_numbers)}.json"
        _client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())
        monkeypatch.setenv(contract.SETTINGS, f"s3://{bucket}/{key}")

    return publish


@pytest.fixture
def environment(bucket, publish_settings, lake_aws, monkeypatch):
    secret = f"lakeferry-dev/w-{next(_numbers)}"
    job = f"watched-{next(_numbers)}"
    _client("secretsmanager").create_secret(Name=secret, SecretString="{}")
    code = {"Name": "glueetl", "ScriptLocation": "s3://x/y"}
    _client("glue").create_job(Name=job, Role="arn:aws:iam::000000000000:role/job", Command=code)
    export = {
        "export": "weekly_sales",
        "job": job,
        "cron": WEEKLY.cron,
        "zone": WEEKLY.zone,
        "late_after_hours": 6,
    }
    publish_settings(
        {
            "tables": [{"topic": "Stock_Trades", "name": "stock_trades", "in_glue": True, "snowflake": "T"}],
            "exports": [export],
            "secrets": [secret],
            "deployer_secrets": [secret],
        }
    )
    values = {
        contract.PROJECT: "lakeferry",
        contract.STAGE: f"watched{next(_numbers)}",
        contract.LAKE_BUCKET: bucket,
        contract.LAKE_PREFIX: "exports",
        contract.CLUSTER: "lkc-1",
        contract.SNOWFLAKE_SCHEMA: "D.S",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


def test_available_values_become_metrics_and_missing_ones_are_counted(environment):
    """Without table, Confluent keys and reader, only ages of keys and exports are measured."""
    answer = monitoring.on_schedule({}, Invocation())
    hops = ("GlueAgeHours", "IcebergAgeHours", "SnowflakeAgeHours", "TableflowStopped", "TopicAgeHours")
    assert answer["unmeasured"] == {**{hop: ["stock_trades"] for hop in hops}, "RowsSkipped": ["lkc-1"]}
    assert answer["measured"] == 4
    deployment = {"Name": "Deployment", "Value": f"lakeferry-{environment[contract.STAGE]}"}
    listed = _client("cloudwatch").list_metrics(Namespace=contract.METRICS)["Metrics"]
    names = {metric["MetricName"] for metric in listed if metric["Dimensions"] == [deployment]}
    assert names == {
        "KeyAgeDays",
        "RotationOverdueDays",
        "DeployerKeyAgeDays",
        "ExportLateHours",
        contract.UNMEASURED,
    }


def test_the_login_to_snowflake_is_the_user_in_the_secret(lake_aws):
    fields = secret_fields.build_fields(
        keypair.make(), Connection("org-acct", "LAKE_READER", "h", "Reader role", "WH", "D.S")
    )
    name = f"lakeferry-dev/reader-{next(_numbers)}"
    _client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(reveal_fields(fields)))
    clock = SystemClock()
    table = _new_state_table(name.replace("/", "-"))
    settings = attrs.evolve(_settings(Monitored()), snowflake_secret=name, snowflake_state_table=table)
    made = monitoring.open_snowflake(settings, Session(Deadline(clock, clock.time() + 1)), clock)
    assert made.login == Login("org-acct", "LAKE_READER", "Reader role", "")


def _new_state_table(name):
    key = {"AttributeName": contract.STATE_KEY, "AttributeType": "S"}
    _client("dynamodb").create_table(
        TableName=name,
        AttributeDefinitions=[key],
        KeySchema=[{"AttributeName": contract.STATE_KEY, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def test_metrics_that_cannot_be_written_fail_the_watch(environment, monkeypatch):
    with Stubber(monitoring._client("cloudwatch")) as stub:
        stub.add_client_error("put_metric_data", "AccessDenied")
        with pytest.raises(Failed, match="AWS-REFUSED"):
            monitoring.on_schedule({}, Invocation())


def test_all_missing_variables_of_the_watch_are_reported_together():
    with pytest.raises(
        LakeferryError, match=f"{contract.STAGE}, {contract.LAKE_BUCKET}, {contract.LAKE_PREFIX}"
    ):
        monitoring.read_settings({contract.PROJECT: "lakeferry"}, _client("s3"))


@pytest.mark.parametrize("document", [{"tables": 3}, {"tables": [{"in_glue": True}]}])
def test_settings_that_the_stacks_never_publish_are_refused(environment, publish_settings, document):
    publish_settings(document)
    with pytest.raises(Failed, match=r"LF-SETTINGS.*is not a deployment's settings"):
        monitoring.on_schedule({}, Invocation())


def test_missing_settings_are_reported(environment, bucket, monkeypatch):
    monkeypatch.setenv(contract.SETTINGS, f"s3://{bucket}/assets/none.json")
    with pytest.raises(Failed, match=f"LF-SETTINGS.*{bucket}/assets/none.json"):
        monitoring.on_schedule({}, Invocation())


def test_threads_that_need_the_same_answer_share_one_call():
    """`status` checks all hops at once."""
    both_wait = threading.Barrier(2, timeout=1)
    calls = []

    def ask():
        calls.append(1)
        with contextlib.suppress(threading.BrokenBarrierError):
            both_wait.wait()  # a second call would wait here too
        return 7

    answer = run_once(ask)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: answer(), range(2))) == [7, 7]
    assert len(calls) == 1
