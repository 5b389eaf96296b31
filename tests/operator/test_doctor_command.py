"""`lakeferry doctor` before a deployment: wrong keys, missing permissions, unavailable bucket names, quotas
and regions.
"""

from __future__ import annotations

import json
import urllib.request
from contextlib import contextmanager

import attrs
import boto3
import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.deployment import context
from lakeferry.health import (
    aws,
    confluent,
    confluent_to_aws,
    doctor,
    runner,
    snowflake,
    snowflake_to_aws,
    storage,
)
from lakeferry.health.model import Result
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.snowflake import keypair, sql
from tests.support.leftovers import QUEUE
from tests.support.promises import promised
from tests.support.stand_ins import Stacks


def of(checks):
    """Return (result, message, fix) of each check by its name."""
    return {
        check.name: (check.result, f"{check.message} {check.needed}".strip(), check.fix) for check in checks
    }


def with_aws(ctx, **changed):
    result = attrs.evolve(ctx.deployment, aws=attrs.evolve(ctx.deployment.aws, **changed))
    return context.DeploymentContext(attrs.evolve(ctx.loaded, deployment=result), ctx.addresses, ctx.clock)


def with_confluent(ctx, **changed):
    result = attrs.evolve(ctx.deployment, confluent=attrs.evolve(ctx.deployment.confluent, **changed))
    return context.DeploymentContext(attrs.evolve(ctx.loaded, deployment=result), ctx.addresses, ctx.clock)


def with_snowflake(ctx, **changed):
    result = attrs.evolve(ctx.deployment, snowflake=attrs.evolve(ctx.deployment.snowflake, **changed))
    return context.DeploymentContext(attrs.evolve(ctx.loaded, deployment=result), ctx.addresses, ctx.clock)


def test_before_a_deployment_only_the_bootstrap_is_missing(ctx):
    checks = runner.run(doctor.list_probes(ctx))
    assert [check.name for check in checks if check.result is Result.FAIL] == ["bootstrap"]
    assert {check.group for check in checks if check.result is Result.SKIPPED} == {
        "Confluent",
        "Snowflake",
        "Confluent → AWS",
        "Snowflake → AWS",
    }
    hops = [check for check in checks if "→" in check.group]
    assert {(check.result, check.message.partition(":")[0]) for check in hops} == {
        (Result.SKIPPED, "not deployed")
    }
    groups = [
        "tools",
        "file",
        "AWS",
        "storage",
        "Confluent",
        "Snowflake",
        "Confluent → AWS",
        "Snowflake → AWS",
    ]
    assert list(dict.fromkeys(check.group for check in checks)) == groups


def test_a_failed_stack_does_not_count_as_a_deployment(ctx, stacks):
    stack = stacks.make(
        "confluent", known=["lf1:environment:Environment:0"], refuses=["lf1:environment:Environment:0"]
    )
    assert stacks.delete(stack) == "DELETE_FAILED"
    hops = [check for check in runner.run(doctor.list_probes(ctx)) if check.group == "Confluent → AWS"]
    assert {check.message for check in hops} == {f"not deployed: stack {stack} is DELETE_FAILED"}


@pytest.mark.parametrize("silent", [AWS, CONFLUENT, SNOWFLAKE])
def test_a_system_that_answers_with_errors_does_not_hide_others(ctx, broken, silent):
    broken(silent, status=500, shape="json")
    checks = runner.run(doctor.list_probes(ctx))
    groups = {AWS: {"AWS", "storage"}, CONFLUENT: {"Confluent"}, SNOWFLAKE: {"Snowflake"}}
    failed = {check.group for check in checks if check.result is Result.FAIL}
    assert groups[silent] <= failed
    assert {"tools", "file"} <= {check.group for check in checks if check.result is Result.OK}
    if silent != AWS:
        assert not failed & {
            group for system in groups if system not in (silent, AWS) for group in groups[system]
        }


