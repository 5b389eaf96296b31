"""`lakeferry destroy`: what goes and what stays, only when it was said, in order, and again until nothing is left."""

from __future__ import annotations

import attrs
import boto3
import pytest
from leftovers import QUEUE, plant_at_vendors, plant_in_aws
from operator_worlds import Planter, Stacks
from resource_world import TurnedClock

from lakeferry import inventory
from lakeferry.cli import destroy as destroy_command
from lakeferry.errors import KEPT_BACK, STOPPED, WRONG_INPUT, CommandFailed
from lakeferry.inventory import AWS, CONFLUENT, Verdict, destroy
from lakeferry.output import Output
from lambdas.snowflake import sql


def run(here):
    said = []
    return destroy.destroy(here, destroy.plan(here, inventory.collect(here)), say=said.append, report=lambda _: None)


def left(here):
    return inventory.problems(inventory.collect(here))


def told(here, **given):
    options = {"confirmed": "test", "plan_only": False} | given
    return destroy_command.run(Output(quiet=True), here, **options)


def test_where_nothing_is_there_nothing_happens_and_that_is_well(here):
    assert told(here)["removed"] == []
    assert told(here)["stacks"] == {}


def test_a_plan_lists_what_goes_in_order_and_what_stays_and_why_and_changes_nothing(here, plant, stacks):
    operations = stacks.make("operations", {"Queue": QUEUE})
    confluent = stacks.make("confluent", {"Queue": QUEUE})
    plant_in_aws(here)
    before = inventory.collect(here)
    planned = told(here, confirmed=None, plan_only=True)
    assert inventory.collect(here) == before
    order = [(item["kind"], item["owner"]) for item in planned["to_delete"]]
    assert order[:4] == [("stack", operations), ("queue", operations), ("stack", confluent), ("queue", confluent)]
    orphans = [kind for kind, whose in order if whose == "orphan"]
    assert orphans.index("schedule_group") < orphans.index("athena_workgroup") < orphans.index("bucket") < orphans.index("role")
    assert {item["name"] for item in planned["to_keep"]} >= {here.deployment.confluent.cloud_key_secret}
    assert all(item["why"] for item in planned["to_keep"])


def test_stacks_go_the_last_deployed_first_with_all_that_they_have(here, stacks):
    for part in ("data", "confluent", "exports"):
        stacks.make(part, {"Queue": QUEUE})
    done = run(here)
    assert list(done.seconds) == [f"{here.deployment.prefix}-{part}" for part in ("exports", "confluent", "data")]
    assert inventory.problems(done.items) == []


def test_left_overs_of_all_worlds_are_removed_and_nothing_else(worlds, here, plant):
    other = worlds.deployment(name=f"{here.deployment.identity.name}-two")
    plant_in_aws(other)
    plant_at_vendors(Planter(other))
    theirs = inventory.collect(other)
    foreign = plant.make("environment", "Environment", name=f"{plant.name('environment', 'Environment')[:-8]}{'0' * 8}")
    prefix = here.deployment.prefix
    boto3.client("s3").create_bucket(
        Bucket=f"{prefix}-data-backup", CreateBucketConfiguration={"LocationConstraint": here.region}
    )
    warehouse = f"{prefix.upper().replace('-', '_')}_EU_WEST_1_WAREHOUSE_12345678"
    worlds.admin().run(sql.statement(f"CREATE WAREHOUSE {warehouse}"))
    plant_in_aws(here)
    plant_at_vendors(plant)
    done = told(here)
    assert len(done["removed"]) > 20
    assert left(here) == []
    assert inventory.collect(other) == theirs
    assert foreign in [item.id for item in inventory.collect(here) if item.system == CONFLUENT]
    assert boto3.client("s3").list_objects_v2(Bucket=f"{prefix}-data-backup")["KeyCount"] == 0
    assert warehouse in worlds.snow.objects()["WAREHOUSE"]


def test_a_second_time_finds_nothing_to_do(here, plant):
    plant_at_vendors(plant)
    run(here)
    assert run(here).removed == []


def test_a_stack_that_would_not_go_is_given_up_and_what_it_had_is_removed(here, plant, stacks):
    physical = "lf1:environment:Environment:0"
    stack = stacks.make("confluent", {"Queue": QUEUE}, known=[physical], refuses=[physical])
    environment = plant.make("environment", "Environment")
    assert stacks.delete(stack) == "DELETE_FAILED"
    done = run(here)
    assert environment in [item.id for item in done.removed]
    assert inventory.problems(done.items) == []
    assert stack in done.seconds


