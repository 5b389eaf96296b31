"""Deployments in one account (two stages, two regions) share no name, and no name is too long for AWS."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest

from config.deployments import validation
from tests.support import assembly_kit, shipped
from tests.support.policies import Reader

#: Properties that are names, by type. CloudFormation names resources without one.
NAMES = {
    "AWS::IAM::Role": "RoleName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SecretsManager::Secret": "Name",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::SecurityConfiguration": "Name",
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
#: Types whose names are unique in the account, across regions.
GLOBAL = {"AWS::IAM::Role", "AWS::S3::Bucket", "AWS::CloudWatch::Dashboard", "budget"}


def names(assembly):
    """Return (type, name, region or "") of every named resource and of every stack. No two have the same."""
    region = assembly.plan.deployment.aws.region
    found = [("stack", f"{assembly.prefix}-{part}") for part in assembly.templates]
    for kind, key in NAMES.items():
        for (part, _), body in assembly.resources(kind).items():
            if key in body:
                found.append((kind, Reader(assembly).text(body[key], part)))
    for (part, _), body in assembly.resources("AWS::Glue::Database").items():
        found.append(("database", Reader(assembly).text(body["DatabaseInput"]["Name"], part)))
    for body in assembly.resources("AWS::Budgets::Budget").values():
        found.append(("budget", body["Budget"]["BudgetName"]))
    assert [each for each, count in Counter(found).items() if count > 1] == []
    return {(kind, name, "" if kind in GLOBAL else region) for kind, name in found}


def test_stages_share_no_name_in_one_region(dev, prod):
    """Compare with prod's names in dev's region."""
    here = dev.plan.deployment.aws.region
    there = prod.plan.deployment.aws.region
    moved = {
        (kind, name.replace(there, here), region.replace(there, here)) for kind, name, region in names(prod)
    }
    assert len(names(dev)) > 30
    assert not names(dev) & moved


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The same deployment in another region."""
    plan = shipped.load("dev")
    aws = attrs.evolve(plan.deployment.aws, region="us-east-1")
    moved = attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, aws=aws))
    return assembly_kit.synthesise(moved, tmp_path_factory.mktemp("elsewhere"))


def test_regions_share_no_name(dev, elsewhere):
    assert not names(dev) & names(elsewhere)


def test_a_budget_that_is_replaced_has_another_name(dev, tmp_path):
    """CloudFormation replaces a budget whose subscribers change, and creates the new one before it deletes
    the old one.
    """
    (before,) = dev.resources("AWS::Budgets::Budget").values()
    deployment = dev.plan.deployment
    alerts = attrs.evolve(deployment.alerts, engineers=[*deployment.alerts.engineers, "another@example.com"])
    changed = attrs.evolve(dev.plan, deployment=attrs.evolve(deployment, alerts=alerts))
    (after,) = assembly_kit.synthesise(changed, tmp_path).resources("AWS::Budgets::Budget").values()
    assert before["NotificationsWithSubscribers"] != after["NotificationsWithSubscribers"]
    assert before["Budget"]["BudgetName"] != after["Budget"]["BudgetName"]


#: The longest names that AWS accepts. Names of exports and topics have limits of their own, which are not
#: tested here.
LONGEST = {
    "stack": 128, "AWS::IAM::Role": 64, "AWS::Athena::WorkGroup": 128, "AWS::Scheduler::ScheduleGroup": 64,
    "AWS::CloudWatch::Alarm": 255, "AWS::CloudWatch::Dashboard": 255, "AWS::SecretsManager::Secret": 512,
    "AWS::SNS::Topic": 256, "AWS::Glue::Job": 255, "AWS::Logs::LogGroup": 512,
    "AWS::Glue::SecurityConfiguration": 255, "database": 255, "budget": 100,
}  # fmt: skip


def test_names_are_short_enough_for_the_longest_deployment(dev):
    """Dev's name, stage and region are replaced by the longest that a deployment file accepts."""
    region = max(validation.REGIONS, key=len)
    longest = f"{'a' * 20}-{'b' * 12}"
    assert [validation.NAME.problem("a" * length) is None for length in (20, 21)] == [True, False]
    assert [validation.STAGE.problem("b" * length) is None for length in (12, 13)] == [True, False]
    seen = set()
    for kind, name, _ in names(dev):
        whole = name.replace(dev.plan.deployment.aws.region, region).replace(dev.prefix, longest)
        whole = whole.replace(dev.prefix.replace("-", "_"), longest.replace("-", "_"))
        if kind in LONGEST:
            seen.add(kind)
            assert len(whole) <= LONGEST[kind], whole
    assert seen == set(LONGEST)
