"""The inventory finds left-overs in each system, reports or ignores foreign objects, and doesn't take silence for emptiness."""

from __future__ import annotations

import boto3
import pytest
from leftovers import LEDGER, QUEUE, SUFFIX, plant_at_vendors, plant_in_aws
from stand_ins import Planter, Stacks

from lakeferry import inventory
from lakeferry.inventory import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, Verdict
from lambdas.snowflake import sql


def named(ctx, *verdicts):
    """Return (system, kind, name) of the items with one of these verdicts."""
    return {(item.system, item.kind, item.name) for item in inventory.collect(ctx) if item.verdict in verdicts}


def row(ctx, name):
    (found,) = [item for item in inventory.collect(ctx) if item.name == name]
    return found


def test_before_a_deployment_only_secrets_of_admins_are_listed(ctx):
    items = inventory.collect(ctx)
    assert inventory.problems(items) == []
    assert {item.verdict for item in items} == {Verdict.RETAINED}
    name = ctx.deployment.identity.name
    assert {item.name for item in items if item.system == AWS} == {f"{name}/confluent-cloud-key", f"{name}/snowflake-deployer"}
    assert all(item.why for item in items)


def test_objects_of_a_stack_are_not_left_over(ctx, plant, stacks):
    stack = stacks.make("confluent", {"Queue": QUEUE, "Ledger": LEDGER}, known=["lf1:environment:Environment:0"])
    environment = plant.make("environment", "Environment")
    by_hand = plant.make("flink_compute_pool", "X", name="by-hand", environment_id=environment, region=ctx.region, max_cfu=5)
    boto3.client("secretsmanager").create_secret(Name=f"{ctx.deployment.prefix}/confluent/flink", SecretString="{}")
    items = [item for item in inventory.collect(ctx) if item.kind != "secret"]
    belongs = {item.kind: item.owner for item in items if item.verdict is Verdict.MANAGED}
    kinds = "stack queue dynamodb_table role function log_group environment flink_compute_pool"
    assert belongs.keys() == set(kinds.split())
    assert set(belongs.values()) == {stack}
    found = {item.id: item.why for item in items}
    assert environment in found
    assert "created manually" in found[by_hand]


def test_objects_of_a_stack_that_could_not_be_deleted_are_left_over(ctx, plant, stacks):
    stack = stacks.make(
        "confluent", {"Queue": QUEUE}, known=["lf1:environment:Environment:0"], refuses=["lf1:environment:Environment:0"]
    )
    environment = plant.make("environment", "Environment")
    assert stacks.delete(stack) == "DELETE_FAILED"
    found = {item.id: item for item in inventory.collect(ctx)}
    assert (found[environment].owner, found[environment].verdict) == (stack, Verdict.ORPHANED)
    assert "DELETE_FAILED" in found[environment].why
    assert row(ctx, stack).verdict is Verdict.ORPHANED


def test_left_overs_in_aws_are_found(ctx):
    planted = plant_in_aws(ctx)
    assert {(kind, name) for system, kind, name in named(ctx, Verdict.ORPHANED) if system == AWS} == planted
    assert {item.owner for item in inventory.problems(inventory.collect(ctx))} == {ORPHAN}


def test_left_overs_at_the_vendors_are_found(ctx, plant):
    planted = plant_at_vendors(plant)
    left = [item for item in inventory.collect(ctx) if item.verdict is Verdict.ORPHANED]
    found = {(item.system, item.kind, item.id if item.system == CONFLUENT else item.name) for item in left}
    assert found == planted


def test_objects_of_another_deployment_are_not_listed(stand_ins, ctx):
    other = stand_ins.deployment(name=f"{ctx.deployment.identity.name}-two")
    plant_in_aws(other)
    plant_at_vendors(Planter(other))
    Stacks(other).make("confluent", {"Queue": QUEUE})
    assert inventory.problems(inventory.collect(ctx)) == []
    assert named(ctx, Verdict.MANAGED) == set()
    assert len(named(other, Verdict.ORPHANED)) > 15