def test_a_missing_login_is_reported_once_and_what_needs_it_is_skipped(ctx, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    fresh = context.DeploymentContext(ctx.loaded, ctx.addresses, ctx.clock)
    checks = runner.run(doctor.list_probes(fresh))
    (failed,) = [check for check in checks if check.result is Result.FAIL]
    assert (failed.name, "nobody is logged in" in failed.message, "aws sso login" in failed.fix) == (
        "identity",
        True,
        True,
    )
    skipped = {check.name for check in checks if check.message == "not checked: nobody is logged in to AWS"}
    assert {
        "bootstrap",
        "buckets",
        confluent.KEY,
        snowflake.KEY,
        confluent_to_aws.INTEGRATION,
        snowflake_to_aws.VOLUME,
    } <= skipped
    assert {"Python", "deployment file", "region"} <= {
        check.name for check in checks if check.result is Result.OK
    }


def test_another_account_than_the_files_is_reported(ctx):
    (check,) = runner.run(
        [
            probe
            for probe in doctor.list_probes(with_aws(ctx, account="111122223333"))
            if probe.name == "identity"
        ]
    )
    assert (check.result, "111122223333" in check.message, "000000000000" in check.message) == (
        Result.FAIL,
        True,
        True,
    )
    others = {
        check.message
        for check in runner.run(doctor.list_probes(with_aws(ctx, account="111122223333")))
        if check.group == "storage"
    }
    assert others == {"not checked: logged in to another AWS account"}


def test_a_check_without_permission_is_a_warning(ctx, broken):
    broken(AWS, status=403, shape="aws-json", code="AccessDeniedException", path="/2015-03-31/*")
    broken(AWS, status=403, shape="aws-json", code="AccessDeniedException", path="/2016-08-19/*")
    (check,) = runner.run(
        [probe for probe in doctor.list_probes(ctx) if probe.name == "Lambda concurrent executions"]
    )
    assert (check.result, "AccessDenied" in check.message, "role" in check.fix) == (Result.WARN, True, True)


def test_a_region_that_the_sdk_does_not_know_is_a_warning(ctx):
    assert of(aws.check_region(ctx))["region"][0] is Result.OK
    result, found, _ = of(aws.check_region(with_aws(ctx, region="xx-nowhere-9")))["region"]
    assert (result, "glue" in found) == (Result.WARN, True)


@pytest.mark.parametrize(
    ("version", "result"), [("5", Result.FAIL), ("", Result.FAIL), ("6", Result.OK), ("30", Result.OK)]
)
def test_the_bootstraps_version_is_compared(ctx, version, result):
    with bootstrapped(version):
        found = of(aws.check_bootstrap(ctx))["bootstrap"]
    assert found[0] is result
    assert (f"bootstrap aws://000000000000/{ctx.region}" in found[2]) == (result is Result.FAIL)


def test_the_bootstrap_is_that_of_the_files_qualifier(ctx):
    own = with_aws(ctx, bootstrap_qualifier="teamdata1")
    with bootstrapped("30"):
        result, message, fix = of(aws.check_bootstrap(own))["bootstrap"]
        assert (result, "teamdata1" in message) == (Result.FAIL, True)
        assert "bootstrap --qualifier teamdata1 --toolkit-stack-name CDKToolkit-teamdata1 aws://" in fix
    ssm = boto3.client("ssm")
    ssm.put_parameter(Name="/cdk-bootstrap/teamdata1/version", Value="30", Type="String")
    assert of(aws.check_bootstrap(own))["bootstrap"][0] is Result.OK
    result, _, fix = of(aws.check_bootstrap(ctx))["bootstrap"]
    assert (result, "aws.bootstrap_qualifier" in fix) == (Result.FAIL, True)
    ssm.delete_parameter(Name="/cdk-bootstrap/teamdata1/version")


def test_lake_formation_that_governs_new_tables_is_said(ctx, stand_ins):
    assert of(aws.check_lake_formation(ctx))[aws.LAKE_FORMATION][0] is Result.OK
    govern(stand_ins, governs=True)
    result, message, fix = of(aws.check_lake_formation(ctx))[aws.LAKE_FORMATION]
    govern(stand_ins)
    assert result is Result.WARN
    assert "databases and tables" in message
    assert "`aws.lake_formation = true`" in fix


def govern(stand_ins, **given):
    sent = urllib.request.Request(
        f"{stand_ins.aws.url}/_simulator/lake-formation", json.dumps(given).encode(), method="POST"
    )
    urllib.request.urlopen(sent).close()


def test_a_bucket_that_was_given_a_kms_key_is_said(ctx):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="rekeyed", CreateBucketConfiguration={"LocationConstraint": ctx.region})
    assert storage.check_bucket(ctx, confluent_to_aws.GROUP, "rekeyed").result is Result.OK
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:eu-west-1:1:key/k"}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": default}]}
    s3.put_bucket_encryption(Bucket="rekeyed", ServerSideEncryptionConfiguration=rules)
    check = storage.check_bucket(ctx, confluent_to_aws.GROUP, "rekeyed")
    s3.delete_bucket(Bucket="rekeyed")
    assert (check.result, "key/k" in check.message) == (Result.FAIL, True)


