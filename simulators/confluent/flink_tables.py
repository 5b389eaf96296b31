"""Tables as Flink sees them: an environment is a catalog, a Kafka cluster a database, a topic with a schema a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from simulators.confluent import kafka_access
from simulators.confluent.authorization import allowed
from simulators.confluent.flink_sql import SqlError
from simulators.confluent.kinds.schema_registries import of_environment
from simulators.confluent.kinds.topics import make, remove, visible

if TYPE_CHECKING:
    from simulators.confluent.flink_sql import Parsed
    from simulators.confluent.kafka_log import KafkaTopic
    from simulators.confluent.kinds.clusters import Cluster
    from simulators.confluent.kinds.schema_registries import SchemaRegistry
    from simulators.confluent.world import World

_SETTINGS: Final = {
    "kafka.cleanup-policy": ("cleanup.policy", {"delete-compact": "compact,delete"}),
    "kafka.producer.compression.type": ("compression.type", {"none": "uncompressed"}),
}


@attrs.frozen
class Database:
    """Where a statement's bare table names are looked up, and as whom."""

    world: World
    cluster: Cluster
    registry: SchemaRegistry
    principal: str

    def may(self, action: str, table: str) -> bool:
        subject = self.registry.subject(f"{table}-value")
        on_topic = kafka_access.may(self.world, self.cluster, self.principal, action, topic=table)
        return on_topic and allowed(self.world, self.principal, action, subject)

    def require(self, action: str, table: str) -> None:
        if not self.may(action, table):
            raise SqlError(f"Not authorized: User:{self.principal} needs {action} on topic '{table}' and its subjects")

    def topic(self, table: str) -> KafkaTopic | None:
        return visible(self.world, self.cluster, table)

    def readable(self) -> dict[str, KafkaTopic]:
        """Topics that can be tables of a query."""
        return {name: topic for name in self.cluster.topics if (topic := self.topic(name)) and self.may("read", name)}

    def schema(self, table: str) -> dict[str, Any] | None:
        """The value's Avro schema; None for a topic without one."""
        latest = self.registry.schemas.latest(f"{table}-value")
        return json.loads(latest.text) if latest and latest.kind == "AVRO" else None

    def create(self, table: str, parsed: Parsed) -> KafkaTopic:
        """The topic of a new table, with the settings that its options ask for."""
        self.require("create", table)
        settings = {}
        for option, value in parsed.options.items():
            if option in _SETTINGS:
                name, words = _SETTINGS[option]
                settings[name] = words.get(value, value)
        topic = make(self.world, self.cluster, table, parsed.buckets or 6, settings)
        topic.visible = self.world.clock.now()
        return topic

    def drop(self, table: str, *, lenient: bool) -> None:
        """The topic, and its subjects."""
        topic = self.topic(table)
        if topic is None:
            if lenient:
                return
            raise SqlError(f"Table with identifier '{table}' does not exist")
        self.require("delete", table)
        if (self.cluster.id, table) in self.world.tableflow_topics:
            raise SqlError(f"Table '{table}' has Tableflow enabled. Disable it first")
        remove(self.world, self.cluster, topic)
        for subject in (f"{table}-key", f"{table}-value"):
            if subject in self.registry.schemas.subjects():
                self.registry.schemas.delete(subject, permanent=False)


def database(world: World, environment_id: str, properties: Mapping[str, str], principal: str) -> Database:
    """Raises SqlError where a property names what isn't there."""
    environment = world.environments[environment_id]
    catalog, name = properties.get("sql.current-catalog", ""), properties.get("sql.current-database", "")
    if catalog not in (environment.id, environment.name):
        raise SqlError(f"A catalog with name or id '{catalog}' cannot be resolved")
    found = [each for each in world.clusters.values() if each.environment == environment_id and name in (each.id, each.name)]
    registry = of_environment(world, environment_id)
    if len(found) != 1 or registry is None:
        raise SqlError(f"A database with name or id '{name}' cannot be resolved in the catalog '{catalog}'")
    return Database(world, found[0], registry, principal)