def test_an_object_that_resembles_ours_is_reported_and_not_counted(ctx, stand_ins):
    prefix = ctx.deployment.prefix
    boto3.client("athena").create_work_group(Name=prefix, Description="the analysts' own")
    s3 = boto3.client("s3")
    for bucket in (
        f"{prefix}-data-backup",
        f"{prefix}-data-lakebucket-of-somebody-else",
        f"{prefix}2-data-lakebucket-1a2b3c4d5e6f7",
    ):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": ctx.region})
    boto3.client("sqs").create_queue(QueueName=f"{prefix}-exports-by-hand")
    boto3.client("sqs").create_queue(QueueName=f"own-{prefix}", tags={"project": ctx.deployment.identity.name, "stage": "test"})
    stand_ins.admin().run(sql.statement(f"CREATE WAREHOUSE {prefix.upper().replace('-', '_')}_EU_WEST_1_WAREHOUSE_12345678"))
    assert inventory.problems(inventory.collect(ctx)) == []
    kept = {name for _, _, name in named(ctx, Verdict.RETAINED)}
    assert {prefix, f"own-{prefix}"} <= kept
    assert not {name for name in kept if "backup" in name or "by-hand" in name or "somebody-else" in name}


def of_stack(name, stage):
    return [{"Key": "project", "Value": name}, {"Key": "stage", "Value": stage}]


@pytest.mark.parametrize("kind", ["queue", "topic", "event_rule", "log_group", "dynamodb_table", "schedule"])
def test_tags_of_another_deployment_outweigh_a_name_of_ours(ctx, kind):
    name, tags = f"{ctx.deployment.prefix}-exports-Thing0A1B2C3D-{SUFFIX}", of_stack("another", "prod")
    if kind == "queue":
        boto3.client("sqs").create_queue(QueueName=name, tags={one["Key"]: one["Value"] for one in tags})
    elif kind == "topic":
        boto3.client("sns").create_topic(Name=name, Tags=tags)
    elif kind == "event_rule":
        boto3.client("events").put_rule(Name=name, EventPattern='{"source": ["aws.glue"]}', Tags=tags)
    elif kind == "log_group":
        boto3.client("logs").create_log_group(logGroupName=name, tags={one["Key"]: one["Value"] for one in tags})
    elif kind == "dynamodb_table":
        boto3.client("dynamodb").create_table(TableName=name, **LEDGER["Properties"], Tags=tags)
    else:
        boto3.client("scheduler").create_schedule_group(Name=f"{ctx.deployment.prefix}-another", Tags=tags)
        boto3.client("scheduler").create_schedule(
            Name=name,
            GroupName=f"{ctx.deployment.prefix}-another",
            ScheduleExpression="rate(1 day)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": "arn:aws:sqs:eu-west-1:000000000000:q", "RoleArn": "arn:aws:iam::000000000000:role/r"},
        )
    assert name not in {item.name for item in inventory.collect(ctx)}


def test_a_truncated_name_is_ours_only_by_its_tags(stand_ins):
    """`lake-dev` has a stack `lake-dev-data`; the deployment `lake-dev`, stage `data`, has `lake-dev-data-confluent`."""
    ctx = stand_ins.deployment()
    cut = f"{ctx.deployment.prefix}-data-confluent-" + "A" * 64
    theirs, ours, untagged = (cut[: 80 - 1] + letter for letter in "123")
    name = ctx.deployment.identity.name
    boto3.client("sqs").create_queue(QueueName=theirs, tags={"project": f"{name}-test", "stage": "data"})
    boto3.client("sqs").create_queue(QueueName=ours, tags={"project": name, "stage": "test"})
    boto3.client("sqs").create_queue(QueueName=untagged)
    found = {item.name: item.verdict for item in inventory.collect(ctx) if item.kind == "queue"}
    assert found == {ours: Verdict.ORPHANED, untagged: Verdict.RETAINED}


def test_an_object_of_another_aws_account_is_reported_and_not_counted(ctx, plant):
    """Deployments in two accounts can have the same name in one organization. Their objects differ by the mark."""
    ours = plant.name("environment", "Environment")
    others = f"{ours[:-8]}{'0' * 8}"
    plant.make("environment", "Environment", name=others)
    found = row(ctx, others)
    assert (found.verdict, found.owner) == (Verdict.RETAINED, "-")