def test_data_that_no_stack_has_stays_where_the_file_keeps_it(worlds):
    here = worlds.deployment(on_destroy="keep")
    Stacks(here).make("exports", {"Queue": QUEUE})
    planted = {name for kind, name in plant_in_aws(here) if kind in ("bucket", "glue_database", "glue_table")}
    done = told(here)
    kept = {item["name"] for item in done["items"] if item["verdict"] == Verdict.RETAINED and "keep" in item["why"]}
    assert kept == planted
    assert left(here) == []


BUCKET = {"Type": "AWS::S3::Bucket"}
KEPT_BUCKET = {**BUCKET, "DeletionPolicy": "Retain"}


@pytest.mark.parametrize(("deployed", "file"), [("delete", "keep"), ("keep", "delete")])
def test_what_becomes_of_data_is_what_was_deployed_whatever_the_file_says_now(worlds, deployed, file):
    here = worlds.deployment(on_destroy=file)
    stack = Stacks(here).make("data", {"LakeBucket": KEPT_BUCKET if deployed == "keep" else BUCKET})
    planned = destroy.plan(here, inventory.collect(here))
    (bucket,) = [item for item in (planned.to_keep if deployed == "keep" else planned.to_delete) if item.kind == "bucket"]
    assert [item.id for item in planned.differing] == [bucket.id]
    with pytest.raises(CommandFailed) as refused:
        told(here)
    assert (refused.value.exit_code, refused.value.code) == (KEPT_BACK, "DESTROY-DIFFERS")
    assert (
        f'the file says on_destroy = "{file}", and what is deployed would {deployed}: bucket {bucket.name}'
        in refused.value.message
    )
    assert boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"


def test_a_bucket_that_its_stack_keeps_and_another_one_empties_counts_as_deleted(worlds):
    here = worlds.deployment(on_destroy="keep")
    data = Stacks(here).make("data", {"TableflowBucket": KEPT_BUCKET})
    page = boto3.client("cloudformation").describe_stack_resource(StackName=data, LogicalResourceId="TableflowBucket")
    bucket = page["StackResourceDetail"]["PhysicalResourceId"]
    Stacks(here).make("confluent", known=[f"cleanup:bucket:{bucket}", "cleanup:glue_database:lkc-12345"])
    planned = destroy.plan(here, inventory.collect(here))
    assert bucket in [item.id for item in planned.differing]
    assert bucket in [item.id for item in planned.to_delete]


def test_data_that_its_stack_was_deployed_to_keep_stays_and_the_rest_goes(worlds):
    here = worlds.deployment(on_destroy="keep")
    Stacks(here).make("data", {"LakeBucket": KEPT_BUCKET, "Queue": QUEUE})
    planned = destroy.plan(here, inventory.collect(here))
    assert [item.kind for item in planned.to_delete] == ["stack", "queue"]
    (bucket,) = [item for item in planned.to_keep if item.kind == "bucket"]
    assert "on_destroy" in bucket.why
    done = told(here)
    assert [item["id"] for item in done["items"] if item["kind"] == "bucket"] == [bucket.id]


class Interrupted(TurnedClock):
    """Ctrl-C comes while the command waits."""

    def sleep(self, seconds):
        raise KeyboardInterrupt


def test_ctrl_c_names_the_stacks_that_cloudformation_goes_on_deleting(worlds, here, stacks):
    stack = stacks.make("confluent", known=["cleanup:bucket:x"], waits="yes")
    with pytest.raises(CommandFailed) as stopped:
        told(attrs.evolve(here, clock=Interrupted(worlds.pass_time)))
    assert (stopped.value.exit_code, stopped.value.code) == (STOPPED, "DESTROY-STOPPED")
    assert stopped.value.details == {"under_way": [stack]}
    assert f"CloudFormation is still deleting {stack}" in stopped.value.message
    assert stacks.client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"] == "DELETE_IN_PROGRESS"


def test_what_appears_after_the_list_was_shown_is_left_alone_and_told(here, stacks):
    stack = stacks.make("exports", {"Queue": QUEUE})
    planned = destroy.plan(here, inventory.collect(here))
    later = plant_in_aws(here)
    second = f"{here.deployment.prefix}-operations"
    stacks.make("operations", {"Queue": QUEUE})
    done = destroy.destroy(here, planned, say=lambda _: None, report=lambda _: None)
    assert list(done.seconds) == [stack]
    assert done.removed == []
    assert {(item.kind, item.name) for item in inventory.problems(done.items)} == later
    assert second in [item.name for item in done.items if item.verdict is Verdict.MANAGED]


