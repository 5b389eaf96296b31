"""`lakeferry doctor --discover`: what is said of the topics of another team's cluster."""

from __future__ import annotations

import json
import tomllib

import attrs
import pytest

from lakeferry.errors import CommandFailed
from lakeferry.topics import discovery, schemas
from lambdas.shared.clock import Deadline
from lambdas.shared.redaction import ApiKey, Secret
from simulators.confluent import model, team
from simulators.confluent.iam import bind_role, issue_key
from simulators.confluent.schemas import Schema
from tests.support.confluent_environment import SCHEMA, Organization

TAGGED = SCHEMA.replace('"id", "type": "string"', '"id", "type": "string", "confluent:tags": ["PII"]')


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


@pytest.fixture
def theirs(org):
    return team.create(org.simulation.organization)


def key_of(text):
    key_id, _, secret = text.partition(":")
    return ApiKey(key_id, Secret(secret))


@pytest.fixture
def cluster(org, theirs):
    vendor = org.connect(Deadline(org.clock, org.clock.time() + 100_000), org.clock, org.secrets)
    return discovery.Cluster(
        id=theirs.cluster_id,
        kafka=vendor.kafka(theirs.environment_id, theirs.cluster_id, key_of(theirs.kafka_key)),
        registry=vendor.registry(theirs.environment_id, key_of(theirs.schema_registry_key)),
        tableflow=None,
        environment_id=theirs.environment_id,
    )


def register(org, subject, text, kind="AVRO", references=()):
    (registry,) = org.simulation.organization.schema_registries.values()
    registry.schemas.register(subject, Schema(kind, text, references))


def test_each_topic_says_what_an_export_of_it_would_need(cluster):
    needs = {topic.name: topic.needs for topic in cluster.list_topics(["payments"])}
    assert needs == {
        "Sales.Trades": "existing = true, and [topics.tableflow]",
        "audit-log": "a schema: its producer has to register one for the values",
        "customers": "a schema: its producer has to register one for the values",
        "payments": "nothing: it is in the file",
    }


def test_a_compacted_topic_needs_the_mode_of_upserts(org, cluster):
    register(org, "customers-value", SCHEMA)
    (customers,) = [topic for topic in cluster.list_topics([]) if topic.name == "customers"]
    assert (customers.cleanup_policy, customers.value_schema) == ("compact", "AVRO")
    assert customers.needs == 'existing = true, and [topics.tableflow] with write_mode = "UPSERT"'


def test_settings_that_the_key_may_not_read_are_unknown(org, cluster):
    org.disturb(fault="error", status=403, method="GET", path="*/topics/customers/configs", times=9)
    register(org, "customers-value", SCHEMA)
    (customers,) = [topic for topic in cluster.list_topics([]) if topic.name == "customers"]
    assert (customers.cleanup_policy, customers.retention_ms) == ("unknown", "unknown")
    assert customers.needs.endswith("if the topic is compacted")


def test_what_no_key_can_read_is_unknown(cluster):
    blind = attrs.evolve(cluster, registry=None)
    (trades,) = [topic for topic in blind.list_topics([]) if topic.name == "Sales.Trades"]
    assert (trades.value_schema, trades.key_schema, trades.tableflow) == ("unknown", "unknown", "unknown")


def test_a_topic_that_is_a_table_already_is_for_exports_only(org, theirs, cluster):
    owner = org.simulation.organization.owner
    vendor = org.connect(Deadline(org.clock, org.clock.time() + 100_000), org.clock, org.secrets)
    answer = vendor.cloud.post(
        "/iam/v2/api-keys",
        {"spec": {"owner": {"id": owner}, "resource": {"id": "tableflow", "kind": "Tableflow"}}},
    )
    org.settle()
    key = ApiKey(answer["id"], Secret(answer["spec"]["secret"]))
    seeing = attrs.evolve(cluster, tableflow=vendor.tableflow(key))
    found = {topic.name: topic for topic in seeing.list_topics([])}
    assert found["payments"].tableflow == f"RUNNING into bucket {theirs.bucket}"
    assert found["payments"].needs == "a deployment file with [source]: it has Tableflow already"
    assert found["Sales.Trades"].tableflow == "off"


def test_tableflow_that_the_key_may_not_see_is_not_off(org, theirs, cluster):
    """The deployment's own key owns the topics of its tables only, and Confluent's list leaves the rest out."""
    organization = org.simulation.organization
    (account,) = [
        account for account in organization.service_accounts.values() if account.name == "acme-reader"
    ]
    theirs_cluster = organization.clusters[theirs.cluster_id]
    bind_role(
        organization,
        f"User:{account.id}",
        "ResourceOwner",
        theirs_cluster.build_crn("topic", "Sales.Trades"),
    )
    key = issue_key(organization, account.id, model.KeyKind.TABLEFLOW, "tableflow", organization.crn, delay=0)
    vendor = org.connect(Deadline(org.clock, org.clock.time() + 100_000), org.clock, org.secrets)
    seeing = attrs.evolve(cluster, tableflow=vendor.tableflow(ApiKey(key.id, Secret(key.secret))))
    found = {topic.name: topic.tableflow for topic in seeing.list_topics([])}
    assert found["Sales.Trades"] == "off"
    assert found["payments"] == "unknown"


