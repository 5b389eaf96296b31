"""A network, KMS keys, buckets and Lake Formation that exist before a deployment: what templates use, and
what they leave alone.
"""

from __future__ import annotations

import json

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from tests.support import assembly_kit

FILE = (ROOT / "tests" / "data" / "regulated.toml").read_text(encoding="utf-8")
EXISTING = """
existing_tableflow_bucket = "company-tableflow"
existing_lake_bucket = "company-exports"
"""


def synthesise(text, folder):
    loaded = deployment_file.parse(text, name="given.toml", judge=NOT_JUDGED)
    return assembly_kit.synthesise(loaded, folder)


@pytest.fixture(scope="module")
def regulated(tmp_path_factory):
    return synthesise(FILE, tmp_path_factory.mktemp("regulated"))


@pytest.fixture(scope="module")
def in_existing_buckets(tmp_path_factory):
    text = FILE.replace("lake_formation = true", EXISTING)
    return synthesise(text, tmp_path_factory.mktemp("existing_buckets"))


def cleanups(assembly):
    return {id: body for (_, id), body in assembly.resources("Custom::LakeferryCleanup").items()}


def test_nothing_is_found(regulated, in_existing_buckets):
    for assembly in (regulated, in_existing_buckets):
        assert (assembly.failure, assembly.report) == ("", [])


def test_every_function_runs_in_the_network(regulated):
    functions = regulated.resources("AWS::Lambda::Function")
    assert len(functions) > 10
    for properties in functions.values():
        assert properties["VpcConfig"] == {
            "SecurityGroupIds": ["sg-0a1b2c3d4e5f60718"],
            "SubnetIds": ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"],
        }


def test_every_role_of_a_function_may_join_the_network(regulated):
    roles = regulated.resources("AWS::IAM::Role")
    of_functions = [
        properties
        for properties in roles.values()
        if "lambda.amazonaws.com" in json.dumps(properties["AssumeRolePolicyDocument"])
    ]
    assert of_functions
    for properties in of_functions:
        assert "ec2:CreateNetworkInterface" in json.dumps(properties["Policies"])


def test_jobs_run_in_the_network_and_call_aws_through_it(regulated):
    connections = regulated.resources("AWS::Glue::Connection").values()
    names = [properties["ConnectionInput"]["Name"] for properties in connections]
    assert len(names) == 2
    for job in regulated.resources("AWS::Glue::Job").values():
        assert job["Connections"]["Connections"] == names
        assert job["DefaultArguments"]["--disable-proxy-v2"] == "true"


def test_without_a_network_nothing_joins_one(dev):
    assert dev.resources("AWS::Glue::Connection") == {}
    assert all("VpcConfig" not in body for body in dev.resources("AWS::Lambda::Function").values())
    assert "ec2:" not in json.dumps(dev.templates)


def test_the_vendors_are_called_through_the_proxy_and_the_notifications_need_none(regulated):
    users = set()
    for (_, id), properties in regulated.resources("AWS::Lambda::Function").items():
        variables = properties.get("Environment", {}).get("Variables", {})
        if variables.get("LAKEFERRY_PROXY") == "http://proxy.example.com:3128":
            users.add(id.partition("Function")[0])
    assert users == {"ConfluentProvider", "SnowflakeProvider", "KeyRotation", "Watch"}


def test_no_key_is_created_and_everything_is_encrypted_with_those_of_the_file(regulated):
    keys = regulated.plan.deployment.encryption
    assert regulated.resources("AWS::KMS::Key") == {}
    for properties in regulated.resources("AWS::Logs::LogGroup").values():
        assert properties["KmsKeyId"] == keys.logs
    for properties in regulated.resources("AWS::SecretsManager::Secret").values():
        assert properties["KmsKeyId"] == keys.secrets
    buckets = {
        id[: id.index("Bucket")]: json.dumps(properties["BucketEncryption"])
        for (_, id), properties in regulated.resources("AWS::S3::Bucket").items()
    }
    assert keys.tables in buckets["Tableflow"]
    assert keys.data in buckets["Lake"]


