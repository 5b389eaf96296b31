"""The regions that Tableflow is in (tableflow/v1/regions): one here. Clients ask for them to see whether a key works."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent_cloud.calls import TABLEFLOW, Answer, Call, Route
from simulators.confluent_cloud.resources import Kind, Resource
from simulators.confluent_cloud.world import CLOUD, World

KIND: Final = Kind("tableflow/v1", "Region", "/tableflow/v1/regions")


def listing(call: Call) -> Answer:
    world = call.world
    only = Resource(f"aws.{world.region}", f"{world.crn}/tableflow-region=aws.{world.region}", 0, 0)
    return KIND.page(call, [only] if call.query.get("cloud", CLOUD) == CLOUD else [], _document)


def _document(world: World, region: Resource) -> dict[str, Any]:
    return KIND.header(world, region) | {"cloud": CLOUD, "region": world.region}


ROUTES: Final = (Route(TABLEFLOW, "GET", "/tableflow/v1/regions", listing),)
