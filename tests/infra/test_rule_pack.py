"""cdk-nag's AwsSolutions and CDK's own rules find nothing but planted mistakes."""

from __future__ import annotations

import json

import pytest
from aws_cdk import Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from tests.support import assembly_kit, shipped


def test_nothing_is_found(assembly):
    assert (assembly.failure, assembly.report) == ("", [])


def planted(app):
    stack = Stack(app, "planted")
    s3.Bucket(stack, "Open")
    iam.Role(
        stack,
        "Wide",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={
            "all": iam.PolicyDocument(statements=[iam.PolicyStatement(actions=["s3:*"], resources=["*"])])
        },
    )


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
    ],
)
def test_a_planted_mistake_ends_the_synthesis(broken, rule):
    assert broken.failure.startswith("ValidationFailed")
    assert rule in {item for item, construct in broken.report if construct.startswith("planted")}


def test_only_planted_mistakes_are_found(broken):
    assert {construct.partition("/")[0] for _, construct in broken.report} == {"planted"}


def test_every_acknowledgement_has_a_meaningful_reason(dev):
    """There are few: nobody reads a long list."""
    reasons = {reason for result in acknowledgements(dev) for reason in result.values()}
    assert 5 <= len(reasons) <= 20
    assert all(len(reason.split()) >= 4 for reason in reasons)


def acknowledgements(assembly):
    """Return the acknowledged findings, as CDK notes them in the constructs' metadata."""
    for file in assembly.folder.glob("*.metadata.json"):
        for entries in json.loads(file.read_text()).values():
            for entry in entries:
                if entry["type"] == Validations.ACKNOWLEDGED_RULES_METADATA_KEY:
                    yield entry["data"] if isinstance(entry["data"], dict) else {}
