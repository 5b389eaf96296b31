"""Tables of `[source]` in Confluent's storage: what `doctor` says of them, and what is imported."""

from __future__ import annotations

import contextlib
import json

import attrs
import boto3
import pytest

from config.deployments import deployment_file
from config.deployments.confluent_model import Topic
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import source
from lakeferry.health.model import Result
from lakeferry.topics import schemas

CATALOG = "/iceberg/catalog/organizations/9bb441c4-edef-46ac-8a41-c49e44a3fd9a/environments/env-abc123"
BORROWED = f"""
[deployment]
name = "lakeferry"
stage = "borrowed"
owner = "risk"

[aws]
region = "eu-west-1"

[source]
catalog_uri = "https://tableflow.eu-west-1.aws.confluent.cloud{CATALOG}"
cluster_id = "lkc-abc123"
tableflow_key_secret = "risk/nowhere"

[[topics]]
name = "Sales_Orders"

[[topics]]
name = "trades"

[alerts]
engineers = ["engineers@example.com"]
"""
TABLES = f"GET {CATALOG}/v1/namespaces/lkc-abc123/tables"
COLUMNS = [{"id": 1, "name": "id", "type": "string", "required": True}]
METADATA = {
    "current-schema-id": 0,
    "schemas": [{"schema-id": 0, "fields": COLUMNS}],
    "current-snapshot-id": 7,
}


def load(**parsed):
    return deployment_file.parse(BORROWED, name="borrowed.toml", judge=NOT_JUDGED, **parsed)


@pytest.fixture
def ctx(lake_aws, server, tmp_path):
    """A deployment whose catalog has two tables. Its key is stored."""
    client = boto3.client("secretsmanager")
    text = json.dumps({"apiKey": "K", "apiSecret": "canary-of-a-key"})
    with contextlib.suppress(client.exceptions.ResourceExistsException):
        client.create_secret(Name="risk/tableflow", SecretString=text)
    server.answers[f"POST {CATALOG}/v1/oauth/tokens"] = (200, {"access_token": "canary-of-a-token"})
    for topic in ("Sales_Orders", "trades"):
        server.answers[f"{TABLES}/{topic}"] = (200, {"metadata": METADATA})
    loaded = deployment_file.parse(
        BORROWED.replace("risk/nowhere", "risk/tableflow"),
        name="borrowed.toml",
        root=tmp_path,
        judge=NOT_JUDGED,
    )
    return DeploymentContext(loaded, Addresses(catalog=server.url))


def look(ctx):
    return [(check.name, check.result, check.message, check.fix) for check in source.look(ctx)]


def test_a_table_in_tableflows_catalog_keeps_the_capitals_of_its_topic():
    assert [topic.name for topic in load().deployment.topics] == ["Sales_Orders", "trades"]


def test_each_table_that_the_key_reads_is_good(ctx):
    assert look(ctx) == [
        ("Tableflow key", Result.OK, "in risk/tableflow", ""),
        ("table of Sales_Orders in Confluent's storage", Result.OK, "is readable; it is only read", ""),
        ("table of trades in Confluent's storage", Result.OK, "is readable; it is only read", ""),
    ]


def test_a_table_without_records_or_without_rights_stops_no_other_check(ctx, server):
    server.answers[f"{TABLES}/Sales_Orders"] = (200, {"metadata": {**METADATA, "current-snapshot-id": None}})
    server.answers[f"{TABLES}/trades"] = (404, {"error": {"message": "no such table"}})
    _, empty, hidden = source.look(ctx)
    assert (empty.result, empty.is_seen, empty.message, empty.fix) == (
        Result.WARN,
        False,
        "has no snapshot yet",
        "Wait; a table takes some ten minutes",
    )
    assert (hidden.name, hidden.result) == ("table of trades in Confluent's storage", Result.FAIL)
    assert (
        hidden.message == "NO-TABLE: Tableflow's catalog shows no table trades to the key in risk/tableflow"
    )


def test_schemas_are_imported_from_the_catalog(ctx):
    imported = schemas.import_schemas(ctx, schemas.select_topics(ctx, []), replace=False)
    assert [(topic.topic, topic.state, topic.read_from) for topic in imported] == [
        ("Sales_Orders", "written", "table"),
        ("trades", "written", "table"),
    ]
    files = sorted((ctx.loaded.sources.root / "topics").iterdir())
    assert [file.name for file in files] == ["Sales_Orders.avsc", "trades.avsc"]
    assert json.loads(files[0].read_text())["fields"] == [{"name": "id", "type": "string"}]


def test_a_file_of_this_repository_is_called_by_its_path_in_it(ctx):
    sources = attrs.evolve(ctx.loaded.sources, root=ROOT / "examples")
    ctx = DeploymentContext(attrs.evolve(ctx.loaded, sources=sources), ctx.addresses)
    topic = Topic(name="trades", schema_file="trades.avsc")
    before = (ROOT / "examples" / "trades.avsc").read_text()
    (imported,) = schemas.import_schemas(ctx, [topic], replace=False)
    assert (imported.file, imported.state, imported.fields) == ("examples/trades.avsc", "differs", 1)
    assert (ROOT / "examples" / "trades.avsc").read_text() == before


def test_a_key_that_nobody_stored_is_named(lake_aws):
    ctx = DeploymentContext(load())
    (check,) = source.look(ctx)
    assert (check.name, check.result) == ("Tableflow key", Result.FAIL)
    assert "risk/nowhere" in check.message
    with pytest.raises(CommandFailed, match="the Tableflow key in risk/nowhere can't be read") as refused:
        schemas.import_schemas(ctx, ctx.deployment.topics, replace=False)
    assert refused.value.code == "TABLEFLOW-KEY"
