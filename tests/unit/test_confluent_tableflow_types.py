"""Tableflow topics and catalog integrations: settings that the simulator doesn't have, temporary and
permanent faults.
"""

from __future__ import annotations

import attrs
import pytest

from lambdas.confluent.resources import catalog_integration, tableflow_topic
from lambdas.shared.errors import (
    BadProperties,
    InProgress,
    NotFound,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    ResourceMissing,
)
from tests.support.confluent_context import CLUSTER, ENV, IN_CLUSTER, LKC, NAME, context, listing, spec, wrote

ROUTE = "/tableflow/v1/tableflow-topics"
TOPIC = f"{ROUTE}/trades"
CATALOGS = "/tableflow/v1/catalog-integrations"
PLACE = {"environment": {"id": ENV}, "kafka_cluster": {"id": LKC}}
OWN = {"kind": "ByobAws", "bucket_name": "lake", "provider_integration_id": "cspi-1"}
TABLE = "s3://lake//1001/1010/org/env-1/lkc-1/v1/5f1c"


def tableflow_spec(**given):
    own = {"bucket": "lake", "provider_integration_id": "cspi-1"} if given.get("storage") != "managed" else {}
    return spec(tableflow_topic, credentials="tableflow", topic="trades", **IN_CLUSTER, **{**own, **given})


def catalog_spec(**given):
    return spec(
        catalog_integration,
        credentials="tableflow",
        **IN_CLUSTER,
        **{"provider_integration_id": "cspi-1", **given},
    )


def there(server, phase="RUNNING", *, config=None, status=None, formats=("ICEBERG",), **fields):
    default = {
        "retention_ms": "604800000",
        "error_handling": {"mode": "SUSPEND"},
        "metadata_column_naming_scheme": "DEFAULT",
    }
    held = {"storage": {**OWN, "table_path": TABLE}, "config": {**default, **(config or {})}}
    result = {"phase": phase, "write_mode": "APPEND", **(status or {})}
    server.answers[f"GET {TOPIC}"] = (
        200,
        {"spec": {"table_formats": list(formats), **held, **fields}, "status": result},
    )
    server.answers[f"PATCH {TOPIC}"] = (200, {})


def with_catalog(server, *statuses, phase="PENDING", message="", **fields):
    there(server, status={"catalog_sync_statuses": list(statuses)})
    integration = {
        "id": "tci-1",
        "spec": {"suspended": False, **fields},
        "status": {"phase": phase, "error_message": message},
    }
    server.answers[f"GET {CATALOGS}"] = listing(integration)
    server.answers[f"GET {CATALOGS}/tci-1"] = (200, integration)
    server.answers[f"PATCH {CATALOGS}/tci-1"] = (200, {})


def test_create_with_everything_set(server):
    given = {
        "storage": "managed",
        "table_formats": ["ICEBERG", "DELTA"],
        "retention_ms": "86400000",
        "data_retention_ms": "2592000000",
        "error_handling": "LOG",
        "error_log_topic": "bad",
        "metadata_columns": "PORTABLE",
    }
    server.answers[f"POST {ROUTE}"] = (202, {})
    assert tableflow_topic.create(context(server), tableflow_spec(**given)) == "trades"
    ((_, body),) = wrote(server)
    assert body["spec"] == {
        "display_name": "trades",
        **PLACE,
        "storage": {"kind": "Managed"},
        "table_formats": ["DELTA", "ICEBERG"],
        # With error_handling, the deprecated record_failure_strategy would make creation fail.
        "config": {
            "retention_ms": "86400000",
            "data_retention_ms": "2592000000",
            "error_handling": {"mode": "LOG", "target": "bad"},
            "metadata_column_naming_scheme": "PORTABLE",
        },
    }


@pytest.mark.parametrize(
    ("status", "message", "error", "code"),
    [
        (
            400,
            "Schemaless topics are not supported. Please specify a value schema",
            InProgress,
            "CFL-SCHEMALESS",
        ),
        (422, "The bucket is not empty", Refused, "CFL-STORAGE-NOT-EMPTY"),
        (400, "Unable to assume the role", ResourceFailed, "CFL-TABLEFLOW-FAILED"),
        (404, "topic not found", NotFound, "CFL-NOT-FOUND"),
        (400, "something else", Refused, "CFL-INVALID"),
    ],
)
def test_creation_distinguishes_refusals(server, status, message, error, code):
    server.answers[f"POST {ROUTE}"] = (status, {"errors": [{"detail": message}]})
    with pytest.raises(error) as raised:
        tableflow_topic.create(context(server), tableflow_spec())
    assert type(raised.value) is error
    assert raised.value.kind.code == code
    assert raised.value.patience == {NotFound: 600, ResourceFailed: 900}.get(error, 0)


