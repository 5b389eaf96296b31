"""The largest deployment that is promised is deployed whole into the stand-ins."""

from __future__ import annotations

import time

import large_deployment
import pytest
from deployment_kit import Operator, bootstrap

from deployments import check
from lakeferry import ground, world
from lakeferry.ground import Addresses, Ground
from lakeferry.rehearsal import worlds

pytestmark = [pytest.mark.deep, pytest.mark.timeout(5400)]
STAGE = "large"


@pytest.fixture(scope="module")
def operator(deployable):
    file = deployable.root / "deployments" / f"{STAGE}.toml"
    file.write_text(large_deployment.write(deployable.root))
    plan = check.load(file, deployable.root)
    account, region = plan.deployment.snowflake.account, plan.deployment.aws.region
    with (
        worlds.open_worlds(account, time.time() - 3600, region=region, flink=False) as opened,
        world.in_environment(opened.environment),
    ):
        here = Ground(plan, Addresses.read(opened.environment))
        worlds.prepare(here, opened)
        # The bootstrap is the same for every stage of an account and region, and dev.toml takes least time to synthesise.
        with ground.of("dev") as dev:
            bootstrap(dev, deployable.root)
        yield Operator(deployable, opened, here)


def test_it_is_deployed_and_nothing_differs_from_the_file(operator):
    operator.call("deploy", "--yes")
    assert operator.call("plan", "--check").document["changes"] == []
