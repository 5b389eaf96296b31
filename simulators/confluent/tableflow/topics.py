"""Tableflow topics (tableflow/v1/tableflow-topics).

The id of a Tableflow topic is the name of the Kafka topic.
"""

from __future__ import annotations

import re
from typing import Any, Final

from simulators.confluent import access, kafka
from simulators.confluent.authorization import is_allowed, require
from simulators.confluent.errors import (
    ApiError,
    bad_request,
    conflict,
    forbidden,
    immutable,
    invalid,
    not_found,
)
from simulators.confluent.fields import Fields
from simulators.confluent.http import TABLEFLOW, Answer, Call, Route
from simulators.confluent.model import Cluster, TableflowTopic
from simulators.confluent.organization import Organization
from simulators.confluent.pages import build_page
from simulators.confluent.provider_integrations import end_usage
from simulators.confluent.resources import build_header, build_reference
from simulators.confluent.tableflow import run
from simulators.tableflow.avro import SchemaError

_WEEK_MS: Final = 604_800_000
_LEAST_RETENTION_MS: Final = 86_400_000
_LEAST_DATA_RETENTION_MS: Final = 2_592_000_000
_LOG_TARGET: Final = r"[a-zA-Z0-9_-]{1,249}"
_PATH: Final = "/tableflow/v1/tableflow-topics"


def build_document(org: Organization, topic: TableflowTopic) -> dict[str, Any]:
    environment = org.environments[topic.environment]
    cluster = org.clusters[topic.cluster]
    path = {"table_path": topic.table_path} if topic.table_path else {}
    storage: dict[str, Any] = {"kind": "Managed"}
    if topic.integration:
        storage = {
            "kind": "ByobAws",
            "bucket_name": topic.bucket,
            "provider_integration_id": topic.integration,
        }
        storage["bucket_region"] = cluster.region
    spec = {
        "display_name": topic.id,
        "suspended": topic.suspended,
        "config": {"enable_compaction": True, "enable_partitioning": True} | topic.config,
        "storage": storage | path,
        "table_formats": ["ICEBERG"],
        "environment": build_reference(org, environment, "/org/v2/environments"),
        "kafka_cluster": build_reference(org, cluster, "/cmk/v2/clusters", environment.id),
    }
    query = f"?environment={environment.id}&spec.kafka_cluster={cluster.id}"
    head = build_header(org, "tableflow/v1", "TableflowTopic", _PATH, topic, query=query)
    del head["id"]
    return head | {"spec": spec, "status": _describe_status(org, topic)}


def _describe_status(org: Organization, topic: TableflowTopic) -> dict[str, Any]:
    sync_statuses = []
    for name, (state, reason) in topic.synced.items():
        if name not in org.catalog_integrations:
            continue
        entry = {"catalog_integration_id": name, "catalog_type": "AWS_GLUE", "sync_status": state}
        if reason:
            entry["error_message"] = reason
        sync_statuses.append(entry)
    failing_formats = (
        [{"format": "ICEBERG", "error_message": topic.message}] if topic.phase == "FAILED" else []
    )
    status = {
        "phase": topic.phase,
        "write_mode": topic.write_mode,
        "catalog_sync_statuses": sync_statuses,
        "failing_table_formats": failing_formats,
    }
    if topic.message:
        status["error_message"] = topic.message
    return status


def create(call: Call) -> Answer:
    org = call.org
    spec = Fields(call.body).read_object("spec")
    name = spec.read_text("display_name", required=True)
    cluster = access.name_cluster_of_body(call, spec)
    _require_owner(call, cluster, name)
    if (cluster.id, name) in org.tableflow_topics:
        raise conflict(f"Tableflow is already enabled on topic {name}")
    config = _read_config(spec, {})
    bucket, integration = _read_storage(call, spec)
    _check_formats(spec)
    if spec.read_flag("suspended"):
        raise invalid("/spec/suspended", "A topic can't be suspended on demand")
    kafka_topic = kafka.find_visible_topic(org, cluster, name)
    if kafka_topic is None or kafka_topic.visible + org.delays.tableflow_sees_topic > org.clock.now():
        raise ApiError(404, "topic not found", code="resource_not_found")
    _require_reader_of_schema(call, cluster, name)
    mode = "UPSERT" if "compact" in kafka_topic.get_setting("cleanup.policy") else "APPEND"
    now = org.clock.now()
    crn = f"{cluster.build_crn('topic', name)}/tableflow=iceberg"
    topic = TableflowTopic(
        name, crn, now, now, cluster.environment, cluster.id, bucket, integration, config, mode
    )
    try:
        topic.schema = dict(run.build_table_topic(org, topic).schema)
    except SchemaError as error:
        raise bad_request(f"The topic's schema can't be a table: {error}") from None
    org.tableflow_topics[topic.key] = topic
    org.clock.call_later(org.delays.tableflow_topic, lambda: run.begin(org, topic))
    return Answer(202, build_document(org, topic))


