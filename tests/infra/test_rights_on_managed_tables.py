"""Tables in Confluent's storage: who may read them, and what there isn't without a table in one's own bucket."""

from __future__ import annotations

import json

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from lakeferry.plan import cost
from tests.support import assembly_kit
from tests.support.policies import ACCOUNT, Reader, allowed

SECRET = "lakeferry-stored/confluent/tableflow/table_reader"
SECRET_ARN = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:{SECRET}-abcdef"
FILE = (ROOT / "tests" / "data" / "managed.toml").read_text(encoding="utf-8")
_OWN_TABLE = FILE[FILE.index('[[topics]]\nname = "sales_orders"') : FILE.index("[[exports]]")]
_OWN_EXPORT = FILE[FILE.index('[[exports]]\ncontract = "weekly_sales"') : FILE.index("[alerts]")]


def synthesise(text, folder):
    loaded = deployment_file.parse(text, name="stored.toml", judge=NOT_JUDGED)
    return assembly_kit.synthesise(loaded, folder)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return synthesise(FILE, tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="module")
def managed(tmp_path_factory):
    text = FILE.replace(_OWN_TABLE, "").replace(_OWN_EXPORT, "")
    return synthesise(text, tmp_path_factory.mktemp("managed"))


def kinds(assembly):
    return {
        body["Properties"].get("kind")
        for template in assembly.templates.values()
        for body in template["Resources"].values()
        if "Properties" in body
    }


def bindings(assembly, role):
    return {
        (properties["scope"], properties.get("name", ""))
        for template in assembly.templates.values()
        for logical_id, body in template["Resources"].items()
        if (properties := body.get("Properties", {})).get("kind") == "role_binding"
        and "TableReader" in logical_id
        and properties["role"] == role
    }


def arguments(assembly):
    """Return the arguments of the Glue jobs, by the job's name."""
    jobs = assembly.resources("AWS::Glue::Job").values()
    return {job["Name"]: job["DefaultArguments"] for job in jobs}


def test_the_reader_has_one_role_on_each_managed_topic(mixed):
    assert bindings(mixed, "DeveloperRead") == {("topic", "stock_trades")}


def test_only_the_job_of_a_managed_table_gets_the_key(mixed):
    given = arguments(mixed)
    assert given["lakeferry-stored-daily_trades"]["--tableflow-secret"] == SECRET
    assert "--tableflow-secret" not in given["lakeferry-stored-weekly_sales"]


def test_jobs_and_monitoring_read_that_key_and_no_other(mixed):
    readers = {
        grant.role
        for grant in Reader(mixed).grants()
        if allowed([grant], "secretsmanager:GetSecretValue", SECRET_ARN)
    }
    assert {role.partition(".")[0] for role in readers} == {"confluent", "exports", "operations"}
    other = SECRET_ARN.replace("table_reader", "watcher")
    jobs = [grant for grant in Reader(mixed).grants() if grant.role.startswith("exports.Jobs")]
    assert not any(allowed([grant], "secretsmanager:GetSecretValue", other) for grant in jobs)


def test_no_stack_imports_the_secret(mixed):
    """A secret that another stack imports couldn't go with the last table that needs it."""
    imported = json.dumps([mixed.templates["exports"], mixed.templates["operations"]])
    assert "TableReader" not in imported


def test_without_a_table_in_a_bucket_confluent_gets_no_access(managed):
    assert {"provider_integration", "catalog_integration"} & kinds(managed) == set()
    assert not any(".TableflowRole" in role for role in Reader(managed).roles())
    actions = ("s3:GetObject", "glue:GetTable")
    resources = ("arn:aws:s3:::any/data/file", f"arn:aws:glue:eu-west-1:{ACCOUNT}:table/lkc-1/trades")
    jobs = [grant for grant in Reader(managed).grants() if grant.role.startswith("exports.Jobs")]
    for action, resource in zip(actions, resources, strict=True):
        assert not any(allowed([grant], action, resource) for grant in jobs)


def test_what_an_earlier_version_of_the_file_left_in_the_bucket_goes_on_destroy(managed):
    cleanups = {logical_id for _, logical_id in managed.resources("Custom::LakeferryCleanup", "confluent")}
    assert cleanups == {"EmptyTableflowBucket", "DropTables"}


@pytest.mark.slow
def test_a_key_that_no_export_uses_is_not_given_to_the_jobs(tmp_path):
    text = FILE[: FILE.index('[[exports]]\ncontract = "daily_trades"')]
    assembly = synthesise(text + FILE[FILE.index('[[exports]]\ncontract = "weekly_sales"') :], tmp_path)
    jobs = [grant for grant in Reader(assembly).grants() if grant.role.startswith("exports.Jobs")]
    assert not any(allowed([grant], "secretsmanager:GetSecretValue", SECRET_ARN) for grant in jobs)


