"""Fully managed connectors (connect/v1). DatagenSource really produces; any other class is kept and shown as running."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simulators.confluent import access, connector_run
from simulators.confluent.calls import CONNECT, Answer, Call, Route
from simulators.confluent.connector_config import DATAGEN, masked, problems
from simulators.confluent.datagen import Generator
from simulators.confluent.kinds.clusters import Cluster
from simulators.confluent.refusals import Refusal
from simulators.confluent.resources import Resource
from simulators.confluent.world import World

_PATH: Final = "/connect/v1/environments/{environment_id}/clusters/{kafka_cluster_id}"
_ONE: Final = _PATH + "/connectors/{name}"


@attrs.define
class Connector(Resource):
    """`state` is Connect's; `trace` tells why it failed; `generator` is there once it produces."""

    cluster: str
    name: str
    config: dict[str, str]
    state: str = "PROVISIONING"
    trace: str = ""
    generator: Generator | None = None

    @property
    def type(self) -> str:
        return "sink" if self.config["connector.class"].endswith("Sink") else "source"


def _info(connector: Connector) -> dict[str, Any]:
    tasks = [{"connector": connector.name, "task": 0}]
    return {"name": connector.name, "config": masked(connector.config), "tasks": tasks, "type": connector.type}


def _status(connector: Connector) -> dict[str, Any]:
    trace = {"trace": connector.trace} if connector.trace else {}
    task = {"id": 0, "state": connector.state, "worker_id": connector.name, "msg": connector.trace}
    tasks = [task] if connector.state in ("RUNNING", "FAILED", "PAUSED") else []
    worker = {"state": connector.state, "worker_id": connector.name} | trace
    return {"name": connector.name, "type": connector.type, "connector": worker, "tasks": tasks}


def create(call: Call) -> Answer:
    cluster = _cluster(call)
    config = call.body.get("config")
    name = call.body.get("name") or (config or {}).get("name")
    if not isinstance(config, dict) or not isinstance(name, str) or config.get("name") != name:
        raise Refusal(400, "name and config.name are required, and must be the same")
    if _named(call.world, cluster, name):
        raise Refusal(409, f"Connector {name} already exists")
    return Answer(201, _info(_start(call.world, cluster, name, config)))


def _start(world: World, cluster: Cluster, name: str, config: dict[str, Any]) -> Connector:
    if found := problems(world, cluster, config):
        raise Refusal(400, "; ".join(f"{field}: {problem}" for field, problem in found))
    new, now = world.new_id("lcc"), world.clock.now()
    connector = Connector(new, f"{cluster.scope}/connector={name}", now, now, cluster.id, name, dict(config))
    world.connectors[new] = connector
    world.clock.after(world.delays.connector, lambda: connector_run.begin(world, cluster, connector))
    return connector


def listing(call: Call) -> Answer:
    cluster = _cluster(call)
    found = [each for each in call.world.connectors.values() if each.cluster == cluster.id]
    wanted = call.query.get("expand", "").split(",") if call.query.get("expand") else []
    if not wanted:
        return Answer(200, sorted(each.name for each in found))
    return Answer(200, {each.name: _expanded(each, wanted) for each in found})


def _expanded(connector: Connector, wanted: list[str]) -> dict[str, Any]:
    parts = {"id": {"id": connector.id, "id_type": "ID"}, "info": _info(connector), "status": _status(connector)}
    return {name: part for name, part in parts.items() if name in wanted}


def read(call: Call) -> Answer:
    return Answer(200, _info(_found(call)))


def config_of(call: Call) -> Answer:
    return Answer(200, masked(_found(call).config))


def status_of(call: Call) -> Answer:
    return Answer(200, _status(_found(call)))


def put_config(call: Call) -> Answer:
    """Makes a connector that isn't there; starts one that is anew."""
    world, cluster, name = call.world, _cluster(call), call.parameters["name"]
    if call.body.get("name", name) != name:
        raise Refusal(400, "name can't be changed")
    config = call.body | {"name": name}
    connector = _named(world, cluster, name)
    if connector is None:
        return Answer(200, _info(_start(world, cluster, name, config)))
    if config["connector.class"] != connector.config["connector.class"]:
        raise Refusal(400, "connector.class can't be changed")
    if found := problems(world, cluster, config):
        raise Refusal(400, "; ".join(f"{field}: {problem}" for field, problem in found))
    connector.config, connector.state, connector.generator, connector.trace = dict(config), "PROVISIONING", None, ""
    world.clock.after(world.delays.connector, lambda: connector_run.begin(world, cluster, connector))
    return Answer(200, _info(connector))


def pause(call: Call) -> Answer:
    connector = _found(call)
    connector_run.pause(call.world, connector)
    return Answer(202)


def resume(call: Call) -> Answer:
    connector_run.resume(call.world, _found(call))
    return Answer(202)


def delete(call: Call) -> Answer:
    connector = _found(call)
    connector_run.pause(call.world, connector)
    connector.state = "DELETED"
    del call.world.connectors[connector.id]
    return Answer(200, {"error": None})


def plugins(call: Call) -> Answer:
    _cluster(call)
    return Answer(200, [{"class": DATAGEN, "type": "source", "version": "0.6.6"}])


def validate(call: Call) -> Answer:
    found = problems(call.world, _cluster(call), call.body | {"connector.class": call.parameters["plugin"]})
    configs = [{"value": {"name": name, "errors": [problem]}} for name, problem in found]
    return Answer(200, {"name": call.parameters["plugin"], "groups": [], "error_count": len(found), "configs": configs})


def _cluster(call: Call) -> Cluster:
    cluster = access.cluster(call, call.parameters["kafka_cluster_id"], call.parameters["environment_id"])
    if cluster.phase != "PROVISIONED":
        raise Refusal(404, f"Kafka cluster {cluster.id} is not ready")
    return cluster


def _named(world: World, cluster: Cluster, name: str) -> Connector | None:
    return next((each for each in world.connectors.values() if (each.cluster, each.name) == (cluster.id, name)), None)


def _found(call: Call) -> Connector:
    connector = _named(call.world, _cluster(call), call.parameters["name"])
    if connector is None:
        raise Refusal(404, f"Unknown connector {call.parameters['name']}")
    return connector


_DENIED: Final = {403: 401}
_ACT: Final = {**_DENIED, 400: 500}
_CREATE: Final = {**_DENIED, 404: 400, 409: 400}
ROUTES: Final = (
    Route(CONNECT, "POST", _PATH + "/connectors", create, _CREATE),
    Route(CONNECT, "GET", _PATH + "/connectors", listing, _DENIED),
    Route(CONNECT, "GET", _ONE, read, _DENIED),
    Route(CONNECT, "DELETE", _ONE, delete, _DENIED),
    Route(CONNECT, "GET", _ONE + "/config", config_of, _DENIED),
    Route(CONNECT, "PUT", _ONE + "/config", put_config, _DENIED),
    Route(CONNECT, "GET", _ONE + "/status", status_of, _DENIED),
    Route(CONNECT, "PUT", _ONE + "/pause", pause, _ACT),
    Route(CONNECT, "PUT", _ONE + "/resume", resume, _ACT),
    Route(CONNECT, "GET", _PATH + "/connector-plugins", plugins, _DENIED),
    Route(CONNECT, "PUT", _PATH + "/connector-plugins/{plugin}/config/validate", validate, _ACT),
)