def test_an_existing_environment_needs_stream_governance(ctx):
    vendor = ctx.confluent()
    made = vendor.cloud.post("/org/v2/environments", {"display_name": "shared"})
    given = with_confluent(ctx, environment_id=made["id"], environment_name="shared")
    check = confluent.check_environment(given, vendor)
    assert (check.result, "no Stream Governance" in check.message) == (Result.FAIL, True)
    vendor.cloud.patch(
        f"/org/v2/environments/{made['id']}", {"stream_governance_config": {"package": "ESSENTIALS"}}
    )
    assert confluent.check_environment(given, vendor).result is Result.OK
    vendor.cloud.delete(f"/org/v2/environments/{made['id']}")


def test_the_quotas_of_an_organization_are_seen_by_its_admin(ctx):
    check = confluent.check_quotas(ctx, ctx.confluent())
    assert (check.result, "none of 2" in check.message, check.is_seen) == (Result.OK, True, True)


@contextmanager
def bootstrapped(version):
    ssm = boto3.client("ssm")
    if version:
        ssm.put_parameter(Name=aws.BOOTSTRAP_PARAMETER, Value=version, Type="String", Overwrite=True)
    yield
    if version:
        ssm.delete_parameter(Name=aws.BOOTSTRAP_PARAMETER)


def glue(**values):
    return json.dumps({"Quotas": [{"QuotaName": name, "Value": value} for name, value in values.items()]})


@pytest.mark.parametrize(
    ("runs", "dpus", "results"),
    [
        (50, 300, [Result.OK, Result.OK]),
        (0, 1, [Result.FAIL, Result.FAIL]),
    ],
)
def test_glue_quotas_are_compared_with_the_needs_of_the_exports(ctx, broken, runs, dpus, results):
    named = {"Max concurrent job runs per account": runs, "Max task DPUs per account": dpus}
    broken(AWS, status=200, headers={"x-amz-target": "ServiceQuotas*"}, body=glue(**named))
    checks = aws.check_glue_quotas(ctx)
    assert [check.result for check in checks] == results
    assert all(f"{value}" in check.message for check, value in zip(checks, named.values(), strict=True))


def test_quotas_that_are_enough_for_one_export_but_not_for_all_are_a_warning(ctx, broken):
    exports = ctx.deployment.exports * 3
    many = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, exports=exports))
    broken(AWS, status=200, headers={"x-amz-target": "ServiceQuotas*"}, body=glue(**{
        "Max concurrent job runs per account": 2, "Max task DPUs per account": 5,
    }))  # fmt: skip
    checks = aws.check_glue_quotas(context.DeploymentContext(many, ctx.addresses, ctx.clock))
    assert [(check.result, check.needed.split()[0]) for check in checks] == [
        (Result.WARN, "3"),
        (Result.WARN, "6"),
    ]


def test_the_quotas_of_a_new_account_are_enough(ctx):
    checks = aws.check_glue_quotas(ctx)
    assert [check.message.split(",")[0] for check in checks] == ["50", "300"]
    assert {check.result for check in checks} == {Result.OK}