def _require_owner(call: Call, cluster: Cluster, topic: str) -> None:
    """Raise ApiError unless the caller administers the cluster or owns the topic.

    Source: Confluent's page "Grant Role-Based Access for Tableflow".
    """
    if not is_allowed(call.org, call.principal, "admin", cluster.scope):
        require(call, "grant", cluster.build_crn("topic", topic))


def _may_see(call: Call, cluster: Cluster, topic: str) -> bool:
    """Return whether the caller may see the table: an operator of the cluster, or the topic's owner."""
    if is_allowed(call.org, call.principal, "describe", cluster.scope):
        return True
    return is_allowed(call.org, call.principal, "grant", cluster.build_crn("topic", topic))


def _owns_a_topic(call: Call, cluster: Cluster) -> bool:
    return any(
        binding.principal == f"User:{call.principal}"
        and binding.role == "ResourceOwner"
        and binding.pattern.startswith(f"{cluster.crn}/topic=")
        for binding in call.org.role_bindings.values()
    )


def _require_reader_of_schema(call: Call, cluster: Cluster, topic: str) -> None:
    """Raise ApiError unless the caller may read the schema of the topic's values.

    The same page asks it of everybody. Administrators of the cluster aren't asked here: the public
    kickstarter doesn't give its administrator this right, and is published as working.
    """
    registry = call.org.find_registry(cluster.environment)
    if registry is not None and not is_allowed(call.org, call.principal, "admin", cluster.scope):
        require(call, "read", registry.build_subject_crn(f"{topic}-value"))


def _read_storage(call: Call, spec: Fields) -> tuple[str, str]:
    """Return the bucket and the id of the provider integration. Both are empty for managed storage."""
    storage = spec.read_object("storage")
    match storage.read_choice("kind", ("ByobAws", "Managed", "AzureDataLakeStorageGen2")):
        case "Managed":
            return "", ""
        case "AzureDataLakeStorageGen2":
            raise invalid("/spec/storage/kind", "Azure storage is not simulated")
    bucket = storage.read_text("bucket_name", required=True, pattern=r"[a-z0-9.-]{3,63}")
    integration = storage.read_text("provider_integration_id", required=True)
    require_integration(
        call, integration, spec.read_reference("environment"), "/spec/storage/provider_integration_id"
    )
    return bucket, integration


def require_integration(call: Call, name: str, environment: str, pointer: str) -> None:
    """Raise ApiError unless the provider integration is in the environment and the caller may assign it."""
    integration = call.org.provider_integrations.get(name)
    if integration is None or integration.environment != environment:
        raise invalid(pointer, f"provider integration {name} does not exist in the environment")
    if not is_allowed(call.org, call.principal, "assign", integration.crn):
        raise forbidden(f"Assigner or ResourceOwner on provider integration {name} is needed")


def _read_config(spec: Fields, current: dict[str, Any]) -> dict[str, Any]:
    fields = spec.read_object("config", required=False)
    handling = current.get("error_handling", {"mode": "SUSPEND"})
    if "error_handling" in fields:
        handling = _read_error_handling(fields)
    if (
        "record_failure_strategy" in fields
        and fields.read_text("record_failure_strategy") != handling["mode"]
    ):
        raise bad_request("record_failure_strategy contradicts error_handling")
    default_retention = current.get("retention_ms", str(_WEEK_MS))
    config = {
        "retention_ms": _read_duration(fields, "retention_ms", default_retention, _LEAST_RETENTION_MS),
        "error_handling": handling,
        "record_failure_strategy": "SKIP" if handling["mode"] == "LOG" else handling["mode"],
    }
    naming = current.get("metadata_column_naming_scheme", "DEFAULT")
    config["metadata_column_naming_scheme"] = fields.read_choice(
        "metadata_column_naming_scheme", ("DEFAULT", "PORTABLE"), naming
    )
    retention = _read_duration(
        fields, "data_retention_ms", current.get("data_retention_ms", ""), _LEAST_DATA_RETENTION_MS
    )
    if retention:
        config["data_retention_ms"] = retention
    return config


