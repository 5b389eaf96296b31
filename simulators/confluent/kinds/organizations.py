"""The organization (org/v2/organizations): one, and only read."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.calls import CONTROL, Answer, Call, Route
from simulators.confluent.refusals import not_found
from simulators.confluent.resources import Kind, Resource
from simulators.confluent.world import World

KIND: Final = Kind("org/v2", "Organization", "/org/v2/organizations")


def document(world: World, organization: Resource) -> dict[str, Any]:
    return KIND.header(world, organization) | {"display_name": "Simulated organization", "jit_enabled": False}


def listing(call: Call) -> Answer:
    return KIND.page(call, [_only(call.world)], document)


def read(call: Call) -> Answer:
    if call.parameters["id"] != call.world.organization_id:
        raise not_found("Organization", call.parameters["id"])
    return Answer(200, document(call.world, _only(call.world)))


def _only(world: World) -> Resource:
    return Resource(world.organization_id, world.crn, 0, 0)


ROUTES: Final = (
    Route(CONTROL, "GET", "/org/v2/organizations", listing),
    Route(CONTROL, "GET", "/org/v2/organizations/{id}", read),
)
