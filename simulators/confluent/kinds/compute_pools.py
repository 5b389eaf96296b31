"""Flink compute pools and regions (fcpm/v2)."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access
from simulators.confluent.errors import conflict, not_found
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import ComputePool, Plane, Resource
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.resources import Kind, reference

KIND: Final = Kind("fcpm/v2", "ComputePool", "/fcpm/v2/compute-pools")
REGION: Final = Kind("fcpm/v2", "Region", "/fcpm/v2/regions")
_NAME: Final = r"[0-9A-Za-z\-][\w\.-]{0,63}"
_SIZES: Final = (5, 10, 20, 30, 40, 50)


def document(org: Organization, pool: ComputePool) -> dict[str, Any]:
    environment = org.environments[pool.environment]
    running = sum(each.pool == pool.id and each.phase == "RUNNING" for each in org.statements.values())
    spec = {
        "display_name": pool.name,
        "cloud": CLOUD,
        "region": pool.region,
        "max_cfu": pool.max_cfu,
        "default_pool": pool.default,
        "environment": reference(org, environment, "/org/v2/environments"),
    }
    status = {"phase": pool.phase, "current_cfu": min(running, pool.max_cfu)}
    return KIND.header(org, pool, f"?environment={environment.id}") | {"spec": spec, "status": status}


def create(call: Call) -> Answer:
    org, spec = call.org, Fields(call.body).inside("spec")
    environment = access.environment_of_body(call, spec)
    spec.choice("cloud", [CLOUD])
    region = spec.choice("region", org.flink_regions)
    name, max_cfu = spec.text("display_name", required=True, pattern=_NAME), spec.whole("max_cfu", among=_SIZES)
    default = spec.flag("default_pool")
    _require_one_default(org, environment.id, default)
    new, now = org.new_id("lfcp"), org.clock.now()
    crn = f"{environment.crn}/flink-region=aws.{region}/compute-pool={new}"
    pool = ComputePool(new, crn, now, now, environment.id, region, name, max_cfu, default)
    org.compute_pools[new] = pool

    def provisioned() -> None:
        pool.phase = "PROVISIONED"

    org.clock.after(org.delays.compute_pool, provisioned)
    return Answer(202, document(org, pool))


def _require_one_default(org: Organization, environment: str, wanted: bool) -> None:
    if wanted and any(each.default and each.environment == environment for each in org.compute_pools.values()):
        raise conflict("The environment has a default compute pool in this region")


def listing(call: Call) -> Answer:
    environment, region = access.environment_of_query(call), call.query.get("spec.region", "")
    pools = [each for each in call.org.compute_pools.values() if each.environment == environment.id]
    return KIND.page(call, [each for each in pools if region in ("", each.region)], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call, access.environment_of_query(call).id)))


def update(call: Call) -> Answer:
    spec = Fields(call.body).inside("spec")
    pool = _found(call, access.environment_of_body(call, spec).id)
    spec.keep("cloud", CLOUD)
    spec.keep("region", pool.region)
    name, max_cfu = spec.text("display_name", pool.name, pattern=_NAME), spec.whole("max_cfu", pool.max_cfu, among=_SIZES)
    default = spec.flag("default_pool", pool.default)
    if max_cfu < pool.max_cfu:
        raise conflict("max_cfu can only grow")
    _require_one_default(call.org, pool.environment, default and not pool.default)
    pool.name, pool.max_cfu, pool.default, pool.updated = name, max_cfu, default, call.org.clock.now()
    return Answer(200, document(call.org, pool))


def delete(call: Call) -> Answer:
    """Statements that still run in it fail."""
    pool = _found(call, access.environment_of_query(call).id)
    for statement in call.org.statements.values():
        if statement.pool == pool.id and statement.phase in ("PENDING", "RUNNING"):
            statement.phase, statement.detail = "FAILED", "The compute pool was deleted"
    del call.org.compute_pools[pool.id]
    return Answer(204)


def regions(call: Call) -> Answer:
    wanted = call.query.get("region_name", "")
    named = call.org.flink_regions if call.query.get("cloud", CLOUD) == CLOUD else ()
    found = [Resource(f"aws.{name}", f"{call.org.crn}/flink-region=aws.{name}", 0, 0) for name in named if wanted in ("", name)]
    return REGION.page(call, found, _region)


def _region(org: Organization, region: Resource) -> dict[str, Any]:
    name = region.id.removeprefix("aws.")
    return REGION.header(org, region) | {
        "display_name": f"Simulated ({name})",
        "cloud": CLOUD,
        "region_name": name,
        "http_endpoint": org.addresses[Plane.FLINK],
    }


def _found(call: Call, environment: str) -> ComputePool:
    found = call.org.compute_pools.get(call.parameters["id"])
    if found is None or found.environment != environment:
        raise not_found("Compute pool", call.parameters["id"])
    return found


ROUTES: Final = (
    Route(CONTROL, "POST", "/fcpm/v2/compute-pools", create),
    Route(CONTROL, "GET", "/fcpm/v2/compute-pools", listing),
    Route(CONTROL, "GET", "/fcpm/v2/compute-pools/{id}", read),
    Route(CONTROL, "PATCH", "/fcpm/v2/compute-pools/{id}", update),
    Route(CONTROL, "DELETE", "/fcpm/v2/compute-pools/{id}", delete),
    Route(CONTROL, "GET", "/fcpm/v2/regions", regions),
)
