"""`[source]` with a Schema Registry: schemas and tags of topics that somebody else has."""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import doctor, registered_schemas
from lakeferry.health.model import Result
from lakeferry.topics import schemas
from simulators.confluent.server import ConfluentCloud
from simulators.tableflow.layout import build_table_schema
from simulators.tableflow.topic import Topic
from tests.support.confluent_kit import Organization

TOPIC = "Shop.Orders"
SUBJECT = f"{TOPIC}-value"
ID = {"name": "order_id", "type": "string"}
MAIL = {"name": "email", "type": "string"}
TAGGED_MAIL = {**MAIL, "confluent:tags": ["PII"]}
UNREVIEWED = {"lakeferry:tags": "unknown"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
FILE = """
[deployment]
name = "lakeferry"
stage = "borrowed"
owner = "risk"

[aws]
region = "eu-west-1"

[source]
glue_database = "{database}"
tableflow_bucket = "{bucket}"
schema_registry_url = "https://psrc-abc12.eu-west-1.aws.confluent.cloud"
schema_registry_key_secret = "{secret}"

[[topics]]
name = "{topic}"

[alerts]
engineers = ["engineers@example.com"]
"""
_numbers = itertools.count(1)


def record(*fields):
    return {"type": "record", "name": "Order", "fields": list(fields)}


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud() as cloud:
        yield cloud


@attrs.frozen
class Shop:
    """A topic with a registered schema and a Glue table, and a deployment that reads them."""

    organization: Organization
    registry: object  # the client of somebody who may write
    registry_id: str
    name: str
    ctx: DeploymentContext

    def register(self, schema):
        self.registry.post(f"/subjects/{SUBJECT}/versions", {"schema": json.dumps(schema)}, 200)

    def write_table(self, schema):
        table = build_table_schema(Topic(TOPIC, schema), "DEFAULT")
        document = json.loads(table.model_dump_json())
        metadata = {"current-schema-id": 0, "schemas": [document | {"schema-id": 0}]}
        body = json.dumps(metadata).encode()
        boto3.client("s3").put_object(Bucket=self.name, Key="1/metadata.json", Body=body)

    def store_key(self, key):
        client = boto3.client("secretsmanager")
        text = json.dumps({"apiKey": key[0], "apiSecret": key[1]})
        try:
            client.create_secret(Name=f"{self.name}/registry", SecretString=text)
        except client.exceptions.ResourceExistsException:
            client.put_secret_value(SecretId=f"{self.name}/registry", SecretString=text)

    @property
    def file(self):
        return self.ctx.loaded.sources.root / "topics" / f"{TOPIC}.avsc"

    def import_schema(self, *, replace=False):
        (imported,) = schemas.import_schemas(self.ctx, self.ctx.deployment.topics, replace=replace)
        return imported

    def read_file(self):
        return json.loads(self.file.read_text())

    def look(self):
        return {check.name: (check.result, check.message) for check in registered_schemas.look(self.ctx)}


@pytest.fixture
def shop(cloud, lake_aws, tmp_path):
    cloud.reset()
    organization = Organization(cloud)
    environment = organization.environment()
    organization.cluster(environment)
    registry = organization.registry(environment)
    subject = f"{registry['metadata']['resource_name']}/subject={SUBJECT}"
    owner = organization.account("owner")
    organization.bind(owner, "ResourceOwner", subject)
    writer = organization.schemas(environment, owner)
    reader = organization.account("reader")
    organization.bind(reader, "DeveloperRead", subject)
    key = organization.key(reader, {"id": registry["id"], "kind": "Cluster"})
    name = f"shop-{next(_numbers)}"
    boto3.client("s3").create_bucket(
        Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region}
    )
    glue = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": name})
    location = f"s3://{name}/1/metadata.json"
    parameters = {"table_type": "ICEBERG", "metadata_location": location}
    glue.create_table(DatabaseName=name, TableInput={"Name": TOPIC.lower(), "Parameters": parameters})
    text = FILE.format(database=name, bucket=name, secret=f"{name}/registry", topic=TOPIC)
    (tmp_path / "topics").mkdir()
    loaded = deployment_file.parse(text, name="borrowed.toml", root=tmp_path, judge=NOT_JUDGED)
    url = registry["spec"]["http_endpoint"]
    ctx = DeploymentContext(loaded, Addresses(registry=url))
    shop = Shop(organization, writer, registry["id"], name, ctx)
    shop.store_key(key)
    return shop


def test_schema_and_tags_are_those_of_the_registry(shop):
    shop.register(record(ID, TAGGED_MAIL))
    shop.write_table(record(ID, MAIL))
    imported = shop.import_schema()
    assert (imported.state, imported.read_from, imported.why) == ("written", "Schema Registry", "")
    assert shop.read_file() == UNREVIEWED | record(ID, TAGGED_MAIL)
    assert shop.import_schema().state == "unchanged"
    assert shop.look() == {
        "Schema Registry key": (Result.OK, f"in {shop.name}/registry"),
        f"schema of {TOPIC}": (Result.OK, f"{TOPIC}.avsc has the registered fields and tags"),
    }


def test_a_review_of_the_producers_is_not_one_of_whoever_imports(shop):
    shop.register({"lakeferry:tags": "reviewed"} | record(ID, TAGGED_MAIL))
    shop.write_table(record(ID, MAIL))
    assert shop.import_schema().read_from == "Schema Registry"
    assert shop.read_file() == UNREVIEWED | record(ID, TAGGED_MAIL)


