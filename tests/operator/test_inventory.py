"""The inventory finds left-overs in each system, reports or ignores foreign objects, and doesn't take silence
for emptiness.
"""

from __future__ import annotations

import json

import attrs
import boto3
import pytest
import requests

from lakeferry import inventory
from lakeferry.inventory import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, Verdict, aws_listing
from lambdas.snowflake import sql
from simulators.core.faults import FaultClient
from tests.support.leftovers import LEDGER, QUEUE, SUFFIX, plant_at_vendors, plant_in_aws, tagged
from tests.support.stand_ins import Planter, Stacks, show_bodies


def named(ctx, *verdicts):
    """Return (system, kind, name) of the items with one of these verdicts."""
    return {
        (item.system, item.kind, item.name) for item in inventory.collect(ctx) if item.verdict in verdicts
    }


def row(ctx, name):
    (found,) = [item for item in inventory.collect(ctx) if item.name == name]
    return found


def test_before_a_deployment_only_secrets_of_admins_are_listed(ctx):
    items = inventory.collect(ctx)
    assert inventory.problems(items) == []
    assert {item.verdict for item in items} == {Verdict.RETAINED}
    name = ctx.deployment.identity.name
    assert {item.name for item in items if item.system == AWS} == {
        f"{name}/confluent-cloud-key",
        f"{name}/snowflake-deployer",
    }
    assert all(item.why for item in items)


def test_objects_of_a_stack_are_not_left_over(ctx, plant, stacks):
    stack = stacks.make(
        "confluent", {"Queue": QUEUE, "Ledger": LEDGER}, known=["lf1:environment:Environment:0"]
    )
    environment = plant.make("environment", "Environment")
    by_hand = plant.make(
        "flink_compute_pool", "X", called="by-hand", environment_id=environment, region=ctx.region, max_cfu=5
    )
    boto3.client("secretsmanager").create_secret(
        Name=f"{ctx.deployment.prefix}/confluent/flink", SecretString="{}"
    )
    items = [item for item in inventory.collect(ctx) if item.kind != "secret"]
    belongs = {item.kind: item.owner for item in items if item.verdict is Verdict.MANAGED}
    assert belongs.keys() == set("stack queue dynamodb_table role function log_group environment".split())
    assert set(belongs.values()) == {stack}
    found = {item.id: item for item in items}
    assert environment in found
    assert found[by_hand].verdict is Verdict.RETAINED
    assert "somebody else created it" in found[by_hand].why


@pytest.mark.slow
def test_objects_of_a_stack_that_could_not_be_deleted_are_left_over(ctx, plant, stacks):
    stack = stacks.make(
        "confluent",
        {"Queue": QUEUE},
        known=["lf1:environment:Environment:0"],
        refuses=["lf1:environment:Environment:0"],
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


@pytest.mark.slow
def test_a_glue_table_with_files_elsewhere_is_not_ours_and_its_database_stays(ctx):
    plant_in_aws(ctx)
    (database,) = [item.name for item in inventory.collect(ctx) if item.kind == "glue_database"]
    boto3.client("glue").create_table(
        DatabaseName=database,
        TableInput={"Name": "theirs", "StorageDescriptor": {"Location": "s3://theirs/0/"}},
    )
    found = {
        (item.kind, item.name): item.verdict
        for item in inventory.collect(ctx)
        if item.kind.startswith("glue_")
    }
    expected = {
        ("glue_database", database): Verdict.RETAINED,
        ("glue_table", "stock_trades"): Verdict.ORPHANED,
    }
    assert found == expected


@pytest.mark.parametrize("proof", ["the file", "the stack", "the deleted stack"])
def test_an_empty_database_of_somebody_else_s_integration_stays(ctx, stacks, proof):
    """The deployment's tables were the only ones in it, and are gone. The file may have been edited since."""
    database = f"lkc-given{len(proof)}"
    boto3.client("glue").create_database(DatabaseInput={"Name": database})
    outputs = {} if proof == "the file" else {"GlueDatabase": database}
    known = [f"cleanup:glue_database:{database}"]
    name = stacks.make("confluent", {"Queue": QUEUE}, known=known, outputs=outputs)
    if proof == "the file":
        confluent = attrs.evolve(ctx.deployment.confluent, glue_database=database)
        plan = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, confluent=confluent))
        ctx = attrs.evolve(ctx, loaded=plan)
    elif proof == "the deleted stack":
        stacks.client.delete_stack(StackName=name)
        stacks.client.get_waiter("stack_delete_complete").wait(
            StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 300}
        )
    (found,) = [item for item in inventory.collect(ctx) if item.name == database]
    assert (found.kind, found.verdict) == ("glue_database", Verdict.RETAINED)


