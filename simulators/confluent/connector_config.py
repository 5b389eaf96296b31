"""What a connector's configuration must say. Every value is text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from simulators.confluent import datagen
from simulators.confluent.calls import KeyKind
from simulators.confluent.kinds.schema_registries import of_environment

if TYPE_CHECKING:
    from simulators.confluent.kinds.clusters import Cluster
    from simulators.confluent.world import World

DATAGEN: Final = "DatagenSource"
_FORMATS: Final = ("AVRO", "JSON", "JSON_SR", "PROTOBUF")
_SECRET_WORDS: Final = ("secret", "password", "token")


def masked(config: dict[str, str]) -> dict[str, str]:
    return {name: "****" if any(word in name for word in _SECRET_WORDS) else value for name, value in config.items()}


def problems(world: World, cluster: Cluster, config: dict[str, Any]) -> list[tuple[str, str]]:
    """(field, what is wrong)."""
    wrong = [(name, "must be a string") for name, value in config.items() if not isinstance(value, str)]
    if wrong or not config.get("connector.class"):
        return wrong or [("connector.class", "is required")]
    found = list(_account(world, cluster, config))
    return found + (list(_datagen(world, cluster, config)) if config["connector.class"] == DATAGEN else [])


def _account(world: World, cluster: Cluster, config: dict[str, str]) -> Iterator[tuple[str, str]]:
    match config.get("kafka.auth.mode", "KAFKA_API_KEY"):
        case "SERVICE_ACCOUNT":
            if config.get("kafka.service.account.id") not in world.service_accounts:
                yield "kafka.service.account.id", "is not the id of a service account"
        case "KAFKA_API_KEY":
            key = world.api_keys.get(config.get("kafka.api.key", ""))
            if key is None or key.kind is not KeyKind.KAFKA or key.resource != cluster.id:
                yield "kafka.api.key", "is not an API key of this Kafka cluster"
            elif key.secret != config.get("kafka.api.secret"):
                yield "kafka.api.secret", "is not the secret of kafka.api.key"
        case _:
            yield "kafka.auth.mode", "must be SERVICE_ACCOUNT or KAFKA_API_KEY"


def principal(world: World, config: dict[str, str]) -> str:
    """The account that a connector acts as."""
    return config.get("kafka.service.account.id") or world.api_keys[config["kafka.api.key"]].owner


def _datagen(world: World, cluster: Cluster, config: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in ("kafka.topic", "output.data.format", "tasks.max"):
        if not config.get(name):
            yield name, "is required"
    if config.get("output.data.format", "AVRO") not in _FORMATS:
        yield "output.data.format", f"must be one of {', '.join(_FORMATS)}"
    elif config.get("output.data.format") != "AVRO":
        yield "output.data.format", "only AVRO is simulated"
    elif of_environment(world, cluster.environment) is None:
        yield "output.data.format", "AVRO needs Schema Registry, which the environment doesn't have"
    if not config.get("max.interval", "1").isdecimal() or not config.get("tasks.max", "1").isdecimal():
        yield "max.interval", "and tasks.max must be whole numbers"
    yield from _schema(config)


def _schema(config: dict[str, str]) -> Iterator[tuple[str, str]]:
    if bool(config.get("quickstart")) == bool(config.get("schema.string")):
        yield "quickstart", "or schema.string is required, and not both"
    elif config.get("quickstart", "STOCK_TRADES").upper() not in datagen.QUICKSTARTS:
        yield "quickstart", f"of the vendor's quickstarts only {', '.join(datagen.QUICKSTARTS)} is simulated"
    else:
        try:
            datagen.named_schema(config)
        except Exception as error:  # whatever a schema can be wrong in
            yield "schema.string", f"is no Avro schema for a topic: {type(error).__name__} {error}"