def test_a_review_stays_until_the_schema_differs(shop):
    shop.register(record(ID, TAGGED_MAIL))
    shop.write_table(record(ID, MAIL))
    shop.import_schema()
    shop.file.write_text(shop.file.read_text().replace('"unknown"', '"reviewed"'))
    assert shop.import_schema().state == "unchanged"
    assert shop.read_file()["lakeferry:tags"] == "reviewed"


def test_a_registered_schema_that_tags_nothing_proves_nothing(shop):
    shop.register(record(ID, MAIL))
    shop.write_table(record(ID, MAIL))
    assert shop.import_schema().read_from == "Schema Registry"
    assert shop.read_file()["lakeferry:tags"] == "unknown"


def test_a_column_that_the_table_gets_later_is_imported(shop):
    shop.register(record(ID, TAGGED_MAIL, NOTE))
    shop.write_table(record(ID, MAIL))
    assert shop.import_schema().fields == 3


@pytest.mark.parametrize(
    ("of_table", "others"),
    [
        (record(ID, MAIL, NOTE), "note"),
        (record({**ID, "type": "long"}, MAIL), "order_id"),
        (record({**ID, "type": "long"}, MAIL, NOTE), "order_id, note"),
    ],
)
def test_tags_of_a_schema_that_is_not_that_of_the_table_are_not_taken(shop, of_table, others):
    shop.register(record(ID, TAGGED_MAIL))
    shop.write_table(of_table)
    imported = shop.import_schema()
    assert (imported.read_from, imported.why) == (
        "table",
        f"the registered schema has not these columns, or with other types: {others}",
    )
    assert shop.read_file()["lakeferry:tags"] == "unknown"


def test_without_a_subject_the_tags_are_unknown(shop):
    shop.write_table(record(ID, MAIL))
    imported = shop.import_schema()
    assert (imported.read_from, imported.why) == ("table", f"Schema Registry has no subject {SUBJECT}")
    assert shop.read_file()["lakeferry:tags"] == "unknown"


def test_a_subject_that_the_key_may_not_read_leaves_the_tags_unknown(shop):
    shop.register(record(ID, TAGGED_MAIL))
    shop.write_table(record(ID, MAIL))
    stranger = shop.organization.account("stranger")
    shop.store_key(shop.organization.key(stranger, {"id": shop.registry_id, "kind": "Cluster"}))
    imported = shop.import_schema()
    assert (imported.read_from, imported.why) == (
        "table",
        f"no key can read subject {SUBJECT}: Schema Registry refuses the key",
    )
    assert shop.read_file()["lakeferry:tags"] == "unknown"
    result, message = shop.look()[f"schema of {TOPIC}"]
    assert (result, "can't be compared" in message) == (Result.WARN, True)


def test_a_wrong_key_stops_the_import_and_is_not_shown(shop):
    shop.write_table(record(ID, MAIL))
    shop.store_key(("NOBODY", "cflt-unknown"))
    with pytest.raises(CommandFailed) as refused:
        shop.import_schema()
    assert refused.value.code == "REGISTRY-UNREADABLE"
    assert f"with the key in {shop.name}/registry" in refused.value.message
    assert "cflt-unknown" not in str(refused.value)
    assert not shop.file.exists()
    (check,) = registered_schemas.look(shop.ctx)
    assert (check.name, check.result) == ("Schema Registry key", Result.FAIL)


def test_a_secret_that_nobody_stored_is_named(shop):
    boto3.client("secretsmanager").delete_secret(
        SecretId=f"{shop.name}/registry", ForceDeleteWithoutRecovery=True
    )
    shop.write_table(record(ID, MAIL))
    with pytest.raises(CommandFailed, match=f"{shop.name}/registry"):
        shop.import_schema()


def test_a_tag_that_the_file_lacks_is_named_and_fails_doctor(shop):
    shop.register(record(ID, TAGGED_MAIL))
    shop.write_table(record(ID, MAIL))
    shop.file.write_text(json.dumps({"lakeferry:tags": "reviewed", **record(ID, MAIL)}))
    imported = shop.import_schema()
    assert (imported.state, imported.changes) == ("differs", ("email has the tag PII, and not in the file",))
    result, message = shop.look()[f"schema of {TOPIC}"]
    assert (result, "email has the tag PII" in message) == (Result.FAIL, True)
    assert shop.import_schema(replace=True).state == "written"
    assert shop.read_file() == UNREVIEWED | record(ID, TAGGED_MAIL)


def test_tags_that_come_to_be_known_are_offered(shop):
    shop.write_table(record(ID, MAIL))
    shop.import_schema()
    shop.register(record(ID, TAGGED_MAIL))
    imported = shop.import_schema()
    assert (imported.state, imported.changes) == (
        "differs",
        ("email has the tag PII, and not in the file",),
    )
    assert shop.look()[f"schema of {TOPIC}"][0] == Result.WARN


def test_a_field_that_the_file_lacks_is_a_warning(shop):
    shop.register(record(ID, TAGGED_MAIL, NOTE))
    shop.file.write_text(json.dumps(record(ID, TAGGED_MAIL)))
    result, message = shop.look()[f"schema of {TOPIC}"]
    assert (result, message) == (Result.WARN, f"{TOPIC}.avsc: note is new")


def test_doctor_asks_no_registry_that_no_file_names(shop):
    assert registered_schemas.GROUP in {probe.group for probe in doctor.list_probes(shop.ctx)}
    source = attrs.evolve(
        shop.ctx.deployment.source, schema_registry_url=None, schema_registry_key_secret=None
    )
    loaded = attrs.evolve(shop.ctx.loaded, deployment=attrs.evolve(shop.ctx.deployment, source=source))
    groups = {probe.group for probe in doctor.list_probes(DeploymentContext(loaded))}
    assert registered_schemas.GROUP not in groups
