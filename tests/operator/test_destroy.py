"""`lakeferry destroy`: what it deletes and what it keeps, its confirmation, its order, and repeated calls."""

from __future__ import annotations

import json

import attrs
import boto3
import pytest
from botocore.exceptions import WaiterError

from lakeferry import inventory
from lakeferry.cli import destroy as destroy_command
from lakeferry.deployment import stacks as deployed
from lakeferry.errors import BLOCKED, STOPPED, WRONG_INPUT, CommandFailed
from lakeferry.inventory import AWS, CONFLUENT, Verdict, confluent, destroy, foreign
from lakeferry.output import Output
from lambdas.snowflake import sql
from tests.support.leftovers import LEDGER, QUEUE, plant_at_vendors, plant_in_aws
from tests.support.resource_environment import ManualClock
from tests.support.stand_ins import Planter, Stacks, show_bodies
from tests.support.waiting import PATIENCE, until


def run(ctx):
    lines = []
    return destroy.destroy(
        ctx, destroy.plan(ctx, inventory.collect(ctx)), say=lines.append, report=lambda _: None
    )


def left(ctx):
    return inventory.problems(inventory.collect(ctx))


def destroyed(ctx, **given):
    options = {"confirmed": "test", "plan_only": False} | given
    return destroy_command.run(Output(quiet=True), ctx, **options)


def test_without_a_deployment_nothing_happens_and_destroy_succeeds(ctx):
    assert destroyed(ctx)["removed"] == []
    assert destroyed(ctx)["stacks"] == {}


def test_a_plan_lists_what_is_deleted_and_kept_and_changes_nothing(ctx, plant, stacks):
    operations = stacks.make("operations", {"Queue": QUEUE})
    confluent = stacks.make("confluent", {"Queue": QUEUE})
    plant_in_aws(ctx)
    before = inventory.collect(ctx)
    planned = destroyed(ctx, confirmed=None, plan_only=True)
    assert inventory.collect(ctx) == before
    order = [(item["kind"], item["owner"]) for item in planned["to_delete"]]
    assert order[:4] == [
        ("stack", operations),
        ("queue", operations),
        ("stack", confluent),
        ("queue", confluent),
    ]
    orphans = [kind for kind, whose in order if whose == "orphan"]
    assert (
        orphans.index("schedule_group")
        < orphans.index("athena_workgroup")
        < orphans.index("bucket")
        < orphans.index("role")
    )
    assert {item["name"] for item in planned["to_keep"]} >= {ctx.deployment.confluent.cloud_key_secret}
    assert all(item["why"] for item in planned["to_keep"])


def test_stacks_are_deleted_in_reverse_order_with_their_objects(ctx, stacks):
    for part in ("data", "confluent", "exports"):
        stacks.make(part, {"Queue": QUEUE})
    done = run(ctx)
    assert list(done.seconds) == [
        f"{ctx.deployment.prefix}-{part}" for part in ("exports", "confluent", "data")
    ]
    assert inventory.problems(done.items) == []


def test_left_overs_in_all_systems_are_removed_and_nothing_else(stand_ins, ctx, plant):
    other = stand_ins.deployment(name=f"{ctx.deployment.identity.name}-two")
    plant_in_aws(other)
    plant_at_vendors(Planter(other))
    theirs = inventory.collect(other)
    foreign = plant.make(
        "environment", "Environment", called=f"{plant.name('environment', 'Environment')[:-8]}{'0' * 8}"
    )
    prefix = ctx.deployment.prefix
    boto3.client("s3").create_bucket(
        Bucket=f"{prefix}-data-backup", CreateBucketConfiguration={"LocationConstraint": ctx.region}
    )
    warehouse = f"{prefix.upper().replace('-', '_')}_EU_WEST_1_WAREHOUSE_12345678"
    stand_ins.admin().run(sql.statement(f"CREATE WAREHOUSE {warehouse}"))
    plant_in_aws(ctx)
    plant_at_vendors(plant)
    done = destroyed(ctx)
    assert len(done["removed"]) > 20
    assert left(ctx) == []
    assert inventory.collect(other) == theirs
    assert foreign in [item.id for item in inventory.collect(ctx) if item.system == CONFLUENT]
    assert boto3.client("s3").list_objects_v2(Bucket=f"{prefix}-data-backup")["KeyCount"] == 0
    assert warehouse in stand_ins.snow.objects()["WAREHOUSE"]