@pytest.mark.parametrize(("is_tagged", "verdict"), [(False, Verdict.RETAINED), (True, Verdict.ORPHANED)])
def test_a_policy_that_an_update_could_not_delete_is_listed(ctx, is_tagged, verdict):
    """Its name alone doesn't prove whose it is: IAM lists the policies of all regions."""
    identity = ctx.deployment.identity
    own = {"project": identity.name, "stage": identity.stage} if is_tagged else {}
    statement = {"Effect": "Allow", "Action": "athena:GetWorkGroup", "Resource": "*"}
    iam = boto3.client("iam")
    policy = iam.create_policy(
        PolicyName=f"{ctx.deployment.prefix}-operations-AthenaPeoplePolicy0A1B2C3D-1X2Y3Z4A5B6C",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
        Tags=[{"Key": key, "Value": value} for key, value in own.items()],
    )["Policy"]
    found = [item for item in inventory.collect(ctx) if item.kind == "managed_policy"]
    assert [(item.id, item.verdict) for item in found] == [(policy["Arn"], verdict)]
    iam.delete_policy(PolicyArn=policy["Arn"])


@pytest.mark.parametrize(("owned", "verdict"), [(True, Verdict.MANAGED), (False, Verdict.RETAINED)])
def test_in_a_bucket_of_others_a_table_is_ours_only_if_a_resource_enabled_its_tableflow(ctx, owned, verdict):
    """Otherwise another deployment had the topic in Tableflow before."""
    database, bucket = f"lkc-{ctx.deployment.prefix.replace('-', '')}", f"{ctx.deployment.prefix}-shared"
    boto3.client("s3").create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": ctx.region}
    )
    boto3.client("glue").create_database(DatabaseInput={"Name": database})
    (topic,) = ctx.deployment.tables_in_glue
    table = {"Name": topic.table, "StorageDescriptor": {"Location": f"s3://{bucket}/0/"}}
    boto3.client("glue").create_table(DatabaseName=database, TableInput=table)
    aws = attrs.evolve(ctx.deployment.aws, existing_tableflow_bucket=bucket)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, aws=aws))
    shared = attrs.evolve(ctx, loaded=loaded)
    identity = "lf1:tableflow_topic:Table:0"
    stacks = Stacks(shared)
    stack = stacks.make("confluent", {"Ledger": LEDGER}, known=[identity])
    given = {"topic": topic.name, "bucket": bucket}
    stacks.remember(stack, identity, topic.name if owned else None, given, owned=owned)
    (found,) = [item for item in inventory.collect(shared) if item.kind == "glue_table"]
    assert (found.name, found.verdict) == (topic.table, verdict)


