"""Service accounts, their roles and their keys exist for work that exists, and go with the last of it."""

from __future__ import annotations

import json
import re

import attrs
import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import PROJECT
from lakeferry.deployment.stacks import Stack
from lakeferry.plan import cost, refusals
from lakeferry.plan.difference import Comparison
from lakeferry.plan.templates import SynthesizedStack
from lambdas import contract
from stacks.confluent.rights import KEYS, list_accounts_with_work
from tests.support import assembly_kit
from tests.support.policies import Reader, allowed

FLINK = "stock_trades_with_totals"


@pytest.fixture(scope="module")
def without_flink(tmp_path_factory):
    """Return dev without its statement, and without the topic that it writes."""
    text = (PROJECT / "deployments" / "dev.toml").read_text()
    # A table of the file, with the tables inside it. What the comments between them say doesn't matter here.
    text, removed = re.subn(
        rf'(?ms)^\[\[(topics|statements)\]\]\nname = "{FLINK}"\n.*?(?=^\[\[|^\[snowflake\])', "", text
    )
    assert removed == 2
    plan = deployment_file.parse(text, name="dev.toml", judge=NOT_JUDGED)
    assert not plan.deployment.statements
    return assembly_kit.synthesise(plan, tmp_path_factory.mktemp("without-flink"))


def names(assembly, kind):
    return {logical_id for _, logical_id in assembly.resources(f"Custom::Lakeferry{kind}")}


def actors(assembly):
    """Return the accounts of role bindings, ACLs, keys and connectors, by their logical id."""
    found = set()
    for kind in ("RoleBinding", "Acl", "ApiKey", "Connector", "FlinkStatement"):
        for properties in assembly.resources(f"Custom::Lakeferry{kind}").values():
            found.add(properties["service_account_id"]["Fn::GetAtt"][0])
    return found


@pytest.mark.slow
def test_every_account_acts_and_nothing_acts_as_another(dev, prod, without_flink):
    for assembly in (dev, prod, without_flink):
        assert actors(assembly) == names(assembly, "ServiceAccount")
        assert len(names(assembly, "ServiceAccount")) == len(
            list_accounts_with_work(assembly.plan.deployment)
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("stage", "absent"), [
    ("dev", {"TableReaderAccount"}), ("without_flink", {"FlinkRunnerAccount", "TableReaderAccount"}),
    ("prod", {"FlinkRunnerAccount", "AppConnectorAccount", "TableReaderAccount"}),
])  # fmt: skip
def test_an_account_without_work_does_not_exist(request, stage, absent):
    everything = {"".join(word.title() for word in name.split("_")) + "Account" for name in contract.ACCOUNTS}
    assembly = request.getfixturevalue(stage)
    assert everything - names(assembly, "ServiceAccount") == absent
    text = json.dumps(assembly.templates)
    for account in absent:
        assert account not in text
    if "FlinkRunnerAccount" in absent:
        assert "FlinkDeveloper" not in text
        assert "ResourceOwnerTopic" not in text


def test_keys_and_alarms_are_counted_as_they_exist(dev, prod, without_flink):
    for assembly in (dev, prod, without_flink):
        assert cost.count_secrets(assembly.plan) == len(assembly.resources("AWS::SecretsManager::Secret"))
        assert cost.count_confluent_keys(assembly.plan.deployment) == len(
            assembly.resources("Custom::LakeferryApiKey")
        )
        assert cost.count_alarms(assembly.plan.deployment) == len(
            assembly.resources("AWS::CloudWatch::Alarm")
        )


def test_a_deployment_without_topics_has_only_the_accounts_of_its_cluster(dev):
    empty = attrs.evolve(dev.plan.deployment, topics=[], statements=[], exports=[])
    assert list_accounts_with_work(empty) == ["app_manager", "watcher"]
    assert cost.count_confluent_keys(empty) == len(
        [use for use in KEYS if use.account in ("app_manager", "watcher")]
    )


@pytest.mark.parametrize("direction", ["removed", "added"])
def test_the_last_statement_can_be_removed_and_the_first_one_added(dev, without_flink, direction):
    """No other stack imports a value of the account's key: CloudFormation would refuse to remove it."""
    before, after = (dev, without_flink) if direction == "removed" else (without_flink, dev)
    name = lambda part: f"{dev.prefix}-{part}"  # noqa: E731
    deployed = {
        name(part): Stack(name(part), f"arn:{part}", "CREATE_COMPLETE", template=template)
        for part, template in before.templates.items()
    }
    wanted = [SynthesizedStack(name(part), template) for part, template in after.templates.items()]
    comparison = Comparison(wanted, deployed)
    assert refusals.find(comparison, comparison.changes()) == []


def test_what_creates_objects_may_still_read_keys_that_left_the_template(without_flink):
    """CloudFormation deletes the statement, with Flink's key, after it has updated the function's role."""
    grants = [
        grant for grant in Reader(without_flink).grants() if ".ConfluentProviderFunctionRole" in grant.role
    ]
    region = without_flink.plan.deployment.aws.region
    for use in KEYS:
        secret = f"arn:aws:secretsmanager:{region}:111122223333:secret:{without_flink.prefix}/confluent/{use.path}-abcdef"
        assert allowed(grants, "secretsmanager:GetSecretValue", secret)
    other = (
        f"arn:aws:secretsmanager:{region}:111122223333:secret:{without_flink.prefix}/confluent/other-abcdef"
    )
    assert not allowed(grants, "secretsmanager:GetSecretValue", other)
