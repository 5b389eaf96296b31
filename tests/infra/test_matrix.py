"""All permissions of all roles (I3). The golden files list what is allowed; everything else is denied.

After an intended change: `UPDATE_GOLDEN=1 pytest tests/infra/test_matrix.py`, then read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest

from tests.support.policies import ACCOUNT, Grant, Reader, allowed

GOLDEN = Path(__file__).parent / "golden"
#: Actions that no role may perform, tested beside the granted ones.
TEMPTING = """
s3:DeleteBucket s3:PutBucketPolicy s3:PutBucketAcl s3:PutObjectAcl s3:PutBucketVersioning
s3:PutLifecycleConfiguration iam:PassRole iam:CreateRole iam:PutRolePolicy iam:AttachRolePolicy
iam:UpdateAssumeRolePolicy sts:AssumeRole secretsmanager:CreateSecret secretsmanager:UpdateSecret
secretsmanager:PutResourcePolicy secretsmanager:RotateSecret kms:ScheduleKeyDeletion kms:PutKeyPolicy
kms:CreateGrant kms:Encrypt lambda:UpdateFunctionCode lambda:AddPermission glue:UpdateJob glue:CreateJob
glue:StartCrawler glue:DeleteDatabase glue:UpdateDatabase dynamodb:Scan dynamodb:DeleteTable sns:Subscribe
sns:SetTopicAttributes sqs:ReceiveMessage sqs:PurgeQueue logs:CreateLogGroup logs:DeleteLogGroup
cloudformation:DeleteStack cloudformation:UpdateStack scheduler:CreateSchedule events:PutRule ec2:RunInstances
""".split()


#: A resource that only a grant of everything covers. Its line of the golden file represents all resources.
ANYTHING = "any resource at all"

#: Types whose resources are tested, with the attribute that is the ARN, or "" for Ref.
KINDS = {
    "AWS::SecretsManager::Secret": "",
    "AWS::KMS::Key": "Arn",
    "AWS::SNS::Topic": "",
    "AWS::SQS::Queue": "Arn",
    "AWS::DynamoDB::Table": "Arn",
    "AWS::Lambda::Function": "Arn",
    "AWS::Logs::LogGroup": "Arn",
}


def resources(assembly):
    """Return one resource of each kind by a readable name."""
    found = {**_objects(assembly), **_tables(assembly), **_others(assembly)}
    reader = Reader(assembly)
    for kind, attribute in KINDS.items():
        for part, logical_id in assembly.resources(kind):
            value = {"Fn::GetAtt": [logical_id, attribute]} if attribute else {"Ref": logical_id}
            found[f"{kind.split('::')[1]} {part}.{_readable(logical_id)}"] = reader.text(value, part)
    return found


def _objects(assembly):
    buckets = {
        logical_id.partition("Bucket")[0]: f"<{part}.{logical_id}.Arn>"
        for part, logical_id in assembly.resources("AWS::S3::Bucket")
    }
    tableflow = buckets["Tableflow"]
    lake = buckets["Lake"]
    return {
        "tableflow bucket": tableflow,
        "tableflow data": f"{tableflow}/10/1/org/env/lkc/v1/uuid/data/1.parquet",
        "tableflow metadata": f"{tableflow}/10/1/org/env/lkc/v1/uuid/metadata/1.json",
        "lake bucket": lake,
        "export file": f"{lake}/exports/any/data/2026-W01/run/file.csv",
        "manifest": f"{lake}/exports/any/manifests/2026-W01.json",
        "run record": f"{lake}/exports/any/runs/run.json",
        "aggregate": f"{lake}/warehouse/any/data/1.parquet",
        "query result": f"{lake}/athena/1.csv",
        "temporary file": f"{lake}/temporary/1",
        "notice": f"{lake}/notices/any/1.json",
        "another bucket": "arn:aws:s3:::another",
        "an object of another bucket": "arn:aws:s3:::another/key",
    }


def _tables(assembly):
    glue = _arn(assembly, "glue")
    aggregates = "<data.AggregateTables>"
    jobs = {
        f"job {export.contract}": f"{glue}job/{assembly.prefix}-{export.contract}"
        for export in assembly.plan.deployment.exports
    }
    return {
        "catalog": f"{glue}catalog",
        "tables' database": f"{glue}database/<confluent.KafkaCluster.id>",
        "table": f"{glue}table/<confluent.KafkaCluster.id>/any",
        "function of the tables' database": f"{glue}userDefinedFunction/<confluent.KafkaCluster.id>/any",
        "aggregates' database": f"{glue}database/{aggregates}",
        "aggregates' table": f"{glue}table/{aggregates}/any",
        "another database": f"{glue}database/another",
        "another table": f"{glue}table/another/any",
        "another job": f"{glue}job/another",
        "job of aggregates": f"{glue}job/{assembly.prefix}-aggregate-tables",
        **jobs,
    }


def _others(assembly):
    secret = _arn(assembly, "secretsmanager") + "secret:"
    return {
        "another secret": f"{secret}another-abcdef",
        "Confluent's Cloud key": f"{secret}lakeferry/confluent-cloud-key-abcdef",
        "Snowflake's deployer key": f"{secret}lakeferry/snowflake-deployer-abcdef",
        "a secret of another stage": f"{secret}{assembly.prefix}2/confluent/flink-abcdef",
        "another KMS key": _arn(assembly, "kms") + "key/another",
        "another role": f"arn:aws:iam::{ACCOUNT}:role/another",
        "another log group": _arn(assembly, "logs") + "log-group:/another:*",
        "default event bus": _arn(assembly, "events") + "event-bus/default",
        "another event bus": _arn(assembly, "events") + "event-bus/another",
        "another stack": _arn(assembly, "cloudformation") + "stack/another/1",
    }


def _arn(assembly, service):
    return f"arn:aws:{service}:{assembly.plan.deployment.aws.region}:{ACCOUNT}:"


def _readable(logical_id):
    """Return a logical id without CDK's hash."""
    return re.sub(r"[0-9A-F]{8}$", "", logical_id)


