"""Tableflow over real HTTP, its tables in the embedded AWS with IAM enforced."""

import base64
import json

import pyarrow.compute as pc
import pytest

from simulators.confluent.server import ConfluentCloud
from simulators.confluent.tableflow_lake import POLICY
from simulators.confluent.tableflow_lake import Lake as VendorLake
from simulators.tests.confluent.confluent_lake import BUCKET_ACTIONS, GLUE_ACTIONS, OBJECT_ACTIONS, Lake
from tests.support.confluent_kit import LONG, Client, Organization
from tests.support.tableflow_kit import glue_catalog


@pytest.fixture(scope="module")
def cloud(aws):
    vendor = VendorLake(aws.server.url, aws.server.region, "test", "test")
    with ConfluentCloud(seed=13, start=1_793_610_000, region=aws.server.region, lake=vendor) as running:
        yield running


@pytest.fixture
def lake(cloud, aws):
    cloud.reset()
    return Lake(Organization(cloud), aws)


@pytest.fixture
def flowing(lake):
    lake.flow_as()
    return lake


def glue_table(aws, lake):
    return glue_catalog(aws).load_table((lake.id, "stock_trades"))


def test_the_kickstarters_order(flowing, aws):
    integration = flowing.catalog()
    assert flowing.read_catalog(integration)["status"]["phase"] == "PENDING", "nothing to sync yet"
    enabled = flowing.enable()
    assert enabled["status"]["phase"] == "RUNNING", enabled["status"]
    assert enabled["status"]["write_mode"] == "APPEND"
    (synced,) = enabled["status"]["catalog_sync_statuses"]
    assert synced == {
        "catalog_integration_id": integration,
        "catalog_type": "AWS_GLUE",
        "sync_status": "SYNCED",
    }
    assert flowing.read_catalog(integration)["status"]["phase"] == "CONNECTED"
    assert "/v1/" in enabled["spec"]["storage"]["table_path"]
    table = glue_table(aws, flowing)
    assert table.location() == enabled["spec"]["storage"]["table_path"]
    rows = table.scan().to_arrow()
    assert len(rows) > 100
    assert pc.all(pc.greater_equal(rows["price"], 5)).as_py()
    assert set(rows["key"].to_pylist()) == {item.encode() for item in rows["symbol"].to_pylist()}
    assert set(rows["$$topic"].to_pylist()) == {"stock_trades"}
    assert dict(rows["$$headers"][0].as_py())["task.id"] == b"0"
    flowing.cloud.advance(400)
    flowing.read()
    later = glue_table(aws, flowing).scan().to_arrow()
    assert len(rows) < len(later) <= flowing.produced()


def test_nothing_is_lost_or_doubled(flowing, aws):
    flowing.catalog()
    flowing.enable()
    for _ in range(3):
        flowing.cloud.advance(301)
        flowing.read()
    rows = glue_table(aws, flowing).scan().to_arrow()
    placed = set(zip(rows["$$partition"].to_pylist(), rows["$$offset"].to_pylist(), strict=True))
    assert len(placed) == len(rows)
    world = flowing.cloud._simulation.organization
    taken = world.tableflow_topics[flowing.id, "stock_trades"].position
    assert len(rows) == taken > 1000


def test_a_topic_is_seen_late_and_needs_a_schema(lake):
    lake.trust()
    path = "/tableflow/v1/tableflow-topics"
    assert lake.flow.post(path, lake.body(), 404)["errors"][0]["detail"] == "topic not found"
    lake.kafka.post(f"/kafka/v3/clusters/{lake.id}/topics", {"topic_name": "stock_trades"}, 201)
    lake.cloud.advance(5)
    lake.kafka.get(f"/kafka/v3/clusters/{lake.id}/topics/stock_trades")
    lake.flow.post(path, lake.body(), 404)
    lake.cloud.advance(60)
    assert (
        "Schemaless topics are not supported" in lake.flow.post(path, lake.body(), 400)["errors"][0]["detail"]
    )
    lake.datagen()
    lake.flow.post(path, lake.body(), 202)
    lake.flow.post(path, lake.body(), 409)


