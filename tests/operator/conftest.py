"""The worlds, once for each file: every test has a deployment of a name of its own in them."""

from __future__ import annotations

import pytest
from handshake_environment import Deployed, opened
from resource_environment import START
from stand_ins import Planter, Stacks, StandIns

from lakeferry.deployment import context
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from simulators.aws.server import EmbeddedAws
from simulators.confluent.server import ConfluentCloud
from simulators.core.faults import FaultClient
from simulators.snowflake.server import Snowflake


@pytest.fixture(scope="module")
def stand_ins():
    """For as long, the environment leads to them; other files have worlds of their own."""
    with (
        EmbeddedAws(grace=1) as aws,  # a stack that waits for an answer would hold up the end
        ConfluentCloud(start=START, region="eu-west-1") as cloud,
        Snowflake(start=START, name="myorganization-myaccount") as snow,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield StandIns(aws, cloud, snow)


@pytest.fixture(scope="module")
def stands():
    """A deployment with both handshakes, in worlds of its own; who breaks it mends it."""
    with opened() as stand_ins:
        yield Deployed(stand_ins, stand_ins.deployment()).deploy()


@pytest.fixture
def ctx(stand_ins):
    return stand_ins.deployment()


@pytest.fixture
def plant(ctx):
    return Planter(ctx)


@pytest.fixture
def stacks(ctx):
    return Stacks(ctx)


@pytest.fixture
def broken(stand_ins):
    """Lets a world answer with errors, until the end of the test."""
    clients = {AWS: FaultClient(stand_ins.aws.url), CONFLUENT: stand_ins.cloud.faults, SNOWFLAKE: stand_ins.snow.faults}
    yield lambda system, **rule: clients[system].rule({"fault": "error", "times": 0, **rule})
    for client in clients.values():
        client.clear()


@pytest.fixture(scope="module")
def dev(stand_ins):
    """The file that ships, in these worlds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEFERRY_CONFLUENT_URL", stand_ins.cloud.url)
        patch.setenv("LAKEFERRY_SNOWFLAKE_URL", stand_ins.snow.url)
        with context.open_context("dev") as ctx:
            stand_ins.prepare(ctx)
            yield context.DeploymentContext(ctx.loaded, ctx.addresses, clock=stand_ins.clock)