@pytest.mark.slow
def test_a_second_destroy_has_nothing_to_do(ctx, plant):
    plant_at_vendors(plant)
    run(ctx)
    assert run(ctx).removed == []


def failing_stack(ctx, plant, stacks, *, with_state=True):
    """Make a stack whose environment can't be deleted by its function.

    Return the stack's name and the environment's id.
    """
    physical = "lf1:environment:Environment:0"
    stack = stacks.make("confluent", {"States": LEDGER}, known=[physical], refuses=[physical])
    environment = plant.make("environment", "Environment")
    if with_state:
        stacks.remember(stack, physical, environment, {})
    assert stacks.delete(stack) == "DELETE_FAILED"
    return stack, environment


def test_a_stack_that_cannot_be_deleted_is_given_up_and_its_objects_are_removed(ctx, plant, stacks):
    stack, environment = failing_stack(ctx, plant, stacks)
    done = run(ctx)
    assert environment in [item.id for item in done.removed]
    assert inventory.problems(done.items) == []
    assert stack in done.seconds


def test_an_object_that_is_not_proved_gone_is_not_skipped(ctx, plant, stacks):
    stack, _ = failing_stack(ctx, plant, stacks, with_state=False)
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.code, f"stack {stack}" in failed.value.message) == ("LEFT-OVER", True)
    reasons = failed.value.details["reasons"]
    assert any(f"`lakeferry forget {stack} Environment`" in reason for reason in reasons)
    assert described(stack)["StackStatus"] == "DELETE_FAILED"


@pytest.mark.slow
def test_data_of_no_stack_is_kept_if_the_file_says_so(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    Stacks(ctx).make("exports", {"Queue": QUEUE})
    planted = {name for kind, name in plant_in_aws(ctx) if kind in ("bucket", "glue_database", "glue_table")}
    done = destroyed(ctx)
    kept = {
        item["name"]
        for item in done["items"]
        if item["verdict"] == Verdict.RETAINED and "keep" in item["why"]
    }
    assert kept == planted
    assert left(ctx) == []


BUCKET = {"Type": "AWS::S3::Bucket"}
KEPT_BUCKET = {**BUCKET, "DeletionPolicy": "Retain"}


@pytest.mark.parametrize(("deployed", "file"), [("delete", "keep"), ("keep", "delete")])
def test_data_is_kept_or_deleted_as_deployed_whatever_the_file_says_now(stand_ins, deployed, file):
    ctx = stand_ins.deployment(on_destroy=file)
    stack = Stacks(ctx).make("data", {"LakeBucket": KEPT_BUCKET if deployed == "keep" else BUCKET})
    planned = destroy.plan(ctx, inventory.collect(ctx))
    (bucket,) = [
        item
        for item in (planned.to_keep if deployed == "keep" else planned.to_delete)
        if item.kind == "bucket"
    ]
    assert [item.id for item in planned.differing] == [bucket.id]
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx)
    assert (refused.value.exit_code, refused.value.code) == (BLOCKED, "DESTROY-DIFFERS")
    assert (
        f'the file says on_destroy = "{file}", and the deployed stacks would {deployed}: bucket {bucket.name}'
        in refused.value.message
    )
    assert (
        boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        == "CREATE_COMPLETE"
    )


