"""The packs of cdk-nag (AwsSolutions, Serverless, NIST 800-53 R5) and CDK's own rules find nothing but
planted mistakes.
"""

from __future__ import annotations

import re

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from dev import synthesis
from tests.support import assembly_kit, shipped

PAGE = assembly_kit.ROOT / "docs" / "reference" / "accepted-findings.md"
_CELL = re.compile(r"(?<=\| )[^|\n]+(?= \|)")
#: Rules whose findings depend on the deployment file, with the key that removes them.
OF_THE_FILE = {
    "NIST.800.53.R5-LambdaInsideVPC": "[network]",
    "NIST.800.53.R5-CloudWatchLogGroupEncrypted": "logs in [encryption]",
    "NIST.800.53.R5-S3DefaultEncryptionKMS": "tables and data in [encryption]",
}


@pytest.fixture(scope="module")
def regulated(tmp_path_factory):
    return assembly_kit.synthesise(shipped.load_regulated(), tmp_path_factory.mktemp("regulated"))


@pytest.fixture(scope="module")
def managed(tmp_path_factory):
    return assembly_kit.synthesise(shipped.load_managed(), tmp_path_factory.mktemp("managed"))


@pytest.mark.parametrize("kind", ["dev", "prod", "existing", "shared", "regulated", "managed"])
def test_nothing_is_found(request, kind):
    assembly = request.getfixturevalue(kind)
    assert (assembly.failure, assembly.report) == ("", [])


def planted(app):
    stack = Stack(app, "planted")
    s3.Bucket(stack, "Open")
    role = iam.Role(
        stack,
        "Wide",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={
            "all": iam.PolicyDocument(statements=[iam.PolicyStatement(actions=["s3:*"], resources=["*"])])
        },
    )
    lambda_.Function(
        stack,
        "Bare",
        code=lambda_.Code.from_inline("def run(event, context): ..."),
        handler="index.run",
        runtime=lambda_.Runtime.PYTHON_3_12,
        role=role,
    )
    logs.LogGroup(stack, "Logs")
    sqs.Queue(stack, "Queue")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return assembly_kit.synthesise(shipped.load("dev"), tmp_path_factory.mktemp("broken"), planted)


@pytest.mark.parametrize(
    "rule",
    [
        "AwsSolutions-S1",
        "AwsSolutions-S10",
        "AwsSolutions-IAM5[Action::s3:*]",
        "AwsSolutions-IAM5[Resource::*]",
        "Serverless-LambdaDefaultMemorySize",
        "Serverless-LambdaDLQ",
        "Serverless-LambdaLatestVersion",
        "Serverless-SQSRedrivePolicy",
        "NIST.800.53.R5-IAMNoInlinePolicy",
        "NIST.800.53.R5-S3BucketVersioningEnabled",
        *OF_THE_FILE,
    ],
)
def test_a_planted_mistake_ends_the_synthesis(broken, rule):
    assert broken.failure.startswith("ValidationFailed")
    assert rule in {item for item, construct in broken.report if construct.startswith("planted")}


def test_only_planted_mistakes_are_found(broken):
    assert {construct.partition("/")[0] for _, construct in broken.report} == {"planted"}


def test_a_warning_is_a_finding_too(broken):
    assert ("Serverless-LambdaTracing", "planted/Bare/Resource") in broken.report


@pytest.mark.parametrize("rule", OF_THE_FILE)
def test_what_the_file_can_change_is_accepted_only_without_its_key(dev, regulated, rule):
    assert rule in acknowledged_rules(dev)
    assert rule not in acknowledged_rules(regulated)


@pytest.mark.parametrize("kind", ["dev", "regulated"])
def test_every_acknowledgement_has_a_meaningful_reason(request, kind):
    """There are few, because nobody reads a long list: about ten for each of three packs, and one of CDK's
    own rules.
    """
    assembly = request.getfixturevalue(kind)
    reasons = {accepted.reason for accepted in synthesis.read_acknowledgements(assembly.folder)}
    assert 5 <= len(reasons) <= 31
    assert all(len(reason.split()) >= 4 for reason in reasons)


@pytest.mark.parametrize("kind", ["dev", "prod", "existing", "shared", "regulated", "managed"])
def test_the_page_of_accepted_findings_has_every_reason(request, kind):
    assembly = request.getfixturevalue(kind)
    reasons = {accepted.reason for accepted in synthesis.read_acknowledgements(assembly.folder)}
    assert reasons
    assert reasons <= set(_CELL.findall(PAGE.read_text()))


def acknowledged_rules(assembly):
    found = synthesis.read_acknowledgements(assembly.folder)
    return {accepted.rule.rpartition("::")[2] for accepted in found}
