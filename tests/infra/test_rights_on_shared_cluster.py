"""A cluster of somebody else: nothing of theirs is created, changed or deleted, and no account of ours has a
right on more than the topics of the file.
"""

from __future__ import annotations

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from lakeferry.plan import cost
from tests.support import assembly_kit
from tests.support.policies import ACCOUNT, Reader, allowed

_OWN_TYPES = ("existing_cluster", "existing_topic")


def resources(assembly, kind):
    """Return the properties of the resources of a kind at a vendor, by logical id."""
    return {
        logical_id: body["Properties"]
        for template in assembly.templates.values()
        for logical_id, body in template["Resources"].items()
        if body["Properties"].get("kind") == kind
    }


def roles(assembly):
    return {
        (properties["role"], properties["scope"], properties.get("name", ""))
        for properties in resources(assembly, "role_binding").values()
        if isinstance(properties.get("name", ""), str)
    }


def test_cluster_and_topics_are_looked_up(shared):
    assert resources(shared, "environment") == {}
    assert resources(shared, "kafka_cluster") == {}
    assert list(resources(shared, "topic")) == []
    assert resources(shared, "schema") == {}
    assert list(resources(shared, "existing_cluster")) == ["KafkaCluster"]
    looked_up = resources(shared, "existing_topic")
    assert {properties["topic"] for properties in looked_up.values()} == {"Sales_Orders", "stock_trades"}


def test_no_role_is_bound_on_the_cluster_or_on_all_topics(shared):
    bound = roles(shared)
    assert {scope for _, scope, _ in bound} <= {"topic", "subject", "environment", "transactional_id"}
    patterns = {(scope, name) for _, scope, name in bound if name.endswith("*")}
    assert patterns == {("transactional_id", "_confluent-flink_*")}
    assert ("ResourceOwner", "topic", "Sales_Orders") in bound
    assert ("ResourceOwner", "topic", "stock_trades") not in bound
    assert ("DeveloperRead", "topic", "stock_trades") in bound


def test_there_are_no_acls(shared):
    assert resources(shared, "acl") == {}


def test_only_accounts_with_work_exist(shared):
    accounts = set(resources(shared, "service_account"))
    assert accounts == {"AppManagerAccount", "SchemaRegistryAccount", "FlinkRunnerAccount"}


def test_the_integration_with_glue_is_not_created(shared):
    assert resources(shared, "catalog_integration") == {}
    statements = [grant for grant in Reader(shared).grants() if ".TableflowRole" in grant.role]
    table = f"arn:aws:glue:eu-west-1:{ACCOUNT}:table/lkc-abc123/sales_orders"
    assert not any(allowed([grant], "glue:CreateTable", table) for grant in statements)


@pytest.mark.parametrize("action", ["glue:DeleteDatabase", "glue:UpdateDatabase", "glue:CreateTable"])
def test_no_role_changes_the_database(shared, action):
    found = [
        grant.role
        for grant in Reader(shared).grants()
        if allowed([grant], action, f"arn:aws:glue:eu-west-1:{ACCOUNT}:database/lkc-abc123")
    ]
    assert found == []


def test_the_cost_counts_what_the_templates_have_and_no_cluster(shared):
    plan = shared.plan
    for count, kind in (
        (cost.count_alarms(plan.deployment), "AWS::CloudWatch::Alarm"),
        (cost.count_secrets(plan), "AWS::SecretsManager::Secret"),
        (cost.count_keys(plan), "AWS::KMS::Key"),
    ):
        assert count == len(list(shared.resources(kind))), kind
    lines = [line.what for line in cost.estimate(plan).lines]
    assert not any("Kafka" in line for line in lines)


def test_tables_have_names_in_lower_case(shared):
    (table,) = resources(shared, "snowflake_iceberg_table").values()
    assert table["table"] == "sales_orders"
    (tableflow, _) = sorted(resources(shared, "tableflow_topic").values(), key=lambda table: table["topic"])
    assert tableflow["topic"] == "Sales_Orders"


def test_nothing_is_rotated_if_every_key_is_brought(tmp_path):
    text = (ROOT / "tests" / "data" / "existing_cluster.toml").read_text(encoding="utf-8")
    keys = [
        f'{service}_key_secret = "acme/{service}"\n' for service in ("kafka", "schema_registry", "tableflow")
    ]
    first_topic_only = (
        text[: text.index('[[topics]]\nname = "stock_trades"')] + text[text.index("[alerts]") :]
    )
    brought = first_topic_only.replace("glue_database", f"{''.join(keys)}glue_database").replace(
        'snowflake_table = "SALES_ORDERS"\n', ""
    )
    loaded = deployment_file.parse(brought, name="brought.toml", judge=NOT_JUDGED)
    assembly = assembly_kit.synthesise(loaded, tmp_path)
    assert resources(assembly, "api_key") == {}
    assert resources(assembly, "service_account") == {}
    looked_up = resources(assembly, "existing_topic")["SalesOrdersTopic"]
    assert (looked_up["credentials"], looked_up["registry_credentials"]) == (
        "acme/kafka",
        "acme/schema_registry",
    )
    (confluent,) = [template for name, template in assembly.templates.items() if name.endswith("confluent")]
    types = {body["Type"] for body in confluent["Resources"].values()}
    assert "AWS::SecretsManager::RotationSchedule" not in types
