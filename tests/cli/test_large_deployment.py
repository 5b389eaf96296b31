"""The largest supported deployment can be deployed to the stand-ins."""

from __future__ import annotations

import time

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.local import target
from lakeferry.rehearsal import environments
from tests.support import large_deployment
from tests.support.deployment_kit import Operator, bootstrap

pytestmark = [pytest.mark.deep, pytest.mark.timeout(5400)]
STAGE = "large"


@pytest.fixture(scope="module")
def operator(clone):
    file = clone.root / "project" / "deployments" / f"{STAGE}.toml"
    file.write_text(large_deployment.write(clone.root / "project"))
    plan = deployment_file.load(file, clone.root / "project", judge=NOT_JUDGED)
    account = plan.deployment.snowflake.account
    region = plan.deployment.aws.region
    with (
        environments.open_environment(account, time.time() - 3600, region=region, flink=False) as opened,
        target.set_environment(opened.variables),
    ):
        ctx = DeploymentContext(plan, Addresses.read(opened.variables))
        environments.prepare(ctx, opened)
        bootstrap(ctx, clone.root)
        yield Operator(clone, opened, ctx)


def test_it_is_deployed_and_nothing_differs_from_the_file(operator):
    operator.call("deploy", "--yes")
    assert operator.call("plan", "--check").document["changes"] == []