def test_databases_of_aggregates_that_earlier_deployments_kept_are_not_the_stacks(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    glue = boto3.client("glue")
    beginning = f"{ctx.deployment.prefix}_aggregates".replace("-", "_")
    ours = {"Description": "Aggregates that exports keep as tables"}
    current = f"{beginning}_4e5f6071"
    former = beginning
    foreign = f"{beginning}_of_the_analysts"
    properties = {"CatalogId": ctx.account, "DatabaseInput": {"Name": current, **ours}}
    stack = Stacks(ctx).make(
        "data", {"Aggregates": {"Type": "AWS::Glue::Database", "Properties": properties}}
    )
    glue.create_database(DatabaseInput={"Name": former, **ours})
    glue.create_database(DatabaseInput={"Name": foreign, **ours})
    for database in (current, former, foreign):
        glue.create_table(DatabaseName=database, TableInput={"Name": "weekly_sales"})
    found = [
        (item.kind, (*item.parents, item.name), item.owner, item.verdict)
        for item in inventory.collect(ctx)
        if item.kind in ("glue_database", "glue_table")
    ]
    assert sorted(found) == [
        ("glue_database", (former,), ORPHAN, Verdict.RETAINED),
        ("glue_database", (current,), stack, Verdict.MANAGED),
        ("glue_table", (former, "weekly_sales"), ORPHAN, Verdict.RETAINED),
        ("glue_table", (current, "weekly_sales"), stack, Verdict.MANAGED),
    ]


@pytest.mark.slow
def test_the_kms_key_of_the_secret_that_the_file_names_is_kept_with_it(ctx):
    """Both are of an earlier deployment of this name. Without the key, the secret could not be read."""
    tags = tagged(ctx)
    described = {"Description": "Encrypts the pseudonymisation key"}
    kms_tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in tags]
    kept, other = (
        boto3.client("kms").create_key(Tags=kms_tags, **described)["KeyMetadata"]["Arn"] for _ in range(2)
    )
    secret = f"{ctx.deployment.prefix}-data-SecretsPseudonymKey9A190727-{SUFFIX}"
    boto3.client("secretsmanager").create_secret(Name=secret, KmsKeyId=kept, SecretString="{}", Tags=tags)
    aws = attrs.evolve(ctx.deployment.aws, pseudonym_secret=secret)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, aws=aws))
    found = {item.id: item.verdict for item in inventory.collect(attrs.evolve(ctx, loaded=loaded))}
    assert found[kept.rpartition("/")[2]] is Verdict.RETAINED
    assert found[other.rpartition("/")[2]] is Verdict.ORPHANED


def kms_key(**given):
    return boto3.client("kms").create_key(**given)["KeyMetadata"]["KeyId"]


def may_not_be_described(broken, ctx, id):
    """A key's own policy decides about it, also for administrators."""
    show_bodies(ctx, "kms")
    described = {"x-amz-target": "TrentService.DescribeKey", "x-body": f"*{id}*"}
    broken(AWS, headers=described, status=400, shape="aws-json", code="AccessDeniedException")


def test_a_foreign_kms_key_that_may_not_be_described_hides_no_other(ctx, broken):
    tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in tagged(ctx)]
    ours = kms_key(Description="Encrypts the pseudonymisation key", Tags=tags)
    foreign = kms_key()
    may_not_be_described(broken, ctx, foreign)
    items = inventory.collect(ctx)
    assert [item for item in items if item.verdict is Verdict.UNKNOWN] == []
    assert [(item.kind, item.id, item.verdict) for item in items if item.id in (ours, foreign)] == [
        ("pseudonymisation_kms_key", ours, Verdict.ORPHANED)
    ]


def test_a_stacks_kms_key_that_may_not_be_described_is_still_its_own(ctx, stacks, broken):
    kms_key()  # one that may be described: without any, the kind can't be listed
    properties = {"KeyPolicy": {"Version": "2012-10-17", "Statement": []}}
    stack = stacks.make("data", {"Key": {"Type": "AWS::KMS::Key", "Properties": properties}})
    resource = stacks.client.describe_stack_resource(StackName=stack, LogicalResourceId="Key")[
        "StackResourceDetail"
    ]
    may_not_be_described(broken, ctx, resource["PhysicalResourceId"])
    (found,) = [item for item in inventory.collect(ctx) if item.id == resource["PhysicalResourceId"]]
    assert (found.owner, found.verdict) == (stack, Verdict.MANAGED)


def test_a_role_that_may_describe_no_kms_key_does_not_know_of_any(ctx, broken):
    kms_key()
    may_not_be_described(broken, ctx, "")
    unknown = [(item.kind, item.why) for item in inventory.collect(ctx) if item.verdict is Verdict.UNKNOWN]
    assert unknown == [("kms_key", "can't be listed: AccessDeniedException: injected by the fault injector")]


@pytest.mark.slow
def test_each_kms_key_is_described_once(stand_ins, ctx):
    kms_key()
    faults = FaultClient(stand_ins.aws.url)
    faults.clear()
    inventory.collect(ctx)
    described = [call for call in faults.state()["trace"] if call["operation"] == "TrentService.DescribeKey"]
    assert len(described) == len(boto3.client("kms").list_keys()["Keys"])


@pytest.mark.slow
def test_left_overs_at_the_vendors_are_found(ctx, plant):
    planted = plant_at_vendors(plant)
    left = [item for item in inventory.collect(ctx) if item.verdict is Verdict.ORPHANED]
    found = {(item.system, item.kind, item.id if item.system == CONFLUENT else item.name) for item in left}
    assert found == planted