@pytest.mark.parametrize("missing", [*BUCKET_ACTIONS, *OBJECT_ACTIONS, "sts:TagSession"])
def test_a_role_that_lacks_an_action_fails_the_topic(lake, missing):
    lake.flow_as(without=(missing,))
    failed = lake.enable()
    assert failed["status"]["phase"] == "FAILED"
    assert missing in failed["status"]["error_message"]
    assert failed["status"]["failing_table_formats"][0]["format"] == "ICEBERG"


@pytest.mark.parametrize(
    "wrong", [{"external_id": "another"}, {"principal": "arn:aws:iam::000000000000:role/another"}]
)
def test_a_role_that_does_not_trust_confluent(lake, wrong):
    lake.flow_as(**wrong)
    assert "AccessDenied" in lake.enable()["status"]["error_message"]
    refused = lake.flow.post("/tableflow/v1/catalog-integrations", lake.catalog_body(), 400)
    assert "can't assume" in refused["errors"][0]["detail"]


def test_a_trust_without_an_external_id_is_refused(lake):
    lake.flow_as(external_id="*")
    whom = {"AWS": lake.integration["config"]["iam_role_arn"]}
    statement = {"Effect": "Allow", "Principal": whom, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    lake.aws.iam.update_assume_role_policy(RoleName=lake.role, PolicyDocument=document)
    assert "any external id" in lake.enable()["status"]["error_message"]


@pytest.mark.parametrize("missing", GLUE_ACTIONS)
def test_a_role_that_lacks_a_glue_action_fails_the_integration(lake, missing):
    lake.trust(without=(missing,))
    status = lake.read_catalog(lake.catalog())["status"]
    assert status["phase"] == "FAILED"
    assert status["error_message"].endswith(missing)


def test_repaired_and_resumed(lake, aws):
    lake.flow_as(without=("s3:PutObject",))
    assert lake.enable()["status"]["phase"] == "FAILED"
    lake.permit()
    path = "/tableflow/v1/tableflow-topics/stock_trades"
    lake.flow.patch(path, {"spec": lake.same | {"suspended": False}})
    lake.cloud.advance(LONG)
    assert lake.read()["status"]["phase"] == "RUNNING"


def test_the_bucket_must_be_empty_at_first(flowing):
    flowing.aws.s3.put_object(Bucket=flowing.bucket, Key="mine", Body=b"")
    assert "not empty" in flowing.enable()["status"]["error_message"]
    flowing.aws.s3.delete_object(Bucket=flowing.bucket, Key="mine")
    flowing.flow.patch(
        "/tableflow/v1/tableflow-topics/stock_trades", {"spec": flowing.same | {"suspended": False}}
    )
    flowing.cloud.advance(LONG)
    assert flowing.read()["status"]["phase"] == "RUNNING"
    flowing.topic("second")
    flowing.datagen("second")
    assert flowing.enable("second")["status"]["phase"] == "RUNNING", (
        "a bucket that Tableflow is on already may hold tables"
    )


def test_probes_leave_nothing_behind(flowing):
    flowing.catalog()
    flowing.enable()
    assert not any(
        "probe" in content["Key"]
        for content in flowing.aws.s3.list_objects_v2(Bucket=flowing.bucket)["Contents"]
    )
    assert "Uploads" not in flowing.aws.s3.list_multipart_uploads(Bucket=flowing.bucket)
    names = [listed_database["Name"] for listed_database in flowing.aws.glue.get_databases()["DatabaseList"]]
    assert not any("probe" in name and flowing.id in name for name in names)
    assert flowing.id in names


def test_an_integration_in_use_stays(flowing):
    flowing.enable()
    catalog = flowing.catalog()
    path = f"/pim/v1/integrations/{flowing.integration['id']}"
    used = flowing.org.control.get(path, environment=flowing.environment)["usages"]
    assert len(used) == 2
    flowing.org.control.delete(path, 400, environment=flowing.environment)
    for part in ("tableflow-topics/stock_trades", f"catalog-integrations/{catalog}"):
        flowing.flow.delete(f"/tableflow/v1/{part}", **flowing.where)
        flowing.cloud.advance(11)
        flowing.flow.get(f"/tableflow/v1/{part}", 404, **flowing.where)
        flowing.flow.delete(f"/tableflow/v1/{part}", 404, **flowing.where)
    flowing.org.control.delete(path, 400, environment=flowing.environment)
    flowing.cloud.advance(60)
    flowing.org.control.delete(path, environment=flowing.environment)
    role = flowing.integration["config"]["iam_role_arn"].rpartition("/")[2]
    assert role not in {listed_role["RoleName"] for listed_role in flowing.aws.iam.list_roles()["Roles"]}


def test_an_integration_is_deleted_after_the_answer_to_a_first_attempt_was_lost(flowing):
    """The attempt has removed the policy of Confluent's role."""
    role = flowing.integration["config"]["iam_role_arn"].rpartition("/")[2]
    flowing.aws.iam.delete_role_policy(RoleName=role, PolicyName=POLICY)
    flowing.org.control.delete(
        f"/pim/v1/integrations/{flowing.integration['id']}", environment=flowing.environment
    )
    assert role not in {listed_role["RoleName"] for listed_role in flowing.aws.iam.list_roles()["Roles"]}


def test_disabling_leaves_files_and_glue(flowing, aws):
    flowing.catalog()
    first = flowing.enable()["spec"]["storage"]["table_path"]
    flowing.flow.delete("/tableflow/v1/tableflow-topics/stock_trades", **flowing.where)
    flowing.cloud.advance(60)
    assert glue_table(aws, flowing).location() == first
    assert flowing.enable()["spec"]["storage"]["table_path"] != first


def test_a_topic_with_tableflow_keeps_its_cluster_and_its_place(flowing):
    flowing.enable()
    flowing.kafka.delete(f"/kafka/v3/clusters/{flowing.id}/topics/stock_trades", 400)
    connectors = (
        f"/connect/v1/environments/{flowing.environment}/clusters/{flowing.id}/connectors/stock_trades"
    )
    flowing.org.control.delete(connectors, 200)
    flowing.org.control.delete(f"/cmk/v2/clusters/{flowing.id}", 409, environment=flowing.environment)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"table_formats": ["DELTA"]}, 422),
        ({"table_formats": ["CSV"]}, 422),
        ({"suspended": True}, 422),
        ({"storage": {"kind": "AzureDataLakeStorageGen2"}}, 422),
        ({"storage": {"kind": "ByobAws", "bucket_name": "b-b"}}, 422),
        ({"storage": {"kind": "ByobAws", "bucket_name": "b-b", "provider_integration_id": "cspi-none"}}, 422),
        ({"config": {"retention_ms": "1000"}}, 422),
        ({"config": {"retention_ms": 604800000}}, 400),
        ({"config": {"data_retention_ms": "86400000"}}, 422),
        ({"config": {"error_handling": {"mode": "IGNORE"}}}, 422),
        ({"config": {"error_handling": {"mode": "LOG", "target": "a.b"}}}, 422),
        ({"config": {"error_handling": {"mode": "SKIP"}, "record_failure_strategy": "SUSPEND"}}, 400),
    ],
)
def test_tables_that_cant_be(flowing, changed, status):
    flowing.flow.post("/tableflow/v1/tableflow-topics", flowing.body(**changed), status)


