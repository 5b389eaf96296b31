"""The stand-ins, once for each file. Every test has a deployment with a name of its own in them."""

from __future__ import annotations

import pytest

from lakeferry.deployment import context
from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from simulators.aws.server import EmbeddedAws
from simulators.confluent.server import ConfluentCloud
from simulators.core.faults import FaultClient
from simulators.snowflake.server import Snowflake
from tests.support import shipped
from tests.support.handshake_environment import Deployed, connected_stand_ins
from tests.support.resource_environment import START
from tests.support.stand_ins import Planter, Stacks, StandIns


@pytest.fixture(scope="module")
def stand_ins():
    """Start stand-ins for a file, and set the environment to their AWS."""
    with (
        EmbeddedAws(grace=1) as aws,  # a stack that waits for an answer would delay the end
        ConfluentCloud(start=START, region="eu-west-1") as cloud,
        Snowflake(start=START, name="myorganization-myaccount") as snow,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield StandIns(aws, cloud, snow)


@pytest.fixture(scope="module")
def deployed():
    """A deployment with both handshakes, in stand-ins of its own. A test that breaks it also repairs it."""
    with connected_stand_ins() as stand_ins:
        yield Deployed(stand_ins, stand_ins.deployment(snowflake="aggregates = true")).deploy()


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
    """Return a function that makes a system answer with errors until the end of the test."""
    clients = {
        AWS: FaultClient(stand_ins.aws.url),
        CONFLUENT: stand_ins.cloud.faults,
        SNOWFLAKE: stand_ins.snow.faults,
    }
    yield lambda system, **rule: clients[system].rule({"fault": "error", "times": 0, **rule})
    for client in clients.values():
        client.clear()


@pytest.fixture(scope="module")
def dev(stand_ins):
    """The context of project/deployments/dev.toml in these stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEFERRY_CONFLUENT_URL", stand_ins.cloud.url)
        patch.setenv("LAKEFERRY_SNOWFLAKE_URL", stand_ins.snow.url)
        shipped.require_unedited()
        with context.open_context("dev") as ctx:
            stand_ins.prepare(ctx)
            yield context.DeploymentContext(ctx.loaded, ctx.addresses, clock=stand_ins.clock)
