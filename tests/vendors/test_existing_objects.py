"""A cluster and topics that somebody else has: they are looked up, and what a deployment can't use is refused
by name.
"""

from __future__ import annotations

import copy

import pytest

from lambdas.shared.errors import Refused, TimedOut
from simulators.confluent.iam import bind_role
from simulators.confluent.simulation import REGION
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import (
    LIVES,
    account,
    cluster,
    environment,
    existing_topic,
    kafka,
    registry_key,
    tableflow,
)


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


def snapshot(org):
    """Return everything that the organization has."""
    org.settle()
    state, _ = copy.deepcopy(org.state())
    kinds = ("environments", "clusters", "schema_registries", "service_accounts", "role_bindings", "api_keys")
    return {kind: getattr(state, kind) for kind in kinds}, org.objects()


def look_up_cluster(org, **changes):
    given = {**cluster(org), "region": REGION, **changes}
    return org.resource("existing_cluster", "KafkaCluster", **given)


def test_a_cluster_has_the_outputs_of_one_that_is_created(org):
    looked_up = look_up_cluster(org)
    assert looked_up.create() == org.made["Cluster"]


@pytest.mark.parametrize("kind", ["existing_cluster", "existing_topic"])
def test_nothing_is_changed_by_create_update_and_delete(org, kind):
    given = {**cluster(org), "region": REGION} if kind == "existing_cluster" else existing_topic(org)
    before = snapshot(org)
    looked_up = org.resource(kind, "It", **given)
    looked_up.create()
    looked_up.update()
    looked_up.delete()
    assert snapshot(org) == before
    methods = {call.method for call in org.wire.calls if "/_simulator" not in call.path}
    assert "DELETE" not in methods


def test_a_cluster_that_does_not_exist_is_named(org):
    given = {"environment_id": environment(org), "cluster_id": "lkc-none", "region": REGION}
    with pytest.raises(TimedOut, match=r"CFL-NO-CLUSTER.*lkc-none does not exist in environment env-"):
        org.resource("existing_cluster", "KafkaCluster", **given).create()


def test_a_cluster_in_another_environment_is_not_found(org):
    other = org.make("environment", "OtherEnvironment")["id"]
    with pytest.raises(TimedOut, match=r"CFL-NO-CLUSTER"):
        look_up_cluster(org, environment_id=other).create()


def test_a_cluster_in_another_region_is_refused(org):
    with pytest.raises(
        Refused, match=f"CFL-UNFIT-CLUSTER.*is in AWS {REGION}, and the deployment in AWS us-east-1"
    ):
        look_up_cluster(org, region="us-east-1").create()


def test_a_basic_cluster_is_refused(org):
    where = {"environment_id": environment(org)}
    basic = org.make("kafka_cluster", "Basic", region=REGION, type="Basic", **where)["id"]
    with pytest.raises(Refused, match=r"CFL-UNFIT-CLUSTER.*is of type Basic"):
        org.resource("existing_cluster", "KafkaCluster", cluster_id=basic, region=REGION, **where).create()


@pytest.mark.parametrize(("network", "problem"), [("", ""), ("n-1", "has no public endpoint")])
def test_a_dedicated_cluster_is_used_if_it_has_a_public_endpoint(org, network, problem):
    looked_up = look_up_cluster(org)
    (theirs,) = org.simulation.organization.clusters.values()
    theirs.type = "Dedicated"
    theirs.cku = 2
    theirs.network = network
    if problem:
        with pytest.raises(Refused, match=f"CFL-UNFIT-CLUSTER.*{problem}"):
            looked_up.create()
    else:
        assert looked_up.create()["id"] == theirs.id


def test_a_cluster_that_is_deleted_under_us_does_not_stop_a_destroy(org):
    looked_up = look_up_cluster(org)
    looked_up.create()
    org.simulation.organization.clusters.clear()
    with pytest.raises(TimedOut, match=r"CFL-NO-CLUSTER"):
        looked_up.update()
    looked_up.delete()


