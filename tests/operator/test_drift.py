"""`status --drift` and `deploy --repair`: three answers about each object, and what hangs on a missing
one.
"""

from __future__ import annotations

import re

import attrs
import boto3
import pytest
import requests

from lakeferry.deploy.run import to_repair, verify_repair
from lakeferry.deployment import stacks as deployed
from lakeferry.errors import BLOCKED, CommandFailed
from lakeferry.health import drift, status
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lakeferry.inventory.known import Answer, ExistenceChecker, read_known
from lakeferry.output import Output
from lambdas.custom_resources import registry, request
from lambdas.snowflake import sql
from tests.support.leftovers import LEDGER, QUEUE
from tests.support.stand_ins import Planter


@attrs.define
class Standing:
    """A stack with the states of its objects, which exist as its functions created them."""

    ctx: object
    stacks: object
    objects: list = attrs.field(factory=list)

    def make(self, kind, logical_id, **properties):
        """Create an object and return its id."""
        object_id = Planter(self.ctx).make(kind, logical_id, **properties)
        return self.had(kind, logical_id, object_id, **properties)

    def had(self, kind, logical_id, object_id, **properties):
        """Take an object into the stack without creating it: it was there once."""
        handler = registry.RESOURCE_TYPES[kind].handler
        generation = request.compute_generation(handler, handler.PROPERTIES(**properties))
        self.objects.append((f"lf1:{kind}:{logical_id}:{generation}", object_id, properties))
        return object_id

    def deploy(self, part):
        stack = self.stacks.make(part, {"States": LEDGER}, known=[identity for identity, *_ in self.objects])
        for identity, object_id, properties in self.objects:
            self.stacks.remember(stack, identity, object_id, properties)
        return stack


@pytest.fixture
def standing(ctx, stacks):
    return Standing(ctx, stacks)


def drifted(ctx):
    return {item.name: item.status for item in drift.find_missing(ctx)}


def details(ctx, name):
    return next(item.details for item in drift.find_missing(ctx) if item.name == name)


def repaired(ctx):
    return to_repair(Output(quiet=True), ctx).partition(":")[2].split(",")


def refused(ctx):
    with pytest.raises(CommandFailed) as failure:
        to_repair(Output(quiet=True), ctx)
    return failure.value


def test_a_missing_object_at_a_vendor_is_drift_until_it_is_there_again(ctx, standing, capsys):
    standing.had("snowflake_warehouse", "Warehouse", "GONE")
    stack = standing.deploy("snowflake")
    (found,) = drift.find_missing(ctx)
    # The deployer's role sees only what it owns, so it can't tell a dropped object from one that another role
    # owns now.
    assert (found.system, found.type, found.name, found.status) == (
        SNOWFLAKE,
        "snowflake_warehouse",
        "Warehouse",
        "unknown",
    )
    status.show_drift(Output(), [found])
    assert re.search(r"snowflake_warehouse +Warehouse +unknown +SNF-UNSEEN", capsys.readouterr().out)
    assert "creates it if its name is free" in found.details
    assert repaired(ctx) == [f"{stack}/Warehouse"]
    with pytest.raises(CommandFailed, match="Warehouse is unknown"):
        verify_repair(Output(quiet=True), ctx)
    Planter(ctx).make("snowflake_warehouse", "Warehouse")
    assert drift.find_missing(ctx) == []
    verify_repair(Output(quiet=True), ctx)


def with_rights(standing):
    """Create what stacks/snowflake.py creates for the reader. Return the names."""
    warehouse = standing.make("snowflake_warehouse", "Warehouse")
    database = standing.make("snowflake_database", "Database")
    schema = standing.make("snowflake_schema", "Schema", database=database)
    role = standing.make("snowflake_role", "ReaderRole")
    grants = {"WAREHOUSE": warehouse, "DATABASE": database, "SCHEMA": schema}
    for on, name in grants.items():
        standing.make(
            "snowflake_grant", f"ReaderOn{on.title()}", privilege="USAGE", on=on, name=name, to_role=role
        )
    standing.make(
        "snowflake_grant",
        "ReaderOnTables",
        privilege="SELECT",
        on="ICEBERG TABLES IN SCHEMA",
        name=schema,
        to_role=role,
    )
    return {"WAREHOUSE": warehouse, "DATABASE": database, "ROLE": role}


