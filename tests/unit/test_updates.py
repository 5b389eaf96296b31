"""What becomes of a changed property: every one of every resource type, in `update` and in the plan.

CREATE_ONLY replaces the object, RECREATED_ON deletes it first, UPDATED writes it to the object, REFUSED can't
be written. A property WITHOUT_EFFECT on an existing object says something about calls, not about the object.
"""

from __future__ import annotations

import inspect

import attrs
import pytest

from lakeferry.deployment.stacks import Stack
from lakeferry.plan import refusals, replacement
from lakeferry.plan.difference import Comparison
from lakeferry.plan.templates import SynthesizedStack
from lambdas import contract
from lambdas.custom_resources import registry
from lambdas.shared.errors import Refused
from tests.support.confluent_context import (
    CLUSTER,
    ENV,
    IN_CLUSTER,
    IN_ENV,
    KAFKA,
    LKC,
    NAME,
    context,
    spec,
    wrote,
)

UPDATED = {
    "acl": "resource_names",
    "api_key": "compute_pool_id description",
    "catalog_integration": "database",
    "connector": "service_account_id topic quickstart schema schema_key_field max_interval_ms",
    "environment": "stream_governance",
    "flink_compute_pool": "max_cfu",
    "flink_statement": "compute_pool_id service_account_id",
    "kafka_cluster": "type max_ecku deletion_protection",
    "schema": "schema schema_type compatibility",
    "service_account": "description",
    "snowflake_catalog_integration": "refresh_seconds",
    "snowflake_iceberg_table": "columns",
    "snowflake_linked_database": "namespaces sync_seconds",
    "snowflake_user": "secret role warehouse namespace network_policy",
    "snowflake_view": "table columns",
    "snowflake_warehouse": "size auto_suspend_seconds",
    "tableflow_topic": "table_formats retention_ms data_retention_ms error_handling error_log_topic metadata_columns",
    "topic": "partitions config",
}
WITHOUT_EFFECT = {
    # The login of calls, and what is waited for or done at the end.
    "acl": "credentials",
    "catalog_integration": "credentials",
    "existing_cluster": "region",
    "existing_topic": "credentials write_mode registry_credentials",
    "flink_statement": (
        "credentials topic_credentials subject_credentials undo_sql tableflow_topics keep_table adopt "
        "catalog database topic cluster_id shared_cluster "
        # What decides whether another text goes on where the old one stopped.
        "insert_sql head columns reads drop_on_edit"
    ),
    "schema": "credentials delete_permanently adopt",
    "tableflow_topic": "credentials await_catalog adopt shared_cluster",
    "topic": "credentials adopt shared_cluster",
    # Checked when the table is created.
    "snowflake_iceberg_table": "write_mode",
    # For messages.
    "snowflake_grant": "named_by",
    # A change is an update, which writes the secret again.
    "snowflake_user": "account",
    # The type creates nothing: each deployment checks the new values.
    "snowflake_trust": (
        "volume integration namespace volume_principal volume_external_id integration_principal "
        "integration_external_id"
    ),
}


def words(table, kind):
    return set(table.get(kind, "").split())


@pytest.mark.parametrize("kind", sorted(registry.RESOURCE_TYPES))
def test_it_is_known_what_becomes_of_every_property(kind):
    properties = registry.RESOURCE_TYPES[kind].handler.PROPERTIES
    groups = {
        "replaced": set(properties.CREATE_ONLY),
        "recreated": set(replacement.RECREATED_ON.get(kind, ())),
        "updated": words(UPDATED, kind),
        "without effect": words(WITHOUT_EFFECT, kind),
    }
    known = [name for group in groups.values() for name in group]
    assert sorted(known) == sorted(attrs.fields_dict(properties))


@pytest.mark.parametrize("kind", sorted(UPDATED))
def test_what_is_updated_is_read_by_the_resource_type(kind):
    source = inspect.getsource(inspect.getmodule(registry.RESOURCE_TYPES[kind].handler.update))
    assert {name for name in words(UPDATED, kind) if f"spec.{name}" not in source} == set()