def test_a_topic_has_its_number_of_partitions(org):
    looked_up = org.resource("existing_topic", "OrdersTopic", **existing_topic(org))
    assert looked_up.create() == {"name": "orders", "partitions": "1"}


def test_a_topic_with_capitals_is_found(org):
    where, _ = kafka(org)
    org.make("topic", "Orders", topic="Sales.Orders", partitions=2, **where)
    assert (
        org.resource("existing_topic", "It", topic="Sales.Orders", **where).create()["name"] == "Sales.Orders"
    )


def test_a_topic_that_does_not_exist_is_named(org):
    where, _ = kafka(org)
    with pytest.raises(TimedOut, match=r"CFL-NO-TOPIC.*topic returns does not exist in Kafka cluster lkc-"):
        org.resource("existing_topic", "It", topic="returns", **where).create()


def test_a_rollback_is_not_refused_because_the_owner_has_deleted_the_topic(org):
    where, _ = kafka(org)
    topic = org.resource("topic", "Orders", topic="orders", partitions=1, **where)
    topic.create()
    looked_up = org.resource("existing_topic", "It", topic="orders", **where)
    looked_up.create()
    topic.delete()
    org.settle()
    deployed = looked_up.properties
    registry = registry_key(org, where["environment_id"])["credentials"]
    with pytest.raises(TimedOut, match=r"CFL-NO-TOPIC"):
        looked_up.update(write_mode="APPEND", registry_credentials=registry)
    failed = looked_up.properties
    looked_up.properties = deployed
    org.invocations.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    looked_up.run(looked_up.event("Update", failed))
    assert looked_up.outputs["name"] == "orders"


def test_a_table_of_a_topic_without_a_schema_is_refused(org):
    where, _ = kafka(org)
    registry = registry_key(org, where["environment_id"])["credentials"]
    org.make("topic", "Orders", topic="orders", partitions=1, **where)
    given = {**where, "topic": "orders", "write_mode": "APPEND", "registry_credentials": registry}
    with pytest.raises(TimedOut, match=r"CFL-NO-SCHEMA.*no subject orders-value"):
        org.resource("existing_topic", "It", **given).create()
    without_table = {**where, "topic": "orders"}
    assert org.resource("existing_topic", "Other", **without_table).create()["name"] == "orders"


def test_a_compacted_topic_needs_the_mode_that_tableflow_chooses(org):
    where, _ = kafka(org)
    registry = registry_key(org, where["environment_id"])["credentials"]
    org.make("topic", "Orders", topic="orders", config={"cleanup.policy": "compact"}, **where)
    given = {**where, "topic": "orders", "write_mode": "APPEND", "registry_credentials": registry}
    with pytest.raises(Refused, match=r"CFL-OTHER-WRITE-MODE.*compact.*in mode UPSERT"):
        org.resource("existing_topic", "It", **given).create()


def own_one_topic(org, topic):
    """Return where a table of `topic` is created by an account that owns this topic only."""
    where = tableflow(org)
    place = {"environment_id": where["environment_id"], "cluster_id": where["cluster_id"]}
    owner = account(org, "Owner")
    roles = [
        ("ResourceOwner", "topic", {**place, "name": topic}),
        (
            "DeveloperRead",
            "subject",
            {
                "environment_id": where["environment_id"],
                "schema_registry_id": org.made["Cluster"]["schema_registry_id"],
                "name": f"{topic}-value",
            },
        ),
        (
            "ResourceOwner",
            "provider_integration",
            {"environment_id": where["environment_id"], "name": where["provider_integration_id"]},
        ),
    ]
    for role, scope, of in roles:
        org.make(
            "role_binding",
            f"Owner{role}{scope}".replace("_", ""),
            service_account_id=owner,
            role=role,
            scope=scope,
            **of,
        )
    secret = org.new_secret("owner-key")
    org.make(
        "api_key",
        "OwnerKey",
        service="tableflow",
        secret=secret,
        service_account_id=owner,
        region=REGION,
        **place,
    )
    return {**where, "credentials": secret, "bucket": "lake"}