def test_a_bucket_that_a_custom_resource_empties_counts_as_deleted(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    data = Stacks(ctx).make("data", {"TableflowBucket": KEPT_BUCKET})
    page = boto3.client("cloudformation").describe_stack_resource(
        StackName=data, LogicalResourceId="TableflowBucket"
    )
    bucket = page["StackResourceDetail"]["PhysicalResourceId"]
    Stacks(ctx).make("confluent", known=[f"cleanup:bucket:{bucket}", "cleanup:glue_database:lkc-12345"])
    planned = destroy.plan(ctx, inventory.collect(ctx))
    assert bucket in [item.id for item in planned.differing]
    assert bucket in [item.id for item in planned.to_delete]


def test_data_that_its_stack_keeps_remains_and_the_rest_is_deleted(stand_ins):
    ctx = stand_ins.deployment(on_destroy="keep")
    Stacks(ctx).make("data", {"LakeBucket": KEPT_BUCKET, "Queue": QUEUE})
    planned = destroy.plan(ctx, inventory.collect(ctx))
    assert [item.kind for item in planned.to_delete] == ["stack", "queue"]
    (bucket,) = [item for item in planned.to_keep if item.kind == "bucket"]
    assert "on_destroy" in bucket.why
    done = destroyed(ctx)
    assert [item["id"] for item in done["items"] if item["kind"] == "bucket"] == [bucket.id]


@pytest.mark.slow
def test_tables_in_confluents_storage_are_named_before_they_go(stand_ins, capsys):
    """Their rows go also with on_destroy = "keep": the tables of stacks, and those that no stack has."""
    ctx = stand_ins.deployment(on_destroy="keep")
    plant = Planter(ctx)
    Stacks(ctx).make(
        "confluent",
        known=["orders"],
        type="Custom::LakeferryTableflowTopic",
        topic="orders",
        storage="managed",
    )
    Stacks(ctx).make("operations", known=["bucket"], type="Custom::LakeferryTableflowTopic", topic="own")
    plant_tables(plant, plant.make("environment", "Environment"))
    planned = destroy_command.run(Output(), ctx, confirmed=None, plan_only=True)
    assert planned["lost_tables"] == ["orders", "stock_trades"]
    shown = " ".join(capsys.readouterr().out.split())
    assert 'also with on_destroy = "keep": orders, stock_trades' in shown
    assert destroyed(ctx)["lost_tables"] == ["orders", "stock_trades"]


class Impatient(ManualClock):
    """Fails the test where a command waits for longer than half an hour."""

    def sleep(self, seconds):
        super().sleep(seconds)
        assert sum(self.slept) < 1800


def described(stack):
    (found,) = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return found


IMPORTS = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String"}}


@pytest.mark.slow
def test_a_stack_that_another_one_imports_from_is_reported_and_deleted_later(ctx, stacks):
    """The embedded AWS refuses the call."""
    stack = stacks.make("data", {"Queue": QUEUE}, outputs={"Url": "https://example.com/"})
    value = {"Fn::ImportValue": f"{stack}:Url"}
    foreign = stacks.make(
        "of-another-team", {"P": {**IMPORTS, "Properties": {"Type": "String", "Value": value}}}
    )
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.code, f"stack {stack}" in failed.value.message) == ("LEFT-OVER", True)
    assert failed.value.details["reasons"] == [f"{stack}: Export {stack}:Url is imported by stack {foreign}"]
    stacks.delete(foreign)
    assert stack in destroyed(ctx)["stacks"]


@pytest.mark.slow
def test_a_deletion_that_cloudformation_cancels_is_reported_with_the_stacks_reason(
    stand_ins, ctx, stacks, broken
):
    """AWS accepts the call, and the stack is soon as it was: aws/aws-sdk#383.

    Its reason is here that of a failed update.
    """
    stack = stacks.make("data", {"Queue": QUEUE})
    update = {
        "Queue": QUEUE,
        "P": {**IMPORTS, "Properties": {"Type": "String", "Value": {"Fn::ImportValue": "no-such-export"}}},
    }
    stacks.client.update_stack(
        StackName=stack, TemplateBody=json.dumps({"Resources": update}), DisableRollback=True
    )
    until(lambda: described(stack)["StackStatus"] == "UPDATE_FAILED", PATIENCE)
    ctx = attrs.evolve(ctx, clock=Impatient(stand_ins.pass_time))
    show_bodies(ctx, "cloudformation")
    accepted = "<DeleteStackResponse><ResponseMetadata/></DeleteStackResponse>"
    broken(AWS, headers={"x-body": "*DeleteStack*"}, status=200, body=accepted)
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.code, f"stack {stack}" in failed.value.message) == ("LEFT-OVER", True)
    assert failed.value.details["reasons"] == [
        f"{stack} is UPDATE_FAILED: {described(stack)['StackStatusReason']}"
    ]
    assert "no-such-export" in failed.value.details["reasons"][0]


