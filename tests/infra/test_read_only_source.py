"""Exports over tables that exist: nothing is created at a vendor, and nothing of the other team is
written.
"""

from __future__ import annotations

import itertools

import pytest

from lakeferry.plan import cost
from tests.support.policies import ACCOUNT, Reader, allowed

BUCKET = "arn:aws:s3:::acme-tableflow"
DATABASE = "lkc-abc123"
KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
#: What changes or deletes an object, a bucket, a table or a database.
WRITES = """
s3:PutObject s3:DeleteObject s3:DeleteObjectVersion s3:PutBucketPolicy s3:PutLifecycleConfiguration
s3:PutBucketTagging s3:PutEncryptionConfiguration s3:DeleteBucket s3:AbortMultipartUpload
glue:CreateTable glue:UpdateTable glue:DeleteTable
glue:BatchDeleteTable glue:UpdateDatabase glue:DeleteDatabase kms:Encrypt kms:GenerateDataKey
""".split()


def _glue(kind):
    return f"arn:aws:glue:eu-west-1:{ACCOUNT}:{kind}"


def grants_of(assembly):
    by_role = {}
    for grant in Reader(assembly).grants():
        by_role.setdefault(grant.role, []).append(grant)
    return by_role


def test_there_are_three_stacks_and_one_secret(existing):
    assert sorted(existing.templates) == ["data", "exports", "operations"]
    assert len(list(existing.resources("AWS::SecretsManager::Secret"))) == 1
    assert list(existing.resources("AWS::SecretsManager::RotationSchedule")) == []
    kinds = {body["Type"] for stack in existing.templates.values() for body in stack["Resources"].values()}
    assert {kind for kind in kinds if kind.startswith("Custom::Lakeferry")} == {"Custom::LakeferryCleanup"}


def test_only_the_lake_bucket_is_created(existing):
    ((_, logical_id),) = existing.resources("AWS::S3::Bucket")
    assert logical_id.startswith("LakeBucket")


@pytest.mark.parametrize("action", WRITES)
def test_no_role_may_change_what_the_other_team_has(existing, action):
    resources = (
        *(BUCKET, f"{BUCKET}/10/1/org/env/lkc/v1/uuid/data/1.parquet", KEY),
        *(_glue(f"database/{DATABASE}"), _glue(f"table/{DATABASE}/sales_orders")),
    )
    found = [
        (role, resource)
        for (role, grants), resource in itertools.product(grants_of(existing).items(), resources)
        if allowed(grants, action, resource)
    ]
    assert found == []


def test_the_job_and_monitoring_read_with_the_key_of_the_bucket(existing):
    readers = {role for role, grants in grants_of(existing).items() if allowed(grants, "kms:Decrypt", KEY)}
    assert {role.partition(".")[0] for role in readers} == {"exports", "operations"}


def test_jobs_know_the_database_and_the_partitions_that_the_file_has(existing):
    arguments = {
        logical_id: existing.templates[part]["Resources"][logical_id]["Properties"]["DefaultArguments"]
        for part, logical_id in existing.resources("AWS::Glue::Job")
    }
    by_export = {values["--export"]: values for values in arguments.values()}
    assert {values["--database"] for values in by_export.values()} == {DATABASE}
    assert by_export["daily_trades"]["--partitions"] == "6"
    assert "--partitions" not in by_export["weekly_sales"]


def test_the_cost_counts_what_the_templates_have(existing):
    plan = existing.plan
    for count, kind in (
        (cost.count_alarms(plan.deployment), "AWS::CloudWatch::Alarm"),
        (cost.count_secrets(plan), "AWS::SecretsManager::Secret"),
        (cost.count_keys(plan), "AWS::KMS::Key"),
    ):
        assert count == len(list(existing.resources(kind))), kind
    lines = [line.what for line in cost.estimate(plan).lines]
    assert not any("Kafka" in line or "Flink" in line for line in lines)