def test_what_of_a_table_can_change(flowing):
    flowing.enable()
    path = "/tableflow/v1/tableflow-topics/stock_trades"
    kept = {"config": {"retention_ms": "86400000", "error_handling": {"mode": "SKIP"}}}
    changed = flowing.flow.patch(path, {"spec": flowing.same | kept})
    assert changed["spec"]["config"]["retention_ms"] == "86400000"
    assert changed["spec"]["config"]["error_handling"] == {"mode": "SKIP"}
    storage = {
        "kind": "ByobAws",
        "bucket_name": "another",
        "provider_integration_id": flowing.integration["id"],
    }
    flowing.flow.patch(path, {"spec": flowing.same | {"storage": storage}}, 400)
    flowing.flow.patch(path, {"spec": flowing.same | {"suspended": True}}, 400)
    flowing.flow.patch(
        path, {"spec": flowing.same | {"config": {"metadata_column_naming_scheme": "PORTABLE"}}}, 400
    )


def spoil(lake):
    body = {"value": {"type": "BINARY", "data": base64.b64encode(b"not avro").decode()}}
    lake.kafka.post(f"/kafka/v3/clusters/{lake.id}/topics/stock_trades/records", body, 200)


@pytest.mark.parametrize("mode", ["SUSPEND", "SKIP", "LOG"])
def test_a_record_that_is_no_row(flowing, aws, mode):
    flowing.catalog()
    spoil(flowing)
    handling = {"mode": mode} | ({"target": "bad_records"} if mode == "LOG" else {})
    enabled = flowing.enable(config={"error_handling": handling})
    assert enabled["spec"]["suspended"] is (mode == "SUSPEND")
    if mode == "SUSPEND":
        assert "Magic number" in enabled["status"]["error_message"]
        return
    rows = glue_table(aws, flowing).scan().to_arrow()
    world = flowing.cloud._simulation.organization
    assert len(rows) == world.tableflow_topics[flowing.id, "stock_trades"].position - 1
    if mode == "LOG":
        (logged,) = world.clusters[flowing.id].topics["bad_records"].messages
        assert logged.value == b"not avro"