class Interrupted(ManualClock):
    """Raises KeyboardInterrupt while the command waits."""

    def sleep(self, seconds):
        raise KeyboardInterrupt


def test_ctrl_c_names_the_stacks_that_cloudformation_is_still_deleting(stand_ins, ctx, stacks):
    stack = stacks.make("confluent", known=["cleanup:bucket:x"], waits="yes")
    with pytest.raises(CommandFailed) as stopped:
        destroyed(attrs.evolve(ctx, clock=Interrupted(stand_ins.pass_time)))
    assert (stopped.value.exit_code, stopped.value.code) == (STOPPED, "DESTROY-STOPPED")
    assert stopped.value.details == {"under_way": [stack]}
    assert f"CloudFormation is still deleting {stack}" in stopped.value.message
    assert stacks.client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"] == "DELETE_IN_PROGRESS"


REFUSAL = "<ErrorResponse><Error><Code>{}</Code><Message>injected</Message></Error></ErrorResponse>"


def test_one_question_without_an_answer_does_not_end_a_deletion(ctx, stacks, broken):
    stack = stacks.make("data", {"Queue": QUEUE})
    show_bodies(ctx, "cloudformation")
    broken(
        AWS,
        headers={"x-body": "*DescribeStackEvents*"},
        status=400,
        body=REFUSAL.format("InternalFailure"),
        times=1,
    )
    assert stack in destroyed(ctx)["stacks"]


def test_an_error_during_the_deletion_names_the_stacks_that_cloudformation_is_still_deleting(
    stand_ins, ctx, stacks, broken
):
    stack = stacks.make("confluent", known=["cleanup:bucket:x"], waits="yes")
    ctx = attrs.evolve(ctx, clock=Impatient(stand_ins.pass_time))
    show_bodies(ctx, "cloudformation")
    broken(AWS, headers={"x-body": "*DescribeStackEvents*"}, status=400, body=REFUSAL.format("AccessDenied"))
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.code, failed.value.details) == ("AWS-REFUSED", {"under_way": [stack]})
    assert (
        f"AccessDenied: injected; CloudFormation is still deleting {stack}. What was deleted so far is gone"
        in failed.value.message
    )
    assert "the role that you are logged in with" in failed.value.hint
    assert "`lakeferry destroy --stage test` continues" in failed.value.hint


@pytest.mark.slow
def test_an_object_created_after_the_plan_is_left_alone_and_reported(ctx, stacks):
    stack = stacks.make("exports", {"Queue": QUEUE})
    planned = destroy.plan(ctx, inventory.collect(ctx))
    later = plant_in_aws(ctx)
    second = f"{ctx.deployment.prefix}-operations"
    stacks.make("operations", {"Queue": QUEUE})
    done = destroy.destroy(ctx, planned, say=lambda _: None, report=lambda _: None)
    assert list(done.seconds) == [stack]
    assert done.removed == []
    assert {(item.kind, item.name) for item in inventory.problems(done.items)} == later
    assert second in [item.name for item in done.items if item.verdict is Verdict.MANAGED]


def test_a_new_stack_of_the_same_name_is_left_alone(ctx, stacks):
    stack = stacks.make("data", {"Queue": QUEUE})
    planned = destroy.plan(ctx, inventory.collect(ctx))
    stacks.delete(stack)
    stacks.make("data", {"Queue": QUEUE})
    done = destroy.destroy(ctx, planned, say=lambda _: None, report=lambda _: None)
    assert done.seconds == {}
    assert stack in [item.name for item in done.items if item.verdict is Verdict.MANAGED]


