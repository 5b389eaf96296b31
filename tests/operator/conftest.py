"""The worlds, once for each file: every test has a deployment of a name of its own in them."""

from __future__ import annotations

import pytest
from handshake_world import Deployed, opened
from operator_worlds import Planter, Stacks, Worlds
from resource_world import START

from lakeferry.deployment import context
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from simulators.aws.server import EmbeddedAws
from simulators.confluent_cloud.server import ConfluentCloud
from simulators.nemesis import NemesisClient
from simulators.snowflake.server import Snowflake


@pytest.fixture(scope="module")
def worlds():
    """For as long, the environment leads to them; other files have worlds of their own."""
    with (
        EmbeddedAws() as aws,
        ConfluentCloud(start=START, region="eu-west-1") as cloud,
        Snowflake(start=START, name="myorganization-myaccount") as snow,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield Worlds(aws, cloud, snow)


@pytest.fixture(scope="module")
def stands():
    """A deployment with both handshakes, in worlds of its own; who breaks it mends it."""
    with opened() as worlds:
        yield Deployed(worlds, worlds.deployment()).deploy()


@pytest.fixture
def here(worlds):
    return worlds.deployment()


@pytest.fixture
def plant(here):
    return Planter(here)


@pytest.fixture
def stacks(here):
    return Stacks(here)


@pytest.fixture
def broken(worlds):
    """Lets a world answer with errors, until the end of the test."""
    clients = {AWS: NemesisClient(worlds.aws.url), CONFLUENT: worlds.cloud.nemesis, SNOWFLAKE: worlds.snow.nemesis}
    yield lambda world, **rule: clients[world].rule({"fault": "error", "times": 0, **rule})
    for client in clients.values():
        client.clear()


@pytest.fixture(scope="module")
def dev(worlds):
    """The file that ships, in these worlds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEFERRY_CONFLUENT_URL", worlds.cloud.url)
        patch.setenv("LAKEFERRY_SNOWFLAKE_URL", worlds.snow.url)
        with context.open_context("dev") as here:
            worlds.prepare(here)
            yield context.DeploymentContext(here.plan, here.addresses, clock=worlds.clock)
