"""`lakeferry topics import` over an existing cluster: which topics, and nothing at all after a mistake."""

from __future__ import annotations

import json
import tomllib

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


def open_shop(address, text, folder):
    """Return the deployment of this file, in a folder of its own."""
    file = folder / "deployments" / "shop.toml"
    for name in ("topics", "deployments"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "own.avsc").write_text(OWN)
    file.write_text(text)
    loaded = deployment_file.load(file, folder, judge=NOT_JUDGED, rules=RULES_WITHOUT_SCHEMAS)
    return DeploymentContext(loaded, Addresses(confluent=address))


@pytest.fixture
def ctx(shop, tmp_path):
    return open_shop(*shop, tmp_path)


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


def test_a_topic_that_the_file_does_not_have_is_added_to_it(shop, tmp_path):
    address, text = shop
    shorter = text.replace('[[topics]]\nname = "payments"\nexisting = true\ntableflow = {}\n', "")
    file = tmp_path / "deployments" / "shop.toml"
    ctx = open_shop(address, shorter, tmp_path)
    with pytest.raises(CommandFailed, match="Schema Registry has no subject customers-value"):
        schemas.import_from_registry(ctx, ["payments", "customers"], replace=False)
    assert (list_files(ctx), file.read_text()) == ([], shorter)
    (imported,) = schemas.import_from_registry(ctx, ["payments"], replace=False)
    assert (imported.topic, imported.state, imported.read_from) == ("payments", "written", "Schema Registry")
    assert list_files(ctx) == ["payments.avsc"]
    added = {"name": "payments", "existing": True, "tableflow": {}}
    assert file.read_text().startswith(shorter)
    assert tomllib.loads(file.read_text())["topics"][-1] == added
    longer = file.read_text()
    ctx = open_shop(address, longer, tmp_path)
    (again,) = schemas.import_from_registry(ctx, ["payments"], replace=False)
    assert again.state == "unchanged"
    assert file.read_text() == longer


def test_nothing_is_written_if_one_topic_has_no_schema(ctx):
    with pytest.raises(CommandFailed, match="Schema Registry has no subject audit-log-value"):
        schemas.import_from_registry(ctx, ["payments", "audit-log"], replace=False)
    assert list_files(ctx) == []