def test_a_protected_stack_is_refused_with_the_way_to_unprotect_it(ctx, stacks):
    stack = stacks.make("data", {"Queue": QUEUE}, protected=True)
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx)
    assert (refused.value.exit_code, refused.value.code) == (BLOCKED, "DESTROY-PROTECTED")
    assert stack in refused.value.message
    assert "update-termination-protection" in refused.value.hint
    boto3.client("cloudformation").update_termination_protection(
        EnableTerminationProtection=False, StackName=stack
    )
    assert stack in destroyed(ctx)["stacks"]


@pytest.mark.slow
def test_a_protected_stack_whose_creation_failed_is_destroyed(ctx, stacks):
    """CDK protects a stack before it is created."""
    name = f"{ctx.deployment.prefix}-data"
    wait = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "1"},
    }
    template = {"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}, "Wait": wait}}
    stacks.client.create_stack(
        StackName=name, TemplateBody=json.dumps(template), EnableTerminationProtection=True
    )
    until(
        lambda: (
            stacks.client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == "ROLLBACK_COMPLETE"
        ),
        PATIENCE,
    )
    assert name in destroyed(ctx)["stacks"]


def test_a_protected_cluster_is_refused_whatever_the_file_says_now(ctx, stacks):
    stacks.make(
        "confluent",
        known=["lf1:kafka_cluster:KafkaCluster:0"],
        type="Custom::LakeferryKafkaCluster",
        deletion_protection="true",
    )
    assert not ctx.deployment.confluent.deletion_protection
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx)
    assert (refused.value.code, "deletion_protection" in refused.value.hint) == ("DESTROY-PROTECTED", True)


def test_a_protected_cluster_of_a_stack_whose_creation_failed_can_be_destroyed(ctx, stacks):
    """Nobody can deploy that stack without the protection."""
    cluster = "lf1:kafka_cluster:KafkaCluster:0"
    broken = {"Fn::ImportValue": "no-such-export"}
    parameter = {
        "Type": "AWS::SSM::Parameter",
        "DependsOn": "Custom0",
        "Properties": {"Type": "String", "Value": broken},
    }
    with pytest.raises(WaiterError, match="ROLLBACK_FAILED"):
        stacks.make(
            "confluent",
            {"Broken": parameter},
            known=[cluster],
            refuses=[cluster],
            type="Custom::LakeferryKafkaCluster",
            deletion_protection="true",
        )
    destroy.require_possible(ctx, destroy.plan(ctx, inventory.collect(ctx)))


def test_a_cluster_that_the_file_protects_is_refused(ctx, stacks):
    stacks.make("data", {"Queue": QUEUE})
    confluent = attrs.evolve(ctx.deployment.confluent, deletion_protection=True)
    plan = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, confluent=confluent))
    with pytest.raises(CommandFailed) as refused:
        destroyed(attrs.evolve(ctx, loaded=plan))
    assert (refused.value.code, "deletion_protection" in refused.value.hint) == ("DESTROY-PROTECTED", True)


def test_a_policy_that_others_have_attached_is_detached_first(ctx, stacks):
    allow = {"Effect": "Allow", "Action": "athena:GetWorkGroup", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [allow]}
    policy = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document}}
    outputs = {"AthenaPeoplePolicyArn": {"Ref": "Policy"}}
    stack = stacks.make("operations", {"Policy": policy}, outputs=outputs)
    arn = deployed.describe(ctx, stack).outputs["AthenaPeoplePolicyArn"]
    iam = ctx.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    role = "analysts-of-somebody"
    iam.create_role(
        RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )
    iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx)
    assert refused.value.code == "DESTROY-ATTACHED"
    assert f"`aws iam detach-role-policy --role-name {role} --policy-arn {arn}`" in refused.value.hint
    assert deployed.describe(ctx, stack) is not None
    iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    assert list(destroyed(ctx)["stacks"]) == [stack]
    iam.delete_role(RoleName=role)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("confirmed", [None, "", "dev", "tests"])