def test_the_owner_of_a_topic_enables_its_table_and_no_other(org):
    where = own_one_topic(org, "orders")
    table = org.resource("tableflow_topic", "It", topic="orders", **where)
    assert table.create()["topic"] == "orders"
    kafka_key = {**where, "credentials": "kafka-key"}
    org.make("topic", "Returns", topic="returns", partitions=1, environment_id=kafka_key["environment_id"],
             cluster_id=kafka_key["cluster_id"], credentials="kafka-key")  # fmt: skip
    with pytest.raises(TimedOut, match=r"CFL-UNSEEN.*owns key"):
        org.resource("tableflow_topic", "Other", topic="returns", **where).create()
    table.delete()
    assert org.simulation.organization.tableflow_topics == {}


@pytest.mark.slow
def test_a_cluster_without_an_integration_with_glue_ends_the_wait(org):
    where = own_one_topic(org, "orders")
    began = org.clock.now
    with pytest.raises(TimedOut, match=r"CFL-NO-CATALOG.*may not see whether the cluster has"):
        org.resource("tableflow_topic", "It", topic="orders", await_catalog="true", **where).create()
    assert 1800 <= org.clock.now - began < 2400  # a table takes some ten minutes


@pytest.mark.slow
def test_a_key_that_would_see_the_integration_ends_the_wait_earlier(org):
    given = {**LIVES["tableflow_topic"].properties(org), "await_catalog": "true"}
    org.simulation.organization.catalog_integrations.clear()
    began = org.clock.now
    with pytest.raises(TimedOut, match=r"CFL-NO-CATALOG.*lkc-\w+ has no catalog integration"):
        org.resource("tableflow_topic", "It", **given).create()
    assert 900 <= org.clock.now - began < 1500


@pytest.mark.slow
def test_a_cluster_that_is_still_provisioned_is_waited_for_and_one_that_failed_is_not(org):
    where = cluster(org)
    (theirs,) = org.simulation.organization.clusters.values()
    theirs.phase = "PROVISIONING"
    began = org.clock.now
    with pytest.raises(TimedOut, match="existing_cluster KafkaCluster"):
        org.resource("existing_cluster", "KafkaCluster", region=REGION, **where).create()
    assert org.clock.now - began >= 900
    theirs.phase = "FAILED"
    with pytest.raises(TimedOut, match="CFL-CLUSTER-FAILED"):
        org.resource("existing_cluster", "Failed", region=REGION, **where).create()


@pytest.mark.slow
def test_a_statement_runs_as_the_owner_of_a_key_that_is_brought(org):
    given = LIVES["flink_statement"].properties(org)
    runner = given.pop("service_account_id")
    org.resource("flink_statement", "It", **given).create()
    (statement,) = org.simulation.organization.statements.values()
    assert statement.principal == runner


@pytest.mark.slow
def test_a_statement_reads_an_existing_topic_with_roles_on_single_topics(org):
    given = LIVES["flink_statement"].properties(org)
    organization = org.simulation.organization
    runner = f"User:{given['service_account_id']}"
    for binding in list(organization.role_bindings.values()):
        if binding.principal == runner and binding.pattern.endswith(("topic=*", "subject=*")):
            del organization.role_bindings[binding.id]
    (their_cluster,) = organization.clusters.values()
    (registry,) = organization.schema_registries.values()
    subjects = [f"{topic}-{part}" for topic in ("orders", "totals") for part in ("key", "value")]
    rights = [
        ("DeveloperRead", their_cluster.build_crn("topic", "orders")),
        ("ResourceOwner", their_cluster.build_crn("topic", "totals")),
        *(
            (
                "DeveloperRead" if subject.startswith("orders") else "ResourceOwner",
                registry.build_subject_crn(subject),
            )
            for subject in subjects
        ),
    ]
    for role, pattern in rights:
        bind_role(organization, runner, role, pattern)
    statement = org.resource("flink_statement", "It", **given)
    statement.create()
    (running,) = organization.statements.values()
    assert running.phase == "RUNNING"
    statement.delete()
    org.settle()
    topics = {name for kind, name in org.objects() if kind == "topics"}
    assert topics == {f"{their_cluster.id}/orders"}