def test_a_rotated_key_belongs_to_its_account(ctx, plant, stacks):
    stacks.make("confluent", {}, known=["lf1:service_account:AppManagerAccount:0"])
    account = plant.make("service_account", "AppManagerAccount")
    cloud = ctx.confluent().cloud
    body = {"display_name": f"{plant.name('api_key', 'Key', service_account_id=account, service='cloud', secret='x')}/token"}
    cloud.post("/iam/v2/api-keys", {"spec": {**body, "owner": {"id": account, "kind": "ServiceAccount"}}})
    assert [item.verdict for item in inventory.collect(ctx) if item.parents == (account,)] == [Verdict.MANAGED]


def test_data_that_the_file_keeps_is_not_left_over(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    plant_in_aws(ctx)
    kept = {kind for system, kind, _ in named(ctx, Verdict.RETAINED) if system == AWS}
    assert {"bucket", "glue_database", "glue_table"} <= kept
    assert not {"bucket", "glue_database", "glue_table"} & {kind for _, kind, _ in named(ctx, Verdict.ORPHANED)}
    bucket = next(item for item in inventory.collect(ctx) if item.kind == "bucket")
    assert 'on_destroy = "keep"' in bucket.why


def test_a_vendor_without_a_key_does_not_count_as_empty(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    silent = {item.system: item.why for item in inventory.collect(ctx) if item.verdict is Verdict.UNKNOWN}
    assert silent.keys() == {CONFLUENT, SNOWFLAKE}
    assert all("AWS-SECRET-MISSING" in why for why in silent.values())
    assert inventory.problems(inventory.collect(ctx))


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        (CONFLUENT, {"status": 401, "shape": "json", "code": "401"}),
        (CONFLUENT, {"status": 503, "shape": "html", "code": "out"}),
        (SNOWFLAKE, {"status": 503, "shape": "html", "code": "out"}),
        (CONFLUENT, {"path": "/iam/v2/service-accounts", "status": 403, "shape": "json", "code": "403"}),
    ],
)
def test_a_vendor_that_does_not_answer_does_not_count_as_empty(ctx, plant, broken, system, rule):
    plant.make("environment", "Environment")
    plant.make("snowflake_warehouse", "Warehouse")
    broken(system, **rule)
    items = inventory.collect(ctx)
    assert [item.system for item in items if item.verdict is Verdict.UNKNOWN] == [system]
    other = {CONFLUENT: SNOWFLAKE, SNOWFLAKE: CONFLUENT}[system]
    assert other in {item.system for item in items if item.verdict is Verdict.ORPHANED}


def test_a_kind_that_may_not_be_listed_is_reported_and_the_others_are_listed(ctx, broken):
    planted = plant_in_aws(ctx)
    target = {"x-amz-target": "AmazonSQS.ListQueues"}
    broken(AWS, headers=target, status=400, shape="aws-json", code="AccessDeniedException")
    items = inventory.collect(ctx)
    assert [(item.kind, item.why) for item in items if item.verdict is Verdict.UNKNOWN] == [
        ("queue", "can't be listed: AccessDeniedException")
    ]
    assert len([item for item in items if item.verdict is Verdict.ORPHANED]) == len(planted) - 1


def test_in_a_shared_environment_only_our_objects_are_listed(stand_ins):
    own = stand_ins.deployment()
    theirs = Planter(own).make("environment", "Environment", name="the-platform-teams")
    foreign = Planter(own).make("kafka_cluster", "X", name="theirs", environment_id=theirs, region=own.region)
    given = f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"'
    ctx = stand_ins.deployment(confluent=given)
    cluster = Planter(ctx).make("kafka_cluster", "KafkaCluster", environment_id=theirs, region=ctx.region)
    left = [item.id for item in inventory.collect(ctx) if item.system == CONFLUENT and item.verdict is Verdict.ORPHANED]
    assert left == [cluster]
    assert foreign not in [item.id for item in inventory.collect(ctx)]
    assert next(item for item in inventory.collect(ctx) if item.id == theirs).verdict is Verdict.RETAINED
