"""What only a test asks for, at /_simulator on every address.

GET  /_simulator            time, number of objects of each kind, ids
POST /_simulator/clock      {"advance": seconds}
PUT  /_simulator/limit      {"calls": 5, "seconds": 60, "headers": true}; calls 0 lifts it
POST /_simulator/records    {"topic": name}: what its log holds, decoded; no consumer is simulated
POST /_simulator/reset      a new organization, with a new key, which is answered
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from simulators.confluent.limits import RateLimit
from simulators.confluent.record_reader import BadRecord as Bad
from simulators.confluent.record_reader import Reader
from simulators.confluent.simulation import Simulation
from simulators.tableflow.kafka import Record

PREFIX: Final = "/_simulator"
_KINDS: Final = (
    "environments",
    "clusters",
    "schema_registries",
    "service_accounts",
    "role_bindings",
    "api_keys",
    "compute_pools",
    "provider_integrations",
    "connectors",
    "tableflow_topics",
    "catalog_integrations",
)


def respond(simulation: Simulation, method: str, path: str, body: bytes) -> Response:
    action = _ACTIONS.get((method, path.removeprefix(PREFIX)))
    if action is None:
        return JSONResponse({"error": "no such control"}, 404)
    try:
        return JSONResponse(action(simulation, json.loads(body or b"{}")))
    except (ValueError, TypeError, LookupError) as refused:
        return JSONResponse({"error": str(refused)}, 400)


def credentials(simulation: Simulation) -> dict[str, str]:
    """What a newcomer needs. The secret is the simulator's own, and opens nothing else."""
    key = simulation.cloud_key
    return {
        "cloud_api_key": key.id,
        "cloud_api_secret": key.secret,
        "organization_id": simulation.world.organization_id,
    }


def state(simulation: Simulation) -> dict[str, Any]:
    world = simulation.world
    world.clock.run_due()
    objects = {kind: sorted(each.id for each in getattr(world, kind).values()) for kind in _KINDS}
    objects["statements"] = sorted("/".join(key) for key in world.statements)
    objects["topics"] = sorted(f"{cluster.id}/{name}" for cluster in world.clusters.values() for name in cluster.topics)
    objects["acls"] = sorted(f"{cluster.id}/{json.dumps(acl)}" for cluster in world.clusters.values() for acl in cluster.acls)
    objects["subjects"] = sorted(
        f"{each.id}/{name}" for each in world.schema_registries.values() for name in each.schemas.subjects()
    )
    return {"now": world.clock.text(), "objects": objects}


def _advance(simulation: Simulation, body: dict[str, Any]) -> dict[str, Any]:
    simulation.world.clock.advance(float(body["advance"]))
    return state(simulation)


def _limit(simulation: Simulation, body: dict[str, Any]) -> dict[str, Any]:
    simulation.limit = RateLimit(**body)
    return {"calls": simulation.limit.calls, "seconds": simulation.limit.seconds}


def _records(simulation: Simulation, body: dict[str, Any]) -> dict[str, Any]:
    """Of all clusters' topics of that name. Times count milliseconds since 1970 UTC."""
    world, found = simulation.world, []
    world.clock.run_due()
    for cluster in world.clusters.values():
        registry, topic = world.registry_of(cluster.environment), cluster.topics.get(str(body["topic"]))
        if registry and topic and (latest := registry.schemas.latest(f"{topic.name}-value")):
            reader = Reader(registry.schemas, json.loads(latest.text), upserts=False)
            found += [_shown(each) for each in reader.read(topic.name, topic.messages)]
    return {"records": found}


def _shown(record: Record | Bad) -> dict[str, Any]:
    if isinstance(record, Bad):
        return {"partition": record.message.partition, "offset": record.message.offset, "problem": record.problem}
    told = {"partition": record.partition, "offset": record.offset, "timestamp": record.timestamp}
    return told | {"value": None if record.value is None else {name: _plain(each) for name, each in record.value.items()}}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _reset(simulation: Simulation, _: dict[str, Any]) -> dict[str, Any]:
    simulation.reset()
    return credentials(simulation)


_ACTIONS: Final[dict[tuple[str, str], Callable[[Simulation, dict[str, Any]], dict[str, Any]]]] = {
    ("GET", ""): lambda simulation, _: state(simulation),
    ("POST", "/clock"): _advance,
    ("PUT", "/limit"): _limit,
    ("POST", "/records"): _records,
    ("POST", "/reset"): _reset,
}