def test_the_age_of_a_managed_table_is_watched(managed):
    alarms = {
        body["Properties"].get("MetricName")
        for template in managed.templates.values()
        for body in template["Resources"].values()
        if body["Type"] == "AWS::CloudWatch::Alarm"
    }
    assert "IcebergAgeHours" in alarms
    assert "GlueAgeHours" not in alarms


@pytest.mark.parametrize("shape", ["mixed", "managed", "borrowed"])
def test_the_cost_counts_what_the_templates_have(request, shape):
    assembly = request.getfixturevalue(shape)
    plan = assembly.plan
    for count, kind in (
        (cost.count_alarms(plan.deployment), "AWS::CloudWatch::Alarm"),
        (cost.count_secrets(plan), "AWS::SecretsManager::Secret"),
        (cost.count_keys(plan), "AWS::KMS::Key"),
    ):
        assert count == len(list(assembly.resources(kind))), kind


BORROWED = """
[deployment]
name = "lakeferry"
stage = "borrowed"
owner = "risk"
on_destroy = "delete"

[aws]
region = "eu-west-1"

[source]
catalog_uri = "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog\
/organizations/9bb441c4-edef-46ac-8a41-c49e44a3fd9a/environments/env-abc123"
cluster_id = "lkc-abc123"
tableflow_key_secret = "risk/tableflow"

[[topics]]
name = "stock_trades"

[[exports]]
contract = "daily_trades"
cron = "0 6,14 * * ? *"
zone = "America/New_York"

[alerts]
engineers = ["engineers@example.com"]
"""
BROUGHT_ARN = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:risk/tableflow-abcdef"


@pytest.fixture(scope="module")
def borrowed(tmp_path_factory):
    return synthesise(BORROWED, tmp_path_factory.mktemp("borrowed"))


def test_somebody_else_s_tables_need_one_bucket_and_no_key_of_their_own(borrowed):
    assert sorted(borrowed.templates) == ["data", "exports", "operations"]
    assert len(borrowed.resources("AWS::S3::Bucket")) == 1
    (given,) = arguments(borrowed).values()
    assert (given["--database"], given["--tableflow-secret"]) == ("lkc-abc123", "risk/tableflow")
    assert given["--catalog-uri"].endswith("/environments/env-abc123")


def test_the_key_that_was_brought_is_read_and_its_age_watched(borrowed):
    readers = {
        grant.role.partition(".")[0]
        for grant in Reader(borrowed).grants()
        if allowed([grant], "secretsmanager:GetSecretValue", BROUGHT_ARN)
    }
    assert readers == {"exports", "operations"}
    alarms = {alarm.get("MetricName") for alarm in borrowed.resources("AWS::CloudWatch::Alarm").values()}
    assert {"DeployerKeyAgeDays", "IcebergAgeHours"} <= alarms
    assert alarms & {"KeyAgeDays", "RotationOverdueDays", "TableflowStopped", "GlueAgeHours"} == set()


def test_nothing_of_glue_or_s3_of_somebody_else_is_allowed(borrowed):
    roles = ("exports.Jobs", "operations.Watch")
    own = [grant for grant in Reader(borrowed).grants() if grant.role.startswith(roles)]
    table = f"arn:aws:glue:eu-west-1:{ACCOUNT}:table/lkc-abc123/stock_trades"
    assert not any(allowed([grant], "glue:GetTable", table) for grant in own)
    assert not any(allowed([grant], "s3:GetObject", "arn:aws:s3:::/1/metadata/x") for grant in own)


def test_monitoring_reads_the_age_of_each_key_that_a_team_without_a_cluster_brings(tmp_path):
    """The tables are in Confluent's storage, and somebody else's cluster writes them."""
    before, _, rest = (ROOT / "tests" / "data" / "existing.toml").read_text().partition("[source]")
    catalog = "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog"
    organization = "0d6c9a4e-1b7f-4c57-9d3e-2f1a6b8c7d90"
    source = f"""
[source]
catalog_uri = "{catalog}/organizations/{organization}/environments/env-abc123"
cluster_id = "lkc-abc123"
tableflow_key_secret = "risk/tableflow"
schema_registry_url = "https://psrc-abc12.eu-west-1.aws.confluent.cloud"
schema_registry_key_secret = "risk/registry"

"""
    borrowed = synthesise(before + source + rest[rest.index("[[topics]]") :], tmp_path)
    assert borrowed.failure == ""
    watching = [grant for grant in Reader(borrowed).grants() if grant.role.startswith("operations.")]
    for name in ("risk/tableflow", "risk/registry"):
        secret = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:{name}-abcdef"
        assert allowed(watching, "secretsmanager:DescribeSecret", secret), name