@pytest.mark.slow
def test_objects_of_another_deployment_are_not_listed(stand_ins, ctx):
    other = stand_ins.deployment(name=f"{ctx.deployment.identity.name}-two")
    plant_in_aws(other)
    plant_at_vendors(Planter(other))
    Stacks(other).make("confluent", {"Queue": QUEUE})
    assert inventory.problems(inventory.collect(ctx)) == []
    assert named(ctx, Verdict.MANAGED) == set()
    assert len(named(other, Verdict.ORPHANED)) > 15


@pytest.mark.slow
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
    boto3.client("sqs").create_queue(
        QueueName=f"own-{prefix}", tags={"project": ctx.deployment.identity.name, "stage": "test"}
    )
    stand_ins.admin().run(
        sql.statement(f"CREATE WAREHOUSE {prefix.upper().replace('-', '_')}_EU_WEST_1_WAREHOUSE_12345678")
    )
    assert inventory.problems(inventory.collect(ctx)) == []
    kept = {name for _, _, name in named(ctx, Verdict.RETAINED)}
    assert {prefix, f"own-{prefix}"} <= kept
    assert not {name for name in kept if "backup" in name or "by-hand" in name or "somebody-else" in name}


def of_stack(name, stage):
    return [{"Key": "project", "Value": name}, {"Key": "stage", "Value": stage}]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["queue", "topic", "event_rule", "log_group", "dynamodb_table", "schedule"])
def test_tags_of_another_deployment_outweigh_a_name_of_ours(ctx, kind):
    name = f"{ctx.deployment.prefix}-exports-Thing0A1B2C3D-{SUFFIX}"
    tags = of_stack("another", "prod")
    if kind == "queue":
        boto3.client("sqs").create_queue(QueueName=name, tags={tag["Key"]: tag["Value"] for tag in tags})
    elif kind == "topic":
        boto3.client("sns").create_topic(Name=name, Tags=tags)
    elif kind == "event_rule":
        boto3.client("events").put_rule(Name=name, EventPattern='{"source": ["aws.glue"]}', Tags=tags)
    elif kind == "log_group":
        boto3.client("logs").create_log_group(
            logGroupName=name, tags={tag["Key"]: tag["Value"] for tag in tags}
        )
    elif kind == "dynamodb_table":
        boto3.client("dynamodb").create_table(TableName=name, **LEDGER["Properties"], Tags=tags)
    else:
        boto3.client("scheduler").create_schedule_group(Name=f"{ctx.deployment.prefix}-another", Tags=tags)
        boto3.client("scheduler").create_schedule(
            Name=name,
            GroupName=f"{ctx.deployment.prefix}-another",
            ScheduleExpression="rate(1 day)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={
                "Arn": "arn:aws:sqs:eu-west-1:000000000000:q",
                "RoleArn": "arn:aws:iam::000000000000:role/r",
            },
        )
    assert name not in {item.name for item in inventory.collect(ctx)}


def test_a_truncated_name_is_ours_only_by_its_tags(stand_ins):
    """`lake-dev` has a stack `lake-dev-data`; the deployment `lake-dev`, stage `data`, has
    `lake-dev-data-confluent`.
    """
    ctx = stand_ins.deployment()
    cut = f"{ctx.deployment.prefix}-data-confluent-" + "A" * 64
    theirs, ours, untagged = (cut[: 80 - 1] + letter for letter in "123")
    name = ctx.deployment.identity.name
    boto3.client("sqs").create_queue(QueueName=theirs, tags={"project": f"{name}-test", "stage": "data"})
    boto3.client("sqs").create_queue(QueueName=ours, tags={"project": name, "stage": "test"})
    boto3.client("sqs").create_queue(QueueName=untagged)
    found = {item.name: item.verdict for item in inventory.collect(ctx) if item.kind == "queue"}
    assert found == {ours: Verdict.ORPHANED, untagged: Verdict.RETAINED}


@pytest.mark.slow
def test_an_object_of_another_aws_account_is_reported_and_not_counted(ctx, plant):
    """Deployments in two accounts can have the same name in one organization.

    Their objects differ by the mark.
    """
    ours = plant.name("environment", "Environment")
    others = f"{ours[:-8]}{'0' * 8}"
    plant.make("environment", "Environment", called=others)
    found = row(ctx, others)
    assert (found.verdict, found.owner) == (Verdict.RETAINED, "-")


