"""Commands with a login that doesn't see the deployment's objects: of a role that ended, or of another
organization.
"""

from __future__ import annotations

import json

import attrs
import boto3
import pytest
import requests

from lakeferry import inventory
from lakeferry.cli import destroy as destroy_command
from lakeferry.deploy import run
from lakeferry.deployment import stacks as stacks_of
from lakeferry.errors import CommandFailed
from lakeferry.health import confluent, drift
from lakeferry.health import tenants as health_tenants
from lakeferry.health.model import Result
from lakeferry.inventory import AWS, CONFLUENT, Verdict, forget
from lakeferry.inventory.known import open_states
from lakeferry.output import Output
from lakeferry.plan import tenants
from lakeferry.plan.schemas import Answers
from lambdas.handlers import monitoring, runtime
from lambdas.monitoring.settings import Monitored
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from tests.support.leftovers import LEDGER

ENVIRONMENT = "lf1:environment:Environment:0"


def call(stand_ins, method, path, body=None):
    key = stand_ins.cloud.credentials
    login = (key["cloud_api_key"], key["cloud_api_secret"])
    answer = requests.request(method, stand_ins.cloud.url + path, json=body, auth=login, timeout=20)
    answer.raise_for_status()
    return answer.json() if answer.content else {}


def log_in(ctx, key_id, secret):
    value = json.dumps({"apiKey": key_id, "apiSecret": secret})
    boto3.client("secretsmanager").put_secret_value(
        SecretId=ctx.deployment.confluent.cloud_key_secret, SecretString=value
    )


@pytest.fixture
def environment(stand_ins, ctx, plant, stacks):
    """Deploy an environment, and return its id."""
    stack = stacks.make("confluent", {"States": LEDGER}, known=[ENVIRONMENT])
    id = plant.make("environment", "Environment")
    stacks.remember(stack, ENVIRONMENT, id, {}, tenant=ctx.confluent().tenant)
    return id


def narrow(stand_ins, ctx):
    """Log in with a key whose owner has no role any more."""
    account = call(stand_ins, "POST", "/iam/v2/service-accounts", {"display_name": ctx.deployment.prefix})[
        "id"
    ]
    spec = {"display_name": "k", "owner": {"id": account, "kind": "ServiceAccount"}}
    key = call(stand_ins, "POST", "/iam/v2/api-keys", {"spec": spec})
    stand_ins.clock.sleep(900)
    log_in(ctx, key["id"], key["spec"]["secret"])


def other_organization(stand_ins, ctx):
    other = requests.post(f"{stand_ins.cloud.url}/_simulator/organizations", json={}, timeout=20).json()
    log_in(ctx, other["cloud_api_key"], other["cloud_api_secret"])


def destroyed(ctx):
    return destroy_command.run(Output(quiet=True), ctx, confirmed="test", plan_only=False)


