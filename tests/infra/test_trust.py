"""Who may assume which role: each trust statement is evaluated with right, wrong and missing values (I2)."""

from __future__ import annotations

import pytest

from tests.support import policies
from tests.support.policies import ACCOUNT, Reader

#: The conditions under which services may assume each role.
SERVICES = {"lambda.amazonaws.com", "states.amazonaws.com", "glue.amazonaws.com", "scheduler.amazonaws.com"}


def trust(assembly, role):
    found = [statement for name, statement in Reader(assembly).trusts() if name.startswith(role)]
    assert found, role
    return found


def is_let_in(assembly, role, principal, action="sts:AssumeRole", **context):
    return any(policies.admits(statement, principal, action, context) for statement in trust(assembly, role))


CONFLUENT = "<confluent.ProviderIntegration.confluent_role_arn>"
ITS_ID = "<confluent.ProviderIntegration.external_id>"


def test_confluent_needs_the_external_id_of_its_integration(assembly):
    external_id = "sts:ExternalId"
    assert is_let_in(assembly, "confluent.TableflowRole", CONFLUENT, **{external_id: ITS_ID})
    assert not is_let_in(assembly, "confluent.TableflowRole", CONFLUENT, **{external_id: "another"})
    assert not is_let_in(assembly, "confluent.TableflowRole", CONFLUENT)
    assert not is_let_in(
        assembly, "confluent.TableflowRole", "arn:aws:iam::999:role/else", **{external_id: ITS_ID}
    )


def test_confluent_may_tag_its_session_which_has_no_external_id(assembly):
    assert is_let_in(assembly, "confluent.TableflowRole", CONFLUENT, "sts:TagSession")
    assert not is_let_in(assembly, "confluent.TableflowRole", "arn:aws:iam::999:role/else", "sts:TagSession")
    assert len(trust(assembly, "confluent.TableflowRole")) == 2


def test_the_volume_of_aggregates_needs_its_own_external_id(dev):
    role, principal = "snowflake.SnowflakeRole", "<snowflake.AggregatesVolume.iam_user_arn>"
    for volume, enters in (("AggregatesVolume", True), ("Volume", False)):
        external_id = {"sts:ExternalId": f"<snowflake.{volume}.external_id>"}
        assert is_let_in(dev, role, principal, **external_id) == enters


@pytest.mark.parametrize("own", ["Volume", "Catalog"])
def test_each_user_of_snowflake_needs_its_own_external_id(assembly, own):
    principal = f"<snowflake.{own}.iam_user_arn>"
    external_id = f"<snowflake.{own}.external_id>"
    other = f"<snowflake.{'Catalog' if own == 'Volume' else 'Volume'}.external_id>"
    assert is_let_in(assembly, "snowflake.SnowflakeRole", principal, **{"sts:ExternalId": external_id})
    assert not is_let_in(assembly, "snowflake.SnowflakeRole", principal, **{"sts:ExternalId": other})
    assert not is_let_in(assembly, "snowflake.SnowflakeRole", principal)
    volumes = 2 if assembly.plan.deployment.shows_aggregates else 1
    assert len(trust(assembly, "snowflake.SnowflakeRole")) == volumes + 1


def test_glue_assumes_the_role_for_this_account_only(assembly):
    assert is_let_in(assembly, "exports.JobsRole", "glue.amazonaws.com", **{"aws:SourceAccount": ACCOUNT})
    assert not is_let_in(
        assembly, "exports.JobsRole", "glue.amazonaws.com", **{"aws:SourceAccount": "999999999999"}
    )
    assert not is_let_in(assembly, "exports.JobsRole", "glue.amazonaws.com")


#: Roles of the scheduler, and the group of schedules that may use each.
CALLERS = {
    "exports.Starter": "<exports.Schedules",
    "operations.WatchScheduleCaller": "arn:aws:scheduler",
    "confluent.KeyRotationRevocationCaller": "arn:aws:scheduler",
    "snowflake.KeyRotationRevocationCaller": "arn:aws:scheduler",
}


@pytest.mark.parametrize(("role", "group"), CALLERS.items())
def test_the_scheduler_assumes_the_role_for_our_schedules_only(assembly, role, group):
    (statement,) = trust(assembly, role)
    own = statement["Condition"]["StringEquals"]
    assert own["aws:SourceAccount"] == ACCOUNT
    assert own["aws:SourceArn"].startswith(group)
    assert is_let_in(assembly, role, "scheduler.amazonaws.com", **own)
    for name in own:
        assert not is_let_in(assembly, role, "scheduler.amazonaws.com", **{**own, name: "another"})
        assert not is_let_in(
            assembly, role, "scheduler.amazonaws.com", **{item: own[item] for item in own if item != name}
        )


def test_all_other_roles_trust_services_of_aws_only(assembly):
    vendors = {role for role, statement in Reader(assembly).trusts() if "AWS" in statement["Principal"]}
    assert {role.partition("Role")[0] for role in vendors} == {"confluent.Tableflow", "snowflake.Snowflake"}
    services = {statement["Principal"].get("Service") for _, statement in Reader(assembly).trusts()} - {None}
    assert services == SERVICES