def test_nothing_is_destroyed_until_the_stage_is_confirmed(ctx, stacks, confirmed):
    stacks.make("data", {"Queue": QUEUE})
    before = inventory.collect(ctx)
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx, confirmed=confirmed)
    assert (refused.value.exit_code, refused.value.code) == (WRONG_INPUT, "NOT-CONFIRMED")
    assert inventory.collect(ctx) == before


def test_nothing_is_destroyed_while_a_vendor_does_not_answer(ctx, stacks, broken):
    stacks.make("confluent", {"Queue": QUEUE})
    broken(CONFLUENT, status=401, shape="json", code="401")
    with pytest.raises(CommandFailed) as refused:
        destroyed(ctx)
    assert (refused.value.code, "Confluent" in refused.value.message) == ("VENDOR-REFUSED", True)
    assert [item.kind for item in inventory.collect(ctx) if item.verdict is Verdict.MANAGED] == [
        "stack",
        "queue",
    ]


@pytest.mark.slow
def test_an_object_that_cannot_be_removed_is_reported_and_removed_later(ctx, plant, broken, stand_ins):
    account = plant.make("service_account", "AppManagerAccount")
    broken(
        CONFLUENT, method="DELETE", path="/iam/v2/service-accounts/*", status=409, shape="json", code="409"
    )
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.exit_code, failed.value.code) == (1, "LEFT-OVER")
    assert any("CFL-CONFLICT" in reason for reason in failed.value.details["reasons"])
    stand_ins.cloud.faults.clear()
    assert [item["id"] for item in destroyed(ctx)["removed"]] == [account]


@pytest.mark.slow
def test_a_temporary_refusal_is_retried(ctx, plant, broken, stand_ins):
    plant.make("service_account", "AppManagerAccount")
    broken(
        CONFLUENT,
        method="DELETE",
        path="/iam/v2/service-accounts/*",
        status=409,
        shape="json",
        code="409",
        times=3,
    )
    assert len(destroyed(ctx)["removed"]) == 1


@pytest.mark.slow
def test_our_objects_in_a_shared_environment_are_removed_and_it_is_kept(stand_ins):
    theirs = Planter(stand_ins.deployment()).make("environment", "Environment", called="the-platform-teams")
    ctx = stand_ins.deployment(
        confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"'
    )
    plant = Planter(ctx)
    plant_tables(plant, theirs)
    done = destroyed(ctx)
    order = [item["kind"] for item in done["removed"] if item["system"] == CONFLUENT]
    assert order.index("connector") < order.index("tableflow_topic") < order.index("kafka_cluster")
    assert (
        order.index("kafka_cluster")
        < order.index("role_binding")
        < order.index("api_key")
        < order.index("service_account")
    )
    assert left(ctx) == []
    assert theirs in stand_ins.cloud.objects()["environments"]


@pytest.mark.slow
def test_subjects_in_a_shared_environment_are_kept_and_named(stand_ins):
    theirs = Planter(stand_ins.deployment()).make("environment", "Environment", called="the-platform-teams")
    ctx = stand_ins.deployment(
        confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"'
    )
    Stacks(ctx).make("confluent", {"Queue": QUEUE})
    plant = Planter(ctx)
    plant_tables(plant, theirs)
    account = plant.make("service_account", "SchemaRegistryAccount")
    admin = {"role": "EnvironmentAdmin", "scope": "environment", "environment_id": theirs}
    plant.make("role_binding", "Subjects", service_account_id=account, **admin)
    secret = f"{ctx.deployment.prefix}/confluent/schema_registry"
    boto3.client("secretsmanager").create_secret(
        Name=secret, Description="API key of schema_registry for schema_registry"
    )
    plant.make(
        "api_key",
        "RegistryKey",
        service_account_id=account,
        service="schema_registry",
        secret=secret,
        environment_id=theirs,
    )
    registry = ctx.confluent().registry(theirs, ctx.secrets.read_key(secret))
    ctx.clock.sleep(900)
    assert registry.get("/subjects") == ["stock_trades-value"]
    planned = destroyed(ctx, plan_only=True, confirmed=None)
    (stays,) = [item for item in planned["to_keep"] if item["kind"] == "subject"]
    assert (stays["name"], "is gone" in stays["why"]) == ("stock_trades-value", False)
    (left_behind,) = [item for item in destroyed(ctx)["items"] if item["kind"] == "subject"]
    assert (left_behind["name"], "is gone" in left_behind["why"]) == ("stock_trades-value", True)