#: What goes with a dropped object.
GONE_WITH = {
    "WAREHOUSE": {"Warehouse", "ReaderOnWarehouse"},
    "DATABASE": {"Database", "Schema", "ReaderOnDatabase", "ReaderOnSchema", "ReaderOnTables"},
    "ROLE": {"ReaderRole", "ReaderOnWarehouse", "ReaderOnDatabase", "ReaderOnSchema", "ReaderOnTables"},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", GONE_WITH)
def test_the_rights_on_a_dropped_object_are_repaired_with_it(stand_ins, ctx, standing, kind):
    names = with_rights(standing)
    stack = standing.deploy("snowflake")
    assert drift.find_missing(ctx) == []
    stand_ins.admin().run(sql.by_name(f"DROP {kind} {{name}}", names[kind]))
    assert drifted(ctx).keys() == GONE_WITH[kind]
    assert {name.removeprefix(f"{stack}/") for name in repaired(ctx)} == GONE_WITH[kind]


@pytest.mark.slow
def test_before_a_repair_it_says_what_a_new_object_does_not_bring_back(stand_ins, ctx, standing, capsys):
    names = with_rights(standing)
    standing.deploy("snowflake")
    stand_ins.admin().run(sql.by_name("DROP DATABASE {name}", names["DATABASE"]))
    to_repair(Output(), ctx)
    assert "UNDROP DATABASE" in " ".join(capsys.readouterr().out.split())


def test_a_renamed_object_is_not_created_a_second_time(stand_ins, ctx, standing):
    name = standing.make("snowflake_warehouse", "Warehouse")
    standing.deploy("snowflake")
    stand_ins.admin().run(sql.statement(f"ALTER WAREHOUSE {name} RENAME TO SOMEBODYS_CHOICE"))
    assert drifted(ctx) == {"Warehouse": "RENAMED"}
    assert (
        f"its name is SOMEBODYS_CHOICE now, and it is found by name only: rename it back to {name}"
        in details(ctx, "Warehouse")
    )
    assert (refused(ctx).code, refused(ctx).exit_code) == ("REPAIR-REFUSED", BLOCKED)


def test_an_object_that_somebody_renamed_at_confluent_is_still_the_same(stand_ins, ctx, standing):
    environment = standing.make("environment", "Environment")
    standing.deploy("confluent")
    confluent(stand_ins, "PATCH", f"/org/v2/environments/{environment}", {"display_name": "renamed"})
    assert drift.find_missing(ctx) == []


def confluent(stand_ins, method, path, body=None, **params):
    key = stand_ins.cloud.credentials
    login = (key["cloud_api_key"], key["cloud_api_secret"])
    answer = requests.request(
        method, stand_ins.cloud.url + path, json=body, params=params, auth=login, timeout=20
    )
    answer.raise_for_status()
    return answer.json() if answer.content else {}


def with_cluster(standing):
    environment = standing.make("environment", "Environment")
    cluster = standing.make("kafka_cluster", "KafkaCluster", environment_id=environment, region="eu-west-1")
    account = standing.make("service_account", "AppManagerAccount")
    binding = standing.make(
        "role_binding", "Binding", service_account_id=account, role="CloudClusterAdmin", scope="cluster",
        environment_id=environment, cluster_id=cluster,
    )  # fmt: skip
    return environment, cluster, account, binding


def test_a_role_binding_that_somebody_removed_is_repaired(stand_ins, ctx, standing):
    *_, binding = with_cluster(standing)
    stack = standing.deploy("confluent")
    assert drift.find_missing(ctx) == []
    confluent(stand_ins, "DELETE", f"/iam/v2/role-bindings/{binding}")
    assert repaired(ctx) == [f"{stack}/Binding"]


@pytest.mark.slow
def test_a_cluster_that_somebody_deleted_is_not_repaired(stand_ins, ctx, standing):
    environment, cluster, *_ = with_cluster(standing)
    standing.deploy("confluent")
    confluent(stand_ins, "DELETE", f"/cmk/v2/clusters/{cluster}", environment=environment)
    ctx.clock.sleep(3600)
    assert drifted(ctx)["KafkaCluster"] == "DELETED"
    failure = refused(ctx)
    assert (failure.code, "`lakeferry destroy`, then `lakeferry deploy`" in failure.message) == (
        "REPAIR-REFUSED",
        True,
    )


def with_key(standing, name):
    environment, cluster, account, _ = with_cluster(standing)
    secret = f"{standing.ctx.deployment.prefix}/{name}"
    arn = boto3.client("secretsmanager").create_secret(Name=secret, SecretString="{}")["ARN"]
    kafka = {
        "service_account_id": account,
        "service": "kafka",
        "environment_id": environment,
        "cluster_id": cluster,
    }
    key = standing.make("api_key", "AppManagerKey", secret=arn, **kafka)
    standing.make(
        "topic", "Orders", environment_id=environment, cluster_id=cluster, topic="orders", credentials=arn
    )
    return key, secret


def test_a_deleted_key_is_the_reason_why_a_topic_cannot_be_seen(stand_ins, ctx, standing):
    key, secret = with_key(standing, "confluent/kafka/app_manager")
    standing.deploy("confluent")
    assert drift.find_missing(ctx) == []
    confluent(stand_ins, "DELETE", f"/iam/v2/api-keys/{key}")
    ctx.clock.sleep(3600)
    assert drifted(ctx) == {"AppManagerKey": "DELETED", "Orders": "unknown"}
    command = f"`lakeferry rotate {secret} --now`"
    assert command in details(ctx, "AppManagerKey")
    assert (refused(ctx).code, command in refused(ctx).message) == ("INCOMPLETE", True)


@pytest.mark.slow
def test_a_paused_connector_is_drift_of_its_own_kind_and_repaired(stand_ins, ctx, standing):
    environment, cluster, account, _ = with_cluster(standing)
    route = f"/connect/v1/environments/{environment}/clusters/{cluster}/connectors"
    given = {
        "environment_id": environment,
        "cluster_id": cluster,
        "service_account_id": account,
        "topic": "orders",
    }
    secret = f"{ctx.deployment.prefix}/kafka"
    arn = boto3.client("secretsmanager").create_secret(Name=secret, SecretString="{}")["ARN"]
    kafka = {
        "service_account_id": account,
        "service": "kafka",
        "environment_id": environment,
        "cluster_id": cluster,
    }
    standing.make("api_key", "AppManagerKey", secret=arn, **kafka)
    standing.make(
        "topic", "Orders", environment_id=environment, cluster_id=cluster, topic="orders", credentials=arn
    )
    name = standing.make("connector", "OrdersDatagen", quickstart="STOCK_TRADES", **given)
    stack = standing.deploy("confluent")
    assert drift.find_missing(ctx) == []
    confluent(stand_ins, "PUT", f"{route}/{name}/pause")
    ctx.clock.sleep(900)
    assert drifted(ctx) == {"OrdersDatagen": "STOPPED"}
    assert repaired(ctx) == [f"{stack}/OrdersDatagen"]


def test_what_cannot_be_seen_is_unknown_and_not_repaired(ctx, standing, broken):
    standing.had("snowflake_warehouse", "Warehouse", "GONE")
    standing.deploy("snowflake")
    broken(
        AWS,
        headers={"x-amz-target": "AmazonSQS.ListQueues"},
        status=400,
        shape="aws-json",
        code="AccessDeniedException",
    )
    assert repaired(ctx)
    broken(SNOWFLAKE, status=401, shape="json", code="390144")
    assert drifted(ctx) == {"Warehouse": "unknown"}
    assert refused(ctx).code == "INCOMPLETE"


def test_a_vendor_that_no_object_needs_does_not_stop_a_repair(ctx, standing, broken):
    standing.had("snowflake_warehouse", "Warehouse", "GONE")
    stack = standing.deploy("snowflake")
    broken(CONFLUENT, status=401, shape="json", code="401")
    assert repaired(ctx) == [f"{stack}/Warehouse"]


def test_a_state_of_an_earlier_release_is_unknown_and_completed_by_a_repair(ctx, stacks):
    stack = stacks.make("snowflake", {"States": LEDGER}, known=["lf1:snowflake_warehouse:Warehouse:0"])
    stacks.remember(stack, "lf1:snowflake_warehouse:Warehouse:0", "W", None)
    assert drifted(ctx) == {"Warehouse": "unknown"}
    assert repaired(ctx) == [f"{stack}/Warehouse"]


def test_an_object_without_a_state_is_unknown(ctx, stacks):
    stacks.make("snowflake", known=["lf1:snowflake_warehouse:Warehouse:0"])
    assert drifted(ctx) == {"Warehouse": "unknown"}
    assert refused(ctx).code == "INCOMPLETE"


def test_a_repair_does_not_need_snowflake_once_the_deployment_has_none(ctx, stacks):
    assert stacks.delete(stacks.make("snowflake", {"Queue": QUEUE})) == ""
    ctx = attrs.evolve(
        ctx, loaded=attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, snowflake=None))
    )
    assert to_repair(Output(quiet=True), ctx) == ""
    assert drift.detect(ctx) == []