def test_outputs(server):
    there(server)
    outputs = tableflow_topic.is_ready(context(server), tableflow_spec(), "trades")
    base = "s3://lake//1001/1010/org/env-1/lkc-1/v1/"
    assert outputs == {"topic": "trades", "table_path": TABLE, "table_base": base, "write_mode": "APPEND"}
    with_catalog(server)
    assert catalog_integration.is_ready(context(server), catalog_spec(), "tci-1")["database"] == LKC
    assert (
        catalog_integration.is_ready(context(server), catalog_spec(database="own"), "tci-1")["database"]
        == "own"
    )


def test_not_ready_while_pending_or_without_a_path(server):
    there(server, "PENDING")
    assert tableflow_topic.is_ready(context(server), tableflow_spec(), "trades") is None
    there(server)
    server.answers[f"GET {TOPIC}"][1]["spec"]["storage"]["table_path"] = ""
    assert tableflow_topic.is_ready(context(server), tableflow_spec(), "trades") is None


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"phase": "FAILED"}, "CFL-TABLEFLOW-FAILED"),
        ({"suspended": True}, "CFL-TABLEFLOW-SUSPENDED"),
        ({"phase": "FAILED", "status": {"error_message": "Bucket is not empty"}}, "CFL-STORAGE-NOT-EMPTY"),
    ],
)
def test_a_failed_or_suspended_topic_is_resumed_and_reported(server, given, code):
    there(server, **{"status": {"error_message": "record at offset 7"}, **given})
    result = context(server)
    for seconds, resumed in ((0, 1), (5, 1), (60, 2)):
        result.clock.now += seconds
        with pytest.raises(ResourceFailed) as faulty:
            tableflow_topic.is_ready(result, tableflow_spec(), "trades")
        assert len(server.writes()) == resumed
    assert faulty.value.kind.code == code
    assert faulty.value.what.endswith(
        given.get("status", {"error_message": "record at offset 7"})["error_message"]
    )
    assert wrote(server)[0] == (f"PATCH {TOPIC}", {"spec": {**PLACE, "suspended": False}})


def test_a_format_that_fails_is_reported(server):
    there(server, status={"failing_table_formats": [{"format": "DELTA", "error_message": "no room"}]})
    with pytest.raises(ResourceFailed, match="no room"):
        tableflow_topic.is_ready(context(server), tableflow_spec(), "trades")


def test_the_catalog_is_awaited_where_asked(server):
    waiting = tableflow_spec(await_catalog="true")
    for statuses in ([], ["PENDING"], ["SYNCED", "PENDING"]):
        with_catalog(server, *({"sync_status": status} for status in statuses))
        with pytest.raises(InProgress, match="tci-1 is PENDING"):
            tableflow_topic.is_ready(context(server), waiting, "trades")
        assert server.sent[-1].query["spec.kafka_cluster"] == LKC
        assert tableflow_topic.is_ready(context(server), tableflow_spec(), "trades")
    with_catalog(server, {"sync_status": "SYNCED"})
    assert tableflow_topic.is_ready(context(server), waiting, "trades")
    with_catalog(server, {"sync_status": "FAILED", "error_message": "no glue"}, phase="CONNECTED")
    with pytest.raises(ResourceFailed, match="no glue"):
        tableflow_topic.is_ready(context(server), waiting, "trades")
    server.answers[f"GET {CATALOGS}"] = listing()
    there(server)
    with pytest.raises(ResourceFailed, match=r"CFL-NO-CATALOG.*no catalog integration"):
        tableflow_topic.is_ready(context(server), waiting, "trades")
    assert not server.writes()


