"""Each file in project/deployments/ is deployed and destroyed with the commands that users call.

The rehearsal does so for dev.toml. The tests of a file depend on each other: each continues where the
previous one ended.
"""

from __future__ import annotations

import re
import signal
import time
from datetime import UTC, datetime

import pytest

from lakeferry import inventory
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.inventory import Verdict
from lakeferry.local import target
from lakeferry.rehearsal import environments
from simulators.data import generators
from tests.support import shipped
from tests.support.deployment_kit import Operator, bootstrap
from tests.support.promises import promised
from tests.support.waiting import PATIENCE, until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
_WEEK = {"start": datetime(2026, 11, 9, tzinfo=UTC), "end": datetime(2026, 11, 16, tzinfo=UTC)}
#: Records that the user's producers write, by topic.
ORDERS = {
    "sales_orders": [
        order.value
        for order in generators.generate_sales_orders(generators.SalesMix(orders=5), seed=1, **_WEEK)
    ]
}
#: dev and orders are deployed by rehearsals.
STAGES = ["prod"]


@pytest.fixture(scope="module", params=STAGES)
def operator(request, clone):
    loaded = shipped.load(request.param)
    account = loaded.deployment.snowflake.account
    region = loaded.deployment.aws.region
    with (
        environments.open_environment(account, time.time() - 3600, region=region, flink=False) as opened,
        target.set_environment(opened.variables),
    ):
        ctx = DeploymentContext(loaded, Addresses.read(opened.variables))
        yield Operator(clone, opened, ctx)


def test_what_is_missing_is_listed_before_anything_is_created(operator):
    result = operator.call("deploy", "--yes", code=3)
    assert result.document["code"] == "DEPLOY-NOT-READY"
    assert len(result.document["details"]) == 3
    assert operator.stacks() == {}
    environments.prepare(operator.ctx, operator.environment)
    bootstrap(operator.ctx, operator.clone.root)


def test_a_deployment_needs_consent(operator):
    assert operator.call("deploy", code=2).document["code"] == "DEPLOY-NOT-CONFIRMED"
    assert operator.stacks() == {}


def test_a_first_creation_that_failed_is_repeated(operator):
    """CDK protects the stack before it creates it, and CloudFormation doesn't delete a protected one."""
    prefix = operator.ctx.deployment.prefix
    athena = operator.ctx.client("athena")
    athena.create_work_group(Name=prefix)
    failed = operator.call("deploy", "--yes", code=1).document
    assert (failed["code"], prefix in failed["message"]) == ("DEPLOY-FAILED", True)
    assert operator.stacks() == {f"{prefix}-data": "ROLLBACK_COMPLETE"}
    (stack,) = operator.ctx.client("cloudformation").describe_stacks(StackName=f"{prefix}-data")["Stacks"]
    assert stack["EnableTerminationProtection"]
    athena.delete_work_group(WorkGroup=prefix)


def test_ctrl_c_does_not_stop_a_stack_that_is_being_created(operator):
    stack = f"{operator.ctx.deployment.prefix}-confluent"
    process = operator.clone.start(
        "deploy", "--yes", "--stage", operator.ctx.stage, "--json", changes=operator.environment.variables
    )
    until(
        lambda: operator.stacks().get(stack) == "CREATE_IN_PROGRESS" or process.poll() is not None, PATIENCE
    )
    process.send_signal(signal.SIGINT)
    result = operator.clone.finish(process)
    assert (result.code, result.document["code"]) == (6, "DEPLOY-STOPPED"), result.err
    assert result.document["details"]["under_way"] == [stack]
    until(lambda: not operator.stacks()[stack].endswith("_IN_PROGRESS"), PATIENCE)
    assert operator.stacks()[stack] == "CREATE_COMPLETE"


def test_the_same_command_deploys_the_rest(operator):
    operator.call("deploy", "--yes")
    assert operator.stacks() == dict.fromkeys(operator.ctx.stacks, "CREATE_COMPLETE")
    assert operator.call("plan", "--check").document["changes"] == []


def test_records_become_tables_and_status_reports_no_problem(operator):
    for topic in operator.ctx.deployment.topics:
        operator.produce(topic.name, ORDERS[topic.name])
    for _ in range(2):
        operator.environment.advance_confluent(300)
    operator.environment.advance_snowflake(300)
    status = operator.call("status").document
    assert status.keys() == promised("status")
    states = {hop["state"] for table in status["tables"] for hop in table.values() if isinstance(hop, dict)}
    assert states == {"ok"}
    checks = operator.call("doctor").document["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []


def test_a_protected_deployment_is_destroyed_after_its_protection_is_removed(operator):
    """Only what the file keeps remains."""
    prefix = operator.ctx.deployment.prefix
    file = operator.clone.root / "project" / "deployments" / f"{operator.ctx.stage}.toml"
    refused = operator.call("destroy", "--confirm", operator.ctx.stage, code=7).document
    assert refused["code"] == "DESTROY-PROTECTED"
    file.write_text(file.read_text().replace("deletion_protection = true", "deletion_protection = false"))
    operator.call("deploy", "--yes")
    client = operator.ctx.client("cloudformation")
    for stack in re.findall(rf"\b{prefix}-[a-z]+\b", refused["message"]):
        client.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    done = operator.call("destroy", "--confirm", operator.ctx.stage).document
    assert sorted(done["stacks"]) == sorted(operator.ctx.stacks)
    assert operator.stacks() == {}
    left = inventory.collect(operator.ctx)
    assert inventory.problems(left) == []
    assert {item.kind for item in left if item.verdict is Verdict.RETAINED} >= {"bucket"}
