"""Fully managed connectors (connect/v1).

Only DatagenSource produces records; other classes are stored and shown as RUNNING.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simulators.confluent import access, datagen, kafka, kafka_access
from simulators.confluent.datagen import Generator
from simulators.confluent.errors import ApiError
from simulators.confluent.http import CONNECT, Answer, Call, Route
from simulators.confluent.model import Cluster, Connector, KeyKind
from simulators.confluent.organization import Organization
from simulators.confluent.schemas import Schema

_PATH: Final = "/connect/v1/environments/{environment_id}/clusters/{kafka_cluster_id}"
_ONE: Final = _PATH + "/connectors/{name}"
_DATAGEN: Final = "DatagenSource"
_FORMATS: Final = ("AVRO", "JSON", "JSON_SR", "PROTOBUF")
_SECRET_WORDS: Final = ("secret", "password", "token")
#: Seconds between two batches of records.
_TICK: Final = 5.0


def _describe_connector(connector: Connector) -> dict[str, Any]:
    tasks = [{"connector": connector.name, "task": 0}]
    return {
        "name": connector.name,
        "config": _mask_secrets(connector.config),
        "tasks": tasks,
        "type": connector.type,
    }


def _describe_status(connector: Connector) -> dict[str, Any]:
    trace = {"trace": connector.trace} if connector.trace else {}
    task = {"id": 0, "state": connector.state, "worker_id": connector.name, "msg": connector.trace}
    tasks = [task] if connector.state in ("RUNNING", "FAILED", "PAUSED") else []
    worker = {"state": connector.state, "worker_id": connector.name} | trace
    return {"name": connector.name, "type": connector.type, "connector": worker, "tasks": tasks}


def create(call: Call) -> Answer:
    cluster = _find_cluster(call)
    config = call.body.get("config")
    name = call.body.get("name") or (config or {}).get("name")
    if not isinstance(config, dict) or not isinstance(name, str) or config.get("name") != name:
        raise ApiError(400, "name and config.name are required, and must be the same")
    if _find_by_name(call.org, cluster, name):
        raise ApiError(409, f"Connector {name} already exists")
    return Answer(201, _describe_connector(_start(call.org, cluster, name, config)))


def _require_valid(org: Organization, cluster: Cluster, config: dict[str, Any]) -> None:
    if problems := _list_problems(org, cluster, config):
        raise ApiError(400, "; ".join(f"{field}: {problem}" for field, problem in problems))


def _start(org: Organization, cluster: Cluster, name: str, config: dict[str, Any]) -> Connector:
    _require_valid(org, cluster, config)
    new = org.create_id("lcc")
    now = org.clock.now()
    connector = Connector(new, f"{cluster.scope}/connector={name}", now, now, cluster.id, name, dict(config))
    org.connectors[new] = connector
    org.clock.call_later(org.delays.connector, lambda: _begin(org, cluster, connector))
    return connector


def list_connectors(call: Call) -> Answer:
    cluster = _find_cluster(call)
    connectors = [connector for connector in call.org.connectors.values() if connector.cluster == cluster.id]
    expansions = call.query.get("expand", "").split(",") if call.query.get("expand") else []
    if not expansions:
        return Answer(200, sorted(connector.name for connector in connectors))
    answer = {}
    for connector in connectors:
        parts = {
            "id": {"id": connector.id, "id_type": "ID"},
            "info": _describe_connector(connector),
            "status": _describe_status(connector),
        }
        answer[connector.name] = {name: part for name, part in parts.items() if name in expansions}
    return Answer(200, answer)


def read(call: Call) -> Answer:
    return Answer(200, _describe_connector(_find_connector(call)))


def read_config(call: Call) -> Answer:
    return Answer(200, _mask_secrets(_find_connector(call).config))


def read_status(call: Call) -> Answer:
    return Answer(200, _describe_status(_find_connector(call)))


def put_config(call: Call) -> Answer:
    """Create a connector, or restart it with another configuration."""
    org = call.org
    cluster = _find_cluster(call)
    name = call.parameters["name"]
    if call.body.get("name", name) != name:
        raise ApiError(400, "name can't be changed")
    config = call.body | {"name": name}
    connector = _find_by_name(org, cluster, name)
    if connector is None:
        return Answer(200, _describe_connector(_start(org, cluster, name, config)))
    _require_valid(org, cluster, config)
    if config["connector.class"] != connector.config["connector.class"]:
        raise ApiError(400, "connector.class can't be changed")
    connector.config = dict(config)
    connector.state = "PROVISIONING"
    connector.generator = None
    connector.trace = ""
    org.clock.call_later(org.delays.connector, lambda: _begin(org, cluster, connector))
    return Answer(200, _describe_connector(connector))


def pause(call: Call) -> Answer:
    connector = _find_connector(call)
    if connector.state == "RUNNING":
        connector.state = "PAUSED"
    return Answer(202)


def resume(call: Call) -> Answer:
    """Resume from now. Records that were due during the pause are not produced."""
    org = call.org
    connector = _find_connector(call)
    if connector.state == "PAUSED":
        connector.state = "RUNNING"
        if connector.generator:
            connector.generator.time = org.clock.now()
            _produce_due_records(org, org.clusters[connector.cluster], connector, connector.generator)
    return Answer(202)


def delete(call: Call) -> Answer:
    connector = _find_connector(call)
    connector.state = "DELETED"
    del call.org.connectors[connector.id]
    return Answer(200, {"error": None})


def validate(call: Call) -> Answer:
    config = call.body | {"connector.class": call.parameters["plugin"]}
    problems = _list_problems(call.org, _find_cluster(call), config)
    configs = [{"value": {"name": name, "errors": [problem]}} for name, problem in problems]
    return Answer(
        200,
        {"name": call.parameters["plugin"], "groups": [], "error_count": len(problems), "configs": configs},
    )


def _find_cluster(call: Call) -> Cluster:
    cluster = access.find_cluster(
        call, call.parameters["kafka_cluster_id"], call.parameters["environment_id"]
    )
    if cluster.phase != "PROVISIONED":
        raise ApiError(404, f"Kafka cluster {cluster.id} is not ready")
    return cluster


def _find_by_name(org: Organization, cluster: Cluster, name: str) -> Connector | None:
    for connector in org.connectors.values():
        if connector.cluster == cluster.id and connector.name == name:
            return connector
    return None


def _find_connector(call: Call) -> Connector:
    connector = _find_by_name(call.org, _find_cluster(call), call.parameters["name"])
    if connector is None:
        raise ApiError(404, f"Unknown connector {call.parameters['name']}")
    return connector


def _mask_secrets(config: dict[str, str]) -> dict[str, str]:
    masked_config = dict(config)
    for name in config:
        if any(word in name for word in _SECRET_WORDS):
            masked_config[name] = "****"
    return masked_config


def _list_problems(org: Organization, cluster: Cluster, config: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (field, problem) for each invalid field."""
    problems = [(name, "must be a string") for name, value in config.items() if not isinstance(value, str)]
    if problems or not config.get("connector.class"):
        return problems or [("connector.class", "is required")]
    problems = list(_check_account(org, cluster, config))
    if config["connector.class"] == _DATAGEN:
        problems += _check_datagen(org, cluster, config)
    return problems


