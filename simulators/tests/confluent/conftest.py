"""One simulated organization, made anew for each test."""

import pytest

from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_kit import Organization


@pytest.fixture(scope="session")
def cloud():
    with ConfluentCloud(seed=7, start=1_793_610_000) as running:
        yield running


@pytest.fixture
def org(cloud):
    cloud.reset()
    return Organization(cloud)