def test_unknown_quotas_are_a_warning(ctx, broken):
    denied = json.dumps({"__type": "AccessDeniedException", "Message": "not authorized"})
    broken(AWS, status=400, headers={"x-amz-target": "ServiceQuotas*"}, body=denied)
    checks = aws.check_glue_quotas(ctx)
    assert {check.result for check in checks} == {Result.WARN}
    assert all("AccessDenied" in check.message for check in checks)
    broken(AWS, status=200, headers={"x-amz-target": "ServiceQuotas*"}, body=glue())
    assert ["doesn't list" in check.message for check in aws.check_glue_quotas(ctx)] == [True, True]


def test_a_deployment_needs_more_concurrent_executions_than_a_new_account_has(ctx, broken):
    assert aws.check_lambda_quota(ctx)[0].result is Result.OK
    broken(
        AWS,
        status=200,
        path="/2016-08-19/account-settings",
        body=json.dumps({"AccountLimit": {"ConcurrentExecutions": 10}}),
    )
    (check,) = aws.check_lambda_quota(ctx)
    assert (check.result, check.message.startswith("10,")) == (Result.FAIL, True)


def bucket(ctx, name):
    boto3.client("s3").create_bucket(
        Bucket=name, CreateBucketConfiguration={"LocationConstraint": ctx.region}
    )
    return name


def test_buckets_that_the_file_names_must_be_free(ctx, broken):
    name = f"{ctx.deployment.prefix}-chosen"
    chosen = with_aws(ctx, tableflow_bucket=name)
    assert of(storage.check_chosen_buckets(ctx))["Tableflow's bucket"][1] == "CloudFormation chooses its name"
    assert of(storage.check_chosen_buckets(chosen))["Tableflow's bucket"][:2] == (
        Result.OK,
        f"{name} is free",
    )
    bucket(ctx, name)
    result, found, fix = of(storage.check_chosen_buckets(chosen))["Tableflow's bucket"]
    assert (result, "empty" in found, "delete-bucket" in fix, "aws.tableflow_bucket" in fix) == (
        Result.FAIL,
        True,
        True,
        True,
    )
    boto3.client("s3").put_object(Bucket=name, Key="old/file", Body=b"x")
    result, found, fix = of(storage.check_chosen_buckets(chosen))["Tableflow's bucket"]
    assert (result, "with objects in it" in found, "delete-bucket" in fix) == (Result.FAIL, True, False)
    broken(AWS, method="HEAD", path=f"/{name}", status=403)
    assert "another account" in of(storage.check_chosen_buckets(chosen))["Tableflow's bucket"][1]


@pytest.mark.parametrize(
    ("region", "constraint"), [("eu-west-1", "LocationConstraint=eu-west-1"), ("us-east-1", "")]
)
def test_a_lost_bucket_can_be_created_with_the_command_that_is_shown(ctx, broken, region, constraint):
    """S3 refuses us-east-1 as a constraint: it is where a bucket without one is (API reference,
    CreateBucket).
    """
    broken(AWS, method="HEAD", path="/lost", status=404)
    command = storage.check_bucket(with_aws(ctx, region=region), confluent_to_aws.GROUP, "lost").fix.split(
        "`"
    )[1]
    wanted = f"aws s3api create-bucket --bucket lost --region {region}"
    assert command == wanted + (f" --create-bucket-configuration {constraint}" if constraint else "")