@pytest.mark.parametrize(
    ("part", "role", "purpose", "action"),
    [
        ("confluent", "TableflowRole", "tables", "kms:GenerateDataKey"),
        ("snowflake", "SnowflakeRole", "tables", "kms:Decrypt"),
        ("exports", "JobsRole", "tables", "kms:Decrypt"),
        ("exports", "JobsRole", "data", "kms:GenerateDataKey"),
        ("exports", "NotifyRole", "data", "kms:GenerateDataKey"),
        ("operations", "WatchRole", "data", "kms:Decrypt"),
    ],
)
def test_each_role_may_use_the_keys_that_it_needs_through_s3(regulated, part, role, purpose, action):
    (properties,) = [
        body for (_, id), body in regulated.resources("AWS::IAM::Role", part).items() if id.startswith(role)
    ]
    key = getattr(regulated.plan.deployment.encryption, purpose)
    statements = [
        statement
        for policy in properties["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Resource"] == key and action in statement["Action"]
    ]
    assert statements
    assert all("s3." in json.dumps(statement["Condition"]) for statement in statements)


def test_lake_formation_grants_each_role_what_it_needs(regulated):
    granted = {
        (part, tuple(properties["Permissions"]), next(iter(properties["Resource"])))
        for (part, _), properties in regulated.resources("AWS::LakeFormation::PrincipalPermissions").items()
    }
    assert granted == {
        ("confluent", ("CREATE_DATABASE",), "Catalog"),
        ("confluent", ("DESCRIBE",), "Database"),
        ("confluent", ("DESCRIBE", "DROP"), "Table"),
        ("exports", ("DESCRIBE",), "Database"),
        ("exports", ("DESCRIBE", "SELECT"), "Table"),
        ("exports", ("CREATE_TABLE", "DESCRIBE"), "Database"),
        ("exports", ("ALTER", "DESCRIBE", "INSERT", "SELECT"), "Table"),
        ("operations", ("DESCRIBE",), "Database"),
        ("operations", ("DESCRIBE",), "Table"),
        ("snowflake", ("DESCRIBE",), "Database"),
        ("snowflake", ("DESCRIBE", "SELECT"), "Table"),
    }


def test_buckets_that_exist_get_no_rules_no_policy_and_are_not_emptied(in_existing_buckets):
    for kind in ("AWS::S3::Bucket", "AWS::S3::BucketPolicy"):
        assert in_existing_buckets.resources(kind) == {}
    assert list(cleanups(in_existing_buckets)) == ["DropTables"]
    template = json.dumps(in_existing_buckets.templates)
    assert "s3:DeleteObjectVersion" not in template
    assert "s3:DeleteBucketPolicy" not in template


def test_keys_in_a_bucket_of_others_begin_with_the_deployment(in_existing_buckets):
    for job in in_existing_buckets.resources("AWS::Glue::Job").values():
        arguments = job["DefaultArguments"]
        assert arguments["--prefix"] == "regulated-test/exports"
        assert arguments["--warehouse"] == "s3://company-exports/regulated-test/warehouse"
        assert arguments["--TempDir"] == "s3://company-exports/regulated-test/temporary/"
    volumes = in_existing_buckets.resources("Custom::LakeferrySnowflakeExternalVolume", "snowflake")
    locations = {logical_id: volume["base_url"] for (_, logical_id), volume in volumes.items()}
    assert locations["AggregatesVolume"] == "s3://company-exports/regulated-test/warehouse/"
    (workgroup,) = in_existing_buckets.resources("AWS::Athena::WorkGroup").values()
    assert "s3://company-exports/regulated-test/athena/" in json.dumps(workgroup)
    writes = json.dumps(in_existing_buckets.resources("AWS::IAM::Role", "exports").__repr__())
    assert "company-exports/exports" not in writes
    assert "company-exports/notices" not in writes


def test_only_the_tables_of_the_file_go_from_a_bucket_of_others(in_existing_buckets):
    assert json.loads(cleanups(in_existing_buckets)["DropTables"]["only_tables"]) == ["stock_trades"]


def test_without_a_table_in_glue_no_table_goes_from_a_bucket_of_others(tmp_path):
    """An empty list must not be left out: without a list, all tables in the bucket would go."""
    text = FILE.replace("lake_formation = true", EXISTING)
    text = text.replace('snowflake_table = "STOCK_TRADES"', "in_glue = false")
    without_snowflake = text.replace("[snowflake]", "[snowflake]\nenabled = false")
    without_export = without_snowflake[: without_snowflake.index("[[exports]]")]
    alerts = text[text.index("[alerts]") :]
    assembly = synthesise(without_export + alerts, tmp_path)
    assert cleanups(assembly)["DropTables"]["only_tables"] == "[]"
