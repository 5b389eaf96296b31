"""The regions of Tableflow (tableflow/v1/regions), which are those of Flink. Clients list them to see whether a key works."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.http import TABLEFLOW, Answer, Call, Route
from simulators.confluent.model import Resource
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("tableflow/v1", "Region", "/tableflow/v1/regions")


def listing(call: Call) -> Answer:
    named = call.org.flink_regions if call.query.get("cloud", CLOUD) == CLOUD else ()
    found = [Resource(f"aws.{name}", f"{call.org.crn}/tableflow-region=aws.{name}", 0, 0) for name in named]
    return KIND.page(call, found, _document)


def _document(org: Organization, region: Resource) -> dict[str, Any]:
    return KIND.header(org, region) | {"cloud": CLOUD, "region": region.id.removeprefix("aws.")}


ROUTES: Final = (Route(TABLEFLOW, "GET", "/tableflow/v1/regions", listing),)
