"""`lakeferry rotate`: what it does where Secrets Manager or the rotation function doesn't answer as usual."""

from __future__ import annotations

import attrs
import boto3
import pytest

from lakeferry.credentials import rotating_secrets, rotation
from lakeferry.credentials.rotating_secrets import RotatingSecret
from lakeferry.deployment.stacks import Function
from lakeferry.errors import CommandFailed
from lakeferry.inventory import AWS
from lambdas import contract
from lambdas.rotation.versions import PENDING
from lambdas.shared.secrets import CURRENT
from simulators.core.faults import FaultClient
from tests.support.resource_environment import ManualClock

FUNCTION = Function("rotation", "/aws/lambda/rotation")


def test_a_function_whose_answer_is_lost_is_not_called_again(ctx, broken, stand_ins):
    """It may still be running, and would run twice at once."""
    secret = RotatingSecret(
        "arn:aws:secretsmanager:eu-west-1:000000000000:secret:s-abcdef", "confluent", FUNCTION
    )
    broken(AWS, path=f"/2015-03-31/functions/{FUNCTION.name}/invocations", fault="reset")
    with pytest.raises(CommandFailed) as failed:
        rotating_secrets.ask(ctx, secret, "revoke")
    (rule,) = FaultClient(stand_ins.aws.url).state()["rules"]
    assert (failed.value.code, rule["seen"]) == ("AWS-UNREACHABLE", 1)


def test_the_command_waits_for_as_long_as_the_function_may_run(ctx):
    waiting = ctx.client("lambda", rotating_secrets.UNTIL_ITS_END).meta.config
    assert (
        waiting.read_timeout
        > contract.ROTATION_TIMEOUT_SECONDS
        > ctx.client("lambda").meta.config.read_timeout
    )


def test_a_secret_that_is_gone_does_not_hide_the_others(ctx):
    gone = RotatingSecret(
        "arn:aws:secretsmanager:eu-west-1:000000000000:secret:gone-abcdef", "confluent", FUNCTION
    )
    (found,) = rotating_secrets.read_ages(ctx, [gone])
    assert (found.age_days, found.secret) == (None, "gone")
    assert "rotation" in found.trouble
    (trouble,) = rotation.list_troubles(ctx.deployment, found)
    assert trouble.startswith("its age could not be read: ")


@pytest.fixture
def secret(ctx):
    """A secret with two versions. The second is current."""
    client = boto3.client("secretsmanager")
    arn = client.create_secret(Name=f"{ctx.deployment.prefix}/confluent/kafka", SecretString="first")["ARN"]
    client.put_secret_value(SecretId=arn, SecretString="second")
    return RotatingSecret(arn, "confluent", FUNCTION)


def label(secret, stage, *, on):
    """Move a label to the version that has the label `on`."""
    client = boto3.client("secretsmanager")
    versions = {
        item: id
        for id, labels in client.describe_secret(SecretId=secret.arn)["VersionIdsToStages"].items()
        for item in labels
    }
    away = {"RemoveFromVersionId": versions[stage]} if stage in versions else {}
    client.update_secret_version_stage(
        SecretId=secret.arn, VersionStage=stage, MoveToVersionId=versions[on], **away
    )
    return versions[on]


def test_a_refused_rotation_is_reported_where_none_is_running(ctx, broken, secret):
    """After some failures AWSPENDING stays on the current version (user guide, "Rotation by Lambda
    function").
    """
    label(secret, PENDING, on=CURRENT)
    broken(
        AWS,
        headers={"x-amz-target": "secretsmanager.RotateSecret"},
        status=400,
        shape="aws-json",
        code="InvalidRequestException",
    )
    with pytest.raises(CommandFailed) as failed:
        rotation.rotate_now(ctx, secret, print)
    assert failed.value.message == f"rotating {secret.name}: InvalidRequestException"


def test_a_rotation_that_is_running_is_watched_to_its_end(ctx, broken, secret):
    version = label(secret, PENDING, on="AWSPREVIOUS")
    broken(
        AWS,
        headers={"x-amz-target": "secretsmanager.RotateSecret"},
        status=400,
        shape="aws-json",
        code="InvalidRequestException",
    )
    ending = attrs.evolve(ctx, clock=ManualClock(lambda _: label(secret, CURRENT, on=PENDING)))
    assert rotation.rotate_now(ending, secret, print).version == version
