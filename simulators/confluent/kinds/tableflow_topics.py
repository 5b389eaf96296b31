"""Tableflow topics (tableflow/v1/tableflow-topics). A topic's name is its id."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from simulators.confluent import access, tableflow_run
from simulators.confluent.authorization import allowed
from simulators.confluent.calls import TABLEFLOW, Answer, Call, Route
from simulators.confluent.fields import Fields
from simulators.confluent.kinds import provider_integrations
from simulators.confluent.kinds.clusters import Cluster
from simulators.confluent.kinds.topics import visible
from simulators.confluent.refusals import Refusal, conflict, forbidden, immutable, invalid, not_found
from simulators.confluent.resources import Kind, Resource, reference
from simulators.confluent.world import World
from simulators.tableflow.avro import SchemaError

KIND: Final = Kind("tableflow/v1", "TableflowTopic", "/tableflow/v1/tableflow-topics")
_WEEK_MS: Final = 604_800_000
_LEAST_RETENTION_MS: Final = 86_400_000
_LEAST_DATA_RETENTION_MS: Final = 2_592_000_000
_LOG_TARGET: Final = r"[a-zA-Z0-9_-]{1,249}"
_PATH: Final = "/tableflow/v1/tableflow-topics"


@attrs.define
class TableflowTopic(Resource):
    """`integration` is empty for managed storage. `taken` counts the messages that are in the table, or were skipped.

    `skipped` are the times at which messages were, in seconds since 1970.
    """

    environment: str
    cluster: str
    bucket: str
    integration: str
    config: dict[str, Any]
    write_mode: str
    phase: str = "PENDING"
    message: str = ""
    suspended: bool = False
    deleting: bool = False
    table_path: str = ""
    schema: dict[str, Any] = attrs.Factory(dict)
    taken: int = 0
    skipped: list[float] = attrs.Factory(list)
    #: Of each catalog integration: how far it is with this table, and why not further.
    synced: dict[str, tuple[str, str]] = attrs.Factory(dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.cluster, self.id


def document(world: World, topic: TableflowTopic) -> dict[str, Any]:
    environment, cluster = world.environments[topic.environment], world.clusters[topic.cluster]
    path = {"table_path": topic.table_path} if topic.table_path else {}
    storage: dict[str, Any] = {"kind": "Managed"}
    if topic.integration:
        storage = {"kind": "ByobAws", "bucket_name": topic.bucket, "provider_integration_id": topic.integration}
        storage["bucket_region"] = cluster.region
    spec = {
        "display_name": topic.id,
        "suspended": topic.suspended,
        "config": {"enable_compaction": True, "enable_partitioning": True} | topic.config,
        "storage": storage | path,
        "table_formats": ["ICEBERG"],
        "environment": reference(world, environment, "/org/v2/environments"),
        "kafka_cluster": reference(world, cluster, "/cmk/v2/clusters", environment.id),
    }
    header = KIND.header(world, topic, f"?environment={environment.id}&spec.kafka_cluster={cluster.id}")
    del header["id"]
    return header | {"spec": spec, "status": _status(world, topic)}


def _status(world: World, topic: TableflowTopic) -> dict[str, Any]:
    synced = [
        {"catalog_integration_id": name, "catalog_type": "AWS_GLUE", "sync_status": state}
        | ({"error_message": why} if why else {})
        for name, (state, why) in topic.synced.items()
        if name in world.catalog_integrations
    ]
    failing = [{"format": "ICEBERG", "error_message": topic.message}] if topic.phase == "FAILED" else []
    status = {
        "phase": topic.phase,
        "write_mode": topic.write_mode,
        "catalog_sync_statuses": synced,
        "failing_table_formats": failing,
    }
    return status | ({"error_message": topic.message} if topic.message else {})


def create(call: Call) -> Answer:
    world, spec = call.world, Fields(call.body).inside("spec")
    name = spec.text("display_name", required=True)
    cluster = _cluster_of_body(call, spec)
    if (cluster.id, name) in world.tableflow_topics:
        raise conflict(f"Tableflow is already enabled on topic {name}")
    config, (bucket, integration) = _config(spec, {}), _storage(call, spec)
    _formats(spec)
    if spec.flag("suspended"):
        raise invalid("/spec/suspended", "A topic can't be suspended on demand")
    kafka_topic = visible(world, cluster, name)
    if kafka_topic is None or kafka_topic.visible + world.delays.tableflow_sees_topic > world.clock.now():
        raise Refusal(404, "topic not found", code="resource_not_found")
    mode = "UPSERT" if "compact" in kafka_topic.setting("cleanup.policy") else "APPEND"
    now, crn = world.clock.now(), f"{cluster.inside('topic', name)}/tableflow=iceberg"
    topic = TableflowTopic(name, crn, now, now, cluster.environment, cluster.id, bucket, integration, config, mode)
    try:
        topic.schema = dict(tableflow_run.table_topic(world, topic).schema)
    except SchemaError as refused:
        raise Refusal(400, f"The topic's schema can't be a table: {refused}", code="bad_request") from None
    world.tableflow_topics[topic.key] = topic
    world.clock.after(world.delays.tableflow_topic, lambda: tableflow_run.begin(world, topic))
    return Answer(202, document(world, topic))


def _cluster_of_body(call: Call, spec: Fields) -> Cluster:
    name, environment = spec.reference("kafka_cluster"), spec.reference("environment")
    if name not in call.world.clusters or call.world.clusters[name].environment != environment:
        raise forbidden("Kafka cluster not found or access is denied")
    return access.cluster(call, name, environment)


def _storage(call: Call, spec: Fields) -> tuple[str, str]:
    """The bucket and the provider integration; neither for managed storage."""
    storage = spec.inside("storage")
    match storage.choice("kind", ("ByobAws", "Managed", "AzureDataLakeStorageGen2")):
        case "Managed":
            return "", ""
        case "AzureDataLakeStorageGen2":
            raise invalid("/spec/storage/kind", "Azure storage is not simulated")
    bucket = storage.text("bucket_name", required=True, pattern=r"[a-z0-9.-]{3,63}")
    integration = storage.text("provider_integration_id", required=True)
    require_integration(call, integration, spec.reference("environment"), "/spec/storage/provider_integration_id")
    return bucket, integration


def require_integration(call: Call, name: str, environment: str, pointer: str) -> None:
    """That it is there, and that the caller may hand it on."""
    found = call.world.provider_integrations.get(name)
    if found is None or found.environment != environment:
        raise invalid(pointer, f"provider integration {name} does not exist in the environment")
    if not allowed(call.world, call.principal, "assign", found.crn):
        raise forbidden(f"Assigner or ResourceOwner on provider integration {name} is needed")


def _config(spec: Fields, current: dict[str, Any]) -> dict[str, Any]:
    given = spec.inside("config", required=False)
    handling = current.get("error_handling", {"mode": "SUSPEND"})
    if "error_handling" in given:
        handling = _error_handling(given)
    if "record_failure_strategy" in given and given.text("record_failure_strategy") != handling["mode"]:
        raise Refusal(400, "record_failure_strategy contradicts error_handling", code="bad_request")
    config = {
        "retention_ms": _duration(given, "retention_ms", current.get("retention_ms", str(_WEEK_MS)), _LEAST_RETENTION_MS),
        "error_handling": handling,
        "record_failure_strategy": "SKIP" if handling["mode"] == "LOG" else handling["mode"],
    }
    naming = current.get("metadata_column_naming_scheme", "DEFAULT")
    config["metadata_column_naming_scheme"] = given.choice("metadata_column_naming_scheme", ("DEFAULT", "PORTABLE"), naming)
    kept = _duration(given, "data_retention_ms", current.get("data_retention_ms", ""), _LEAST_DATA_RETENTION_MS)
    return config | ({"data_retention_ms": kept} if kept else {})


def _error_handling(given: Fields) -> dict[str, str]:
    handling = given.inside("error_handling")
    mode = handling.choice("mode", ("SUSPEND", "SKIP", "LOG"))
    return {"mode": mode} | ({"target": handling.text("target", "error_log", pattern=_LOG_TARGET)} if mode == "LOG" else {})


def _duration(given: Fields, name: str, default: str, least: int) -> str:
    value = given.text(name, default)
    if value and (not re.fullmatch(r"\d+", value) or int(value) < least):
        raise invalid(given.at(name), f"{name} must be a whole number of at least {least}")
    return value


def _formats(spec: Fields) -> None:
    if "DELTA" in spec.texts("table_formats", ["ICEBERG"], ("ICEBERG", "DELTA")):
        raise invalid("/spec/table_formats", "DELTA is not simulated")


def listing(call: Call) -> Answer:
    """CloudClusterOperator may list tables, though not change them (Confluent's page on roles for Tableflow)."""
    cluster = access.cluster_of_query(call, "describe")
    return KIND.page(call, [each for each in call.world.tableflow_topics.values() if each.cluster == cluster.id], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call, access.cluster_of_query(call, "describe"))))


