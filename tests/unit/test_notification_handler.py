"""The notification function with boto3's clients and an embedded AWS: its bucket, its topics, and a queue as
a mailbox.
"""

from __future__ import annotations

import functools
import itertools
import json

import boto3
import pytest
from botocore.stub import Stubber

from lambdas import contract
from lambdas.handlers import notifications
from lambdas.handlers.runtime import Failed, get_client
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.http import NotSent, ResponseLost
from lambdas.shared.sns import SnsTopics
from tests.support.notification_environment import MONDAY, published, record

_numbers = itertools.count(1)
#: Creating a client takes a tenth of a second.
_client = functools.cache(boto3.client)
ACCOUNT = "000000000000"


class Invocation:
    def __init__(self, region):
        self.invoked_function_arn = f"arn:aws:lambda:{region}:{ACCOUNT}:function:notify"
        self.aws_request_id = f"request-{next(_numbers)}"

    def get_remaining_time_in_millis(self):
        return 60_000


class Mailbox:
    """A topic, and a queue that is subscribed to it."""

    def __init__(self):
        sns = _client("sns")
        self.sqs = _client("sqs")
        number = next(_numbers)
        self.arn = sns.create_topic(Name=f"mail-{number}_weekly_sales")["TopicArn"]
        self.queue = self.sqs.create_queue(QueueName=f"mail-{number}")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        sns.subscribe(TopicArn=self.arn, Protocol="sqs", Endpoint=arn)

    def mails(self):
        found = []
        while got := self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(message["Body"]) for message in got]
            for message in got:
                self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return found


@pytest.fixture(autouse=True, scope="module")
def _warm():
    """Share the function's clients and the tests' clients while this embedded AWS runs."""
    yield
    get_client.cache_clear()
    _client.cache_clear()