def matrix(assembly, grants):
    """Return every allowed (role, action, resource), and the number of decisions."""
    actions = sorted(
        {action for grant in Reader(assembly).grants() for action in grant.actions} | set(TEMPTING)
    )
    known = resources(assembly)
    rows = []
    decisions = 0
    for role in sorted({grant.role for grant in grants}):
        own = [grant for grant in grants if grant.role == role]
        for action in actions:
            if allowed(own, action, ANYTHING):
                rows.append(f"{_readable(role)} | {action} | *")
                continue
            for name, resource in known.items():
                decisions += 1
                if allowed(own, action, resource):
                    rows.append(f"{_readable(role)} | {action} | {name}")
    return rows, decisions


def golden(stage):
    return (GOLDEN / f"{stage}.txt").read_text().splitlines()


def test_roles_may_do_what_the_golden_file_says_and_nothing_else(assembly):
    stage = assembly.plan.deployment.identity.stage
    rows, decisions = matrix(assembly, Reader(assembly).grants())
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        (GOLDEN / f"{stage}.txt").write_text("\n".join(rows) + "\n")
    assert decisions > 20_000
    assert rows == golden(stage)


def test_an_additional_permission_is_found(dev):
    own = [grant for grant in Reader(dev).grants() if "JobsRole" in grant.role]
    crept = Grant(own[0].role, "", "Allow", ["s3:PutObject"], ["<data.TableflowBucket*/*"], {})
    assert set(matrix(dev, own)[0]) <= set(golden("dev"))
    rows, _ = matrix(dev, [*own, crept])
    assert set(rows) - set(golden("dev"))


#: Permissions that must be denied: role, action, resource.
DENIED = [
    ("TableflowRole", "s3:DeleteBucket", "tableflow bucket"),
    ("TableflowRole", "s3:PutBucketPolicy", "tableflow bucket"),
    ("TableflowRole", "s3:GetObject", "export file"),
    ("TableflowRole", "glue:CreateTable", "another table"),
    ("TableflowRole", "glue:CreateTable", "aggregates' table"),
    ("SnowflakeRole", "s3:PutObject", "tableflow data"),
    ("SnowflakeRole", "s3:DeleteObject", "tableflow data"),
    ("SnowflakeRole", "s3:GetObject", "export file"),
    ("SnowflakeRole", "kms:Encrypt", "KMS data.SecretsKey"),
    ("JobsRole", "s3:PutObject", "tableflow data"),
    ("JobsRole", "s3:DeleteObject", "tableflow data"),
    ("JobsRole", "secretsmanager:GetSecretValue", "Confluent's Cloud key"),
    ("JobsRole", "secretsmanager:GetSecretValue", "another secret"),
    ("NotifyRole", "s3:GetObject", "export file"),
    ("NotifyRole", "s3:GetObject", "tableflow data"),
    ("NotifyRole", "events:PutEvents", "another event bus"),
    ("WatchRole", "s3:GetObject", "tableflow data"),
    ("WatchRole", "secretsmanager:GetSecretValue", "Confluent's Cloud key"),
    ("ConfluentProviderFunctionRole", "secretsmanager:GetSecretValue", "Snowflake's deployer key"),
    ("ConfluentProviderFunctionRole", "secretsmanager:GetSecretValue", "a secret of another stage"),
    ("ConfluentProviderFunctionRole", "iam:UpdateAssumeRolePolicy", "another role"),
    ("ConfluentProviderFunctionRole", "cloudformation:DescribeStacks", "another stack"),
    ("SnowflakeProviderFunctionRole", "secretsmanager:GetSecretValue", "Confluent's Cloud key"),
    ("WatchRole", "kms:Decrypt", "another KMS key"),
    ("KeyRotationFunctionRole", "secretsmanager:GetSecretValue", "another secret"),
    ("Starter", "glue:StartJobRun", "another job"),
]


@pytest.mark.parametrize(("role", "action", "resource"), DENIED)
def test_denied(dev, role, action, resource):
    known = resources(dev)
    named = known.get(resource) or next(value for name, value in known.items() if name.startswith(resource))
    grants = [grant for grant in Reader(dev).grants() if grant.role.partition(".")[2].startswith(role)]
    assert grants
    assert not allowed(grants, action, named)


def test_the_job_has_the_documented_least_privileges(dev):
    """A test runs the job with the permissions of docs/reference/iam.md.

    The template gives these, and those that Glue needs.
    """
    from dev.docs import permissions

    wanted = {grant.action for grant in permissions.GRANTS} - {
        "glue:CreateDatabase",
        "secretsmanager:GetSecretValue",
    }
    given = {action for grant in Reader(dev).grants() if "JobsRole" in grant.role for action in grant.actions}
    assert given - wanted == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert wanted <= given
    assert not attrs.asdict(next(grant for grant in Reader(dev).grants() if grant.sid == "WriteFiles"))[
        "conditions"
    ]


def test_statements_of_the_documented_policy_have_different_ids():
    """IAM refuses a policy in which two have the same."""
    from dev.docs import permissions

    ids = [statement["Sid"] for statement in permissions.policy()["Statement"]]
    assert len(set(ids)) == len(ids)