def update(call: Call) -> Answer:
    world, spec = call.world, Fields(call.body).inside("spec")
    topic = _found(call, _cluster_of_body(call, spec))
    if "storage" in spec:
        _require_same_storage(spec.inside("storage"), topic)
    _formats(spec)
    config = _config(spec, topic.config)
    if config["metadata_column_naming_scheme"] != topic.config["metadata_column_naming_scheme"]:
        raise immutable("/spec/config/metadata_column_naming_scheme")
    if spec.flag("suspended", topic.suspended) and not topic.suspended:
        raise Refusal(400, "A topic can't be suspended on demand", code="bad_request", pointer="/spec/suspended")
    topic.config, topic.updated = config, world.clock.now()
    if "suspended" in spec and not spec.flag("suspended") and (topic.suspended or topic.phase == "FAILED"):
        topic.suspended, topic.phase, topic.message = False, "PENDING", ""
        world.clock.after(world.delays.tableflow_topic, lambda: tableflow_run.begin(world, topic))
    return Answer(200, document(world, topic))


def _require_same_storage(storage: Fields, topic: TableflowTopic) -> None:
    storage.keep("kind", "ByobAws" if topic.integration else "Managed")
    storage.keep("bucket_name", topic.bucket)
    storage.keep("provider_integration_id", topic.integration)