def test_a_stack_that_took_a_name_meanwhile_is_left_alone(here, stacks):
    stack = stacks.make("data", {"Queue": QUEUE})
    planned = destroy.plan(here, inventory.collect(here))
    stacks.delete(stack)
    stacks.make("data", {"Queue": QUEUE})
    done = destroy.destroy(here, planned, say=lambda _: None, report=lambda _: None)
    assert done.seconds == {}
    assert stack in [item.name for item in done.items if item.verdict is Verdict.MANAGED]


def test_what_is_protected_is_refused_and_how_to_lift_it_is_told(here, stacks):
    stack = stacks.make("data", {"Queue": QUEUE}, protected=True)
    with pytest.raises(CommandFailed) as refused:
        told(here)
    assert (refused.value.exit_code, refused.value.code) == (KEPT_BACK, "DESTROY-PROTECTED")
    assert stack in refused.value.message
    assert "update-termination-protection" in refused.value.hint
    boto3.client("cloudformation").update_termination_protection(EnableTerminationProtection=False, StackName=stack)
    assert stack in told(here)["stacks"]


def test_a_cluster_that_was_deployed_protected_is_refused_whatever_the_file_says_now(here, stacks):
    stacks.make(
        "confluent", known=["lf1:kafka_cluster:KafkaCluster:0"], type="Custom::LakeferryKafkaCluster", deletion_protection="true"
    )
    assert not here.deployment.confluent.deletion_protection
    with pytest.raises(CommandFailed) as refused:
        told(here)
    assert (refused.value.code, "deletion_protection" in refused.value.hint) == ("DESTROY-PROTECTED", True)


def test_a_cluster_that_the_file_protects_is_refused(here, stacks):
    stacks.make("data", {"Queue": QUEUE})
    confluent = attrs.evolve(here.deployment.confluent, deletion_protection=True)
    plan = attrs.evolve(here.plan, deployment=attrs.evolve(here.deployment, confluent=confluent))
    with pytest.raises(CommandFailed) as refused:
        told(attrs.evolve(here, plan=plan))
    assert (refused.value.code, "deletion_protection" in refused.value.hint) == ("DESTROY-PROTECTED", True)


@pytest.mark.parametrize("confirmed", [None, "", "dev", "tests"])
def test_nothing_happens_until_the_stage_was_named(here, stacks, confirmed):
    stacks.make("data", {"Queue": QUEUE})
    before = inventory.collect(here)
    with pytest.raises(CommandFailed) as refused:
        told(here, confirmed=confirmed)
    assert (refused.value.exit_code, refused.value.code) == (WRONG_INPUT, "NOT-CONFIRMED")
    assert inventory.collect(here) == before


def test_with_a_vendor_that_does_not_answer_nothing_is_begun(here, stacks, broken):
    stacks.make("confluent", {"Queue": QUEUE})
    broken(CONFLUENT, status=401, shape="json", code="401")
    with pytest.raises(CommandFailed) as refused:
        told(here)
    assert (refused.value.code, "Confluent" in refused.value.message) == ("VENDOR-REFUSED", True)
    assert [item.kind for item in inventory.collect(here) if item.verdict is Verdict.MANAGED] == ["stack", "queue"]


def test_what_would_not_go_is_told_and_goes_once_it_may(here, plant, broken, worlds):
    account = plant.make("service_account", "AppManagerAccount")
    broken(CONFLUENT, method="DELETE", path="/iam/v2/service-accounts/*", status=409, shape="json", code="409")
    with pytest.raises(CommandFailed) as failed:
        told(here)
    assert (failed.value.exit_code, failed.value.code) == (1, "LEFT-OVER")
    assert any("CFL-CONFLICT" in reason for reason in failed.value.details["reasons"])
    worlds.cloud.nemesis.clear()
    assert [item["id"] for item in told(here)["removed"]] == [account]


def test_a_refusal_that_passes_is_waited_for(here, plant, broken, worlds):
    plant.make("service_account", "AppManagerAccount")
    broken(CONFLUENT, method="DELETE", path="/iam/v2/service-accounts/*", status=409, shape="json", code="409", times=3)
    assert len(told(here)["removed"]) == 1


