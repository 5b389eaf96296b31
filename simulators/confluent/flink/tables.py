"""Flink's catalogs and tables: an environment is a catalog, a Kafka cluster is a database, a topic is a
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from simulators.confluent import kafka, kafka_access
from simulators.confluent.authorization import is_allowed
from simulators.confluent.flink.sql import SqlError
from simulators.confluent.kafka_log import KafkaTopic
from simulators.confluent.model import Database, ParsedStatement
from simulators.confluent.organization import Organization
from simulators.tableflow.kafka import DEFAULT_PARTITIONS

_SETTINGS: Final = {
    "kafka.cleanup-policy": ("cleanup.policy", {"delete-compact": "compact,delete"}),
    "kafka.producer.compression.type": ("compression.type", {"none": "uncompressed"}),
}


def open_database(
    org: Organization, environment_id: str, properties: Mapping[str, str], principal: str
) -> Database:
    """Return the database that a statement's properties name.

    Raises SqlError if the catalog or the database doesn't exist.
    """
    environment = org.environments[environment_id]
    catalog = properties.get("sql.current-catalog", "")
    name = properties.get("sql.current-database", "")
    if catalog not in (environment.id, environment.name):
        raise SqlError(f"A catalog with name or id '{catalog}' cannot be resolved")
    clusters = [
        cluster for cluster in org.list_clusters(environment_id) if name in (cluster.id, cluster.name)
    ]
    registry = org.find_registry(environment_id)
    if len(clusters) != 1 or registry is None:
        raise SqlError(f"A database with name or id '{name}' cannot be resolved in the catalog '{catalog}'")
    (cluster,) = clusters
    database = Database(environment.name, cluster, registry, principal, {}, org.clock)
    readable = {}
    for name in cluster.topics:
        topic = kafka.find_visible_topic(org, cluster, name)
        if topic and _may(org, database, "read", name):
            readable[name] = topic
    return attrs.evolve(database, readable=readable)


def _may(org: Organization, database: Database, action: str, table: str) -> bool:
    on_topic = kafka_access.may(org, database.cluster, database.principal, action, topic=table)
    return on_topic and is_allowed(
        org, database.principal, action, database.registry.build_subject_crn(f"{table}-value")
    )


def require(org: Organization, database: Database, action: str, table: str) -> None:
    if not _may(org, database, action, table):
        raise SqlError(
            f"Not authorized: User:{database.principal} needs {action} on topic '{table}' and its subjects"
        )


def create_table(org: Organization, database: Database, table: str, parsed: ParsedStatement) -> KafkaTopic:
    """Create the topic of a new table, with the settings for its table options.

    The topic is visible at once.
    """
    require(org, database, "create", table)
    settings = {}
    for option, value in parsed.options.items():
        if option in _SETTINGS:
            name, words = _SETTINGS[option]
            settings[name] = words.get(value, value)
    topic = kafka.create_topic(org, database.cluster, table, parsed.buckets or DEFAULT_PARTITIONS, settings)
    topic.visible = org.clock.now()
    return topic


def drop_table(org: Organization, database: Database, table: str, *, lenient: bool) -> None:
    """Delete the topic and its subjects."""
    topic = kafka.find_visible_topic(org, database.cluster, table)
    if topic is None:
        if lenient:
            return
        raise SqlError(f"Table with identifier '{table}' does not exist")
    require(org, database, "delete", table)
    if (database.cluster.id, table) in org.tableflow_topics:
        raise SqlError(f"Table '{table}' has Tableflow enabled. Disable it first")
    kafka.delete_topic(org, database.cluster, topic)
    schemas = database.registry.schemas
    for subject in (f"{table}-key", f"{table}-value"):
        if subject in schemas.subjects():
            schemas.delete(subject, permanent=False)
