"""The example that sends news to chats and webhooks: cfn-lint accepts it, it deploys, and the event that the
function puts becomes one message in the form that chats expect.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from dev.docs import samples
from lakeferry.local.bootstrap import ROOT
from lambdas import contract
from lambdas.notifications import outcome
from lambdas.notifications.announcement import Announcer
from lambdas.notifications.mail_links import Links
from lambdas.shared.event_bus import EventBus
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from tests.support.notification_environment import BUCKET, SALES, NotificationEnvironment, published, record
from tests.support.waiting import until

TEMPLATE = ROOT / "examples" / "send_news.yaml"
STACK = "send-news"


def lint(file):
    command = [Path(sys.executable).with_name("cfn-lint"), "--format", "json", "--template", file]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return [finding["Rule"]["Id"] for finding in json.loads(result.stdout)]


def test_cfn_lint_finds_nothing_but_a_planted_mistake(tmp_path):
    assert lint(TEMPLATE) == []
    planted = tmp_path / "planted.yaml"
    planted.write_text(TEMPLATE.read_text().replace("HttpMethod: POST", "HttpMethod: SEND"))
    assert lint(planted) == ["E3030"]


@pytest.fixture(scope="module")
def topic(lake_aws):
    """Deploy the template without receivers, and return the ARN of its topic."""
    stacks = boto3.client("cloudformation")
    parameters = {"Project": "lakeferry", "Stage": "dev"}
    stacks.create_stack(
        StackName=STACK,
        TemplateBody=TEMPLATE.read_text(),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
    )
    stacks.get_waiter("stack_create_complete").wait(
        StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    (output,) = stacks.describe_stacks(StackName=STACK)["Stacks"][0]["Outputs"]
    yield output["OutputValue"]
    stacks.delete_stack(StackName=STACK)


@pytest.fixture
def receive(topic):
    """Subscribe a queue to the topic, and return a function that returns the next messages."""
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="news")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    boto3.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def receive():
        received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(json.loads(message["Body"])["Message"]) for message in received]

    return receive


def announcer(env, stage):
    return Announcer(
        objects=Objects(env.bucket, BUCKET),
        bus=EventBus(boto3.client("events")),
        clock=env.clock,
        log=open_log(env.log),
        project="lakeferry",
        stage=stage,
        links=Links(BUCKET, "eu-west-1", "exports"),
        notices=f"notices-{stage}",
    )


def test_an_event_becomes_one_message_for_chats_however_often_glue_reports(receive):
    env = NotificationEnvironment()
    env.publish(samples.manifests()[0])
    (news, _) = outcome.read_record(record(published()))
    for stage in ("prod", "dev", "dev"):
        announcer(env, stage).announce(SALES, news)
    (message,) = until(receive)
    assert message == {
        "version": "1.0",
        "source": "custom",
        "id": "lakeferry-dev/weekly_sales/2026-W46/1/20261116T060009Z-5a0c9e12",
        "content": {
            "textType": "client-markdown",
            "title": samples.manifests()[0]["title"],
            "description": message["content"]["description"],
            "keywords": ["2026-W46", "complete"],
        },
        "metadata": {"threadId": "weekly_sales", "summary": samples.manifests()[0]["title"]},
    }
    assert message["content"]["description"].startswith(
        "The file is ready. 15,249 rows. Line total: 574,011.92"
    )
    assert receive() == []


def test_the_template_has_the_events_source_and_type():
    text = TEMPLATE.read_text()
    assert text.count(f"source: [{contract.EVENT_SOURCE}]") == 2
    assert text.count(f"detail-type: [{contract.EVENT_TYPE}]") == 2
