"""The construct library, as an app without a deployment file uses it: the example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Environment, Stack, Validations
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks, ServerlessChecks

from config.exports import contracts
from examples.trades import TradesStack
from tests.support.assembly_kit import CONTEXT, ROOT
from tests.support.construct_kit import ALARMS, CONTRACT, list_statements, resources
from tests.support.policies import ACCOUNT

GIVEN = {
    "cloud_key_secret": "acme/deployer",
    "environment": "env-abc123",
    "cluster": "lkc-abc123",
    "tables": "acme-tables",
    "files": "acme-files",
    "alarms": ALARMS,
}


@pytest.fixture(scope="module")
def place():
    return Environment(account=ACCOUNT, region="eu-west-1")


@pytest.fixture(scope="module")
def example(place):
    """Return the template of the example."""
    app = App(context={**CONTEXT, **GIVEN})
    return Template.from_stack(TradesStack(app, "Trades", env=place)).to_json()


@pytest.mark.slow
def test_cdk_synthesises_the_example_without_a_warning(example, tmp_path):
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(tmp_path),
        "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, **GIVEN}),
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": "eu-west-1",
    }
    command = [sys.executable, "-O", "-m", "examples.trades"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    template = json.loads((tmp_path / "Trades.template.json").read_text())
    assert template["Resources"].keys() >= example["Resources"].keys()


def test_the_rule_packs_of_cdk_nag_find_nothing_in_the_example(place, tmp_path):
    app = App(outdir=str(tmp_path), context={**CONTEXT, **GIVEN})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app), NIST80053R5Checks(app))
    TradesStack(app, "Trades", env=place)
    app.synth()
    assert find_violations(tmp_path) == []
    planted = App(outdir=str(tmp_path / "planted"), context=CONTEXT)
    Validations.of(planted).add_plugins(AwsSolutionsChecks(planted))
    sns.Topic(Stack(planted, "Planted"), "Topic")
    with pytest.raises(RuntimeError):
        planted.synth()
    assert find_violations(tmp_path / "planted") != []


def find_violations(folder):
    """Return the findings that nobody accepted, as rule and construct."""
    report = json.loads((folder / "validation-report.json").read_text())
    return [
        (violation["ruleName"], place["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for place in violation["violatingConstructs"]
    ]


def test_the_cluster_and_the_topic_are_looked_up_and_never_created(example):
    kinds = {body["Type"] for body in example["Resources"].values()}
    assert {"Custom::LakeferryExistingCluster", "Custom::LakeferryExistingTopic"} <= kinds
    created = {"Custom::LakeferryEnvironment", "Custom::LakeferryKafkaCluster", "Custom::LakeferryTopic"}
    assert kinds.isdisjoint({*created, "AWS::S3::Bucket", "AWS::SNS::Topic"})


def test_logical_ids_come_from_the_path(example):
    (table,) = resources(example, "Custom::LakeferryTableflowTopic")
    assert table.startswith("TopicTable")
    assert len(table) == len("TopicTable") + 8


def test_the_account_has_rights_on_this_one_topic_only(example):
    bound = {
        (body["role"], body["scope"], body["name"] if isinstance(body["name"], str) else "integration")
        for body in resources(example, "Custom::LakeferryRoleBinding").values()
    }
    assert bound == {
        ("ResourceOwner", "topic", "Sales.Trades"),
        ("ResourceOwner", "provider_integration", "integration"),
        ("DeveloperRead", "subject", "Sales.Trades-key"),
        ("DeveloperRead", "subject", "Sales.Trades-value"),
    }


def test_every_key_rotates(example):
    rotations = resources(example, "AWS::SecretsManager::RotationSchedule").values()
    assert [body["RotationRules"]["ScheduleExpression"] for body in rotations] == ["rate(30 days)"] * 3
    assert len(resources(example, "Custom::LakeferryApiKey")) == 3


def test_every_alarm_goes_to_the_callers_topic(example):
    alarms = resources(example, "AWS::CloudWatch::Alarm").values()
    assert len(alarms) >= 6
    assert {tuple(body["AlarmActions"]) for body in alarms} == {(ALARMS,)}
    (rule,) = resources(example, "AWS::Events::Rule").values()
    assert [target["Arn"] for target in rule["Targets"]] == [ALARMS]
    assert rule["EventPattern"]["detail"]["jobName"] == ["trades-prod-hourly_trades"]


def test_the_job_reads_its_own_table_only(example):
    statements = list_statements(example, "TradesRole")
    tables = json.dumps(statements["ReadTablesGlue"]["Resource"])
    assert "table/lkc-abc123/sales.trades" in tables
    assert "*" not in tables
    assert "table_path" in json.dumps(statements["ReadTablesS3"]["Resource"])
    assert "ReadKey" not in statements


def test_the_callers_contract_ships_with_the_job(example):
    (job,) = resources(example, "AWS::Glue::Job").values()
    assert job["DefaultArguments"]["--export"] == contracts.load(str(CONTRACT)).name
    (schedule,) = [
        body
        for id, body in resources(example, "AWS::Scheduler::Schedule").items()
        if id.startswith("TradesSchedule")
    ]
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == (
        "cron(0 6,18 * * ? *)",
        "UTC",
    )


def test_the_stacks_of_a_deployment_file_are_made_of_the_same_classes():
    """The stacks create no object of these types themselves."""
    types = ("ExistingClusterProps", "ExistingTopicProps", "KafkaClusterProps", "EnvironmentProps")
    types += ("ApiKeyProps", "RoleBindingProps", "TableflowTopicProps", "ProviderIntegrationProps", "CfnJob(")
    sources = [file for file in Path(ROOT / "stacks").rglob("*.py") if file.parent.name != "constructs"]
    used = [(file.name, name) for file in sources for name in types if name in file.read_text()]
    assert used == []
