"""`lakeferry inventory`, `destroy` and `status` as users call them, for the deployment of
project/deployments/dev.toml.
"""

from __future__ import annotations

import json
import urllib.request

import boto3
import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lambdas import contract
from tests.support.leftovers import QUEUE
from tests.support.promises import promised
from tests.support.stand_ins import Planter, Stacks


def call(*words):
    answer = CliRunner().invoke(app, [*words])
    return answer.exit_code, json.loads(answer.stdout) if "--json" in words else answer.output


@pytest.mark.slow
@pytest.mark.usefixtures("dev")
def test_an_inventory_without_left_overs_succeeds():
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["ok"]) == (0, True)
    assert document.keys() == promised("inventory")
    assert {item["verdict"] for item in document["items"]} == {"retained"}


@pytest.fixture(scope="module")
def left_over(dev):
    """The name of a warehouse that no stack has. The last test that uses it destroys it."""
    return Planter(dev).make("snowflake_warehouse", "Warehouse")


def test_left_overs_are_listed_with_exit_code_1(left_over):
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["code"], document["exit_code"]) == (1, "LEFT-OVER", 1)
    assert [item["name"] for item in document["details"]["items"] if item["verdict"] == "orphaned"] == [
        left_over
    ]
    code, printed = call("inventory", "--stage", "dev")
    assert (code, printed.count("orphaned: snowflake_warehouse")) == (1, 1)
    assert "orphan" in printed


@pytest.mark.usefixtures("left_over")
def test_a_plan_is_one_document_and_changes_nothing():
    code, document = call("destroy", "--stage", "dev", "--plan", "--json")
    assert (code, document.keys()) == (0, promised("destroy"))
    assert [item["kind"] for item in document["to_delete"]] == ["snowflake_warehouse"]
    assert call("inventory", "--stage", "dev", "--json")[0] == 1


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("left_over")
@pytest.mark.parametrize("words", [(), ("--confirm", "prod"), ("--json",)])
def test_without_confirmation_nothing_is_destroyed(words):
    code, _ = call("destroy", "--stage", "dev", *words)
    assert code == 2
    assert call("destroy", "--yes", "--stage", "dev", *words)[0] == 2
    assert call("inventory", "--stage", "dev", "--json")[0] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("left_over")
def test_a_destroy_ends_with_an_inventory_without_left_overs():
    code, document = call("destroy", "--stage", "dev", "--confirm", "dev", "--json")
    assert (code, [item["kind"] for item in document["removed"]]) == (0, ["snowflake_warehouse"])
    assert {item["verdict"] for item in document["items"]} == {"retained"}
    assert call("inventory", "--stage", "dev", "--json")[0] == 0


@pytest.mark.slow
def test_stacks_are_destroyed_the_last_deployed_first(dev):
    stacks = [Stacks(dev).make(part, {"Queue": QUEUE}) for part in ("data", "operations")]
    code, document = call("destroy", "--stage", "dev", "--confirm", "dev", "--json")
    assert (code, document["code"]) == (0, "DONE")
    assert list(document["stacks"]) == stacks[::-1]


@pytest.mark.usefixtures("dev")
def test_an_unreachable_vendor_has_exit_code_1(broken):
    broken("Snowflake", status=401, shape="json", code="390144")
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["code"]) == (1, "INCOMPLETE")
    assert "Snowflake" in document["message"]


@pytest.fixture
def monitored(dev):
    """Deploy what `status` reads: the function of monitoring, its settings without tables and exports, and
    the alarms' topic.
    """
    identity = dev.deployment.identity
    prefix = dev.deployment.prefix
    bucket, (engineer,) = f"{prefix}-settings", dev.deployment.alerts.engineers
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": dev.region})
    s3.put_object(Bucket=bucket, Key="settings.json", Body=b"{}")
    variables = {
        contract.PROJECT: identity.name,
        contract.STAGE: identity.stage,
        contract.LAKE_BUCKET: bucket,
        contract.LAKE_PREFIX: "exports",
        contract.SETTINGS: f"s3://{bucket}/settings.json",
    }
    function = {
        "Handler": contract.WATCH,
        "Runtime": "python3.12",
        "Role": "arn:aws:iam::000000000000:role/none",
        "Code": {"ZipFile": "pass"},
        "Environment": {"Variables": variables},
    }
    subscription = {"TopicArn": {"Ref": "Topic"}, "Protocol": "email", "Endpoint": engineer}
    stack = Stacks(dev).make(
        "operations",
        {
            "Watch": {"Type": "AWS::Lambda::Function", "Properties": function},
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": f"{prefix}-alarms"}},
            "Subscription": {"Type": "AWS::SNS::Subscription", "Properties": subscription},
        },
    )
    yield
    Stacks(dev).delete(stack)


@pytest.mark.slow
@pytest.mark.usefixtures("monitored")
def test_status_says_that_engineers_who_have_not_confirmed_get_no_alarms(stand_ins):
    code, document = call("status", "--stage", "dev", "--json")
    assert (code, document.keys()) == (0, promised("status"))
    message = "1 of 1 engineers have not confirmed the mail from AWS: they get no alarms"
    assert document["alarms"] == {"state": "action needed", "value": 1.0, "message": message, "code": ""}
    assert f"  ! {message}" in call("status", "--stage", "dev")[1]
    (mail,) = json.load(urllib.request.urlopen(f"{stand_ins.aws.url}/_simulator/mail"))
    urllib.request.urlopen(mail["link"]).close()
    assert call("status", "--stage", "dev", "--json")[1]["alarms"] is None
    assert "engineers" not in call("status", "--stage", "dev")[1]
    (subscription,) = boto3.client("sns").list_subscriptions()["Subscriptions"]
    boto3.client("sns").unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
    message = call("status", "--stage", "dev", "--json")[1]["alarms"]["message"]
    assert message.startswith("1 of 1 engineers unsubscribed")
    assert (
        f"aws sns subscribe --region {subscription['TopicArn'].split(':')[3]} --topic-arn "
        f"{subscription['TopicArn']} " in message
    )
