"""No policy allows too much, and the linter finds planted policies that do."""

from __future__ import annotations

import copy

import attrs
import pytest

from tests.support import findings


def test_no_policy_allows_too_much(assembly):
    assert findings.lint(assembly) == []


def planted(assembly, part, change):
    """Return the assembly with one template changed."""
    templates = copy.deepcopy(assembly.templates)
    change(templates[part]["Resources"])
    return attrs.evolve(assembly, templates=templates)


def first(resources, kind, begins=""):
    return next(body for name, body in resources.items() if body["Type"] == kind and name.startswith(begins))[
        "Properties"
    ]


def statement(resources, role):
    return first(resources, "AWS::IAM::Role", role)["Policies"][0]["PolicyDocument"]["Statement"][-1]


DEFECTS = {
    "action s3:*": ("exports", lambda all: statement(all, "JobsRole").update(Action=["s3:*"])),
    "any resource": ("exports", lambda all: statement(all, "JobsRole").update(Resource="*")),
    "any resource (metrics)": ("operations", lambda all: statement(all, "WatchRole").pop("Condition")),
    "can pass any role": ("exports", lambda all: statement(all, "Starter").update(Action="iam:PassRole")),
    "grants more permissions": (
        "confluent",
        lambda all: statement(all, "TableflowRole").update(Action="iam:PutRolePolicy"),
    ),
    "says what is excluded": (
        "exports",
        lambda all: statement(all, "JobsRole").update(NotAction="s3:GetObject"),
    ),
    "without an external id": (
        "snowflake",
        lambda all: first(all, "AWS::IAM::Role", "SnowflakeRole")["AssumeRolePolicyDocument"]["Statement"][
            1
        ].pop("Condition"),
    ),
    "for any account": (
        "exports",
        lambda all: first(all, "AWS::IAM::Role", "JobsRole")["AssumeRolePolicyDocument"]["Statement"][0][
            "Condition"
        ].pop("StringEquals"),
    ),
    "for any caller": ("confluent", lambda all: first(all, "AWS::Lambda::Permission").pop("SourceArn")),
    "for any account (rotation)": (
        "confluent",
        lambda all: first(all, "AWS::Lambda::Permission").pop("SourceAccount"),
    ),
    "everybody": (
        "data",
        lambda all: first(all, "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"][0].update(
            Effect="Allow"
        ),
    ),
    "a policy that somebody else may change": (
        "exports",
        lambda all: first(all, "AWS::IAM::Role").update(
            ManagedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"]
        ),
    ),
    "a key for any service": (
        "confluent",
        lambda all: next(
            item
            for item in first(all, "AWS::IAM::Role", "ConfluentProviderFunctionRole")["Policies"][0][
                "PolicyDocument"
            ]["Statement"]
            if item.get("Sid") == "UseKeyOfSecrets"
        ).pop("Condition"),
    ),
}


@pytest.mark.parametrize("expected_message", DEFECTS)
def test_the_linter_finds(expected_message, dev):
    part, change = DEFECTS[expected_message]
    assert any(
        expected_message.partition(" (")[0] in item for item in findings.lint(planted(dev, part, change))
    )
