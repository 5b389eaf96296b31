"""The largest deployment that is promised is deployed whole into the stand-ins."""

from __future__ import annotations

import time

import attrs
import large_deployment
import pytest
from command import Clone, Said

from deployments import check
from lakeferry.deployment import context
from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.local import target
from rehearsal import environments

pytestmark = [pytest.mark.deep, pytest.mark.timeout(5400)]
STAGE = "large"


@attrs.frozen
class Operator:
    clone: Clone
    worlds: environments.SimulatedEnvironment
    here: DeploymentContext

    def call(self, *words, code=0) -> Said:
        said = self.clone.run(*words, "--stage", STAGE, "--json", changes=self.worlds.environment, patience=5000)
        assert said.code == code, f"{words}\n{said.err[-4000:]}{said.out[-4000:]}"
        return said


@pytest.fixture(scope="module")
def operator(deployable):
    file = deployable.root / "deployments" / f"{STAGE}.toml"
    file.write_text(large_deployment.write(deployable.root))
    plan = check.load(file, deployable.root)
    account, region = plan.deployment.snowflake.account, plan.deployment.aws.region
    with (
        environments.open_worlds(account, time.time() - 3600, region=region, flink=False) as opened,
        target.in_environment(opened.environment),
    ):
        here = DeploymentContext(plan, Addresses.read(opened.environment))
        environments.prepare(here, opened)
        bootstrap(deployable)
        yield Operator(deployable, opened, here)


def bootstrap(clone):
    """CDK's bootstrap is the same for every stage of an account and region; dev.toml has the quickest templates."""
    with context.open_context("dev") as dev:
        line = Cdk(dev, clone.root / "cdk.out", clone.root / "cdk.log")
        line.synth(print)
        line.bootstrap(print)


def test_it_is_deployed_and_nothing_differs_from_the_file(operator):
    operator.call("deploy", "--yes")
    assert operator.call("plan", "--check").document["changes"] == []