def _read_error_handling(config: Fields) -> dict[str, str]:
    handling = config.read_object("error_handling")
    mode = handling.read_choice("mode", ("SUSPEND", "SKIP", "LOG"))
    error_handling = {"mode": mode}
    if mode == "LOG":
        error_handling["target"] = handling.read_text("target", "error_log", pattern=_LOG_TARGET)
    return error_handling


def _read_duration(config: Fields, name: str, default: str, least: int) -> str:
    value = config.read_text(name, default)
    if value and (not re.fullmatch(r"\d+", value) or int(value) < least):
        raise invalid(config.build_pointer(name), f"{name} must be a whole number of at least {least}")
    return value


def _check_formats(spec: Fields) -> None:
    if "DELTA" in spec.read_texts("table_formats", ["ICEBERG"], ("ICEBERG", "DELTA")):
        raise invalid("/spec/table_formats", "DELTA is not simulated")


def list_topics(call: Call) -> Answer:
    """List the Tableflow topics that the caller may see.

    CloudClusterOperator may see all, but not change them (Confluent's page on roles for Tableflow).
    """
    cluster = access.name_cluster_of_query(call)
    if not _owns_a_topic(call, cluster):
        require(call, "describe", cluster.scope)
    topics = [
        topic
        for topic in call.org.tableflow_topics.values()
        if topic.cluster == cluster.id and _may_see(call, cluster, topic.id)
    ]
    return build_page(call, "tableflow/v1", "TableflowTopic", topics, build_document)


def read(call: Call) -> Answer:
    cluster = access.name_cluster_of_query(call)
    if not _may_see(call, cluster, call.parameters["name"]):
        raise forbidden()
    topic = _find_topic(call, cluster)
    return Answer(200, build_document(call.org, topic))


def update(call: Call) -> Answer:
    org = call.org
    spec = Fields(call.body).read_object("spec")
    cluster = access.name_cluster_of_body(call, spec)
    _require_owner(call, cluster, call.parameters["name"])
    topic = _find_topic(call, cluster)
    if "storage" in spec:
        storage = spec.read_object("storage")
        storage.require_same("kind", "ByobAws" if topic.integration else "Managed")
        storage.require_same("bucket_name", topic.bucket)
        storage.require_same("provider_integration_id", topic.integration)
    _check_formats(spec)
    config = _read_config(spec, topic.config)
    if config["metadata_column_naming_scheme"] != topic.config["metadata_column_naming_scheme"]:
        raise immutable("/spec/config/metadata_column_naming_scheme")
    if spec.read_flag("suspended", topic.suspended) and not topic.suspended:
        raise bad_request("A topic can't be suspended on demand", "/spec/suspended")
    topic.config = config
    topic.updated = org.clock.now()
    if (
        "suspended" in spec
        and not spec.read_flag("suspended")
        and (topic.suspended or topic.phase == "FAILED")
    ):
        topic.suspended = False
        topic.phase = "PENDING"
        topic.message = ""
        org.clock.call_later(org.delays.tableflow_topic, lambda: run.begin(org, topic))
    return Answer(200, build_document(org, topic))


def delete(call: Call) -> Answer:
    """Delete the Tableflow topic.

    Its files remain in the customer's bucket, and its table remains in Glue.
    """
    org = call.org
    cluster = access.name_cluster_of_query(call)
    _require_owner(call, cluster, call.parameters["name"])
    topic = _find_topic(call, cluster)
    if not topic.deleting:
        topic.deleting = True
        org.clock.call_later(org.delays.tableflow_topic_deletion, lambda: _finish_deletion(org, topic))
    return Answer(204)


def _finish_deletion(org: Organization, topic: TableflowTopic) -> None:
    if org.tableflow_topics.pop(topic.key, None):
        end_usage(org, topic.integration, topic.crn)
        if org.lake:
            org.lake.catalog.drop_table(topic.key)


def _find_topic(call: Call, cluster: Cluster) -> TableflowTopic:
    topic = call.org.tableflow_topics.get((cluster.id, call.parameters["name"]))
    if topic is None:
        raise not_found("Tableflow topic", call.parameters["name"])
    return topic


ROUTES: Final = (
    Route(TABLEFLOW, "POST", _PATH, create),
    Route(TABLEFLOW, "GET", _PATH, list_topics),
    Route(TABLEFLOW, "GET", _PATH + "/{name}", read),
    Route(TABLEFLOW, "PATCH", _PATH + "/{name}", update),
    Route(TABLEFLOW, "DELETE", _PATH + "/{name}", delete),
)
