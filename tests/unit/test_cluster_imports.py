"""`lakeferry topics import` over an existing cluster: which topics, and nothing at all after a mistake."""

from __future__ import annotations

import json

import boto3
import pytest

from config.deployments import deployment_file
from config.deployments.rules import RULES_WITHOUT_SCHEMAS
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.topics import schemas
from simulators.confluent.server import ConfluentCloud

FILE = """
[deployment]
name = "lakeferry"
stage = "shop"
owner = "sales analytics"

[aws]
region = "eu-west-1"

[confluent]
cloud_key_secret = "shop/deployer"
environment_id = "{environment_id}"
environment_name = "{environment_name}"
cluster_id = "{cluster_id}"
glue_database = "{cluster_id}"
kafka_key_secret = "shop/kafka"
schema_registry_key_secret = "shop/schema_registry"

[[topics]]
name = "audit-log"
existing = true

[[topics]]
name = "Sales.Trades"
existing = true
tableflow = {{}}

[[topics]]
name = "payments"
existing = true
tableflow = {{}}

[[topics]]
name = "sales.own"
schema = "own.avsc"
tableflow = {{}}

[alerts]
engineers = ["engineers@example.com"]
"""

OWN = '{"type": "record", "name": "Own", "fields": [{"name": "x", "type": "int"}]}'


@pytest.fixture(scope="module")
def shop(lake_aws):
    """The address of Confluent Cloud, and the file of a deployment beside another team's cluster."""
    client = boto3.client("secretsmanager")
    with ConfluentCloud() as cloud:
        team = cloud.control("POST", "/team", {})
        for name in ("deployer", "kafka", "schema_registry"):
            key_id, _, secret = team[f"{name}_key"].partition(":")
            text = json.dumps({"apiKey": key_id, "apiSecret": secret})
            client.create_secret(Name=f"shop/{name}", SecretString=text)
        yield cloud.url, FILE.format(**team)


@pytest.fixture
def ctx(shop, tmp_path):
    url, text = shop
    (tmp_path / "topics").mkdir()
    (tmp_path / "own.avsc").write_text(OWN)
    loaded = deployment_file.parse(
        text, name="shop.toml", root=tmp_path, judge=NOT_JUDGED, rules=RULES_WITHOUT_SCHEMAS
    )
    return DeploymentContext(loaded, Addresses(confluent=url))


def list_files(ctx):
    return sorted(file.name for file in (ctx.loaded.sources.root / "topics").iterdir())


def test_all_tables_of_the_file_that_exist_are_imported_from_the_registry(ctx):
    imported = schemas.import_from_registry(ctx, [], replace=False)
    assert [(topic.topic, topic.state, topic.read_from, topic.why) for topic in imported] == [
        ("Sales.Trades", "written", "Schema Registry", ""),
        ("payments", "written", "Schema Registry", ""),
    ]
    assert list_files(ctx) == ["Sales.Trades.avsc", "payments.avsc"]
    again = schemas.import_from_registry(ctx, ["payments", "Sales.Trades", "payments"], replace=False)
    assert [(topic.topic, topic.state) for topic in again] == [
        ("payments", "unchanged"),
        ("Sales.Trades", "unchanged"),
    ]
    file = ctx.loaded.sources.root / "topics" / "payments.avsc"
    file.write_text(OWN)
    for replace, state in ((False, "differs"), (True, "written")):
        (changed,) = schemas.import_from_registry(ctx, ["payments"], replace=replace)
        assert (changed.state, changed.changes[0]) == (state, "x is not in the registered schema")


def test_a_topic_that_the_key_does_not_see_is_refused_with_those_that_it_sees(ctx):
    with pytest.raises(CommandFailed) as refused:
        schemas.import_from_registry(ctx, ["payments", "none", "customers", "nothing"], replace=False)
    assert (refused.value.code, refused.value.message, refused.value.hint) == (
        "TOPICS-UNKNOWN",
        "the Kafka key sees no topic none, nothing in the cluster",
        "Topics that the key may see: Sales.Trades, audit-log, customers, payments",
    )
    assert list_files(ctx) == []


def test_nothing_is_written_if_one_topic_has_no_schema(ctx):
    with pytest.raises(CommandFailed, match="Schema Registry has no subject audit-log-value"):
        schemas.import_from_registry(ctx, ["payments", "audit-log"], replace=False)
    assert list_files(ctx) == []
