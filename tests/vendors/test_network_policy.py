"""A Snowflake account whose network policy refuses the functions, which have no fixed address."""

from __future__ import annotations

import pytest

from lambdas.shared.errors import LakeferryError
from simulators.snowflake.model import User
from tests.support.snowflake_environment import DEPLOYER, Account
from tests.support.snowflake_lives import LIVES

POLICY = "LAKEFERRY_READER"


@pytest.fixture
def account():
    """An account with a policy.

    The admin gave the deployer's user one of its own, which the deployer's role owns.
    """
    account = Account()
    properties = LIVES["snowflake_user"].properties(account)
    account.account.behavior.change(
        {"account_policy": True, "network_policies": {POLICY: DEPLOYER, "OTHER": "SECURITYADMIN"}}
    )
    user_of(account, DEPLOYER).network_policy = POLICY
    yield account, properties
    account.close()


def user_of(account, name):
    return next(user for user in account.account.all(User) if user.label == name)


def test_a_reader_with_a_policy_of_its_own_logs_in_and_gives_it_back(account):
    account, properties = account
    reader = account.resource("snowflake_user", "Reader", **properties, network_policy=POLICY)
    reader.create()
    assert user_of(account, "LAKE_READER").network_policy == POLICY
    reader.update(network_policy=POLICY)
    assert user_of(account, "LAKE_READER").network_policy == POLICY
    account.account.behavior.change({"account_policy": False})
    reader.update(network_policy="")
    assert user_of(account, "LAKE_READER").network_policy == ""


def test_without_it_the_error_says_what_to_create_and_where_to_name_it(account):
    account, properties = account
    with pytest.raises(LakeferryError) as failed:
        account.resource("snowflake_user", "Reader", **properties).create()
    assert failed.value.kind.code == "SNF-NETWORK-POLICY"
    assert "network_policy under [snowflake]" in failed.value.remedy


@pytest.mark.sampled(1)
@pytest.mark.parametrize("policy", ["OTHER", "NOT_THERE"])
def test_a_policy_that_the_deployers_role_does_not_own_is_named(account, policy):
    account, properties = account
    with pytest.raises(LakeferryError, match=f"'{policy}' does not exist or not authorized"):
        account.resource("snowflake_user", "Reader", **properties, network_policy=policy).create()
