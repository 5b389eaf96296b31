"""An IP filter of Confluent that refuses the functions, which have no fixed address."""

from __future__ import annotations

import pytest

from lambdas.shared.errors import LakeferryError
from simulators.confluent.model import Plane
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import LIVES


@pytest.mark.parametrize(
    ("kind", "plane"), [("environment", Plane.CLOUD), ("topic", Plane.KAFKA), ("schema", Plane.REGISTRY)]
)
def test_an_ip_filter_is_named_at_once(kind, plane):
    organization = Organization()
    properties = LIVES[kind].properties(organization)
    organization.simulation.organization.ip_filtered = {plane}
    began = organization.clock.now
    with pytest.raises(LakeferryError) as failed:
        organization.resource(kind, "Filtered", **properties).create()
    assert failed.value.kind.code == "CFL-IP-FILTER"
    assert organization.clock.now - began < 60
    organization.close()