@pytest.mark.slow
def test_keys_are_kept_until_every_object_could_be_listed(stand_ins, broken):
    theirs = Planter(stand_ins.deployment()).make("environment", "Environment", called="the-platform-teams")
    ctx = stand_ins.deployment(
        confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"'
    )
    plant_tables(Planter(ctx), theirs)
    broken(CONFLUENT, path="/tableflow/v1/*", status=403, shape="json", code="403")
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert failed.value.code == "LEFT-OVER"
    assert {item.name for item in left(ctx) if item.kind == "secret"} == {
        f"{ctx.deployment.prefix}/confluent/{name}" for name in ("tableflow", "kafka/app_manager")
    }
    stand_ins.cloud.faults.clear()
    destroyed(ctx)
    assert left(ctx) == []


def plant_tables(plant, environment):
    """Create a cluster in a shared environment, with a topic that a connector fills and that is a table."""
    ctx = plant.ctx
    cluster = plant.make("kafka_cluster", "KafkaCluster", environment_id=environment, region=ctx.region)
    where = {"environment_id": environment, "cluster_id": cluster}
    account = plant.make("service_account", "AppManagerAccount")
    plant.make(
        "role_binding",
        "Admin",
        service_account_id=account,
        role="CloudClusterAdmin",
        scope="cluster",
        **where,
    )
    secrets = {}
    for service, path, options in (
        ("kafka", "kafka/app_manager", {}),
        ("tableflow", "tableflow", {"region": ctx.region}),
    ):
        secrets[service] = f"{ctx.deployment.prefix}/confluent/{path}"
        boto3.client("secretsmanager").create_secret(
            Name=secrets[service], Description=f"API key of app_manager for {service}"
        )
        plant.make(
            "api_key",
            f"{service}Key",
            service_account_id=account,
            service=service,
            secret=secrets[service],
            **where,
            **options,
        )
    plant.make("topic", "T", topic="stock_trades", credentials=secrets["kafka"], **where)
    connector = {"topic": "stock_trades", "quickstart": "STOCK_TRADES", "service_account_id": account}
    plant.make("connector", "StockTradesConnector", **connector, **where)
    plant.make(
        "tableflow_topic",
        "Table",
        topic="stock_trades",
        storage="managed",
        credentials=secrets["tableflow"],
        **where,
    )


@pytest.mark.slow
def test_a_stack_that_the_file_no_longer_has_is_deleted_too(ctx, stacks):
    stack = stacks.make("snowflake", {"Queue": QUEUE})
    ctx = with_snowflake(ctx, attrs.evolve(ctx.deployment.snowflake, enabled=False))
    assert stack not in ctx.stacks
    assert stack in destroyed(ctx)["stacks"]
    assert [
        item for item in inventory.collect(ctx) if item.system == AWS and item.kind in ("stack", "queue")
    ] == []


def with_snowflake(ctx, given):
    """Return the context with another [snowflake] in its file; None for none."""
    return attrs.evolve(
        ctx, loaded=attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, snowflake=given))
    )


@pytest.mark.slow
def test_a_deployment_that_had_snowflake_is_not_gone_until_snowflake_was_looked_at(ctx, stacks, plant):
    warehouse = plant.make("snowflake_warehouse", "Warehouse")
    stack = stacks.make("snowflake", {"Queue": QUEUE})
    without = with_snowflake(ctx, None)
    with pytest.raises(CommandFailed) as refused:
        destroyed(without)
    assert refused.value.code == "VENDOR-REFUSED"
    assert "the file has no [snowflake]; put the table back, with enabled = false" in refused.value.message
    assert stacks.delete(stack) == ""
    ctx = with_snowflake(ctx, attrs.evolve(ctx.deployment.snowflake, enabled=False))
    assert [item["name"] for item in destroyed(ctx)["removed"]] == [warehouse]