CONFIG = {"kind": "Standard", "max_ecku": 4}
TABLE = {"spec": {"config": {"data_retention_ms": "2592000000"}, "storage": {"kind": "Managed"}}}
ANSWERS = {
    f"GET /org/v2/environments/{ENV}": {
        "display_name": NAME,
        "stream_governance_config": {"package": "ADVANCED"},
    },
    f"PATCH /org/v2/environments/{ENV}": {},
    f"GET {CLUSTER}": {"spec": {"display_name": NAME, "config": CONFIG}},
    f"PATCH {CLUSTER}": {},
    "GET /fcpm/v2/compute-pools/lfcp-1": {"spec": {"display_name": NAME, "max_cfu": 20}},
    "PATCH /fcpm/v2/compute-pools/lfcp-1": {},
    "GET /tableflow/v1/tableflow-topics/orders": TABLE,
    "PATCH /tableflow/v1/tableflow-topics/orders": {},
}
POOL = {**IN_ENV, "region": "eu-west-1"}
#: The resource type, its object, its other properties; the changed property, its value, and the value that is
#: refused after it.
REFUSED = [
    ("environment", ENV, {}, "stream_governance", "ADVANCED", "ESSENTIALS"),
    ("flink_compute_pool", "lfcp-1", POOL, "max_cfu", "20", "10"),
    ("kafka_cluster", LKC, POOL, "max_ecku", "4", None),
    ("kafka_cluster", LKC, POOL, "type", "Standard", "Basic"),
    (
        "tableflow_topic",
        "orders",
        {**IN_CLUSTER, "credentials": "tableflow", "topic": "orders", "storage": "managed"},
        "data_retention_ms",
        "2592000000",
        None,
    ),
]


def with_value(given, name, value):
    return {**given, **({name: value} if value is not None else {})}


def planned(kind, before, after):
    """Return what the plan refuses."""
    stacks = []
    for properties in (before, after):
        body = {
            "Type": contract.resource_type(kind),
            "Properties": {"kind": kind, "ServiceToken": "arn", **properties},
        }
        stacks.append({"Resources": {"It": body}})
    deployed = {"s": Stack("s", "arn:s", "CREATE_COMPLETE", template=stacks[0])}
    comparison = Comparison([SynthesizedStack("s", stacks[1])], deployed)
    return [refusal.reason for refusal in refusals.find(comparison, comparison.changes())]


@pytest.mark.parametrize(("kind", "object_id", "given", "name", "taken", "other"), REFUSED)
def test_the_plan_refuses_what_the_update_refuses(server, kind, object_id, given, name, taken, other):
    server.answers |= {route: (200, answer) for route, answer in ANSWERS.items()}
    handler = registry.RESOURCE_TYPES[kind].handler
    before, after = (with_value(given, name, value) for value in (taken, other))
    with pytest.raises(Refused) as refused:
        handler.update(context(server, previous=spec(handler, **before)), spec(handler, **after), object_id)
    assert refused.value.kind.code == "CFL-CANT-CHANGE"
    assert wrote(server) == []
    (reason,) = planned(kind, before, after)
    assert refused.value.kind.remedy in reason
    # The other direction is written, or has been written already.
    handler.update(context(server, previous=spec(handler, **after)), spec(handler, **before), object_id)
    assert planned(kind, after, before) == []
    # A rollback goes back to the lower value, and must not fail.
    back = attrs.evolve(context(server, previous=spec(handler, **before)), rolling_back=lambda: True)
    handler.update(back, spec(handler, **after), object_id)


def test_a_topic_keeps_its_partitions_in_the_plan_and_in_the_update(server):
    handler = registry.RESOURCE_TYPES["topic"].handler
    given = {**IN_CLUSTER, "credentials": "kafka", "topic": "orders"}
    server.answers[f"GET {KAFKA}/topics/orders"] = (200, {"partitions_count": 12})
    server.answers[f"GET {KAFKA}/topics/orders/configs"] = (200, {"data": []})
    before, after = ({**given, "partitions": number} for number in ("12", "6"))
    with pytest.raises(Refused):
        handler.update(context(server, previous=spec(handler, **before)), spec(handler, **after), "orders")
    assert planned("topic", before, after)