def test_a_schema_without_tags_counts_as_unknown(cluster):
    schema = cluster.read_schema("Sales.Trades")
    assert next(iter(schema.items())) == ("lakeferry:tags", "unknown")
    assert schema["type"] == "record"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"id", "type": "string"', '"id", "type": "string", "confluent:tags": ["PUBLIC"]'),
        ('"id", "type": "string"', '"id", "type": "string", "doc": "see confluent:tags"'),
    ],
)
def test_a_schema_that_tags_no_personal_field_counts_as_unknown(org, cluster, old, new):
    register(org, "audit-log-value", SCHEMA.replace(old, new))
    assert cluster.read_schema("audit-log")["lakeferry:tags"] == "unknown"


def test_a_schema_with_a_tag_keeps_it_and_says_nothing_of_other_fields(org, cluster):
    """Others may have the tag in Stream Catalog or in the subject's metadata."""
    register(org, "audit-log-value", TAGGED)
    assert cluster.read_schema("audit-log") == {"lakeferry:tags": "unknown", **json.loads(TAGGED)}


@pytest.mark.parametrize(
    ("kind", "text", "references", "problem"),
    [
        ("JSON", "{}", (), "is JSON, and contracts need Avro"),
        ("PROTOBUF", 'syntax = "proto3"; message A {}', (), "is PROTOBUF, and contracts need Avro"),
        ("AVRO", '"string"', (), "is not a record"),
        ("AVRO", '["null", "string"]', (), "is not a record"),
        ("AVRO", '{"type": "string"}', (), "audit-log"),
        ("AVRO", '{"type": "enum", "name": "E", "symbols": ["A"]}', (), "audit-log"),
    ],
)
def test_a_schema_that_no_contract_can_be_checked_against_is_refused(
    org, cluster, kind, text, references, problem
):
    register(org, "audit-log-value", text, kind, references)
    with pytest.raises(CommandFailed) as refused:
        cluster.read_schema("audit-log")
    assert refused.value.code == "NO-SCHEMA"
    assert problem in refused.value.message


def test_a_topic_without_a_schema_has_none_to_import(cluster):
    with pytest.raises(CommandFailed, match="has no subject audit-log-value") as refused:
        cluster.read_schema("audit-log")
    assert refused.value.code == "NO-SCHEMA"


def test_without_a_key_that_may_read_it_a_schema_is_not_said_to_be_missing(org, cluster):
    with pytest.raises(CommandFailed, match="there is none yet") as refused:
        attrs.evolve(cluster, registry=None).read_schema("Sales.Trades")
    assert refused.value.code == "NO-REGISTRY-KEY"
    org.disturb(fault="error", status=403, method="GET", path="*/subjects/*", times=9)
    with pytest.raises(CommandFailed, match="refuses the key") as refused:
        cluster.read_schema("Sales.Trades")
    assert refused.value.code == "NO-REGISTRY-KEY"


FILE = """\
[deployment]
name = "lakeferry"
stage = "shop"
owner = "sales analytics"

[aws]
region = "eu-west-1"

[confluent]
cloud_key_secret = "acme/deployer"
environment_id = "env-abc123"
environment_name = "acme"
cluster_id = "lkc-abc123"
glue_database = "lkc-abc123"

[alerts]
engineers = ["engineers@example.com"]
"""


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "shop.toml"
    file.write_text(FILE)
    return file


def discovered(name, policy="delete"):
    return discovery.DiscoveredTopic(name, 6, policy, "604800000", "AVRO", "none", "off", False, "")


def test_a_topic_is_added_in_the_mode_that_its_cleanup_policy_needs(file):
    text = schemas.add_topics(file, [discovered("trades"), discovered("customers", "compact")])
    assert text == FILE + (
        '\n[[topics]]\nname = "trades"\nexisting = true\n\n[topics.tableflow]\n'
        '\n[[topics]]\nname = "customers"\nexisting = true\n\n[topics.tableflow]\nwrite_mode = "UPSERT"\n'
    )
    file.write_text(FILE.rstrip("\n") + "\n\n\n")
    assert schemas.add_topics(file, [discovered("trades"), discovered("customers", "compact")]) == text
    topics = {topic["name"]: topic["tableflow"] for topic in tomllib.loads(text)["topics"]}
    assert topics["trades"] == {}
    assert topics["customers"] == {"write_mode": "UPSERT"}


@pytest.mark.parametrize("names", [["_raw"], ["trades", "Trades"]])
def test_a_topic_that_no_deployment_file_can_have_is_refused_before_it_is_written(file, names):
    before = file.read_text()
    with pytest.raises(CommandFailed) as refused:
        schemas.add_topics(file, [discovered(name) for name in names])
    assert refused.value.code == "DEPLOYMENT-FILE"
    assert refused.value.message.startswith(f"with {', '.join(names)} added: shop.toml: ")
    assert refused.value.hint == "Correct the file by hand, or leave the topic out; nothing was written"
    assert file.read_text() == before
