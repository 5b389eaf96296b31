"""The templates of a deployment whose mails SES sends."""

from __future__ import annotations

import json

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from lambdas import contract
from tests.support import assembly_kit, findings, shipped

MAIL = '[mail]\nsender = "Exports <exports@reports.example.com>"\nidentity = "example.com"\n\n[alerts]'


def parse(text):
    return deployment_file.parse(text, name="mailed.toml", judge=NOT_JUDGED)


def write(mail=MAIL, stage="dev"):
    text = shipped.read(stage)
    assert "\n[alerts]" in text
    return text.replace("[alerts]", mail, 1)


@pytest.fixture(scope="module")
def mailed(tmp_path_factory):
    made = assembly_kit.synthesise(parse(write()), tmp_path_factory.mktemp("mailed"))
    assert not made.failure, made.failure
    return made


def find(assembly, kind):
    return [
        body["Properties"]
        for body in assembly.templates["exports"]["Resources"].values()
        if body["Type"] == kind
    ]


def list_statements(assembly, begins):
    (role,) = [
        body["Properties"]
        for name, body in assembly.templates["exports"]["Resources"].items()
        if body["Type"] == "AWS::IAM::Role" and name.startswith(begins)
    ]
    return {statement["Sid"]: statement for statement in role["Policies"][0]["PolicyDocument"]["Statement"]}


def test_only_engineers_subscribe_to_a_topic(mailed):
    assert len(find(mailed, "AWS::SNS::Topic")) == 1
    subscriptions = find(mailed, "AWS::SNS::Subscription")
    assert {subscription["Endpoint"] for subscription in subscriptions} == {"engineers@example.com"}


def test_the_function_may_send_from_one_address_only(mailed):
    statement = list_statements(mailed, "NotifyRole")["SendMails"]
    assert statement["Action"] == ["ses:SendEmail", "ses:SendRawEmail"]
    assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": "exports@reports.example.com"}}


def test_the_function_may_read_files_only_of_exports_that_attach_them(mailed, prod, tmp_path):
    assert "AttachFiles" not in list_statements(mailed, "NotifyRole")
    assert "AttachFiles" not in list_statements(prod, "NotifyRole"), "SNS attaches nothing"
    attaching = assembly_kit.synthesise(parse(write(stage="prod")), tmp_path)
    statement = list_statements(attaching, "NotifyRole")["AttachFiles"]
    assert statement["Action"] == "s3:GetObject"
    text = json.dumps(statement["Resource"])
    assert ("weekly_sales_by_region/data/*" in text, "weekly_sales/" in text) == (True, False)


def test_mails_that_do_not_arrive_reach_the_function(mailed):
    (destination,) = find(mailed, "AWS::SES::ConfigurationSetEventDestination")
    assert destination["EventDestination"]["MatchingEventTypes"] == ["bounce", "complaint", "reject"]
    (pattern,) = [
        rule["EventPattern"]
        for rule in find(mailed, "AWS::Events::Rule")
        if rule["EventPattern"]["source"] == [contract.SES_SOURCE]
    ]
    assert pattern["detail-type"] == list(contract.UNDELIVERED)
    assert pattern["detail"] == {"mail": {"tags": {"ses:configuration-set": ["lakeferry-dev-mails"]}}}


def test_nobody_counts_subscriptions(mailed):
    text = json.dumps(mailed.templates["operations"])
    assert "RecipientsUnconfirmed" not in text
    assert "sns:GetTopicAttributes" not in text


def test_the_policy_linter_finds_nothing(mailed):
    assert findings.lint(mailed) == []


@pytest.mark.parametrize(
    ("mail", "says"),
    [
        ('sender = "nobody"', "is no sender"),
        ('sender = "exports@example.com"\nidentity = "x"', "is neither a domain nor a mail address"),
        ('sender = "exports@example.com"\nidentity = "other.org"', "does not cover the sender"),
        ('sender = "exports@notexample.com"\nidentity = "example.com"', "does not cover the sender"),
    ],
)
def test_a_wrong_sender_is_refused(mail, says):
    with pytest.raises(BadFile, match=says):
        parse(write(f"[mail]\n{mail}\n\n[alerts]"))
