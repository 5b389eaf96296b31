"""The largest supported deployment can be deployed to the stand-ins, and a larger one is refused."""

from __future__ import annotations

import re
import subprocess
import sys
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


@pytest.fixture(scope="module")
def too_large(operator):
    """Return the stage of a file with more topics than a stack can hold, and one statement."""
    project = operator.clone.root / "project"
    text = large_deployment.write(project, 170).replace('stage = "large"', 'stage = "toolarge"')
    (project / "deployments" / "toolarge.toml").write_text(text)
    return "toolarge"


def assert_explained(text):
    number = re.search(r"stack lakeferry-toolarge-confluent would have (\d+) resources", text)
    assert number, text
    assert int(number[1]) > 500
    assert "CloudFormation allows 500" in text
    assert "the deployment file has 170 topics, 0 statements and 50 exports" in text
    assert "AWS::KMS::Key" not in text


@pytest.mark.parametrize("words", [("plan",), ("deploy", "--yes")])
def test_a_file_with_too_many_topics_is_refused_in_one_message(operator, too_large, words):
    variables = operator.environment.variables
    result = operator.clone.run(*words, "--stage", too_large, "--json", changes=variables, patience=1500)
    assert (result.code, result.document["code"]) == (2, "TOO-MANY-RESOURCES"), result.err[-3000:]
    assert_explained(result.document["message"])
    assert "second deployment file" in result.document["hint"]
    listed = operator.ctx.client("cloudformation").list_stacks()["StackSummaries"]
    assert [stack for stack in listed if too_large in stack["StackName"]] == []


def test_so_does_the_synthesis_alone(operator, too_large):
    command = [sys.executable, "-m", "lakeferry.deployment.app", too_large]
    done = subprocess.run(command, cwd=operator.clone.root, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 2
    assert_explained(done.stderr)
    assert "second deployment file" in done.stderr


def test_it_is_deployed_and_nothing_differs_from_the_file(operator):
    operator.call("deploy", "--yes")
    assert operator.call("plan", "--check").document["changes"] == []