def exists(stand_ins, environment):
    return environment in [
        item["id"] for item in call(stand_ins, "GET", "/org/v2/environments?page_size=99")["data"]
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("service", ["secretsmanager.GetSecretValue", "DynamoDB_20120810.GetItem"])
def test_who_may_not_read_keys_or_states_deploys_and_leaves_the_check_to_the_functions(
    stand_ins, ctx, environment, broken, service
):
    other_organization(stand_ins, ctx)
    with pytest.raises(LakeferryError, match="CFL-OTHER-ORGANIZATION"):
        run.require_tenants(ctx)
    broken(AWS, headers={"x-amz-target": service}, status=400, shape="aws-json", code="AccessDeniedException")
    run.require_tenants(attrs.evolve(ctx))
    assert exists(stand_ins, environment)


def test_a_login_without_a_role_destroys_nothing_and_says_so(stand_ins, ctx, stacks, environment):
    narrow(stand_ins, ctx)
    assert [
        item.verdict for item in inventory.collect(ctx) if item.system == CONFLUENT and not item.kind
    ] == [Verdict.UNKNOWN]
    with pytest.raises(CommandFailed, match="CFL-UNSEEN"):
        destroyed(ctx)
    assert stacks.client.describe_stacks(StackName=f"{ctx.deployment.prefix}-confluent")["Stacks"]
    assert exists(stand_ins, environment)


@pytest.mark.slow
def test_after_its_stacks_are_gone_a_login_without_a_role_does_not_say_that_nothing_is_left(
    stand_ins, ctx, plant
):
    environment = plant.make("environment", "Environment")
    narrow(stand_ins, ctx)
    with pytest.raises(CommandFailed) as failed:
        destroyed(ctx)
    assert (failed.value.code, "CFL-UNSEEN" in failed.value.message) == ("INCOMPLETE", True)
    assert exists(stand_ins, environment)


def test_what_a_login_without_a_role_does_not_see_is_not_missing(stand_ins, ctx, environment):
    assert drift.find_missing(ctx) == []
    narrow(stand_ins, ctx)
    (found,) = drift.find_missing(ctx)
    assert (found.status, found.stack, "CFL-UNSEEN" in found.details) == (Verdict.UNKNOWN, "", True)
    with pytest.raises(CommandFailed) as failed:
        run.to_repair(Output(quiet=True), ctx)
    assert failed.value.code == "INCOMPLETE"


def test_a_login_of_another_organization_is_refused(stand_ins, ctx, environment):
    other_organization(stand_ins, ctx)
    with pytest.raises(LakeferryError, match="CFL-OTHER-ORGANIZATION"):
        destroyed(ctx)
    (found,) = drift.find_missing(ctx)
    assert (found.status, "CFL-OTHER-ORGANIZATION" in found.details) == (Verdict.UNKNOWN, True)
    assert exists(stand_ins, environment)


def plan_tenants(ctx):
    return tenants.compare(ctx, {stack_of(ctx): stacks_of.describe(ctx, stack_of(ctx))})


def doctor_tenants(ctx):
    (check,) = health_tenants.look(ctx, confluent.GROUP, health_tenants.ORGANIZATION, "confluent")
    return check


def test_plan_and_doctor_name_an_object_of_another_organization(stand_ins, ctx, environment):
    assert plan_tenants(ctx) == Answers()
    assert doctor_tenants(ctx).result is Result.OK
    other_organization(stand_ins, ctx)
    (refused,) = plan_tenants(ctx).refusals
    assert str(refused).startswith(
        f"environment Environment of {stack_of(ctx)}: CFL-OTHER-ORGANIZATION: it is in organization "
    )
    check = doctor_tenants(ctx)
    assert (check.result, "CFL-OTHER-ORGANIZATION: environment Environment" in check.message) == (
        Result.FAIL,
        True,
    )
    assert "Store a Cloud key of the organization" in check.fix


@pytest.mark.sampled(1)
@pytest.mark.parametrize("service", ["secretsmanager.GetSecretValue", "DynamoDB_20120810.GetItem"])
def test_plan_and_doctor_say_that_they_could_not_compare(ctx, environment, broken, service):
    broken(AWS, headers={"x-amz-target": service}, status=400, shape="aws-json", code="AccessDeniedException")
    answers = plan_tenants(ctx)
    assert answers.refusals == ()
    assert "could not be asked" in answers.unasked[0]
    assert doctor_tenants(ctx).result is Result.SKIPPED


def test_doctor_compares_nothing_before_a_deployment(ctx):
    assert doctor_tenants(ctx).result is Result.SKIPPED


def test_the_table_says_where_all_its_objects_are(ctx, environment, stacks):
    stack = stacks_of.describe(ctx, stack_of(ctx), with_resources=True)
    assert open_states(ctx, stack).tenants() == {ctx.confluent().tenant}


def watch_settings(ctx, table):
    return monitoring.Settings(
        deployment=ctx.deployment.prefix,
        bucket="",
        prefix="",
        monitored=Monitored("lkc-1"),
        metrics_key=ctx.deployment.confluent.cloud_key_secret,
        telemetry_url=ctx.addresses.confluent,
        tableflow_secret="",
        confluent_url=ctx.addresses.confluent,
        snowflake_secret="",
        snowflake_url="",
        state_table=table,
    )


def watch(ctx, table):
    """Connect as the monitoring function does to measure topics."""
    runtime.get_client.cache_clear()
    try:
        return monitoring.open_telemetry(watch_settings(ctx, table), Session(ctx.deadline), ctx.clock)
    finally:
        runtime.get_client.cache_clear()


def test_monitoring_refuses_a_key_of_another_organization(stand_ins, ctx, environment):
    stack = stacks_of.describe(ctx, stack_of(ctx), with_resources=True)
    table = open_states(ctx, stack).documents.table
    assert watch(ctx, table)
    with pytest.raises(LakeferryError, match="LAKEFERRY_STATE_TABLE"):
        watch(ctx, "")
    other_organization(stand_ins, ctx)
    with pytest.raises(LakeferryError, match="CFL-OTHER-ORGANIZATION"):
        watch(ctx, table)


def test_monitoring_refuses_a_user_of_another_account(ctx, environment):
    """The table's only object is in another tenant than Snowflake's account."""
    stack = stacks_of.describe(ctx, stack_of(ctx), with_resources=True)
    settings = attrs.evolve(
        watch_settings(ctx, ""),
        snowflake_secret=ctx.deployment.snowflake.key_secret,
        snowflake_url=ctx.addresses.snowflake,
        snowflake_state_table=open_states(ctx, stack).documents.table,
    )
    runtime.get_client.cache_clear()
    with pytest.raises(LakeferryError, match="SNF-OTHER-ACCOUNT"):
        monitoring.open_snowflake(settings, Session(ctx.deadline), ctx.clock)
    runtime.get_client.cache_clear()


def stack_of(ctx):
    return f"{ctx.deployment.prefix}-confluent"


def test_an_object_that_exists_is_not_forgotten(ctx, environment):
    with pytest.raises(CommandFailed) as failed:
        forget.find(ctx, stack_of(ctx), "Environment")
    assert (failed.value.code, environment in failed.value.message) == ("FORGET-EXISTS", True)


def test_an_object_that_cannot_be_seen_is_forgotten_by_name(stand_ins, ctx, environment):
    tenant = ctx.confluent().tenant
    narrow(stand_ins, ctx)
    found = forget.find(ctx, stack_of(ctx), "Environment")
    assert str(found) == f"environment {environment} in {tenant}"
    note = forget.forget(ctx, found, "the platform team deleted it")
    again = forget.find(ctx, stack_of(ctx), "Environment").known.state
    assert again.facts.forgotten == note
    assert (again.facts.object_id, again.facts.tenant) == (environment, tenant)
    assert note.endswith(": the platform team deleted it")


@pytest.mark.parametrize(("stack", "logical_id"), [("of-somebody-else", "Environment"), ("", "Nosuch")])
def test_only_an_object_of_this_deployment_is_forgotten(ctx, environment, stack, logical_id):
    with pytest.raises(CommandFailed) as failed:
        forget.find(ctx, stack or stack_of(ctx), logical_id)
    assert failed.value.code == "FORGET-UNKNOWN"


@pytest.mark.slow
def test_an_object_is_not_forgotten_while_a_function_works_on_it(stand_ins, ctx, environment):
    narrow(stand_ins, ctx)
    found = forget.find(ctx, stack_of(ctx), "Environment")
    key = f"{found.known.stack.id}|{ENVIRONMENT}"
    found.states.lease(key, "planted", "a function", ctx.clock.time() + 60)
    with pytest.raises(CommandFailed, match="a function works on environment"):
        forget.forget(ctx, found, "gone")