@pytest.fixture
def flink(ctx, standing):
    """Return the properties of a statement, with a Flink key that works."""
    environment = standing.make("environment", "Environment")
    account = standing.make("service_account", "FlinkRunnerAccount")
    where = {"environment_id": environment, "service_account_id": account}
    Planter(ctx).make("role_binding", "FlinkDeveloper", role="FlinkDeveloper", scope="environment", **where)
    secret = f"{ctx.deployment.prefix}/confluent/flink"
    boto3.client("secretsmanager").create_secret(Name=secret, SecretString="{}")
    Planter(ctx).make("api_key", "FlinkKey", service="flink", region=ctx.region, secret=secret, **where)
    pool = {"compute_pool_id": "lfcp-1", "catalog": "lake", "database": "lake", "sql": "SELECT 1"}
    return {"region": ctx.region, "credentials": secret, **pool, **where}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("phase", "expected"),
    [("COMPLETED", {}), ("RUNNING", {"Totals": "DELETED"}), ("", {"Totals": "DELETED"})],
)
def test_a_statement_that_completed_before_confluent_dropped_it_is_as_it_should_be(
    ctx, standing, stacks, flink, phase, expected
):
    """Confluent drops a statement 30 days after its end. A repair would find nothing to do."""
    standing.had("flink_statement", "Totals", "totals-0a1b2c3d", **flink)
    stack = standing.deploy("confluent")
    ran = {"ran": "totals-0a1b2c3d", "phase": phase} if phase else {}
    (identity,) = [identity for identity, *_ in standing.objects if ":Totals:" in identity]
    stacks.remember(stack, identity, "totals-0a1b2c3d", flink, notes=ran, tenant=ctx.confluent().tenant)
    assert drifted(ctx) == expected
    (known,) = [
        item for item in read_known(ctx, described(ctx, stack)) if item.identity.logical_id == "Totals"
    ]
    assert ExistenceChecker(ctx, deleting=True).look(known).answer is Answer.ABSENT


def described(ctx, stack):
    return deployed.describe(ctx, stack, with_resources=True)


def test_what_is_not_found_and_whose_state_was_lost_is_unknown(ctx, standing, stacks):
    """A delete came without a state, and began a new one, which doesn't say where the object would be."""
    standing.had("service_account", "Account", "sa-1")
    stack = standing.deploy("confluent")
    (identity,) = [identity for identity, *_ in standing.objects]
    stacks.remember(stack, identity, None, {}, unrecorded=True)
    (known,) = read_known(ctx, described(ctx, stack))
    existence = ExistenceChecker(ctx, deleting=True).look(known)
    assert (existence.answer, existence.why) == (Answer.UNKNOWN, "the functions' table has no state of it")