def delete(call: Call) -> Answer:
    """The files stay in a bucket of the customer's, and what was put into Glue stays too."""
    world = call.world
    topic = _found(call, access.cluster_of_query(call))
    if not topic.deleting:
        topic.deleting = True
        world.clock.after(world.delays.tableflow_topic_deletion, lambda: _gone(world, topic))
    return Answer(204)


def _gone(world: World, topic: TableflowTopic) -> None:
    if world.tableflow_topics.pop(topic.key, None):
        provider_integrations.linger(world, topic.integration, topic.crn)
        if world.lake:
            world.lake.catalog.drop_table(topic.key)


def _found(call: Call, cluster: Cluster) -> TableflowTopic:
    topic = call.world.tableflow_topics.get((cluster.id, call.parameters["name"]))
    if topic is None:
        raise not_found("Tableflow topic", call.parameters["name"])
    return topic


ROUTES: Final = (
    Route(TABLEFLOW, "POST", _PATH, create),
    Route(TABLEFLOW, "GET", _PATH, listing),
    Route(TABLEFLOW, "GET", _PATH + "/{name}", read),
    Route(TABLEFLOW, "PATCH", _PATH + "/{name}", update),
    Route(TABLEFLOW, "DELETE", _PATH + "/{name}", delete),
)