def test_our_things_in_somebody_elses_environment_go_one_by_one_and_it_stays(worlds):
    theirs = Planter(worlds.deployment()).make("environment", "Environment", name="the-platform-teams")
    here = worlds.deployment(confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"')
    plant = Planter(here)
    plant_tables(plant, theirs)
    done = told(here)
    order = [item["kind"] for item in done["removed"] if item["system"] == CONFLUENT]
    assert order.index("connector") < order.index("tableflow_topic") < order.index("kafka_cluster")
    assert order.index("kafka_cluster") < order.index("role_binding") < order.index("api_key") < order.index("service_account")
    assert left(here) == []
    assert theirs in worlds.cloud.objects()["environments"]


def test_subjects_in_somebody_elses_environment_stay_and_are_named_before_and_after(worlds):
    theirs = Planter(worlds.deployment()).make("environment", "Environment", name="the-platform-teams")
    here = worlds.deployment(confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"')
    Stacks(here).make("confluent", {"Queue": QUEUE})
    plant = Planter(here)
    plant_tables(plant, theirs)
    account = plant.make("service_account", "SchemaRegistryAccount")
    admin = {"role": "EnvironmentAdmin", "scope": "environment", "environment_id": theirs}
    plant.make("role_binding", "Subjects", service_account_id=account, **admin)
    secret = f"{here.deployment.prefix}/confluent/schema_registry"
    boto3.client("secretsmanager").create_secret(Name=secret, Description="API key of schema_registry for schema_registry")
    plant.make(
        "api_key", "RegistryKey", service_account_id=account, service="schema_registry", secret=secret, environment_id=theirs
    )
    registry = here.confluent().registry(theirs, here.secrets.read_key(secret))
    here.clock.sleep(900)
    assert registry.get("/subjects") == ["stock_trades-value"]
    planned = told(here, plan_only=True, confirmed=None)
    (stays,) = [item for item in planned["to_keep"] if item["kind"] == "subject"]
    assert (stays["name"], "is gone" in stays["why"]) == ("stock_trades-value", False)
    (left_behind,) = [item for item in told(here)["items"] if item["kind"] == "subject"]
    assert (left_behind["name"], "is gone" in left_behind["why"]) == ("stock_trades-value", True)


def test_keys_stay_until_everything_could_be_asked_for(worlds, broken):
    theirs = Planter(worlds.deployment()).make("environment", "Environment", name="the-platform-teams")
    here = worlds.deployment(confluent=f'environment_id = "{theirs}"\nenvironment_name = "the-platform-teams"')
    plant_tables(Planter(here), theirs)
    broken(CONFLUENT, path="/tableflow/v1/*", status=403, shape="json", code="403")
    with pytest.raises(CommandFailed) as failed:
        told(here)
    assert failed.value.code == "LEFT-OVER"
    assert {item.name for item in left(here) if item.kind == "secret"} == {
        f"{here.deployment.prefix}/confluent/{name}" for name in ("tableflow", "kafka/app_manager")
    }
    worlds.cloud.nemesis.clear()
    told(here)
    assert left(here) == []


def plant_tables(plant, environment):
    """A cluster in somebody else's environment with a topic that a connector fills and that is a table."""
    here = plant.here
    cluster = plant.make("kafka_cluster", "KafkaCluster", environment_id=environment, region=here.region)
    where = {"environment_id": environment, "cluster_id": cluster}
    account = plant.make("service_account", "AppManagerAccount")
    plant.make("role_binding", "Admin", service_account_id=account, role="CloudClusterAdmin", scope="cluster", **where)
    secrets = {}
    for service, path, more in (("kafka", "kafka/app_manager", {}), ("tableflow", "tableflow", {"region": here.region})):
        secrets[service] = f"{here.deployment.prefix}/confluent/{path}"
        boto3.client("secretsmanager").create_secret(Name=secrets[service], Description=f"API key of app_manager for {service}")
        plant.make(
            "api_key", f"{service}Key", service_account_id=account, service=service, secret=secrets[service], **where, **more
        )
    plant.make("topic", "T", topic="stock_trades", credentials=secrets["kafka"], **where)
    connector = {"topic": "stock_trades", "quickstart": "STOCK_TRADES", "service_account_id": account}
    plant.make("connector", "StockTradesConnector", **connector, **where)
    plant.make("tableflow_topic", "Table", topic="stock_trades", storage="managed", credentials=secrets["tableflow"], **where)


def test_a_stack_that_the_file_no_longer_wants_goes_too(here, stacks):
    stack = stacks.make("snowflake", {"Queue": QUEUE})
    without = attrs.evolve(here.plan, deployment=attrs.evolve(here.deployment, snowflake=None))
    assert stack in told(attrs.evolve(here, plan=without))["stacks"]
    assert [item for item in inventory.collect(here) if item.system == AWS and item.kind in ("stack", "queue")] == []
