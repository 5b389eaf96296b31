"""In-process calls end like calls over a socket, for every fault of the network."""

from __future__ import annotations

import pytest

from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session, Timeouts
from lambdas.shared.redaction import ApiKey, Secret
from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_environment import STEADY, Organization
from tests.support.matrix import FAULTS, LISTS
from tests.support.resource_environment import ManualClock

QUICK = Timeouts(connect=5.0, read=0.3, total=60.0)


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud(seed=1) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def org():
    org = Organization()
    yield org
    org.close()


def ended(session, url, key):
    """Return how a write and the read after it ended, with a fault at the read."""
    key = ApiKey(key["cloud_api_key"], Secret(key["cloud_api_secret"]))
    try:
        answer = session.call("GET", url + "/org/v2/environments", key=key)
    except LakeferryError as error:
        return type(error), error.kind.code
    found = answer.body["data"] if isinstance(answer.body, dict) and "data" in answer.body else answer.body
    return answer.status, len(found) if isinstance(found, list) else type(found)


def session(wire=None):
    clock = ManualClock()
    return Session(Deadline(clock, clock.time() + 3600), timeouts=QUICK, retry=STEADY, adapter=wire)


@pytest.mark.slow
@pytest.mark.parametrize("fault", {**FAULTS, **LISTS})
def test_a_fault_ends_a_call_in_the_same_way_with_and_without_a_socket(cloud, org, fault):
    rule = {"times": 0, **{**FAULTS, **LISTS}[fault]}
    cloud.faults.rule(rule)
    org.disturb(**rule)
    over_sockets = ended(session(), cloud.url, cloud.credentials)
    cloud.faults.clear()
    key = {"cloud_api_key": org.simulation.cloud_key.id, "cloud_api_secret": org.simulation.cloud_key.secret}
    assert ended(session(org.wire), org.url, key) == over_sockets
    org.disturb()
