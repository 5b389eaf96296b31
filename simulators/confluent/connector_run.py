"""What a connector does once it is provisioned: it looks whether it may, registers its schema, and produces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from simulators.confluent import kafka_access
from simulators.confluent.connector_config import DATAGEN, principal
from simulators.confluent.datagen import Generator, named_schema, without_steering
from simulators.confluent.kinds.schema_registries import of_environment
from simulators.confluent.kinds.topics import visible
from simulators.confluent.refusals import Refusal
from simulators.confluent.schemas import Schema

if TYPE_CHECKING:
    from simulators.confluent.kinds.clusters import Cluster
    from simulators.confluent.kinds.connectors import Connector
    from simulators.confluent.world import World

#: Seconds between two batches of records.
TICK: Final = 5.0


def begin(world: World, cluster: Cluster, connector: Connector) -> None:
    if connector.id not in world.connectors or connector.state != "PROVISIONING":
        return
    if connector.config["connector.class"] != DATAGEN:
        connector.state = "RUNNING"
        return
    if problem := _hindrance(world, cluster, connector):
        connector.state, connector.trace = "FAILED", problem
        return
    registry = of_environment(world, cluster.environment)
    assert registry is not None, "an AVRO connector is refused where there is none"
    schema = Schema("AVRO", json.dumps(without_steering(named_schema(connector.config)[0])))
    try:
        version = registry.schemas.register(f"{connector.config['kafka.topic']}-value", schema)
    except Refusal as refused:
        connector.state, connector.trace = "FAILED", refused.detail
        return
    connector.generator = Generator(connector.config, version.id, world.random, world.clock.now())
    connector.state = "RUNNING"
    _tick(world, cluster, connector, connector.generator)


def _hindrance(world: World, cluster: Cluster, connector: Connector) -> str:
    name, account = connector.config["kafka.topic"], principal(world, connector.config)
    if visible(world, cluster, name) is None:
        return f"Topic {name} does not exist"
    if not kafka_access.may(world, cluster, account, "write", topic=name):
        return f"Not authorized to access topics: [{name}]. User:{account} needs WRITE on the topic"
    if not kafka_access.may(world, cluster, account, "describe"):
        return f"Cluster authorization failed. User:{account} needs DESCRIBE on the cluster"
    return ""


def _tick(world: World, cluster: Cluster, connector: Connector, generator: Generator) -> None:
    """Again and again until it is paused, changed or deleted; a missed stretch is made up for in one go."""
    if connector.generator is not generator or connector.state != "RUNNING" or connector.id not in world.connectors:
        return
    topic = visible(world, cluster, connector.config["kafka.topic"])
    if topic is None:
        connector.state, connector.trace = "FAILED", f"Topic {connector.config['kafka.topic']} does not exist"
        return
    world.clock.catch_up()
    generator.fill(topic, world.clock.now())
    world.clock.after(TICK, lambda: _tick(world, cluster, connector, generator))


def pause(world: World, connector: Connector) -> None:
    if connector.state == "RUNNING":
        connector.state = "PAUSED"


def resume(world: World, connector: Connector) -> None:
    if connector.state == "PAUSED":
        connector.state = "RUNNING"
        if connector.generator:
            connector.generator.time = world.clock.now()
            _tick(world, world.clusters[connector.cluster], connector, connector.generator)
