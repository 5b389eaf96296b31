"""One simulated account, reset before each test."""

import pytest

from simulators.snowflake.server import Snowflake
from simulators.tests.snowflake.snowflake_kit import START, Client, fill


@pytest.fixture(scope="session")
def running():
    with Snowflake(seed=5, start=START) as snowflake:
        yield snowflake


@pytest.fixture
def admin(running):
    running.faults.clear()
    running.reset()
    return Client(running)


@pytest.fixture
def stocked(admin):
    """The administrator of an account with one object of each type."""
    return fill(admin)