@pytest.fixture
def deployed(lake_aws, monkeypatch):
    """The bucket, topics and job of a deployment, and the function's environment."""
    bucket = f"notify-{next(_numbers)}"
    mailbox = Mailbox()
    alarms = Mailbox()
    _client("s3").create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": lake_aws.region}
    )
    job = f"job-{next(_numbers)}"
    export = {
        "export": "weekly_sales",
        "job": job,
        "zone": "Europe/Berlin",
        "cron": "0 7 ? * MON *",
        "late_after_hours": 6,
    }
    _client("s3").put_object(
        Bucket=bucket, Key="settings.json", Body=json.dumps({"exports": [export]}).encode()
    )
    environment = {
        contract.PROJECT: "sales",
        contract.STAGE: job,
        contract.LAKE_BUCKET: bucket,
        contract.LAKE_PREFIX: "exports",
        contract.NOTICES_PREFIX: "notices",
        contract.ALARM_TOPIC: alarms.arn,
        contract.SETTINGS: f"s3://{bucket}/settings.json",
        contract.TOPIC_ARNS: mailbox.arn.removesuffix("weekly_sales"),
        "AWS_REGION": lake_aws.region,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Deployed(bucket, job, mailbox, alarms, lake_aws.region)


class Deployed:
    def __init__(self, bucket, job, mailbox, alarms, region):
        self.bucket = bucket
        self.job = job
        self.mailbox = mailbox
        self.alarms = alarms
        self.region = region
        glue = _client("glue")
        glue.create_job(
            Name=job,
            Role="arn:aws:iam::000000000000:role/job",
            Command={"Name": "glueetl", "ScriptLocation": "s3://x/y"},
        )
        self.run_id = glue.start_job_run(JobName=job, Arguments={"--as-of": MONDAY.isoformat()})["JobRunId"]
        self.run = glue.get_job_run(JobName=job, RunId=self.run_id)["JobRun"]

    def keep(self, made):
        """Write the run's record, which starts when Glue's run started."""
        started_at = self.run["StartedOn"]
        made |= {
            "started_at": started_at.isoformat(),
            "id": f"{started_at:%Y%m%dT%H%M%SZ}-5a0c9e12",
            "job_run_id": self.run_id,
        }
        key = f"exports/weekly_sales/runs/{made['id']}.json"
        _client("s3").put_object(Bucket=self.bucket, Key=key, Body=json.dumps(made).encode())

    def event(self, state="SUCCEEDED", **changed):
        detail = {
            "jobName": self.job,
            "jobRunId": self.run_id,
            "state": state,
            "message": "ValueError: Ms Doe",
            "severity": "INFO",
        }
        common = {"id": "e-1", "account": ACCOUNT, "region": self.region, "source": "aws.glue"}
        return {"version": "0", "detail-type": "Glue Job State Change", **common, "detail": detail, **changed}

    def call(self, event=None):
        return notifications.on_state_change(event or self.event(), Invocation(self.region))


def test_an_event_becomes_one_mail_however_often_it_comes(deployed):
    deployed.keep(record(published("2026-W46")))
    for _ in range(3):
        assert deployed.call() == {"job_run": deployed.run_id}
    (mail,) = deployed.mailbox.mails()
    assert mail["Subject"].endswith("- complete")
    assert "The file is ready." in mail["Message"]
    assert deployed.alarms.mails() == []


def test_n5_a_failure_without_a_record_is_one_mail_each_and_holds_nothing_of_glues_message(deployed):
    for _ in range(2):
        deployed.call(deployed.event("FAILED"))
    mails = [*deployed.mailbox.mails(), *deployed.alarms.mails()]
    assert [mail["Subject"].rsplit(" ", 1)[1] for mail in mails] == ["failed", "failed"]
    assert "Doe" not in json.dumps(mails)


@pytest.mark.parametrize(
    "changed",
    [
        {"source": "aws.sns"}, {"source": "lakeferry"}, {"detail-type": "Glue Data Catalog Table State Change"},
        {"account": "111122223333"}, {"region": "us-east-2"}, {"source": None, "Records": [{"EventSource": "aws:sns"}]},
    ],
)  # fmt: skip
def test_n10_only_glues_events_of_this_account_send_a_mail(deployed, changed):
    """The function publishes to SNS, so its own messages cannot cause another mail."""
    with pytest.raises(Failed, match="MAIL-EVENT"):
        deployed.call(deployed.event(**changed))
    assert deployed.mailbox.mails() == []


def test_errors_and_logs_of_a_failed_try_have_no_text_and_no_trace(deployed, monkeypatch, capsys):
    """The exception goes to the dead-letter queue, and the log to CloudWatch."""
    deployed.keep(record(published("2026-W46", notes=["a note for readers"])))
    monkeypatch.setenv(contract.TOPIC_ARNS, "arn:aws:sns:eu-west-1:000000000000:gone_")
    with pytest.raises(Failed) as raised:
        deployed.call()
    assert str(raised.value).startswith("MAIL-NOT-SENT  "), str(raised.value)
    assert "a note for readers" not in str(raised.value) + capsys.readouterr().out
    assert raised.value.__cause__ is None


def test_all_missing_variables_are_reported_together():
    with pytest.raises(
        LakeferryError,
        match=f"{contract.PROJECT}, {contract.STAGE}, {contract.LAKE_PREFIX}, {contract.NOTICES_PREFIX}, "
        f"{contract.SETTINGS}, AWS_REGION not set",
    ):
        notifications.read_settings({contract.LAKE_BUCKET: "lake"}, _client("s3"))


# --- responses of SNS, with boto3's client as the function creates it


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (500, "InternalError", ResponseLost),
        (503, "ServiceUnavailable", ResponseLost),
        (429, "Throttling", NotSent),
        (403, "AuthorizationError", Refused),
        (404, "NotFound", Refused),
    ],
)
def test_n4_each_response_of_sns_shows_whether_a_mail_may_have_been_sent(status, code, error, lake_aws):
    sns = get_client("sns", notifications.SENT_ONCE)
    assert sns.meta.config.retries["total_max_attempts"] == 1
    with Stubber(sns) as stub:
        stub.add_client_error("publish", code, http_status_code=status)
        with pytest.raises(error):
            SnsTopics(sns).publish("arn:aws:sns:eu-west-1:111122223333:t", "s", "text")
        stub.assert_no_pending_responses()


def test_n4_a_failed_connection_sent_nothing(lake_aws, monkeypatch):
    get_client.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", "http://127.0.0.1:9")
    with pytest.raises(NotSent):
        SnsTopics(get_client("sns", notifications.SENT_ONCE)).publish(
            "arn:aws:sns:eu-west-1:111122223333:t", "s", "text"
        )
    get_client.cache_clear()