def test_a_bucket_of_the_deployments_own_stack_passes(ctx, stacks):
    name = f"{ctx.deployment.prefix}-own"
    stacks.make("data", {"TableflowBucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}}})
    found = of(storage.check_chosen_buckets(with_aws(ctx, tableflow_bucket=name)))["Tableflow's bucket"]
    assert found[:2] == (Result.OK, f"{name}, the deployment's own")


@pytest.fixture
def organization(stand_ins, ctx):
    return Organization(stand_ins, ctx)


class Organization:
    """Creates API keys of all kinds, and stores them as the deployment's Cloud key."""

    def __init__(self, stand_ins, ctx):
        self.stand_ins = stand_ins
        self.ctx = ctx
        self.vendor = ctx.confluent()

    def account(self, role=""):
        cloud = self.vendor.cloud
        made = cloud.post(
            "/iam/v2/service-accounts", {"display_name": f"{self.ctx.deployment.prefix}-{role}"}
        )["id"]
        if role:
            whole = f"crn://confluent.cloud/organization={self.vendor.organization_id}"
            cloud.post(
                "/iam/v2/role-bindings",
                {"principal": f"User:{made}", "role_name": role, "crn_pattern": whole},
            )
        return made

    def key(self, owner, **resource):
        wanted = {"owner": {"id": owner}, **({"resource": resource} if resource else {})}
        made = self.vendor.cloud.post("/iam/v2/api-keys", {"spec": wanted})
        self.stand_ins.pass_time(3600)
        return ApiKey(made["id"], Secret(made["spec"]["secret"]))

    def store(self, key):
        fields = {"apiKey": key.id, "apiSecret": key.secret.reveal()}
        name = self.ctx.deployment.confluent.cloud_key_secret
        boto3.client("secretsmanager").put_secret_value(SecretId=name, SecretString=json.dumps(fields))


def test_a_key_of_an_organization_admin_passes(ctx, organization):
    organization.store(organization.key(organization.account("OrganizationAdmin")))
    checks = of(confluent.look(ctx))
    assert checks[confluent.KEY][0] is checks[confluent.SCOPE][0] is Result.OK
    assert "OrganizationAdmin" in checks[confluent.SCOPE][1]


def test_a_key_of_a_person_is_a_warning(ctx):
    result, found, fix = of(confluent.look(ctx))[confluent.SCOPE]
    assert (result, "is a person" in found, "service account" in fix) == (Result.WARN, True, True)


def test_a_key_without_permissions_is_reported_with_what_it_lacks(ctx, organization):
    organization.store(organization.key(organization.account("MetricsViewer")))
    checks = of(confluent.look(ctx))
    assert checks[confluent.KEY][0] is Result.OK
    result, found, fix = checks[confluent.SCOPE]
    assert (result, "lacks permissions" in found, "OrganizationAdmin" in fix) == (Result.FAIL, True, True)
    assert checks[confluent.FLINK][:2] == (Result.SKIPPED, "not checked: the key lacks permissions")


def test_a_tableflow_key_stored_as_the_cloud_key_is_reported(ctx, organization):
    organization.store(
        organization.key(organization.account("OrganizationAdmin"), id="tableflow", kind="Tableflow")
    )
    result, found, fix = of(confluent.look(ctx))[confluent.KEY]
    assert (result, "for Tableflow, not a Cloud key" in found) == (Result.FAIL, True)
    assert f"lakeferry secrets set confluent --stage {ctx.stage}" in fix


def test_a_wrong_secret_is_reported_and_not_shown(ctx, organization):
    wrong = "not-the-secret-" * 4
    organization.store(ApiKey(ctx.confluent().cloud.key.id, Secret(wrong)))
    checks = confluent.look(ctx)
    assert checks[0].result is Result.FAIL
    assert wrong not in str(checks)


def test_a_missing_key_is_reported_with_the_command_that_sets_it(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    for group, vendor in ((confluent, "confluent"), (snowflake, "snowflake")):
        first, *rest = group.look(ctx)
        assert (first.result, first.fix) == (
            Result.FAIL,
            f"Run `lakeferry secrets set {vendor} --stage test`",
        )
        assert {check.result for check in rest} == {Result.SKIPPED}


GET_SECRET_VALUE = {"x-amz-target": "secretsmanager.GetSecretValue"}


@pytest.mark.parametrize(
    ("code", "result", "message", "fix"),
    [
        (
            "AccessDeniedException",
            Result.WARN,
            "can't be read: reading secret {}: AccessDeniedException",
            "role",
        ),
        ("DecryptionFailure", Result.FAIL, "AWS-REFUSED: reading secret {}: DecryptionFailure", "role"),
        (
            "ExpiredTokenException",
            Result.FAIL,
            "AWS-CREDENTIALS: AWS rejects the credentials",
            "aws sso login",
        ),
    ],
)
def test_a_key_that_may_not_be_read_is_not_reported_as_broken(ctx, broken, code, result, message, fix):
    names = {
        confluent: ctx.deployment.confluent.cloud_key_secret,
        snowflake: ctx.deployment.snowflake.key_secret,
    }
    broken(AWS, headers=GET_SECRET_VALUE, status=400, shape="aws-json", code=code)
    for group, name in names.items():
        first, *rest = group.look(ctx)
        assert (first.name, first.result) == (group.KEY, result)
        assert first.message.startswith(message.format(name))
        assert (fix in first.fix, "secrets set" in first.fix) == (True, False)
        assert {check.result for check in rest} == {Result.SKIPPED}


def test_a_network_that_breaks_before_a_key_is_read_is_reported_as_such(ctx, broken):
    broken(AWS, headers=GET_SECRET_VALUE, fault="reset")
    first, *_ = confluent.look(ctx)
    assert (first.result, first.message.partition(":")[0], "secrets set" in first.fix) == (
        Result.FAIL,
        "AWS-UNREACHABLE",
        False,
    )


def test_a_secret_without_a_valid_value_is_reported_with_the_command_that_sets_it(ctx):
    name = ctx.deployment.confluent.cloud_key_secret
    boto3.client("secretsmanager").put_secret_value(SecretId=name, SecretString="cut off")
    first, *_ = confluent.look(ctx)
    assert (first.result, "is not a JSON object" in first.message) == (Result.FAIL, True)
    assert first.fix == "Run `lakeferry secrets set confluent --stage test`"


def test_the_environment_must_exist_with_the_name_in_the_file(ctx):
    theirs = {
        "display_name": f"{ctx.deployment.prefix}-theirs",
        "stream_governance_config": {"package": "ESSENTIALS"},
    }
    made = ctx.confluent().cloud.post("/org/v2/environments", theirs)
    id = made["id"]
    name = made["display_name"]

    def found(**given):
        return of(confluent.look(with_confluent(ctx, **given)))[confluent.ENVIRONMENT]

    assert found(environment_id=id, environment_name=name)[:2] == (Result.OK, f"{id}, {name}")
    assert found()[1] == "will be created"
    Stacks(ctx).make("confluent", {"Queue": QUEUE}, outputs={"EnvironmentId": "env-own"})
    assert found()[1] == "env-own, created by this deployment"
    result, answer, fix = found(environment_id=id, environment_name="another")
    assert (result, name in answer, "another" in answer, "environment_name" in fix) == (
        Result.FAIL,
        True,
        True,
        True,
    )
    result, answer, _ = found(environment_id="env-gone", environment_name=name)
    assert (result, "env-gone" in answer, id in answer) == (Result.FAIL, True, True)


@pytest.fixture
def elsewhere(stand_ins):
    """Make Flink and Tableflow available in another region only."""
    system = stand_ins.cloud._simulation.organization
    before = system.flink_regions
    system.flink_regions = ("us-west-2",)
    yield
    system.flink_regions = before


@pytest.mark.usefixtures("elsewhere")
def test_a_region_without_flink_is_reported(ctx):
    result, found, _ = of(confluent.look(ctx))[confluent.FLINK]
    assert (result, "eu-west-1" in found) == (Result.FAIL, True)


def tableflow_key(ctx, organization):
    key = organization.key(organization.account("OrganizationAdmin"), id="tableflow", kind="Tableflow")
    fields = {"apiKey": key.id, "apiSecret": key.secret.reveal()}
    name = f"{ctx.deployment.prefix}/confluent/tableflow"
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(fields))


def test_tableflows_regions_are_checked_once_its_key_exists(ctx, organization):
    assert of(confluent.look(ctx))[confluent.TABLEFLOW][0] is Result.SKIPPED
    tableflow_key(ctx, organization)
    assert of(confluent.look(ctx))[confluent.TABLEFLOW][:2] == (Result.OK, ctx.region)


@pytest.mark.usefixtures("elsewhere")
def test_a_region_without_tableflow_is_reported(ctx, organization):
    tableflow_key(ctx, organization)
    result, found, _ = of(confluent.look(ctx))[confluent.TABLEFLOW]
    assert (result, found) == (Result.FAIL, "Tableflow isn't in eu-west-1; it is in us-west-2")


def test_a_quota_of_integrations_that_is_used_up_is_a_warning(stand_ins, ctx):
    cloud = ctx.confluent().cloud
    environment = ctx.confluent().cloud.post("/org/v2/environments", {"display_name": "full"})["id"]

    def integrate(role):
        config = {"kind": "AwsIntegrationConfig", "customer_iam_role_arn": role}
        body = {
            "display_name": role[-20:],
            "provider": "aws",
            "config": config,
            "environment": {"id": environment},
        }
        cloud.post("/pim/v1/integrations", body)

    for number in range(100):
        integrate(f"arn:aws:iam::111122223333:role/role-{number}")
    result, found, _ = of(confluent.look(ctx))[confluent.INTEGRATIONS]
    assert (result, found.startswith("100 of 100")) == (Result.WARN, True)
    gone = cloud.pages("/pim/v1/integrations", environment=environment)[0]
    cloud.delete(f"/pim/v1/integrations/{gone['id']}", environment=environment)
    integrate(f"arn:aws:iam::{ctx.account}:role/{ctx.deployment.regional_prefix}-tableflow")
    assert of(confluent.look(ctx))[confluent.INTEGRATIONS][0] is Result.OK


@contextmanager
def as_admin(stand_ins, broken, repaired=()):
    admin = stand_ins.admin()
    admin.run(sql.statement(broken))
    yield
    for item in repaired:
        admin.run(sql.statement(item))


def test_the_deployer_of_the_guide_passes(ctx):
    checks = of(snowflake.look(ctx))
    assert {result for result, _, _ in checks.values()} == {Result.OK}
    assert list(checks) == [
        snowflake.KEY,
        snowflake.LOGIN,
        snowflake.PRIVILEGES,
        snowflake.WAREHOUSE,
        snowflake.USER,
    ]


def test_without_snowflake_its_checks_are_skipped(ctx):
    checks = snowflake.look(with_snowflake(ctx, enabled=False))
    assert {check.result for check in checks} == {Result.SKIPPED}


def test_a_key_that_snowflake_no_longer_has_is_reported_with_the_statement_for_an_admin(stand_ins, ctx):
    current = keypair.make()
    before = stand_ins.admin().run(sql.statement("DESC USER LAKEFERRY"))
    held = next(row["value"] for row in before if row["property"] == "RSA_PUBLIC_KEY")
    with as_admin(
        stand_ins,
        f"ALTER USER LAKEFERRY SET RSA_PUBLIC_KEY='{current.public}'",
        [f"ALTER USER LAKEFERRY SET RSA_PUBLIC_KEY='{held}'"],
    ):
        checks = of(snowflake.look(ctx))
    result, found, fix = checks[snowflake.LOGIN]
    assert (result, "LAKEFERRY" in found) == (Result.FAIL, True)
    assert """ALTER USER "LAKEFERRY" SET RSA_PUBLIC_KEY='""" in fix
    assert checks[snowflake.PRIVILEGES][:2] == (Result.SKIPPED, "not checked: there is no login")
    assert of(snowflake.look(ctx))[snowflake.LOGIN][0] is Result.OK


@pytest.mark.parametrize(
    ("broken_by", "name", "words"),
    [
        (
            "REVOKE CREATE INTEGRATION ON ACCOUNT FROM ROLE LAKEFERRY", snowflake.PRIVILEGES,
            "GRANT CREATE INTEGRATION ON ACCOUNT TO ROLE LAKEFERRY;",
        ),
        (
            "REVOKE USAGE ON WAREHOUSE LAKEFERRY FROM ROLE LAKEFERRY", snowflake.WAREHOUSE,
            "GRANT USAGE ON WAREHOUSE LAKEFERRY TO ROLE LAKEFERRY;",
        ),
        ("DROP WAREHOUSE LAKEFERRY", snowflake.WAREHOUSE, "CREATE WAREHOUSE IF NOT EXISTS LAKEFERRY"),
        ("ALTER WAREHOUSE LAKEFERRY SET AUTO_RESUME=FALSE", snowflake.WAREHOUSE, "SET AUTO_RESUME=TRUE;"),
        ("ALTER USER LAKEFERRY SET TYPE=PERSON", snowflake.USER, "ALTER USER LAKEFERRY SET TYPE=SERVICE;"),
    ],
)  # fmt: skip
def test_missing_privileges_are_reported_with_the_statements_that_grant_them(
    stand_ins, ctx, broken_by, name, words
):
    """The privileges are complete once an admin has run the statements."""
    with as_admin(stand_ins, broken_by):
        result, _, fix = of(snowflake.look(ctx))[name]
    assert result is (Result.WARN if name == snowflake.USER else Result.FAIL)
    assert words in fix
    for line in fix.partition(": ")[2].split(";"):
        if line.strip():
            stand_ins.admin().run(sql.statement(line.strip()))
    assert of(snowflake.look(ctx))[name][0] is Result.OK


def test_inherited_privileges_count(stand_ins, ctx):
    admin = stand_ins.admin()
    for line in (
        "CREATE ROLE IF NOT EXISTS GIVER",
        "GRANT CREATE INTEGRATION ON ACCOUNT TO ROLE GIVER",
        "GRANT ROLE GIVER TO ROLE LAKEFERRY",
        "REVOKE CREATE INTEGRATION ON ACCOUNT FROM ROLE LAKEFERRY",
    ):
        admin.run(sql.statement(line))
    assert of(snowflake.look(ctx))[snowflake.PRIVILEGES][0] is Result.OK
    admin.run(sql.statement("DROP ROLE GIVER"))
    assert of(snowflake.look(ctx))[snowflake.PRIVILEGES][0] is Result.FAIL
    admin.run(sql.statement("GRANT CREATE INTEGRATION ON ACCOUNT TO ROLE LAKEFERRY"))


def call(*words):
    answer = CliRunner().invoke(app, ["doctor", *words])
    return answer.exit_code, json.loads(answer.stdout) if "--json" in words else answer.stdout


@pytest.mark.usefixtures("dev")
def test_a_failed_check_has_exit_code_3():
    code, document = call("--stage", "dev", "--json")
    assert (code, document["ok"], document["code"], document["exit_code"]) == (3, False, "DOCTOR", 3)
    assert "bootstrap" in document["message"]
    assert "bootstrap aws://" in document["hint"]
    checks = document["details"]["checks"]
    assert {"group", "name", "result", "message", "needed", "fix", "caused_by", "is_seen"} == checks[0].keys()
    assert [check["name"] for check in checks if check["result"] == "fail"] == ["bootstrap"]


@pytest.mark.usefixtures("dev")
def test_without_a_failed_check_the_command_succeeds():
    with bootstrapped("30"):
        code, document = call("--stage", "dev", "--json")
        shown_code, shown = call("--stage", "dev")
    assert (code, document["ok"], shown_code) == (0, True, 0)
    assert document.keys() == promised("doctor")
    assert "  ok   bootstrap: version 30" in shown
    assert "0 failed" in shown


def test_no_secret_is_reported(stand_ins, dev):
    held = boto3.client("secretsmanager")
    secrets = [held.get_secret_value(SecretId=name)["SecretString"] for name in (
        dev.deployment.confluent.cloud_key_secret, dev.deployment.snowflake.key_secret,
    )]  # fmt: skip
    _, document = call("--stage", "dev", "--json")
    _, shown = call("--stage", "dev")
    for secret in (json.loads(secrets[0])["apiSecret"], json.loads(secrets[1])["privateKey"]):
        assert secret not in json.dumps(document) + shown


def test_mistakes_in_the_file_are_reported_and_tools_are_checked_anyway():
    code, document = call("--stage", "nosuch", "--json")
    assert (code, document["code"]) == (3, "DOCTOR")
    checks = {check["name"]: check for check in document["details"]["checks"]}
    assert checks["deployment file"]["result"] == "fail"
    assert checks["Python"]["result"] == "ok"