@pytest.mark.parametrize("broken", [{"phase": "FAILED"}, {"suspended": True}])
@pytest.mark.parametrize("kind", [tableflow_topic, catalog_integration])
def test_a_catalog_integration_that_failed_is_resumed_once_a_minute_and_reported(server, kind, broken):
    """The topic itself runs, and its resource doesn't report the failure."""
    with_catalog(server, **{"message": "no glue:CreateTable", **broken})
    given = tableflow_spec(await_catalog="true") if kind is tableflow_topic else catalog_spec()
    result = context(server)
    for seconds, patches in ((0, 1), (5, 1), (60, 2)):
        result.clock.now += seconds
        with pytest.raises(ResourceFailed, match="tci-1: no glue:CreateTable") as faulty:
            kind.is_ready(result, given, "tci-1")
        assert len(server.writes()) == patches
    assert (faulty.value.kind.code, faulty.value.patience) == ("CFL-CATALOG-FAILED", 900)
    assert wrote(server)[0] == (f"PATCH {CATALOGS}/tci-1", {"spec": {**PLACE, "suspended": False}})


@pytest.mark.parametrize("given", [{}, {"database": "own", "provider_integration_id": "cspi-2"}])
def test_a_catalog_integration_of_another_role_or_database_is_created_again(server, given):
    config = {"kind": "AwsGlue", "provider_integration_id": "cspi-1", "custom_database": "own"}
    server.answers[f"GET {CATALOGS}/tci-1"] = (200, {"spec": {"display_name": NAME, "config": config}})
    with pytest.raises(ReplacementRequired):
        catalog_integration.update(context(server), catalog_spec(**given), "tci-1")


@pytest.mark.parametrize(
    ("now", "wanted", "sent"),
    [
        (
            {"config": {"error_handling": {"mode": "LOG", "target": "error_log"}}},
            {"error_handling": "LOG"},
            None,
        ),
        ({"formats": ("DELTA", "ICEBERG")}, {"table_formats": ["ICEBERG", "DELTA"]}, None),
        ({}, {"table_formats": ["DELTA"]}, {"table_formats": ["DELTA"]}),
        ({}, {"metadata_columns": "PORTABLE"}, {"config": {"metadata_column_naming_scheme": "PORTABLE"}}),
    ],
)
def test_update(server, now, wanted, sent):
    there(server, **now)
    tableflow_topic.update(context(server), tableflow_spec(**wanted), "trades")
    assert wrote(server) == ([(f"PATCH {TOPIC}", {"spec": {**PLACE, **sent}})] if sent else [])


def test_rows_that_expire_can_not_be_kept_for_ever_again(server):
    """A rollback changes nothing, and must not fail."""
    there(server, config={"data_retention_ms": "2592000000"})
    before = context(server, previous=tableflow_spec(data_retention_ms="2592000000"))
    with pytest.raises(Refused, match="data_retention_ms of Tableflow topic trades can't be removed"):
        tableflow_topic.update(before, tableflow_spec(), "trades")
    tableflow_topic.update(attrs.evolve(before, rolling_back=lambda: True), tableflow_spec(), "trades")
    assert wrote(server) == []


@pytest.mark.parametrize("wanted", [{"provider_integration_id": "cspi-2"}, {"storage": "managed"}])
def test_other_storage_needs_another_table(server, wanted):
    there(server)
    with pytest.raises(ReplacementRequired):
        tableflow_topic.update(context(server), tableflow_spec(**wanted), "trades")


def test_a_missing_topic_is_reported(server):
    with pytest.raises(ResourceMissing):
        tableflow_topic.update(context(server), tableflow_spec(), "trades")


def test_an_invalid_key_means_gone_only_if_the_cluster_is_gone(server):
    result = context(server, deleting=True, owned=True)
    server.answers[f"GET {TOPIC}"] = (401, b"<html>")
    with pytest.raises(Exception, match="401"):
        tableflow_topic.find_existing(result, tableflow_spec(), "trades")
    server.answers[f"GET {CLUSTER}"] = (404, {})
    assert tableflow_topic.find_existing(result, tableflow_spec(), "trades") == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"bucket": ""}, "bucket"),
        ({"storage": "managed", "bucket": "x"}, "bucket"),
        ({"retention_ms": "3600000"}, "retention_ms"),
        ({"data_retention_ms": "86400000"}, "data_retention_ms"),
        ({"table_formats": ["PARQUET"]}, "table_formats"),
        ({"error_handling": "IGNORE"}, "error_handling"),
    ],
)
def test_properties_that_contradict_each_other(given, named):
    with pytest.raises(BadProperties) as bad:
        tableflow_spec(**given)
    assert named in dict(bad.value.problems)