def _check_account(org: Organization, cluster: Cluster, config: dict[str, str]) -> Iterator[tuple[str, str]]:
    match config.get("kafka.auth.mode", "KAFKA_API_KEY"):
        case "SERVICE_ACCOUNT":
            if config.get("kafka.service.account.id") not in org.service_accounts:
                yield "kafka.service.account.id", "is not the id of a service account"
        case "KAFKA_API_KEY":
            key = org.api_keys.get(config.get("kafka.api.key", ""))
            if key is None or key.kind is not KeyKind.KAFKA or key.resource != cluster.id:
                yield "kafka.api.key", "is not an API key of this Kafka cluster"
            elif key.secret != config.get("kafka.api.secret"):
                yield "kafka.api.secret", "is not the secret of kafka.api.key"
        case _:
            yield "kafka.auth.mode", "must be SERVICE_ACCOUNT or KAFKA_API_KEY"


def _check_datagen(org: Organization, cluster: Cluster, config: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in ("kafka.topic", "output.data.format", "tasks.max"):
        if not config.get(name):
            yield name, "is required"
    if config.get("output.data.format", "AVRO") not in _FORMATS:
        yield "output.data.format", f"must be one of {', '.join(_FORMATS)}"
    elif config.get("output.data.format") != "AVRO":
        yield "output.data.format", "only AVRO is simulated"
    elif org.find_registry(cluster.environment) is None:
        yield "output.data.format", "AVRO needs Schema Registry, which the environment doesn't have"
    if not config.get("max.interval", "1").isdecimal() or not config.get("tasks.max", "1").isdecimal():
        yield "max.interval", "max.interval and tasks.max must be whole numbers"
    yield from _check_schema(config)


def _check_schema(config: dict[str, str]) -> Iterator[tuple[str, str]]:
    if bool(config.get("quickstart")) == bool(config.get("schema.string")):
        yield "quickstart", "either quickstart or schema.string is required, not both"
    elif config.get("quickstart", "STOCK_TRADES").upper() not in datagen.QUICKSTARTS:
        yield "quickstart", f"only {', '.join(datagen.QUICKSTARTS)} is simulated"
    else:
        try:
            datagen.read_named_schema(config)
        except Exception as error:  # an invalid schema can raise any exception
            yield "schema.string", f"is not a valid Avro schema for a topic: {type(error).__name__} {error}"


def _begin(org: Organization, cluster: Cluster, connector: Connector) -> None:
    if connector.id not in org.connectors or connector.state != "PROVISIONING":
        return
    if connector.config["connector.class"] != _DATAGEN:
        connector.state = "RUNNING"
        return
    if problem := _describe_missing_rights(org, cluster, connector):
        connector.state = "FAILED"
        connector.trace = problem
        return
    registry = org.find_registry(cluster.environment)
    assert registry is not None, "a connector with AVRO is refused in an environment without Schema Registry"
    document, _ = datagen.read_named_schema(connector.config)
    schema = Schema.from_avro(datagen.remove_arg_properties(document))
    try:
        version = registry.schemas.register(f"{connector.config['kafka.topic']}-value", schema)
    except ApiError as error:
        connector.state = "FAILED"
        connector.trace = error.detail
        return
    connector.generator = Generator(connector.config, version.id, org.random, org.clock.now())
    connector.state = "RUNNING"
    _produce_due_records(org, cluster, connector, connector.generator)


def _describe_missing_rights(org: Organization, cluster: Cluster, connector: Connector) -> str:
    config = connector.config
    name = config["kafka.topic"]
    account = config.get("kafka.service.account.id") or org.api_keys[config["kafka.api.key"]].owner
    if kafka.find_visible_topic(org, cluster, name) is None:
        return f"Topic {name} does not exist"
    if not kafka_access.may(org, cluster, account, "write", topic=name):
        return f"Not authorized to access topics: [{name}]. User:{account} needs WRITE on the topic"
    if not kafka_access.may(org, cluster, account, "describe"):
        return f"Cluster authorization failed. User:{account} needs DESCRIBE on the cluster"
    return ""


def _produce_due_records(
    org: Organization, cluster: Cluster, connector: Connector, generator: Generator
) -> None:
    """Produce the records that are due and schedule the next tick, until the connector is paused, changed or
    deleted.

    If the clock was advanced, all records that are due by now are produced in one batch.
    """
    if (
        connector.generator is not generator
        or connector.state != "RUNNING"
        or connector.id not in org.connectors
    ):
        return
    topic = kafka.find_visible_topic(org, cluster, connector.config["kafka.topic"])
    if topic is None:
        connector.state = "FAILED"
        connector.trace = f"Topic {connector.config['kafka.topic']} does not exist"
        return
    org.clock.catch_up()
    generator.fill(topic, org.clock.now())
    org.clock.call_later(_TICK, lambda: _produce_due_records(org, cluster, connector, generator))


_DENIED: Final = {403: 401}
_ACT: Final = {**_DENIED, 400: 500}
_CREATE: Final = {**_DENIED, 404: 400, 409: 400}
ROUTES: Final = (
    Route(CONNECT, "POST", _PATH + "/connectors", create, _CREATE),
    Route(CONNECT, "GET", _PATH + "/connectors", list_connectors, _DENIED),
    Route(CONNECT, "GET", _ONE, read, _DENIED),
    Route(CONNECT, "DELETE", _ONE, delete, _DENIED),
    Route(CONNECT, "GET", _ONE + "/config", read_config, _DENIED),
    Route(CONNECT, "PUT", _ONE + "/config", put_config, _DENIED),
    Route(CONNECT, "GET", _ONE + "/status", read_status, _DENIED),
    Route(CONNECT, "PUT", _ONE + "/pause", pause, _ACT),
    Route(CONNECT, "PUT", _ONE + "/resume", resume, _ACT),
    Route(CONNECT, "PUT", _PATH + "/connector-plugins/{plugin}/config/validate", validate, _ACT),
)
