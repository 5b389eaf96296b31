"""The order in which resources are created. Each waits for what it needs, and is deleted before it."""

from __future__ import annotations

import json
import re

import pytest


def edges(template):
    """Return what each resource waits for by logical id, with DependsOn or by using its values."""
    resources = template["Resources"]
    return {
        name: {*_named(body.get("DependsOn", [])), *_used(body.get("Properties", {}), resources)}
        for name, body in resources.items()
    }


def _named(depends):
    return [depends] if isinstance(depends, str) else depends


def _used(value, resources):
    if isinstance(value, dict):
        for function, given in value.items():
            if function == "Ref" and given in resources:
                yield given
            elif function == "Fn::GetAtt" and given[0] in resources:
                yield given[0]
            else:
                yield from _used(given, resources)
    elif isinstance(value, list):
        for item in value:
            yield from _used(item, resources)


def before(template, name, graph=None, seen=None):
    """Return everything that is created before `name` and deleted after it."""
    graph = graph or edges(template)
    seen = set() if seen is None else seen
    for item in graph[name] - seen:
        seen.add(item)
        before(template, item, graph, seen)
    return seen


def the(template, kind, begins=""):
    found = [
        name
        for name, body in template["Resources"].items()
        if body["Type"] == kind and name.startswith(begins)
    ]
    assert found, (kind, begins)
    return found


@pytest.mark.parametrize("part", ["data", "confluent", "snowflake", "exports", "operations"])
def test_no_stack_waits_for_itself(assembly, part):
    template = assembly.templates[part]
    for name in template["Resources"]:
        assert name not in before(template, name), name


def needs(assembly):
    """Return for each part the parts that are deployed before it and destroyed after it."""
    artifacts = json.loads((assembly.folder / "manifest.json").read_text())["artifacts"]
    direct = {
        name: {
            item
            for item in body.get("dependencies", [])
            if artifacts[item]["type"] == "aws:cloudformation:stack"
        }
        for name, body in artifacts.items()
        if body["type"] == "aws:cloudformation:stack"
    }
    return {
        name.removeprefix(f"{assembly.prefix}-"): {
            item.removeprefix(f"{assembly.prefix}-") for item in _all(direct, name)
        }
        for name in direct
    }


def _all(direct, name):
    found = set()
    for item in direct[name]:
        found |= {item} | _all(direct, item)
    return found


def imported(template, prefix):
    """Return the parts whose values a template imports."""
    return set(re.findall(rf'"Fn::ImportValue": "{prefix}-([a-z]+):', json.dumps(template)))


def test_a_stack_is_deleted_before_those_whose_values_it_imports(assembly):
    """CloudFormation refuses to delete a stack whose values another one imports."""
    order = needs(assembly)
    for part, template in assembly.templates.items():
        taken = imported(template, assembly.prefix)
        assert taken <= order[part], (part, taken - order[part])
    assert imported(assembly.templates["operations"], assembly.prefix) == {
        "data",
        "confluent",
        "snowflake",
        "exports",
    }


def test_stacks_have_one_order(assembly):
    """Snowflake shows tables of aggregates that a job of the exports stack creates."""
    order = needs(assembly)
    earlier = {"exports"} if assembly.plan.deployment.shows_aggregates else set()
    assert order == {
        "data": set(),
        "confluent": {"data"},
        "snowflake": {"data", "confluent"} | earlier,
        "exports": {"data", "confluent"},
        "operations": {"data", "confluent", "snowflake", "exports"},
    }


def test_a_role_comes_after_its_handshake_and_before_what_uses_it(dev):
    """The role is created once, with the principals and ids of the handshake."""
    template = dev.templates["confluent"]
    (role,) = the(template, "AWS::IAM::Role", "TableflowRole")
    assert "ProviderIntegration" in before(template, role)
    for table in the(template, "Custom::LakeferryTableflowTopic"):
        assert {role, "CatalogIntegration"} <= before(template, table)
    template = dev.templates["snowflake"]
    (role,) = the(template, "AWS::IAM::Role", "SnowflakeRole")
    assert {"Volume", "Catalog"} <= before(template, role)
    assert role in before(template, "Trust")
    assert {"AggregatesVolume", "Catalog"} <= before(template, role)
    for table in the(template, "Custom::LakeferrySnowflakeIcebergTable"):
        trust = "AggregatesTrust" if table.endswith("Aggregates") else "Trust"
        assert {trust, role} <= before(template, table)


def test_tableflows_files_are_deleted_after_its_tables_and_before_its_role(dev):
    template = dev.templates["confluent"]
    (role,) = the(template, "AWS::IAM::Role", "TableflowRole")
    for cleanup in ("EmptyTableflowBucket", "DropTables"):
        assert role in before(template, cleanup)
        for later in (*the(template, "Custom::LakeferryTableflowTopic"), "CatalogIntegration"):
            assert cleanup in before(template, later)


def test_a_bucket_is_emptied_before_it_is_deleted(dev):
    template = dev.templates["data"]
    (bucket,) = the(template, "AWS::S3::Bucket", "LakeBucket")
    assert bucket in before(template, "EmptyLakeBucket")


def test_secrets_are_deleted_after_their_keys(assembly):
    for part, kind in (
        ("confluent", "Custom::LakeferryApiKey"),
        ("snowflake", "Custom::LakeferrySnowflakeUser"),
    ):
        template = assembly.templates[part]
        secrets = set(the(template, "AWS::SecretsManager::Secret"))
        for key in the(template, kind):
            assert secrets & before(template, key)


def test_a_rotation_schedule_follows_the_filled_secret(assembly):
    for part, kind in (
        ("confluent", "Custom::LakeferryApiKey"),
        ("snowflake", "Custom::LakeferrySnowflakeUser"),
    ):
        template = assembly.templates[part]
        for schedule in the(template, "AWS::SecretsManager::RotationSchedule"):
            assert set(the(template, kind)) & before(template, schedule)


def test_a_connector_comes_after_its_topic_and_after_its_rights(dev):
    """A connector that starts earlier fails permanently."""
    template = dev.templates["confluent"]
    waits = before(template, "StockTradesConnector")
    assert "StockTradesTopic" in waits
    assert {name for name in the(template, "Custom::LakeferryAcl", "AppConnector")} <= waits


def test_statements_come_after_their_topics_and_tables_after_their_statements(dev):
    template = dev.templates["confluent"]
    statement = "StockTradesWithTotalsStatement"
    assert {"StockTradesTopic", "StockTradesConnector"} <= before(template, statement)
    assert statement in before(template, "StockTradesWithTotalsTable")


def test_a_topic_of_producers_gets_its_schema_before_it_becomes_a_table(prod):
    template = prod.templates["confluent"]
    assert {"SalesOrdersTopic", "SalesOrdersSchema"} <= before(template, "SalesOrdersTable")


def test_every_object_is_deleted_before_the_functions_that_delete_it(assembly):
    for part in ("confluent", "snowflake"):
        template = assembly.templates[part]
        for name, body in template["Resources"].items():
            if body["Type"].startswith("Custom::Lakeferry"):
                functions = [
                    item
                    for item in before(template, name)
                    if template["Resources"][item]["Type"] == "AWS::Lambda::Function"
                ]
                assert len(functions) >= 2, name