@pytest.fixture
def shared(ctx, plant, stacks):
    """Deploy a cluster with a topic, and a compute pool.

    Return the cluster's place and a client of its topics.
    """
    environment = plant.make("environment", "Environment")
    place = {"environment_id": environment, "region": ctx.region}
    cluster = plant.make("kafka_cluster", "KafkaCluster", **place)
    pool = plant.make("flink_compute_pool", "FlinkPool", max_cfu=5, **place)
    account = plant.make("service_account", "AppManagerAccount")
    where = {"environment_id": environment, "cluster_id": cluster, "service_account_id": account}
    plant.make("role_binding", "Admin", role="CloudClusterAdmin", scope="cluster", **where)
    secret = f"{ctx.deployment.prefix}/confluent/kafka/app_manager"
    boto3.client("secretsmanager").create_secret(Name=secret, SecretString="{}")
    plant.make("api_key", "KafkaKey", service="kafka", secret=secret, **where)
    topic = {
        "environment_id": environment,
        "cluster_id": cluster,
        "topic": "orders",
        "partitions": 1,
        "credentials": secret,
    }
    plant.make("topic", "Orders", **topic)
    known = {
        "lf1:environment:Environment:0": (environment, {}),
        "lf1:kafka_cluster:KafkaCluster:0": (cluster, place),
        "lf1:flink_compute_pool:FlinkPool:0": (pool, place),
        "lf1:topic:Orders:0": ("orders", topic),
    }
    stack = stacks.make("confluent", {"States": LEDGER}, known=list(known))
    for identity, (object_id, value) in known.items():
        stacks.remember(stack, identity, object_id, value, tenant=ctx.confluent().tenant)
    return environment, cluster, secret


def require_own(ctx, cluster, environment):
    """Check what would be deleted with the deployment's cluster, as `destroy` does before it begins."""
    item = inventory.Item(
        CONFLUENT, "kafka_cluster", "c", cluster, "stack", Verdict.MANAGED, parents=(environment,)
    )
    stack = deployed.describe(ctx, f"{ctx.deployment.prefix}-confluent", with_resources=True)
    foreign.require_own_contents(ctx, [item], [stack])


def test_a_cluster_with_topics_of_others_is_refused_by_name(ctx, shared):
    environment, cluster, secret = shared
    require_own(ctx, cluster, environment)
    plane = ctx.confluent().kafka(environment, cluster, ctx.secrets.read_key(secret))
    for name in ("theirs", "dlq-lcc-a1b2c3"):
        plane.post(f"/kafka/v3/clusters/{cluster}/topics", {"topic_name": name, "partitions_count": 1})
    ctx.clock.sleep(60)  # until Kafka lists them
    with pytest.raises(CommandFailed) as refused:
        require_own(ctx, cluster, environment)
    assert (refused.value.code, refused.value.message.endswith(f"topic theirs of {cluster}")) == (
        "DESTROY-FOREIGN",
        True,
    )


def test_a_cluster_whose_topics_can_not_be_listed_is_refused(ctx, shared):
    environment, cluster, secret = shared
    boto3.client("secretsmanager").put_secret_value(SecretId=secret, SecretString="{}")
    with pytest.raises(CommandFailed, match="can't be told"):
        require_own(ctx, cluster, environment)


def test_a_pool_with_statements_of_others_is_refused_by_name(ctx):
    statement = inventory.Item(
        CONFLUENT, "flink_statement", "totals", "totals", "stack", Verdict.MANAGED, confluent.BY_HAND
    )
    with pytest.raises(CommandFailed) as refused:
        foreign.require_own_contents(ctx, [statement], [])
    assert (refused.value.code, "Flink statement totals" in refused.value.message) == (
        "DESTROY-FOREIGN",
        True,
    )
    foreign.require_own_contents(ctx, [attrs.evolve(statement, why="")], [])
