"""No two deployments of an account share a name (two stages, two names, two regions)."""

from __future__ import annotations

import assembly_kit
import attrs
import pytest
from policies import Reader

from deployments import check

#: Properties that are names, by type; what has none is named by CloudFormation.
NAMES = {
    "AWS::IAM::Role": "RoleName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SecretsManager::Secret": "Name",
    "AWS::Glue::Job": "Name",
    "AWS::Athena::WorkGroup": "Name",
    "AWS::Athena::NamedQuery": "Name",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Events::Rule": "Name",
}
#: One in the whole account, whatever the region.
GLOBAL = {"AWS::IAM::Role", "AWS::S3::Bucket", "AWS::CloudWatch::Dashboard", "budget"}


def names(assembly):
    """(type, name, region or "") of everything with a name of its own, stacks too."""
    region = assembly.plan.deployment.aws.region
    found = {("stack", f"{assembly.prefix}-{part}") for part in assembly.templates}
    for kind, key in NAMES.items():
        for (part, _), body in assembly.resources(kind).items():
            if key in body:
                found.add((kind, Reader(assembly).text(body[key], part)))
    for (part, _), body in assembly.resources("AWS::Glue::Database").items():
        found.add(("database", Reader(assembly).text(body["DatabaseInput"]["Name"], part)))
    for body in assembly.resources("AWS::Budgets::Budget").values():
        found.add(("budget", body["Budget"]["BudgetName"]))
    return {(kind, name, "" if kind in GLOBAL else region) for kind, name in found}


def test_stages_share_no_name(dev, prod):
    assert len(names(dev)) > 30
    assert not names(dev) & names(prod)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The same deployment in another region."""
    plan = check.load_stage("dev")
    aws = attrs.evolve(plan.deployment.aws, region="us-east-1")
    moved = attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, aws=aws))
    return assembly_kit.synthesise(moved, tmp_path_factory.mktemp("elsewhere"))


def test_regions_share_no_name(dev, elsewhere):
    assert not names(dev) & names(elsewhere)


def test_names_are_short_enough_whatever_the_file_says():
    longest = "a" * 20 + "-" + "b" * 12 + "-ap-southeast-7-tableflow"
    assert len(longest) <= 64