def test_a_wider_schema_is_followed(flowing, aws):
    flowing.catalog()
    flowing.enable()
    registry = flowing.cloud._simulation.organization.schema_registries.copy().popitem()[1].schemas
    schema = json.loads(registry.latest("stock_trades-value").text)
    schema["fields"].append({"name": "venue", "type": ["null", "string"], "default": None})
    crn = flowing.org.registry(flowing.environment)["metadata"]["resource_name"]
    flowing.org.bind(flowing.admin, "ResourceOwner", f"{crn}/subject=*")
    client = flowing.org.schemas(flowing.environment, flowing.admin)
    client.post("/subjects/stock_trades-value/versions", {"schema": json.dumps(schema)}, 200)
    flowing.cloud.advance(400)
    flowing.read()
    assert "venue" in glue_table(aws, flowing).schema().column_names


def test_compacted_topics_become_upsert_tables(lake):
    lake.topic("accounts", configs=[{"name": "cleanup.policy", "value": "compact"}])
    lake.trust()
    lake.datagen("accounts")
    assert lake.enable("accounts")["status"]["write_mode"] == "UPSERT"


def test_tableflow_takes_its_own_key(lake):
    path = "/tableflow/v1/tableflow-topics"
    Client(lake.cloud.url).get(path, 401, **lake.where)
    lake.org.control.get(path, 401, **lake.where)
    lake.flow.get(path, 400, environment=lake.environment)
    stranger = lake.org.tableflow(lake.org.account("stranger"))
    stranger.get("/tableflow/v1/regions")
    stranger.get(path, 403, **lake.where)


def test_handing_on_an_integration_needs_a_role_on_it(flowing):
    other = flowing.org.account("other")
    flowing.org.bind(
        other, "CloudClusterAdmin", flowing.cluster["metadata"]["resource_name"].rpartition("/")[0]
    )
    client = flowing.org.tableflow(other)
    client.post("/tableflow/v1/tableflow-topics", flowing.body(), 403)
    client.post("/tableflow/v1/catalog-integrations", flowing.catalog_body(), 403)


@pytest.mark.parametrize("config", [{"kind": "Snowflake"}, {"kind": "Unity"}, {"kind": "Hive"}])
def test_other_catalogs_are_not_simulated(lake, config):
    lake.flow.post("/tableflow/v1/catalog-integrations", lake.catalog_body(config=config), 422)


def test_one_glue_integration_a_cluster(lake):
    lake.trust()
    first = lake.catalog()
    lake.flow.post("/tableflow/v1/catalog-integrations", lake.catalog_body(), 409)
    path = f"/tableflow/v1/catalog-integrations/{first}"
    assert (
        lake.flow.patch(path, {"spec": lake.same | {"display_name": "renamed"}})["spec"]["display_name"]
        == "renamed"
    )
    config = {"kind": "AwsGlue", "provider_integration_id": "cspi-other"}
    lake.flow.patch(path, {"spec": lake.same | {"config": config}}, 400)


def test_without_aws_the_control_plane_goes_on():
    with ConfluentCloud(seed=1) as alone:
        lake = Lake(Organization(alone), None)
        lake.topic()
        lake.datagen()
        integration = lake.catalog()
        enabled = lake.enable()
        assert enabled["status"]["phase"] == "RUNNING"
        assert enabled["spec"]["storage"]["table_path"].startswith(f"s3://{lake.bucket}/")
        assert lake.read_catalog(integration)["status"]["phase"] == "CONNECTED"
