"""The context of a command: the deployment file, addresses, logins and secrets, and the errors when one is
missing.
"""

from __future__ import annotations

import attrs
import boto3
import pytest

from lakeferry.deployment import context
from lakeferry.deployment.context import Addresses
from lakeferry.errors import FAILED, NOT_SET_UP, WRONG_INPUT, CommandFailed
from lakeferry.inventory import AWS, CONFLUENT
from lambdas.shared.errors import LakeferryError


def refusal(call):
    with pytest.raises(CommandFailed) as refused:
        call()
    return refused.value


def test_a_stage_without_a_file_is_reported():
    with pytest.raises(CommandFailed) as refused, context.open_context("nosuch"):
        pass
    assert (refused.value.exit_code, refused.value.code) == (WRONG_INPUT, "DEPLOYMENT-FILE")


def test_addresses_from_the_environment_are_passed_to_cdk(monkeypatch):
    monkeypatch.setenv("LAKEFERRY_CONFLUENT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("LAKEFERRY_FUNCTIONS", "local")
    with context.open_context("dev") as ctx:
        assert ctx.addresses == Addresses("http://127.0.0.1:1", "", "", "local")
        assert ctx.context() == {"stage": "dev", "confluent_url": "http://127.0.0.1:1", "functions": "local"}


def test_without_addresses_cdk_gets_the_stage_only():
    with context.open_context("dev") as ctx:
        assert ctx.context() == {"stage": "dev"}
        assert Addresses.read({"LAKEFERRY_FUNCTIONS": "there"}).context() == {}


def test_a_missing_login_is_reported_with_what_to_do(ctx, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    refused = refusal(lambda: ctx.account)
    assert (refused.exit_code, refused.code) == (NOT_SET_UP, "AWS-CREDENTIALS")
    assert "aws sso login" in refused.hint


def test_another_account_than_the_files_is_refused(ctx):
    aws = attrs.evolve(ctx.deployment.aws, account="111122223333")
    other = attrs.evolve(
        ctx, loaded=attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, aws=aws))
    )
    refused = refusal(lambda: other.account)
    assert (refused.exit_code, refused.code) == (WRONG_INPUT, "AWS-ACCOUNT")
    assert "111122223333" in refused.message
    assert "000000000000" in refused.message
    assert refusal(other.confluent).code == "AWS-ACCOUNT"


@pytest.mark.parametrize(
    ("code", "exit_code", "ours"),
    [("ExpiredToken", NOT_SET_UP, "AWS-CREDENTIALS"), ("AccessDenied", FAILED, "AWS-REFUSED")],
)
def test_an_aws_that_refuses_is_reported_with_its_code(ctx, broken, code, exit_code, ours):
    broken(AWS, status=403, body=f"<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>")
    refused = refusal(lambda: ctx.account)
    assert (refused.exit_code, refused.code) == (exit_code, ours)
    assert code in refused.message


def test_an_unreachable_aws_is_reported(ctx, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused = refusal(lambda: ctx.account)
    assert (refused.exit_code, refused.code) == (FAILED, "AWS-UNREACHABLE")
    assert "http://127.0.0.1:9, which AWS_ENDPOINT_URL names, does not answer" in refused.message
    assert "unset AWS_ENDPOINT_URL" in refused.hint


def test_a_secret_that_is_missing_is_reported_with_the_command_that_sets_it(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    for vendor, make in (("confluent", ctx.confluent), ("snowflake", ctx.snowflake)):
        refused = refusal(make)
        assert (refused.exit_code, refused.code) == (NOT_SET_UP, "AWS-SECRET-MISSING")
        assert refused.hint == f"Run `lakeferry secrets set {vendor} --stage test`"


def test_a_malformed_secret_is_reported(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    boto3.client("secretsmanager").create_secret(
        Name=ctx.deployment.confluent.cloud_key_secret, SecretString='{"key": "x"}'
    )
    assert refusal(ctx.confluent).code == "AWS-SECRET-SHAPE"


def test_the_vendors_accept_the_keys_of_the_file(ctx):
    assert ctx.confluent().organization_id
    assert ctx.snowflake().login.user == "LAKEFERRY"


def test_a_deployment_without_snowflake_has_no_client_of_it(ctx):
    without = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, snowflake=None))
    refused = refusal(attrs.evolve(ctx, loaded=without).snowflake)
    assert (refused.exit_code, refused.code) == (WRONG_INPUT, "NO-SNOWFLAKE")


def test_a_refused_call_does_not_count_as_a_missing_secret(ctx, broken):
    broken(CONFLUENT, status=401, shape="json", code="401")
    with pytest.raises(LakeferryError):
        ctx.confluent().cloud.get("/org/v2/organizations")
