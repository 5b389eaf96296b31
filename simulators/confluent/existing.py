"""Objects that exist in the simulated organization before a deployment, with the ids, names and schemas that
its file gives them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from simulators.confluent import team
from simulators.confluent.iam import bind_role
from simulators.confluent.kafka_log import KafkaTopic, frame_value
from simulators.confluent.model import (
    Cluster,
    Environment,
    KeyKind,
    SchemaRegistry,
    ServiceAccount,
    TableflowTopic,
)
from simulators.confluent.organization import Organization
from simulators.confluent.schemas import Schema
from simulators.confluent.tableflow import glue_sync, run

_KEYS: Final = {
    "kafka": KeyKind.KAFKA,
    "schema_registry": KeyKind.REGISTRY,
    "tableflow": KeyKind.TABLEFLOW,
    "flink": KeyKind.FLINK,
}


@attrs.frozen
class ExistingTopic:
    """`schema` is the Avro schema of its values, None for a topic without one. With `managed`, Tableflow
    writes it as a table in Confluent's storage.
    """

    name: str
    partitions: int = 6
    settings: dict[str, str] = attrs.Factory(dict)
    schema: dict[str, Any] | None = None
    managed: bool = False


@attrs.frozen
class Existing:
    """An environment and, if `cluster_id` isn't empty, a cluster in it. If `glue_database` isn't empty, the
    cluster shows its tables there, with a role that may write to `bucket`.
    """

    environment_id: str
    environment_name: str
    cluster_id: str = ""
    glue_database: str = ""
    bucket: str = ""
    topics: tuple[ExistingTopic, ...] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Existing:
        """Raises TypeError for a key that is unknown or missing."""
        topics = tuple(ExistingTopic(**topic) for topic in document.get("topics", ()))
        return cls(**{**document, "topics": topics})


def create(org: Organization, existing: Existing) -> dict[str, str]:
    """Create the objects, which exist at once. Return keys as `id:secret`: `deployer`, a Cloud key of an
    EnvironmentAdmin; with a cluster, one for each service, of another EnvironmentAdmin, and `reader`, a
    Tableflow key of an account that may read the topics and nothing else.
    """
    environment, registry = team.create_environment(org, existing.environment_id, existing.environment_name)
    deployer = _create_administrator(org, environment, "acme-deployer")
    keys = {"deployer": team.issue(org, deployer, KeyKind.CLOUD, "cloud", org.crn)}
    if not existing.cluster_id:
        return keys
    cluster = team.create_cluster(org, environment, existing.cluster_id)
    for topic in existing.topics:
        _create_topic(org, cluster, registry, topic)
    if existing.glue_database:
        database = "" if existing.glue_database == cluster.id else existing.glue_database
        glue_sync.begin(org, team.create_catalog_integration(org, cluster, existing.bucket, database))
    owner = _create_administrator(org, environment, "acme-keys")
    scopes = {
        "kafka": (cluster.id, cluster.scope),
        "schema_registry": (registry.id, registry.crn),
        "tableflow": ("tableflow", org.crn),
        "flink": (f"{environment.id}.aws.{org.region}", environment.crn),
    }
    for service, (resource, scope) in scopes.items():
        keys[service] = team.issue(org, owner, _KEYS[service], resource, scope)
    reader = team.create_account(org, "acme-reader")
    for topic in existing.topics:
        bind_role(org, f"User:{reader.id}", "DeveloperRead", cluster.build_crn("topic", topic.name))
    keys["reader"] = team.issue(org, reader, KeyKind.TABLEFLOW, "tableflow", org.crn)
    return keys


def _create_administrator(org: Organization, environment: Environment, name: str) -> ServiceAccount:
    account = team.create_account(org, name)
    bind_role(org, f"User:{account.id}", "EnvironmentAdmin", environment.crn)
    return account


def _create_topic(
    org: Organization, cluster: Cluster, registry: SchemaRegistry, topic: ExistingTopic
) -> None:
    team.create_topic(org, cluster, topic.name, topic.settings, topic.partitions)
    if topic.schema is not None:
        text = json.dumps(topic.schema)
        registry.schemas.register(f"{topic.name}-value", Schema("AVRO", text, ()))
    if topic.managed:
        now = org.clock.now()
        crn = f"{cluster.build_crn('topic', topic.name)}/tableflow=iceberg"
        table = TableflowTopic(
            topic.name, crn, now, now, cluster.environment, cluster.id, "", "", team.TABLE_CONFIG, "APPEND"
        )
        table.schema = dict(run.build_table_topic(org, table).schema)
        org.tableflow_topics[table.key] = table
        run.begin(org, table)


def produce(org: Organization, name: str, records: list[dict[str, Any]]) -> int:
    """Write records to the topic with that name in each cluster, as a program of its owner would. Return how
    many records were written.

    A record has `value`, its Avro encoding in Base64, and optionally `key` in Base64, `partition`, and
    `timestamp` in milliseconds since 1970 UTC. Raises LookupError for a topic without a schema.
    """
    written = 0
    for cluster in org.clusters.values():
        topic = cluster.topics.get(name)
        registry = org.find_registry(cluster.environment)
        if topic is None or registry is None:
            continue
        versions = registry.schemas.versions(f"{name}-value")
        if not versions:
            raise LookupError(f"topic {name} has no schema")
        for record in records:
            _append(topic, versions[-1].id, record, org.clock.now())
        written += len(records)
    return written


def _append(topic: KafkaTopic, schema_id: int, record: Mapping[str, Any], now: float) -> None:
    key = base64.b64decode(record["key"]) if record.get("key") is not None else None
    value = frame_value(schema_id, base64.b64decode(record["value"]))
    timestamp = int(record.get("timestamp", now * 1000))
    topic.append(timestamp, key, value, partition=record.get("partition"))