def test_a_rotated_key_belongs_to_its_account(ctx, plant, stacks):
    stacks.make("confluent", {}, known=["lf1:service_account:AppManagerAccount:0"])
    account = plant.make("service_account", "AppManagerAccount")
    cloud = ctx.confluent().cloud
    body = {
        "display_name": f"{plant.name('api_key', 'Key', service_account_id=account, service='cloud', secret='x')}/token"
    }
    cloud.post("/iam/v2/api-keys", {"spec": {**body, "owner": {"id": account, "kind": "ServiceAccount"}}})
    assert [item.verdict for item in inventory.collect(ctx) if item.parents == (account,)] == [
        Verdict.MANAGED
    ]


@pytest.mark.slow
def test_data_that_the_file_keeps_is_not_left_over(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    plant_in_aws(ctx)
    kept = {kind for system, kind, _ in named(ctx, Verdict.RETAINED) if system == AWS}
    assert {"bucket", "glue_database", "glue_table"} <= kept
    assert not {"bucket", "glue_database", "glue_table"} & {
        kind for _, kind, _ in named(ctx, Verdict.ORPHANED)
    }
    bucket = next(item for item in inventory.collect(ctx) if item.kind == "bucket")
    assert 'on_destroy = "keep"' in bucket.why


def test_a_vendor_without_a_key_does_not_count_as_empty(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    silent = {item.system: item.why for item in inventory.collect(ctx) if item.verdict is Verdict.UNKNOWN}
    assert silent.keys() == {CONFLUENT, SNOWFLAKE}
    assert all("AWS-SECRET-MISSING" in why for why in silent.values())
    assert inventory.problems(inventory.collect(ctx))


@pytest.mark.sampled(1)
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
        ("queue", "can't be listed: AccessDeniedException: injected by the fault injector")
    ]
    assert len([item for item in items if item.verdict is Verdict.ORPHANED]) == len(planted) - 1


def test_every_page_of_workgroups_is_read(ctx, broken):
    """AWS lists fifty at once, and botocore has no paginator for them."""
    boto3.client("athena").create_work_group(Name=ctx.deployment.prefix)
    page = {"WorkGroups": [{"Name": "primary"}], "NextToken": "the second page"}
    target = {"x-amz-target": "AmazonAthena.ListWorkGroups"}
    broken(AWS, headers=target, status=200, body=json.dumps(page), times=1)
    assert {"primary", ctx.deployment.prefix} <= {workgroup.name for workgroup in aws_listing.workgroups(ctx)}


def test_in_a_shared_environment_only_our_objects_are_listed(stand_ins):
    own = stand_ins.deployment()
    theirs = Planter(own).make("environment", "Environment", called="the-platform-teams")
    foreign = Planter(own).make(
        "kafka_cluster", "X", called="theirs", environment_id=theirs, region=own.region
    )
    given = f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"'
    ctx = stand_ins.deployment(confluent=given)
    cluster = Planter(ctx).make("kafka_cluster", "KafkaCluster", environment_id=theirs, region=ctx.region)
    left = [
        item.id
        for item in inventory.collect(ctx)
        if item.system == CONFLUENT and item.verdict is Verdict.ORPHANED
    ]
    assert left == [cluster]
    assert foreign not in [item.id for item in inventory.collect(ctx)]
    assert next(item for item in inventory.collect(ctx) if item.id == theirs).verdict is Verdict.RETAINED


@pytest.mark.slow
def test_a_database_in_which_lake_formation_may_hide_tables_is_left_alone(ctx, stand_ins):
    plant_in_aws(ctx)

    def verdict():
        (found,) = [
            item
            for item in inventory.collect(ctx)
            if item.kind == "glue_database" and item.name.startswith("lkc-")
        ]
        return found.verdict

    def set_up(**given):
        requests.post(
            f"{stand_ins.aws.url}/_simulator/lake-formation", json=given, timeout=20
        ).raise_for_status()

    assert verdict() is Verdict.ORPHANED
    set_up(administrators=["arn:aws:iam::000000000000:role/lake-admin"])
    try:
        assert verdict() is Verdict.RETAINED
    finally:
        set_up()
